"""`rehearsal`: a small deterministic writer for trying things without a key."""

from a2a_canvas.server.agent.models.rehearsal.rehearsal import HELP, NOTICE, Rehearsal, plan

__all__ = ["HELP", "NOTICE", "Rehearsal", "plan"]
