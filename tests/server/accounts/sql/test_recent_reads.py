"""A slow database gets no more queries of those that wait for the same answer, and few of those that ask again."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.accounts.sql.recent_reads import MAX_AGE, RecentReads
from tests.fakes import Seconds


@pytest.mark.parametrize(("single_flight", "queries"), [(True, 1), (False, 3)])
async def test_a_query_in_progress_is_waited_for_however_old_it_is_or_while_its_answer_would_count(
    single_flight: bool, queries: int
) -> None:
    begun, answered, now = 0, asyncio.Event(), 0.0

    async def read(key: str) -> str:
        nonlocal begun
        begun += 1
        await answered.wait()
        return key

    recent = RecentReads(read, lambda: now, single_flight=single_flight)
    waiting = []
    for _ in range(3):
        waiting += [asyncio.create_task(recent.get("ann")) for _ in range(2)]
        await asyncio.sleep(0)
        now += MAX_AGE
    await asyncio.sleep(0)
    answered.set()
    assert await asyncio.gather(*waiting) == ["ann"] * 6
    assert begun == queries


class Asked:
    """What reads several at once, and answers with the number of the query when it may."""

    def __init__(self) -> None:
        self.clock = Seconds()
        self.queries: list[set[str]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.recent = RecentReads(self._read, self.clock, read_all=self._read_all)

    async def _read(self, key: str) -> int:
        raise AssertionError(key)

    async def _read_all(self, keys: Collection[str]) -> Mapping[str, int]:
        self.queries.append({*keys})
        number, may_answer = len(self.queries), self.may_answer
        await may_answer.wait()
        return dict.fromkeys(keys, number)

    def ask(self, *keys: str) -> asyncio.Future[list[int]]:
        return asyncio.gather(*map(self.recent.get, keys))


async def test_after_a_clear_all_that_was_asked_for_a_moment_ago_is_one_query_and_nothing_older() -> None:
    asked, keys = Asked(), [f"user{number}" for number in range(50)]
    await asked.ask("long ago")
    asked.clock.now += 3 * MAX_AGE
    await asked.ask(*keys)
    for _ in range(3):  # also when nobody has asked between two of them
        asked.recent.clear()
        asked.queries.clear()
        await asked.ask(keys[0])
        assert asked.queries == [{*keys}]
    asked.recent.clear()
    asked.queries.clear()
    assert await asked.ask(*keys) == [1] * len(keys)
    assert asked.queries == [{*keys}]


@given(st.lists(st.sampled_from(["ask a", "ask b", "clear", "answer", "hold", "wait"]), max_size=30))
async def test_after_a_clear_no_answer_is_given_that_began_before_it(steps: list[str]) -> None:
    asked = Asked()
    waiting: list[tuple[int, asyncio.Task[int]]] = []
    cleared = 0
    for step in steps:
        match step.split():
            case ["ask", key]:
                waiting.append((cleared, asyncio.create_task(asked.recent.get(key))))
            case ["clear"]:
                asked.recent.clear()
                cleared = len(asked.queries)
            case ["answer"]:
                asked.may_answer.set()
            case ["hold"]:
                asked.may_answer = asyncio.Event()
            case _:
                asked.clock.now += MAX_AGE / 4
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    for before, task in waiting:
        for _ in range(5):
            await asyncio.sleep(0)
        if task.done():
            assert task.result() > before
        else:
            task.cancel()
