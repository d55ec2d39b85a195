"""What was read from a database a moment ago is believed for a moment.

Rule 1: what is in memory is read again when somebody asks for it and it is older than MAX_AGE. Those that ask for the
        same at the same time wait for one query; a query that failed is not believed.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MAX_AGE = 0.8
"""Seconds. A stream asks about as often (`journal/cursors.py`)."""
MAX_REMEMBERED = 10_000
"""Answers in memory."""


class RecentReads(Generic[K, V]):
    """Answers of `read`, by what was asked.

    Args:
        clock: seconds, for the age of what is in memory.
    """

    def __init__(
        self, read: Callable[[K], Coroutine[Any, Any, V]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._reads: OrderedDict[K, tuple[float, asyncio.Task[V]]] = OrderedDict()

    async def get(self, key: K) -> V:
        """The answer, as it was a moment ago; raises what `read` raises."""
        at, reading = self._reads.get(key, (0.0, None))
        failed = reading and reading.done() and (reading.cancelled() or reading.exception())
        if reading is None or failed or self._clock() - at >= MAX_AGE:
            reading = asyncio.create_task(self._read(key), name="recent read")
            self._reads[key] = self._clock(), reading
            self._reads.move_to_end(key)
            if len(self._reads) > MAX_REMEMBERED:
                self._reads.popitem(last=False)
        return await asyncio.shield(reading)

    def clear(self) -> None:
        """Believe nothing that was read before."""
        self._reads.clear()
