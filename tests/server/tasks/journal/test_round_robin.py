"""Readers that are behind share the event loop: with each other, and with everything else on it.

The clock is the tests' own: reading takes time when a test says so, and nothing waits.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from a2a_canvas.server.tasks.journal.cursors import Cursor, Log
from a2a_canvas.server.tasks.journal.round_robin import APART, BUDGET, SLICE, round_robin
from tests.server.tasks.work_clock import WorkClock, turns_until, work_clock

COST = SLICE / 4
"""Seconds that a reader takes for an item."""


@pytest.fixture
async def clock() -> AsyncIterator[WorkClock]:
    with work_clock() as clock:
        yield clock


class Readers:
    """Readers of one log, and what each has read."""

    def __init__(self, log: Log[int], count: int, clock: WorkClock, cost: float = COST) -> None:
        self.read: list[list[int]] = [[] for _ in range(count)]
        self._cost, self._clock = cost, clock
        self.tasks = [asyncio.create_task(self._run(Cursor(log), read)) for read in self.read]

    async def _run(self, cursor: Cursor[int], read: list[int]) -> None:
        async for item in cursor:
            self._clock.work(self._cost)
            read.append(item)

    def have_read(self, items: int) -> bool:
        return all(len(read) >= items for read in self.read)


@contextmanager
def other_work(clock: WorkClock) -> Iterator[list[float]]:
    """The seconds between two steps of something else on the loop, which is always ready."""
    waits: list[float] = []
    loop, last = asyncio.get_running_loop(), clock()

    def step() -> None:
        nonlocal last, handle
        waits.append(clock() - last)
        last = clock()
        handle = loop.call_soon(step)

    handle = loop.call_soon(step)
    try:
        yield waits
    finally:
        handle.cancel()


async def until_read(readers: Readers, items: int) -> None:
    await turns_until(lambda: readers.have_read(items))
    for task in readers.tasks:
        task.cancel()


def filled(log: Log[int], items: int) -> None:
    for item in range(items):
        log.append(item)
    log.wake()


async def test_however_many_are_behind_everything_else_waits_for_the_budget_and_one_item(clock: WorkClock) -> None:
    log: Log[int] = Log()
    readers = Readers(log, 500, clock)
    await asyncio.sleep(0)
    with other_work(clock) as waits:
        filled(log, 40)
        await until_read(readers, 40)
    assert max(waits) <= BUDGET + COST
    assert readers.read == [list(range(40))] * 500


async def test_a_single_item_that_takes_longer_than_the_budget_is_followed_by_everything_else(clock: WorkClock) -> None:
    log: Log[int] = Log()
    readers = Readers(log, 20, clock, cost=2 * BUDGET)
    await asyncio.sleep(0)
    with other_work(clock) as waits:
        filled(log, 3)
        await until_read(readers, 3)
    assert max(waits) == pytest.approx(2 * BUDGET)


async def test_no_reader_gets_ahead_of_another_by_more_than_a_slice(clock: WorkClock) -> None:
    log: Log[int] = Log()
    readers = Readers(log, 50, clock)
    await asyncio.sleep(0)
    filled(log, 40)
    ahead = []

    def all_have_read() -> bool:
        counts = [len(read) for read in readers.read]
        ahead.append(max(counts) - min(counts))
        return min(counts) == 40

    await turns_until(all_have_read)
    assert max(ahead) <= SLICE / COST + 1
    await until_read(readers, 40)


async def test_a_reader_with_one_item_waits_for_a_slice_of_each_that_is_behind(clock: WorkClock) -> None:
    long, short = Log[int](), Log[int]()
    behind, other = Readers(long, 30, clock), Readers(short, 1, clock)
    await asyncio.sleep(0)
    filled(long, 1000)
    begun = clock()
    filled(short, 1)
    await turns_until(lambda: other.have_read(1))
    assert clock() - begun <= 30 * (SLICE + COST) + COST
    for task in (*behind.tasks, *other.tasks):
        task.cancel()


async def test_readers_that_are_not_behind_read_in_the_next_turn_of_the_loop(clock: WorkClock) -> None:
    log: Log[int] = Log()
    readers = Readers(log, 3, clock)
    await asyncio.sleep(0)
    filled(log, 1)
    await asyncio.sleep(0)
    assert readers.read == [[0]] * 3
    await until_read(readers, 1)


async def test_a_reader_that_has_left_holds_up_nobody(clock: WorkClock) -> None:
    log: Log[int] = Log()
    readers = Readers(log, 40, clock)
    await asyncio.sleep(0)
    filled(log, 10)
    await asyncio.sleep(0)
    for gone in readers.tasks[:39]:
        gone.cancel()
    await turns_until(lambda: len(readers.read[39]) == 10)
    readers.tasks[39].cancel()


async def test_between_two_long_steps_everything_else_has_the_turns_that_it_needs(clock: WorkClock) -> None:
    """As when one commit has ended the waits of several large requests."""
    done: list[int] = []
    turns: list[int] = []

    async def large_request(number: int) -> None:
        await round_robin().long_step()
        done.append(number)

    requests = [asyncio.create_task(large_request(number)) for number in range(3)]
    while len(done) < 3:
        before = len(done)
        await asyncio.sleep(0)
        turns.append(len(done) - before)

    assert done == [0, 1, 2]
    steps = [turn for turn, ended in enumerate(turns) if ended]
    assert all(later - earlier >= APART for earlier, later in pairwise(steps))
    assert max(turns) == 1
    await asyncio.gather(*requests)
