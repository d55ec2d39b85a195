"""Cursors: what waits for a log is woken for each item, or, if many wait, less often and for all there is."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.tasks.journal.cursors import MAX_SPACING_SECONDS, SPACED_FROM, Cursor, Log, spacing


@given(st.integers(0, 10**6))
def test_the_more_wait_the_longer_they_wait_up_to_a_quarter_of_a_second(waiting: int) -> None:
    assert spacing(waiting) <= spacing(waiting + 1) <= MAX_SPACING_SECONDS == spacing(1000)
    assert (spacing(waiting) == 0) == (waiting < SPACED_FROM)


class Time:
    """That of the running loop, which passes when a test says so."""

    def __init__(self, begun: float) -> None:
        self.now = begun

    async def pass_by(self, seconds: float) -> None:
        self.now += seconds
        for _ in range(100):  # more turns of the loop than it takes to wake everybody
            await asyncio.sleep(0)


@pytest.fixture
async def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    loop = asyncio.get_running_loop()
    stopped = Time(loop.time())
    monkeypatch.setattr(loop, "time", lambda: stopped.now)
    return stopped


class Readers:
    """Readers of one log, and what each has read."""

    def __init__(self, log: Log[int], count: int) -> None:
        self.read: list[list[int]] = [[] for _ in range(count)]
        self.tasks = [asyncio.create_task(self._run(Cursor(log), read)) for read in self.read]

    async def _run(self, cursor: Cursor[int], read: list[int]) -> None:
        async for item in cursor:
            read.append(item)

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()


def append(log: Log[int], items: Iterator[int]) -> None:
    log.append(next(items))
    log.wake()


async def test_few_readers_get_each_item_at_once(time: Time) -> None:
    log, items = Log[int](), iter(range(10))
    readers = Readers(log, SPACED_FROM - 1)
    await time.pass_by(0)
    for number in range(1, 6):
        append(log, items)
        await time.pass_by(0)
        assert all(read == [*range(number)] for read in readers.read)
    readers.stop()


async def test_many_readers_get_the_first_item_at_once_and_then_all_that_came_meanwhile(time: Time) -> None:
    log, items, many = Log[int](), iter(range(10)), 400
    readers = Readers(log, many)
    await time.pass_by(spacing(many))
    append(log, items)
    await time.pass_by(0)
    assert all(read == [0] for read in readers.read)
    for _ in range(4):
        append(log, items)
        await time.pass_by(spacing(many) / 5)
    assert all(read == [0] for read in readers.read)
    await time.pass_by(spacing(many) / 5)
    assert all(read == [0, 1, 2, 3, 4] for read in readers.read)
    await time.pass_by(spacing(many))
    append(log, items)
    await time.pass_by(0)
    assert all(read == [0, 1, 2, 3, 4, 5] for read in readers.read)
    readers.stop()


async def test_many_readers_of_a_log_that_fails_end_with_its_error(time: Time) -> None:
    log, items, many = Log[int](), iter(range(10)), 400
    readers = Readers(log, many)
    await time.pass_by(spacing(many))
    append(log, items)
    log.fail(KeyError("gone"))
    await time.pass_by(0)
    await time.pass_by(spacing(many))
    assert all(isinstance(task.exception(), KeyError) for task in readers.tasks)
    assert all(read == [0] for read in readers.read)
