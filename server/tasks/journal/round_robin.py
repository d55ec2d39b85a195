"""How readers that are behind, and requests with long steps, share the event loop with everything else on it.

Rule 1: in one turn of the loop readers run for BUDGET in sum, and the last one finishes the step that it is in. The
        rest continue in the next turns, after everything else that was ready.
Rule 2: a reader reads for SLICE, then all that wait come before it (round robin). So one that is behind delays another
        by a slice at most, however far behind it is.
Rule 3: while the loop has time for all, nobody waits: a reader that is woken runs in the next turn of the loop.
Rule 4: between two long steps, such as writing an answer of a megabyte, the loop has APART turns: one commit may end
        the waits of many such requests at once, and others should not wait for all of them.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable
from itertools import count
from time import perf_counter
from typing import Final
from weakref import WeakKeyDictionary

BUDGET: Final = 0.005
"""Seconds. A request needs some ten turns of the loop."""
SLICE: Final = 0.001
"""Seconds: long enough to send several events with one write."""
AT_ONCE: Final = 16
"""Readers that are woken for one turn of the loop: what the budget is enough for if each has a single event."""
APART: Final = 10
"""Turns of the loop that a small request needs."""

Place = asyncio.Future[int]
"""A reader's place in the queue; its result is the number of the place, when it is the reader's turn."""


class RoundRobin:
    """The readers of one event loop.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.clock = clock
        self._queue: list[tuple[int, Place]] = []
        self._numbers = count()
        self._long_step = asyncio.Lock()
        self._end: float | None = None
        self._scheduled = False

    def wake(self, places: Iterable[Place]) -> None:
        """Let these readers run, in their order, after those that wait already."""
        for place in places:
            heapq.heappush(self._queue, (next(self._numbers), place))
        if self._queue and not self._scheduled:
            self._begin_turn()

    async def wait_for_slice(self, place: Place) -> float:
        """Wait until a reader that was or will be woken may run; it returns when its slice ends."""
        number = await place
        while self._remaining_budget() < SLICE:
            place = asyncio.get_running_loop().create_future()
            heapq.heappush(self._queue, (number, place))
            number = await place
        return self.clock() + SLICE

    async def next_slice(self) -> float:
        """Wait until the others have had their slices; returns when the next one ends."""
        place: Place = asyncio.get_running_loop().create_future()
        self.wake((place,))
        return await self.wait_for_slice(place)

    async def long_step(self) -> None:
        """Wait until a step that takes long may run (rule 4)."""
        async with self._long_step:
            for _ in range(APART):
                await asyncio.sleep(0)

    def _remaining_budget(self) -> float:
        """What is left of the budget of this turn of the loop, which begins with its first reader."""
        if self._end is None:
            self._end = self.clock() + BUDGET
        return self._end - self.clock()

    def _begin_turn(self) -> None:
        self._end, woken = None, 0
        while self._queue and woken < AT_ONCE:
            number, place = heapq.heappop(self._queue)
            if not place.done():  # a reader that has left
                place.set_result(number)
                woken += 1
        self._scheduled = woken > 0
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._begin_turn)


_ROUND_ROBINS: WeakKeyDictionary[asyncio.AbstractEventLoop, RoundRobin] = WeakKeyDictionary()


def round_robin() -> RoundRobin:
    """That of the running loop."""
    loop = asyncio.get_running_loop()
    found = _ROUND_ROBINS.get(loop)
    if found is None:
        found = _ROUND_ROBINS[loop] = RoundRobin()
    return found
