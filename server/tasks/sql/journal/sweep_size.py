"""How many rows a transaction of a sweep takes: more while it is short, fewer as soon as others would wait for it.

A transaction is long when its rows are large, the disk is slow, or others write, for which it has waited itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

SMALLEST: Final = 10
LARGEST: Final = 1000
SHORT_SECONDS: Final = 0.02
"""After a shorter transaction the next one has twice as many rows; after one of more than twice that, half as many."""


def next_size(size: int, seconds: float) -> int:
    """The rows of the next transaction, after one of `size` rows took `seconds`."""
    if seconds < SHORT_SECONDS:
        return min(2 * size, LARGEST)
    return max(size // 2, SMALLEST) if seconds > 2 * SHORT_SECONDS else size


class BatchSize:
    """The size of a sweep's next transaction.

    Args:
        clock: in seconds.

    Attributes:
        rows: the size.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.rows = SMALLEST
        self._clock = clock

    @contextmanager
    def measure(self) -> Iterator[None]:
        """The block is one transaction of `rows` rows. One that fails counts, too."""
        begun = self._clock()
        try:
            yield
        finally:
            self.rows = next_size(self.rows, self._clock() - begun)
