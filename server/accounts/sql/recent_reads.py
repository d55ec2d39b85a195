"""What was read from a database a moment ago is believed for a moment.

Rule 1: what is in memory is read again when somebody asks for it and it is older than MAX_AGE, or than its reader says.
        Those that ask for the same at the same time wait for one query; a query that failed is not believed.
Rule 2: what is asked for again and again is read together: so the checks of all streams are one query a second, and
        one after a `clear`.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MAX_AGE = 0.98
"""Seconds. A stream asks about as often (`journal/cursors.py`)."""
MAX_REMEMBERED = 10_000
"""Answers in memory."""


def default_age(took: float) -> float:
    """The same for every answer."""
    return MAX_AGE


@dataclass(slots=True)
class _Reading(Generic[K, V]):
    """A query: when it began, its answers with the seconds that it took, and how they were asked for.

    Attributes:
        asked: when somebody asked last.
        used: whether they were asked for again.
        stale: they are not believed.
    """

    begun: float
    task: asyncio.Task[tuple[Mapping[K, V], float]]
    asked: float
    used: bool = False
    stale: bool = False


class RecentReads(Generic[K, V]):
    """Answers of `read`, by what was asked.

    Args:
        read: answers a question.
        read_all: answers several with one query; None if there is no such query.
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
        read_all: Callable[[Collection[K]], Coroutine[Any, Any, Mapping[K, V]]] | None = None,
    ) -> None:
        self._read = read
        self._read_all = read_all
        self._clock = clock
        self._max_age = max_age
        self._single_flight = single_flight
        self._reads: OrderedDict[K, _Reading[K, V]] = OrderedDict()

    async def get(self, key: K) -> V:
        """The answer, as it was a moment ago; raises what `read` raises."""
        now, known = self._clock(), self._reads.get(key)
        if known and not known.stale and self._counts(now - known.begun, known.task):
            known.used, known.asked = True, now
        else:
            known = self._begin(key, known, now)
        return (await asyncio.shield(known.task))[0][key]

    def clear(self) -> None:
        """Believe nothing that was read before, or is being read."""
        for known in self._reads.values():  # kept to be read together, as all askers come at once
            known.stale = True

    def _begin(self, key: K, earlier: _Reading[K, V] | None, now: float) -> _Reading[K, V]:
        # What is asked for again and again, as by streams, is read together from then on.
        several = self._reads.items() if self._read_all and earlier else ()
        keys = {key, *(other for other, known in several if self._is_due(now, known))}
        task = asyncio.create_task(self._read_and_time(keys, now), name="recent read")
        for each in keys - {key}:
            # Each has its own marks of use.
            self._reads[each] = _Reading(now, task, self._reads[each].asked)
            self._reads.move_to_end(each)
        self._reads[key] = reading = _Reading(now, task, now)
        self._reads.move_to_end(key)
        while len(self._reads) > MAX_REMEMBERED:
            self._reads.popitem(last=False)
        return reading

    def _is_due(self, now: float, known: _Reading[K, V]) -> bool:
        if known.stale:
            return now - known.asked < 2 * MAX_AGE
        return known.used and known.task.done() and now - known.begun >= MAX_AGE / 2

    def _counts(self, age: float, reading: asyncio.Task[tuple[Mapping[K, V], float]]) -> bool:
        if not reading.done():
            return self._single_flight or age < MAX_AGE
        failed = reading.cancelled() or reading.exception()
        return not failed and age < self._max_age(reading.result()[1])

    async def _read_and_time(self, keys: Collection[K], begun: float) -> tuple[Mapping[K, V], float]:
        answers = await self._read_all(keys) if self._read_all else {key: await self._read(key) for key in keys}
        return answers, self._clock() - begun
