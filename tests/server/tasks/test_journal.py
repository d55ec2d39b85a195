"""What every journal promises, whatever keeps it: subscribers are cursors, not queues."""

import asyncio
import gc
import weakref
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.agent.events import Place, State, StatusChanged, TextAdded, TurnEvent
from server.tasks.errors import TaskNotFound
from server.tasks.journal import Following, InMemoryJournal, Journal
from server.tasks.record import Entry, TaskRecord, fold
from tests.fakes import Clock, said

PLACE = Place(0, 1, 0)
DONE = StatusChanged(State.COMPLETED)

every_journal = pytest.mark.parametrize("make", [InMemoryJournal])
Make = Callable[[Clock], Journal]


def new_task(task_id: str = "task", context_id: str = "context", owner: str = "owner") -> TaskRecord:
    return TaskRecord(task_id, context_id, owner, Clock()(), history=(said("m-1", "Go"),))


def piece(n: int) -> TextAdded:
    return TextAdded(PLACE, f"{n} ")


async def read(following: Following) -> list[Entry]:
    return [entry async for entry in following]


async def take(following: Following, count: int) -> list[Entry]:
    entries = aiter(following)
    return [await anext(entries) for _ in range(count)]


# ------------------------------------------------------------------------------- tasks


@every_journal
async def test_a_task_is_what_it_was_created_as_until_something_happens(make) -> None:
    journal = make(Clock())
    await journal.create(new_task())
    assert await journal.get("task") == new_task()


@every_journal
async def test_entries_are_numbered_and_timed(make) -> None:
    clock = Clock()
    journal = make(clock)
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


@every_journal
@pytest.mark.parametrize("ask", ["get", "follow", "append"])
async def test_a_task_that_is_not_there_is_not_found(make, ask) -> None:
    journal = make(Clock())
    with pytest.raises(TaskNotFound, match="There is no task 'gone'"):
        await getattr(journal, ask)("gone")


@every_journal
async def test_the_tasks_of_a_context_come_oldest_first_and_those_of_an_owner_are_all_there(make) -> None:
    journal = make(Clock())
    for task in (new_task("1", "a", "x"), new_task("2", "b", "x"), new_task("3", "a", "y")):
        await journal.create(task)
    await journal.append("1", DONE)
    assert [(record.task_id, record.state) for record in await journal.context("a")] == [
        ("1", State.COMPLETED),
        ("3", State.SUBMITTED),
    ]
    assert {record.task_id for record in await journal.all("x")} == {"1", "2"}
    assert await journal.context("none") == ()
    assert list(await journal.all("none")) == []


# --------------------------------------------------------------------------- following


@every_journal
async def test_a_follower_waits_for_what_is_not_there_yet(make) -> None:
    journal = make(Clock())
    await journal.create(new_task())
    reading = asyncio.create_task(read(await journal.follow("task")))
    for n in range(3):
        await asyncio.sleep(0)
        await journal.append("task", piece(n))
    await journal.append("task", DONE)
    assert [entry.event for entry in await reading] == [piece(0), piece(1), piece(2), DONE]


@every_journal
async def test_following_ends_at_the_terminal_entry(make) -> None:
    journal = make(Clock())
    await journal.create(new_task())
    following = await journal.follow("task")
    await journal.append("task", StatusChanged(State.INPUT_REQUIRED), DONE)
    assert len(await read(following)) == 2
    assert await read(following) == []


@every_journal
async def test_following_a_finished_task_ends_at_once(make) -> None:
    journal = make(Clock())
    await journal.create(new_task())
    await journal.append("task", DONE)
    following = await journal.follow("task")
    assert following.snapshot.state is State.COMPLETED
    assert await read(following) == []


@every_journal
async def test_a_follower_that_stopped_in_the_middle_goes_on_where_it_was(make) -> None:
    journal = make(Clock())
    await journal.create(new_task())
    following = await journal.follow("task")
    await journal.append("task", piece(1), piece(2), piece(3))
    assert [entry.event for entry in await take(following, 2)] == [piece(1), piece(2)]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await take(following, 2)
    await journal.append("task", DONE)
    assert [entry.event for entry in await read(following)] == [DONE]


@every_journal
async def test_a_follower_that_never_reads_stops_nobody(make) -> None:
    journal = make(Clock())
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


@every_journal
@settings(max_examples=60)
@given(steps=STEPS)
async def test_whoever_joins_whenever_sees_exactly_what_follows_its_snapshot(make, steps) -> None:
    journal = make(Clock())
    await journal.create(new_task())
    followers: list[tuple[Following, asyncio.Task[list[Entry]] | None]] = []
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


# ------------------------------------------------------------- what is kept, in memory


class Watched(TextAdded):
    """An event that can be watched while it goes."""


class Watch:
    """How many of the events it made are still kept by somebody."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[Watched]] = []

    def make(self, count: int) -> list[TurnEvent]:
        events = [Watched(PLACE, "x") for _ in range(count)]
        self._made += [weakref.ref(event) for event in events]
        return [*events]

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
