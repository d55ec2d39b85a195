"""Who watches a context, and what works in it: told to each watcher, for what changes cost, and delaying nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.journal.activity import Activity, WatchedContexts
from a2a_canvas.store.errors import Unavailable
from tests.server.tasks.context_harness import BACKENDS, ContextHarness, open_contexts

SOON = 30.0


class FakeSource:
    """What is `known` of contexts, until it fails; it counts what it is asked."""

    def __init__(self) -> None:
        self.known: dict[str, Activity] = {}
        self.reported: dict[str, int] = {}
        self.reads: list[set[str]] = []
        self.fails = False
        self.open = asyncio.Event()
        self.open.set()

    async def report(self, watchers: Mapping[str, int]) -> None:
        await self._step()
        self.reported |= watchers

    async def read(self, context_ids: Collection[str]) -> Mapping[str, Activity]:
        await self._step()
        if context_ids:
            self.reads.append({*context_ids})
        return {each: self.known.get(each, Activity(0, ())) for each in context_ids}

    async def _step(self) -> None:
        await self.open.wait()
        await asyncio.sleep(0)
        if self.fails:
            raise Unavailable("it does not answer")


async def told(watcher: AsyncGenerator[Activity, None]) -> Activity:
    async with asyncio.timeout(SOON):
        return await anext(watcher)


async def is_told(watcher: AsyncGenerator[Activity, None], expected: Activity) -> None:
    """Until the watcher has read who watches and what works."""
    async with asyncio.timeout(SOON):
        while replace(await anext(watcher), tasks=0, updated_at=None) != expected:
            pass


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def contexts(source: FakeSource) -> WatchedContexts:
    return WatchedContexts(source)


async def test_each_watcher_is_told_of_the_others_as_they_come_and_go(contexts) -> None:
    async with aclosing(contexts.watch("c")) as first:
        assert await told(first) == Activity(1, ())
        async with aclosing(contexts.watch("c")) as second:
            assert await told(second) == await told(first) == Activity(2, ())
        assert await told(first) == Activity(1, ())


async def test_a_watcher_is_told_only_what_is_new(contexts, source) -> None:
    async with aclosing(contexts.watch("c")) as watcher:
        await told(watcher)
        waiting = asyncio.create_task(anext(watcher))
        contexts.mark_changed(["c"])
        await settle()
        assert not waiting.done()
        source.known["c"] = Activity(2, ("t1",))
        contexts.mark_changed(["c"])
        async with asyncio.timeout(SOON):
            assert await waiting == Activity(3, ("t1",))


async def test_one_that_is_slow_is_told_the_newest(contexts, source) -> None:
    async with aclosing(contexts.watch("c")) as slow:
        await told(slow)
        for number in range(5):
            source.known["c"] = Activity(number, ())
            contexts.mark_changed(["c"])
            await settle()
        assert await told(slow) == Activity(5, ())


async def test_what_nobody_watches_is_not_read_and_many_changes_are_read_once(contexts, source) -> None:
    contexts.mark_changed(["other"])
    async with aclosing(contexts.watch("c")) as watcher:
        await told(watcher)
        source.reads.clear()
        source.open.clear()
        for _ in range(100):
            contexts.mark_changed(["c", "other"])
            await asyncio.sleep(0)
        source.open.set()
        await settle()
        assert len(source.reads) <= 2
        assert all(each == {"c"} for each in source.reads)
    await settle()
    source.reads.clear()
    contexts.mark_all_changed()
    await settle()
    assert source.reads == []
    assert source.reported == {"c": 0}


async def test_while_the_source_fails_the_last_is_kept_and_it_is_read_again_later(contexts, source) -> None:
    async with aclosing(contexts.watch("c")) as watcher:
        await told(watcher)
        source.fails = True
        source.known["c"] = Activity(1, ("t1",))
        contexts.mark_changed(["c"])
        await settle()
        source.fails = False
        contexts.retry()
        assert await told(watcher) == Activity(2, ("t1",))


async def test_without_a_source_that_answers_there_is_no_activity_and_stopping_does_not_wait(contexts, source) -> None:
    source.open.clear()
    async with aclosing(contexts.watch("c")) as watcher:
        waiting = asyncio.create_task(anext(watcher))
        await settle()
        assert not waiting.done()
        async with asyncio.timeout(SOON):
            await contexts.stop()
        waiting.cancel()
        await asyncio.wait([waiting])


async def test_everything_is_reported_again_to_who_has_forgotten_it(contexts, source) -> None:
    async with aclosing(contexts.watch("c")) as watcher:
        await told(watcher)
        source.reported.clear()
        contexts.report_again()
        await settle()
        assert source.reported == {"c": 1}


steps = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.sampled_from("ab")),
        st.tuples(st.just("leave"), st.integers(0, 5)),
        st.tuples(st.just("work"), st.sampled_from("ab")),
        st.tuples(st.just("fail"), st.booleans()),
        st.tuples(st.just("wait"), st.integers(1, 4)),
    ),
    max_size=25,
)


@given(steps)
def test_whatever_happens_in_the_end_everybody_knows_everything(done: list[tuple[str, object]]) -> None:
    asyncio.run(_everybody_knows(done))


async def _everybody_knows(done: list[tuple[str, object]]) -> None:
    crowd = Crowd()
    for step, which in done:
        await getattr(crowd, step)(which)
    await crowd.fail(False)
    crowd.contexts.retry()
    await settle()
    crowd.check()
    while crowd.watching:
        await crowd.leave(0)
    await crowd.contexts.stop()


class Crowd:
    """Watchers of the contexts a and b, and what happens there."""

    def __init__(self) -> None:
        self.source = FakeSource()
        self.contexts = WatchedContexts(self.source)
        self.watching: dict[asyncio.Task[None], tuple[str, list[Activity]]] = {}

    async def enter(self, context_id: str) -> None:
        told: list[Activity] = []
        self.watching[asyncio.create_task(self._watch(context_id, told))] = context_id, told

    async def _watch(self, context_id: str, told: list[Activity]) -> None:
        async with aclosing(self.contexts.watch(context_id)) as watcher:
            async for activity in watcher:
                told.append(activity)

    async def leave(self, which: int) -> None:
        if self.watching:
            leaving = list(self.watching)[which % len(self.watching)]
            leaving.cancel()
            await asyncio.wait([leaving])
            del self.watching[leaving]

    async def work(self, context_id: str) -> None:
        before = self.source.known.get(context_id, Activity(0, ()))
        self.source.known[context_id] = Activity(before.watchers + 1, (*before.working, "t"))
        self.contexts.mark_changed([context_id])

    async def fail(self, fails: bool) -> None:
        self.source.fails = fails

    async def wait(self, steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)

    def check(self) -> None:
        here = {context_id: sum(each == context_id for each, _ in self.watching.values()) for context_id in "ab"}
        for context_id, told in self.watching.values():
            elsewhere = self.source.known.get(context_id, Activity(0, ()))
            assert told[-1] == Activity(here[context_id] + elsewhere.watchers, elsewhere.working)
        assert {**dict.fromkeys("ab", 0), **self.source.reported} == here


# -------------------------------------------------------------------------- on every backend


@pytest.fixture(params=BACKENDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContextHarness]:
    async with open_contexts(request.param, tmp_path) as opened:
        yield opened


async def test_the_tasks_that_work_are_told_as_they_begin_and_settle(world) -> None:
    async with aclosing(world.backend.journal.watch("c")) as watcher:
        await is_told(watcher, Activity(1, ()))
        await world.begin("t1")
        await is_told(watcher, Activity(1, ("t1",)))
        await world.begin("t2")
        await is_told(watcher, Activity(1, ("t1", "t2")))
        await world.begin("t3", "elsewhere")
        await world.reach("t1", State.INPUT_REQUIRED)
        await is_told(watcher, Activity(1, ("t2",)))
        await world.reach("t2")
        await is_told(watcher, Activity(1, ()))


async def test_a_task_that_began_and_ended_unseen_is_counted_with_its_time(world) -> None:
    async with aclosing(world.backend.journal.watch("c")) as watcher:
        assert await told(watcher) == Activity(1, (), 0, None)
        for number, task in enumerate(("t1", "t2"), 1):
            await world.begin(task)
            await world.reach(task)
            at = (await world.backend.journal.get(task)).changed_at
            async with asyncio.timeout(SOON):
                while await anext(watcher) != Activity(1, (), number, at):
                    pass
