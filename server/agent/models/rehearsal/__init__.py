"""`rehearsal`: a packaged script, for trying the server offline and without a key."""

from a2a_canvas.server.agent.models.rehearsal.rehearsal import NOTICE, Rehearsal

__all__ = ["NOTICE", "Rehearsal"]
