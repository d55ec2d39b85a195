"""`rehearsal`: a packaged script, for trying the server offline and without a key.

`Rehearsal` is imported when it is asked for: only some servers need the engine of the scripts.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal

__all__ = ["NOTICE", "Rehearsal"]

NOTICE = (
    "This is the rehearsal model, a small program that follows fixed rules, not a language model. "
    "Set ANTHROPIC_API_KEY, or choose a model with --model, to get a real one."
)
"""Said at start-up, in the card and in the first reply."""


def __getattr__(name: str) -> Any:
    if name != "Rehearsal":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal

    return Rehearsal
