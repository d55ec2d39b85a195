"""What every journal promises, whatever keeps it: subscribers are cursors, not queues."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import (
    AgentMessage,
    ArtifactChanged,
    BlockPosition,
    MessageReceived,
    State,
    StatusChanged,
    TextAdded,
    TurnEvent,
)
from a2a_canvas.server.tasks.errors import TaskNotFound
from a2a_canvas.server.tasks.journal.context_log import ContextArtifact
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, TaskSubscription
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.store.changes import AppendParts, apply
from a2a_canvas.store.models import Content, Parts
from tests.fakes import Clock, parts, said
from tests.property_examples import examples
from tests.server.tasks.journal_fixtures import Make, in_memory, on_postgresql, on_postgresql_with_broker, on_sqlite

PLACE = BlockPosition(0, 1, 0)
DONE = StatusChanged(State.COMPLETED)

MAKERS = {"memory": in_memory, "sqlite": on_sqlite, "postgresql": on_postgresql}
ELSEWHERE = {**MAKERS, "postgresql with a broker": on_postgresql_with_broker}
EVERYWHERE = pytest.mark.parametrize("make", ELSEWHERE, indirect=True)
"""A test of what followers see, also on another replica, which gets the pages by a broker."""


@pytest.fixture(params=MAKERS)
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Make]:
    async with ELSEWHERE[request.param](tmp_path) as maker:
        yield maker


def new_task(task_id: str = "task", context_id: str = "context", owner: str = "owner") -> TaskRecord:
    return TaskRecord(task_id, context_id, owner, Clock()(), history=(said("m-1", "Go"),))


def piece(n: int) -> TextAdded:
    return TextAdded(PLACE, f"{n} ")


async def read(following: TaskSubscription) -> list[Entry]:
    return [entry async for entry in following]


async def take(following: AsyncIterable[Any], count: int) -> list[Any]:
    entries = aiter(following)
    return [await anext(entries) for _ in range(count)]


# ------------------------------------------------------------------------------- tasks


async def test_a_task_is_what_it_was_created_as_until_something_happens(make) -> None:
    journal = await make(Clock())
    await journal.create(new_task())
    assert await journal.get("task") == new_task()


async def test_entries_are_numbered_and_timed(make) -> None:
    clock = Clock()
    journal = await make(clock)
    await journal.create(new_task())
    following = await journal.follow("task")
    await journal.append("task", piece(1), piece(2))
    await journal.append("task", DONE)
    assert await read(following) == [
        Entry(1, 2, clock.time, piece(1)),
        Entry(1, 3, clock.time, piece(2)),
        Entry(1, 4, clock.time, DONE),
    ]
    assert (await journal.get("task")).generation == 4


async def test_the_later_tasks_of_a_context_are_those_that_began_after_one(make) -> None:
    journal = await make(Clock())
    for task_id, context_id in (("one", "c"), ("two", "c"), ("other", "d"), ("three", "c")):
        await journal.create(new_task(task_id, context_id))
        await journal.flushed(task_id)
    assert await journal.later_tasks(new_task("one", "c")) == {"two", "three"}
    assert await journal.later_tasks(new_task("three", "c")) == frozenset()


async def test_what_was_said_in_the_settled_tasks_before_one_is_read_in_their_order(make) -> None:
    journal = await make(Clock())
    for task_id in ("one", "two", "three"):
        await journal.create(new_task(task_id, "c"))
        if task_id != "two":
            await journal.append(task_id, StatusChanged(State.COMPLETED, AgentMessage(f"a-{task_id}", task_id)))
        await journal.flushed(task_id)
    [[user, agent]] = await journal.earlier_messages(new_task("three", "c"))
    assert (user, agent) == (new_task("one", "c").history[0], AgentMessage("a-one", "one"))


@pytest.mark.parametrize("ask", ["get", "follow", "append"])
async def test_a_task_that_is_not_there_is_not_found(make, ask) -> None:
    journal = await make(Clock())
    with pytest.raises(TaskNotFound, match="Task not found: 'gone'"):
        await getattr(journal, ask)("gone")


async def test_the_tasks_of_a_context_come_oldest_first_and_those_of_an_owner_are_all_there(make) -> None:
    journal = await make(Clock())
    for task in (new_task("1", "a", "x"), new_task("2", "b", "x"), new_task("3", "a", "y")):
        await journal.create(task)
    await journal.append("1", DONE)
    assert [(record.task_id, record.state) for record in await journal.context("a")] == [
        ("1", State.COMPLETED),
        ("3", State.SUBMITTED),
    ]
    assert await journal.context("none") == ()


async def test_the_first_messages_of_an_owners_tasks_are_read_by_their_ids(make) -> None:
    journal = await make(Clock())
    for task in (new_task("1", "a", "x"), new_task("2", "a", "x"), new_task("3", "a", "y"), new_task("4", "b", "x")):
        await journal.create(task)
    await journal.append("1", MessageReceived(said("m-2", "And more")), DONE)
    assert await journal.first_messages("a", "x", ["1", "3", "4", "none"]) == {"1": said("m-1", "Go")}
    assert [*await journal.first_messages("a", "x", ["1", "2"])] == ["1", "2"]


# --------------------------------------------------------------------------- following


@EVERYWHERE
async def test_a_follower_waits_for_what_is_not_there_yet(make) -> None:
    journal = await make(Clock())
    await journal.create(new_task())
    reading = asyncio.create_task(read(await journal.follow("task")))
    for n in range(3):
        await asyncio.sleep(0)
        await journal.append("task", piece(n))
    await journal.append("task", DONE)
    assert [entry.event for entry in await reading] == [piece(0), piece(1), piece(2), DONE]


@EVERYWHERE
async def test_following_ends_at_the_terminal_entry(make) -> None:
    journal = await make(Clock())
    await journal.create(new_task())
    following = await journal.follow("task")
    await journal.append("task", StatusChanged(State.INPUT_REQUIRED), DONE)
    assert len(await read(following)) == 2
    assert await read(following) == []


async def test_following_a_finished_task_ends_at_once(make) -> None:
    journal = await make(Clock())
    await journal.create(new_task())
    await journal.append("task", DONE)
    following = await journal.follow("task")
    assert following.snapshot.state is State.COMPLETED
    assert await read(following) == []


@EVERYWHERE
async def test_a_follower_that_stopped_in_the_middle_goes_on_where_it_was(make) -> None:
    journal = await make(Clock())
    await journal.create(new_task())
    following = await journal.follow("task")
    await journal.append("task", piece(1), piece(2), piece(3))
    assert [entry.event for entry in await take(following, 2)] == [piece(1), piece(2)]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await take(following, 2)
    await journal.append("task", DONE)
    assert [entry.event for entry in await read(following)] == [DONE]


async def test_a_follower_that_never_reads_stops_nobody(make) -> None:
    journal = await make(Clock())
    await journal.create(new_task())
    asleep = await journal.follow("task")
    awake = await journal.follow("task")
    for n in range(1000):
        await journal.append("task", piece(n))
    await journal.append("task", DONE)
    assert len(await read(awake)) == 1001
    assert len(await read(asleep)) == 1001


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("join"), st.booleans()),
        st.tuples(st.just("rest"), st.integers(1, 3)),
    ),
    max_size=25,
)


@EVERYWHERE
@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_whoever_joins_whenever_sees_exactly_what_follows_its_snapshot(make, steps) -> None:
    journal = await make(Clock())
    await journal.create(new_task())
    followers: list[tuple[TaskSubscription, asyncio.Task[list[Entry]] | None]] = []
    count = 0
    for step, amount in [*steps, ("join", False), ("append", 1), ("join", True)]:
        if step == "append":
            await journal.append("task", *[piece(count + n) for n in range(amount)])
            count += amount
        elif step == "join":  # some read as it comes, some only at the end
            following = await journal.follow("task")
            followers.append((following, asyncio.create_task(read(following)) if amount else None))
        else:
            for _ in range(amount):
                await asyncio.sleep(0)
    await journal.append("task", DONE)
    final = await journal.get("task")
    events: list[TurnEvent] = [*[piece(n) for n in range(count)], DONE]
    for following, reading in followers:
        entries = await (reading or read(following))
        record = following.snapshot
        assert [entry.generation for entry in entries] == list(range(record.generation + 1, final.generation + 1))
        assert [entry.event for entry in entries] == events[record.generation - 1 :]
        for entry in entries:
            record = fold(record, entry)
        assert record == final


# ------------------------------------------------------------------ following a context


def changed(
    artifact_id: str, words: str, *, append: bool = False, version: int = 1, done: bool = False, resent: bool = False
) -> TurnEvent:
    name = f"{artifact_id}.md"
    return ArtifactChanged(artifact_id, name, "", append, parts(words), done, version, "agent", 0, resent)


async def test_a_context_nobody_has_used_can_be_followed_and_begins_empty(make) -> None:
    journal = await make(Clock())
    following = await journal.follow_context("context")
    assert (following.snapshot.position, dict(following.snapshot.artifacts)) == (0, {})
    await journal.create(new_task())
    await journal.append("task", changed("doc", "one"))
    assert [(change.position, change.task_id) for change in await take(following, 1)] == [(1, "task")]


@EVERYWHERE
async def test_the_changes_of_all_tasks_of_a_context_are_numbered_together_and_nothing_else_is(make) -> None:
    journal = await make(Clock())
    for task_id, context_id in (("a", "context"), ("b", "context"), ("c", "other")):
        await journal.create(new_task(task_id, context_id))
    following = await journal.follow_context("context")
    await journal.append("a", piece(1), changed("doc", "one"), piece(2))
    await journal.append("c", changed("doc", "elsewhere"))
    await journal.append("b", changed("plan", "two"), changed("doc", "three"), DONE)
    seen = await take(following, 3)
    assert [(change.position, change.task_id, change.entry.event) for change in seen] == [
        (1, "a", changed("doc", "one")),
        (2, "b", changed("plan", "two")),
        (3, "b", changed("doc", "three")),
    ]
    assert [change.entry.generation for change in seen] == [3, 2, 3]
    assert (await journal.follow_context("other")).snapshot.position == 1


async def test_the_snapshot_of_a_context_has_each_artifact_as_its_last_writer_left_it(make) -> None:
    journal = await make(Clock())
    await journal.create(new_task("a"))
    await journal.create(new_task("b"))
    await journal.append("a", changed("doc", "one "), changed("plan", "first"), changed("doc", "two", append=True))
    await journal.append("b", changed("plan", "second", version=2, done=True))
    snapshot = (await journal.follow_context("context")).snapshot
    a, b = (await journal.get("a")).artifacts["doc"], (await journal.get("b")).artifacts["plan"]
    assert snapshot.position == 4
    assert list(snapshot.artifacts.items()) == [
        ("doc", ContextArtifact(a, "a", 3, False)),
        ("plan", ContextArtifact(b, "b", 4, True)),
    ]
    assert a.content == Content("doc.md", "", parts("one two"))


async def test_an_artifact_that_a_task_sends_again_is_no_change_of_its_context(make) -> None:
    """Another task may be writing it: its next delta is for those who have all that it wrote before."""
    journal = await make(Clock())
    await journal.create(new_task("a"))
    await journal.create(new_task("b"))
    following = await journal.follow_context("context")
    again = changed("doc", "old", done=True, resent=True)
    await journal.append("a", changed("doc", "one "))
    await journal.append("b", again)
    await journal.append("a", changed("doc", "two", append=True))
    assert [(each.position, each.task_id) for each in await take(following, 2)] == [(1, "a"), (2, "a")]
    snapshot = (await journal.follow_context("context")).snapshot
    a, b = await journal.get("a"), await journal.get("b")
    assert snapshot.artifacts["doc"] == ContextArtifact(a.artifacts["doc"], "a", 2, False)
    assert (snapshot.position, b.artifacts["doc"].content.parts) == (2, parts("old"))


async def test_a_snapshot_does_not_change_with_its_context(make) -> None:
    journal = await make(Clock())
    await journal.create(new_task())
    await journal.append("task", changed("doc", "one"))
    snapshot = (await journal.follow_context("context")).snapshot
    await journal.append("task", changed("doc", " two", append=True), changed("plan", "three"))
    assert (snapshot.position, list(snapshot.artifacts)) == (1, ["doc"])
    assert snapshot.artifacts["doc"].artifact.content.parts == parts("one")


async def test_following_a_context_outlives_its_tasks(make) -> None:
    journal = await make(Clock())
    await journal.create(new_task("a"))
    following = await journal.follow_context("context")
    reading = asyncio.create_task(take(following, 2))
    await journal.append("a", changed("doc", "one", done=True), DONE)
    await asyncio.sleep(0)
    await journal.create(new_task("b"))
    await journal.append("b", changed("doc", "two", version=2))
    assert [change.task_id for change in await reading] == ["a", "b"]


CONTEXT_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.sampled_from("ab"), st.sampled_from(["doc", "plan"]), st.booleans()),
        st.tuples(st.just("talk"), st.sampled_from("ab")),
        st.tuples(st.just("join"), st.booleans()),
        st.tuples(st.just("rest")),
    ),
    max_size=25,
)


@EVERYWHERE
@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=CONTEXT_STEPS)
async def test_whoever_joins_a_context_whenever_folds_to_the_same_artifacts(make, steps) -> None:
    journal = await make(Clock())
    await journal.create(new_task("a"))
    await journal.create(new_task("b"))
    written: dict[str, str] = {}
    writers: dict[str, str] = {}
    followers = []
    count = 0
    for n, (step, *how) in enumerate([("join", False), *steps, ("join", False)]):
        if step == "change":
            task, artifact_id, append = how
            append = append and writers.get(artifact_id) == task  # what a turn promises
            written[artifact_id] = (written[artifact_id] if append else "") + f"{n} "
            writers[artifact_id] = task
            count += 1
            await journal.append(task, piece(n), changed(artifact_id, f"{n} ", append=append))
        elif step == "talk":
            await journal.append(how[0], piece(n))
        elif step == "join":  # some read as it comes, some only at the end
            following = await journal.follow_context("context")
            left = asyncio.create_task(collect(following)) if how[0] else None
            followers.append((following, left))
        else:
            await asyncio.sleep(0)
    expected = {artifact_id: parts(words) for artifact_id, words in written.items()}
    for following, reading in followers:
        position = following.snapshot.position
        entries = await end(reading) if reading else await take(following, count - position)
        assert [entry[0] for entry in entries] == list(range(position + 1, count + 1))
        stands: dict[str, Parts] = {
            artifact_id: standing.artifact.content.parts
            for artifact_id, standing in following.snapshot.artifacts.items()
        }
        for entry in (change.entry for change in entries):
            before = stands.get(entry.event.artifact_id, ()) if entry.event.append else ()
            stands[entry.event.artifact_id] = apply(before, AppendParts(entry.event.parts))
        assert stands == expected


async def collect(following: AsyncIterable[Any]) -> list[Any]:
    """Everything, until cancelled."""
    seen: list[Any] = []
    try:
        async for entry in following:
            seen.append(entry)
    except asyncio.CancelledError:
        pass
    return seen


async def end(reading: "asyncio.Task[list[Any]]") -> list[Any]:
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    reading.cancel()
    return await reading


# ------------------------------------------------------------- what is kept, in memory


class Watched(TextAdded):
    """An event that can be watched while it goes."""


class WatchedChange(ArtifactChanged):
    """The same for a change of an artifact."""


class Watch:
    """How many of the events it made are still kept by somebody."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[TurnEvent]] = []

    def make(self, count: int) -> list[TurnEvent]:
        return self._watched([Watched(PLACE, "x") for _ in range(count)])

    def changes(self, count: int) -> list[TurnEvent]:
        """Each of them replaces the whole artifact."""
        made = [WatchedChange("doc", "", "", False, parts("x"), False, 1, "agent", 0) for _ in range(count)]
        return self._watched([*made])

    def _watched(self, events: list[Any]) -> list[TurnEvent]:
        self._made += [weakref.ref(event) for event in events]
        return events

    @property
    def kept(self) -> int:
        gc.collect()
        return sum(made() is not None for made in self._made)


