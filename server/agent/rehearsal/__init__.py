"""`rehearsal`: a small deterministic writer for trying things without a key."""

from server.agent.rehearsal.model import HELP, NOTICE, Rehearsal, plan

__all__ = ["HELP", "NOTICE", "Rehearsal", "plan"]
