"""How many examples a property is given: all of them, or a part of them where the run is a quick one."""

from __future__ import annotations

SHARE = 0.05
"""Of the examples of a property in a quick run."""
FEWEST = 4

quick = False
"""Set before the tests are imported (`conftest.py`)."""


def share() -> float:
    """What part of its examples a property has: the tests of the page's modules read it from `EXAMPLES_SHARE`."""
    return SHARE if quick else 1.0


def examples(count: int) -> int:
    """`count`, or a twentieth of it in a quick run: for `settings(max_examples=…)`."""
    return max(min(count, FEWEST), int(count * SHARE)) if quick else count
