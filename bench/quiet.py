"""Whether the machine was quiet: a fixed loop, timed before and after each scenario.

What misses its target on a machine that has something else to do says nothing about this program.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Final

from bench.report import quantile, ratio

ROUNDS: Final = 50
STEPS: Final = 100_000
"""A round takes about 5 ms, less than a process runs before another one may."""
SHARE: Final = 0.9
MOST: Final = 1.3
"""How many times the fastest round the slowest of `SHARE` of the rounds may take on a quiet machine."""


@dataclass(slots=True)
class Calibration:
    """The rounds so far.

    Attributes:
        fastest: seconds of the fastest round.
    """

    fastest: float = math.inf

    def slowdown(self) -> float:
        """How many times the fastest round so far most rounds take now."""
        return self.rate([_round() for _ in range(ROUNDS)])

    def rate(self, rounds: list[float]) -> float:
        """The slowdown in these rounds, in seconds each."""
        self.fastest = min(self.fastest, *rounds)
        return ratio(quantile(rounds, SHARE), self.fastest)


def busy(before: float, after: float) -> str:
    """What to say of a scenario between two slowdowns; empty if the machine was quiet."""
    worst = max(before, after)
    if worst <= MOST:
        return ""
    return f"the machine was busy: a fixed loop took {worst:.2f} times as long as the fastest one (at most {MOST})"


def _round() -> float:
    begun = time.perf_counter()
    for _ in range(STEPS):
        pass
    return time.perf_counter() - begun
