"""How many examples a property is given: all of them, or a part of them where the run is a quick one."""

from __future__ import annotations

SHARE = 0.1
"""Of the examples of a property in a quick run."""
FEWEST = 5

quick = False
"""Set before the tests are imported (`conftest.py`)."""


def examples(count: int) -> int:
    """`count`, or a tenth of it in a quick run: for `settings(max_examples=…)`."""
    return max(min(count, FEWEST), int(count * SHARE)) if quick else count