@pytest.fixture
async def journal() -> InMemoryJournal:
    journal = InMemoryJournal(Clock())
    await journal.create(new_task())
    return journal


async def test_without_a_follower_nothing_is_kept(journal) -> None:
    watch = Watch()
    await journal.append("task", *watch.make(10))
    assert watch.kept == 0


async def test_an_entry_is_kept_until_the_slowest_follower_has_read_it(journal) -> None:
    watch = Watch()
    slow, fast = await journal.follow("task"), await journal.follow("task")
    await journal.append("task", *watch.make(10))
    await take(fast, 10)
    assert watch.kept == 10
    await take(slow, 4)
    assert watch.kept == 6
    await take(slow, 6)
    assert watch.kept == 0


async def test_a_follower_that_leaves_keeps_nothing(journal) -> None:
    watch = Watch()
    follower = await journal.follow("task")
    await journal.append("task", *watch.make(10))
    assert watch.kept == 10
    del follower
    assert watch.kept == 0


async def test_of_a_finished_task_everything_goes_with_the_last_follower(journal) -> None:
    watch = Watch()
    followers = [await journal.follow("task") for _ in range(3)]
    await journal.append("task", *watch.make(10), DONE)
    while followers:
        assert watch.kept == 10
        followers.pop()
    assert watch.kept == 0


