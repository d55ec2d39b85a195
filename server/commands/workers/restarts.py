"""When a worker that has ended is started again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals
from typing import Final

FIRST_SECONDS: Final = 0.5
LONGEST_SECONDS: Final = 30.0
"""The delay doubles with each death in a row, from the first to the longest."""
STEADY_SECONDS: Final = 60.0
"""A worker that has served for so long does not die in a row with those before it."""
MOST_AT_START: Final = 3
"""Deaths of the first worker before it has served once: then the others would die, too."""
REFUSED: Final = 2
"""The exit code of a server whose settings or agent cannot be used: another attempt ends in the same way."""


@dataclass(frozen=True, slots=True)
class Death:
    """The end of a worker that nobody asked for.

    Attributes:
        code: its exit code; below 0 the number of the signal that killed it.
        served_for: seconds; None if it had not begun to serve.
        last_line: of what it has said.
    """

    code: int
    served_for: float | None = None
    last_line: str = ""

    def __str__(self) -> str:
        how = f"was killed by {_name(-self.code)}" if self.code < 0 else f"ended with exit code {self.code}"
        return f"{how} ({self.last_line})" if self.last_line and self.code > 0 else how


def _name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def deaths_in_a_row(before: int, death: Death) -> int:
    """How many there are with this one. A worker that was stopped in order (code 0) has not died."""
    if death.code == 0:
        return 0
    return 1 if death.served_for is not None and death.served_for >= STEADY_SECONDS else before + 1


def delay_after(deaths: int) -> float:
    """Seconds until the worker is started again, after so many deaths in a row."""
    return min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(deaths - 1, 10)) if deaths else 0.0


def is_final(deaths: int, death: Death, *, served: bool) -> bool:
    """Whether no worker is started again.

    Args:
        served: a worker has served since the start.
    """
    return not served and (death.code == REFUSED or deaths >= MOST_AT_START)
