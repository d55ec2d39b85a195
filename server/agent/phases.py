"""The phases of a turn as shown to subscribers, as a table (docs/turn.md).

Rule 1: `final_message_start` is emitted once per turn, just before the first visible text. It clears thinking.
Rule 2: thinking may come again after text (in a later round); the text after it starts no second message.
Rule 3: a turn without visible text has no `final_message_start`.
Rule 4: END is the end of the turn. A pause for `ask_user` is not a signal: the turn continues with the answer.
Rule 5: after the end there is no further signal.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """What a subscriber sees."""

    WORKING = "working"
    THINKING = "thinking"
    ASSISTANT = "assistant"
    RETHINKING = "rethinking"
    """Thinking again, after the turn has shown text."""
    COMPLETED = "completed"


class Signal(StrEnum):
    """A piece of thinking, a piece of visible text, or the end of the turn."""

    THINKING = "thinking"
    TEXT = "text"
    END = "end"


class PhaseError(Exception):
    """A signal after the end of the turn."""

    def __init__(self, phase: Phase, signal: Signal) -> None:
        super().__init__(f"Signal {signal.value!r} after the turn has ended.")
        self.phase = phase
        self.signal = signal


TABLE: Final[Mapping[tuple[Phase, Signal], tuple[Phase, bool]]] = {
    (Phase.WORKING, Signal.THINKING): (Phase.THINKING, False),
    (Phase.WORKING, Signal.TEXT): (Phase.ASSISTANT, True),
    (Phase.WORKING, Signal.END): (Phase.COMPLETED, False),
    (Phase.THINKING, Signal.THINKING): (Phase.THINKING, False),
    (Phase.THINKING, Signal.TEXT): (Phase.ASSISTANT, True),
    (Phase.THINKING, Signal.END): (Phase.COMPLETED, False),
    (Phase.ASSISTANT, Signal.THINKING): (Phase.RETHINKING, False),
    (Phase.ASSISTANT, Signal.TEXT): (Phase.ASSISTANT, False),
    (Phase.ASSISTANT, Signal.END): (Phase.COMPLETED, False),
    (Phase.RETHINKING, Signal.THINKING): (Phase.RETHINKING, False),
    (Phase.RETHINKING, Signal.TEXT): (Phase.ASSISTANT, False),
    (Phase.RETHINKING, Signal.END): (Phase.COMPLETED, False),
}
"""(phase, signal) -> (next phase, whether `final_message_start` is due now)."""


def advance(phase: Phase, signal: Signal) -> tuple[Phase, bool]:
    """The phase after a signal, and whether `final_message_start` must be emitted before what is signalled.

    Raises:
        PhaseError: the turn has ended.
    """
    step = TABLE.get((phase, signal))
    if step is None:
        raise PhaseError(phase, signal)
    return step