async def test_a_change_is_kept_until_the_slowest_follower_of_the_context_has_read_it(journal) -> None:
    watch = Watch()
    slow, fast = await journal.follow_context("context"), await journal.follow_context("context")
    await journal.append("task", *watch.changes(10))
    await take(fast, 10)
    assert watch.kept == 10
    await take(slow, 4)
    assert watch.kept == 6
    del slow
    assert watch.kept == 0


async def test_a_follower_of_the_context_keeps_no_other_events(journal) -> None:
    watch = Watch()
    follower = await journal.follow_context("context")
    await journal.append("task", *watch.make(10), changed("doc", "x"))
    assert watch.kept == 0
    assert len(await take(follower, 1)) == 1


class WatchedName(str):
    """A name that can be watched while it goes."""


async def test_who_reads_on_in_a_context_does_not_keep_what_it_once_was(journal) -> None:
    name = WatchedName("old.md")
    old = weakref.ref(name)
    await journal.append("task", ArtifactChanged("doc", name, "", False, parts("old"), False, 1, "agent", 0))
    changes = aiter(await journal.follow_context("context"))
    del name
    await journal.append("task", changed("doc", "new"))
    gc.collect()
    assert old() is None
    assert (await anext(changes)).position == 2


async def test_a_context_without_tasks_is_forgotten_with_its_last_follower(journal) -> None:
    followers = [await journal.follow_context("unknown") for _ in range(2)]
    log = weakref.ref(followers[0]._cursor._log)
    followers.pop()
    gc.collect()
    assert log() is not None
    followers.clear()
    gc.collect()
    assert log() is None


def futures() -> int:
    gc.collect()
    return sum(isinstance(thing, asyncio.Future) for thing in gc.get_objects())


async def test_followers_that_leave_while_they_wait_leave_nothing_behind(journal) -> None:
    async def come_and_go() -> None:
        waiting = asyncio.create_task(read(await journal.follow("task")))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])

    await come_and_go()
    before = futures()
    for _ in range(10):
        await come_and_go()
    assert futures() == before


async def test_a_very_long_unread_journal_can_be_let_go(journal) -> None:
    watch = Watch()
    follower = await journal.follow("task")
    events = watch.make(1) * 50_000  # freed one by the other, a chain this long would overflow the stack
    await journal.append("task", *events)
    assert len(await take(follower, 10)) == 10
    del follower, events
    assert watch.kept == 0
