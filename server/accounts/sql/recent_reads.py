"""What was read from a database a moment ago is believed for a moment.

Rule 1: what is in memory is read again when somebody asks for it and it is older than MAX_AGE, or than its reader says.
        Those that ask for the same at the same time wait for one query; a query that failed is not believed.
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


def default_age(took: float) -> float:
    """The same for every answer."""
    return MAX_AGE


class RecentReads(Generic[K, V]):
    """Answers of `read`, by what was asked.

    Args:
        clock: seconds, for the age of what is in memory.
        max_age: the seconds for which an answer counts from the beginning of its reading, which took so many.
        single_flight: nobody starts a query while one is in progress, however long that takes, so that a slow database
            does not get more of them. Otherwise a query that is older than MAX_AGE is not waited for.
    """

    def __init__(
        self,
        read: Callable[[K], Coroutine[Any, Any, V]],
        clock: Callable[[], float] = time.monotonic,
        max_age: Callable[[float], float] = default_age,
        *,
        single_flight: bool = False,
    ) -> None:
        self._read = read
        self._clock = clock
        self._max_age = max_age
        self._single_flight = single_flight
        self._reads: OrderedDict[K, tuple[float, asyncio.Task[tuple[V, float]]]] = OrderedDict()

    async def get(self, key: K) -> V:
        """The answer, as it was a moment ago; raises what `read` raises."""
        now = self._clock()
        begun, reading = self._reads.get(key, (now, None))
        if reading is None or not self._counts(now - begun, reading):
            reading = asyncio.create_task(self._read_and_time(key, now), name="recent read")
            self._reads[key] = now, reading
            self._reads.move_to_end(key)
            if len(self._reads) > MAX_REMEMBERED:
                self._reads.popitem(last=False)
        return (await asyncio.shield(reading))[0]

    def clear(self) -> None:
        """Believe nothing that was read before."""
        self._reads.clear()

    def _counts(self, age: float, reading: asyncio.Task[tuple[V, float]]) -> bool:
        if not reading.done():
            return self._single_flight or age < MAX_AGE
        failed = reading.cancelled() or reading.exception()
        return not failed and age < self._max_age(reading.result()[1])

    async def _read_and_time(self, key: K, begun: float) -> tuple[V, float]:
        return await self._read(key), self._clock() - begun
