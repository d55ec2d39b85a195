"""A turn whose task is taken away: it stops at once, says nothing more and changes nothing more."""

import asyncio
import logging
from itertools import count

import pytest

from a2a_canvas.server.agent.edit.run import OperationRequest, run_operation
from a2a_canvas.server.agent.events import TurnEvent
from a2a_canvas.server.agent.turn.resume import InterruptedTurn, open_drafts, roll_back_drafts
from a2a_canvas.server.agent.turn.turn import TurnRequest, run_turn
from a2a_canvas.server.tasks.errors import TaskDetached
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.retrying import RetryingStore
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import EventRecorder, FakeLLM, ids, no_time
from tests.server.agent.edit.operation_harness import OperationHarness
from tests.server.agent.turn.cut_harness import Documents, WaitingStore, YieldingModel
from tests.server.agent.turn.turn_scripts import LIMITS, OPERATIONS, REPLIES, START, TURNS

LONG = 1000
"""Turns of the event loop: far more than any turn here takes."""


class FlakyLease:
    """A journal and a store of a replica that may lose its lease.

    Args:
        events: how many events are heard until it does.
    """

    def __init__(self, store: WaitingStore, events: int | None = None, *, guarded: bool = True) -> None:
        self.told = EventRecorder()
        self.lost = False
        self.left: object = None
        self._events = events
        self._store = store
        self.store = RetryingStore(store, self._pause, self.check if guarded else lambda: None)

    async def emit(self, event: TurnEvent) -> None:
        if len(self.told.events) == self._events:
            self.lose()
        self.check()
        await self.told(event)

    def lose(self) -> None:
        if not self.lost:
            self.lost, self.left = True, self._store.documents

    def check(self) -> None:
        if self.lost:
            raise TaskDetached

    async def _pause(self) -> None:
        await asyncio.sleep(0)

    def found_again(self) -> None:
        self.lost, self._events = False, None

    @property
    def documents(self) -> Documents:
        return self._store.documents

    @property
    def untouched(self) -> bool:
        return self.documents == self.left


async def turn(name: str, lease: FlakyLease, drafts: tuple[str, ...] = ()) -> None:
    await run_turn(
        TurnRequest("task", "context", (), START.transcript, lambda closing: (), drafts=drafts, limits=LIMITS),
        llm=YieldingModel(FakeLLM(TURNS[name])),
        tools=TOOLS,
        store=lease.store,
        emit=lease.emit,
        new_id=ids(),
        sleep=no_time,
    )


async def operation(name: str, reply: str, lease: FlakyLease) -> None:
    await run_operation(
        OperationRequest(OPERATIONS[name], "m-1", "task", "context"),
        llm=YieldingModel(FakeLLM(REPLIES[reply])),
        store=lease.store,
        emit=lease.emit,
        new_id=ids(),
        sleep=no_time,
    )


async def ended(running: "asyncio.Task[None]") -> bool:
    """Whether it was told to stop; it must have ended by itself."""
    for _ in range(LONG):
        if running.done():
            break
        await asyncio.sleep(0)
    assert running.done()
    return running.cancelled()


async def two_versions() -> WaitingStore:
    store = WaitingStore()
    harness = await OperationHarness(store=store).ready()
    await harness.put(harness.text + "More\n")
    return store


@pytest.fixture
def quiet(caplog):
    """Nothing is wrong with a task that went elsewhere."""
    caplog.set_level(logging.ERROR)
    yield
    assert caplog.records == []


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("name", [name for name in TURNS if name != "a fault"])
async def test_a_turn_that_is_not_heard_any_more_ends_whatever_it_was_about_to_say(name, guarded) -> None:
    for events in count():
        lease = FlakyLease(WaitingStore(), events, guarded=guarded)
        if not await ended(asyncio.create_task(turn(name, lease))):
            break
        assert len(lease.told.events) == events
        if guarded:
            assert lease.untouched
        else:
            await continues_as_after_a_crash(lease)
    assert not lease.lost


async def continues_as_after_a_crash(lease: FlakyLease) -> None:
    """The next turn of the task can close every draft that the abandoned one has left."""
    lease.found_again()
    drafts = await open_drafts(lease.store, "context", "task")
    assert set(drafts) == {name for name, document in lease.documents.items() if document.draft}
    await roll_back_drafts(InterruptedTurn("task", "context", None, (), drafts), lease.store, lease.told, drafts)
    await turn("a reply", lease, await open_drafts(lease.store, "context", "task"))
    assert [name for name, document in lease.documents.items() if document.draft] == []
    assert lease.told.statuses[-1][0] == "completed"


async def is_over_when_stopped(running: asyncio.Task[None], lease: FlakyLease, steps: int) -> bool:
    """Whether it has ended within so many steps; if not, it is stopped, and neither says nor changes anything more."""
    for _ in range(steps):
        await asyncio.sleep(0)
    over = running.done()
    lease.lose()
    heard = len(lease.told.events)
    running.cancel()
    assert await ended(running) or over
    assert len(lease.told.events) == heard
    assert lease.untouched
    return over


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", [name for name in TURNS if name != "a fault"])
async def test_a_turn_that_is_stopped_because_its_task_is_gone_says_and_changes_nothing_more(name) -> None:
    for at in count(1):
        lease = FlakyLease(WaitingStore())
        if await is_over_when_stopped(asyncio.create_task(turn(name, lease)), lease, at):
            break


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_an_operation_ends_as_a_turn_does(name, reply) -> None:
    for events in count():
        lease = FlakyLease(await two_versions(), events)
        if not await ended(asyncio.create_task(operation(name, reply, lease))):
            break
        assert len(lease.told.events) == events
        assert lease.untouched
    for at in count(1):
        lease = FlakyLease(await two_versions())
        if await is_over_when_stopped(asyncio.create_task(operation(name, reply, lease)), lease, at):
            break


# ------------------------------------------------------------------- a database that is away


class Flaky(WaitingStore):
    """Its database is away every other time that it is needed; or, once it is, for good."""

    def __init__(self, *, back: bool = True) -> None:
        super().__init__()
        self.away, self.tries, self._back = False, 0, back

    async def prepare(self, ref):
        self._miss()
        await super().prepare(ref)

    async def get(self, ref):
        self._miss()
        return await super().get(ref)

    def _miss(self) -> None:
        self.tries += 1
        if self.away and not (self._back and self.tries % 2 == 0):
            raise Unavailable("it is away")


@pytest.mark.parametrize("name", TURNS)
async def test_a_turn_waits_for_its_database_and_comes_to_the_same_end(name) -> None:
    whole, lease = FlakyLease(WaitingStore()), FlakyLease(Flaky())
    lease._store.away = True
    for each in (whole, lease):
        await turn(name, each)
    assert lease.told.statuses == whole.told.statuses
    assert {n: d.artifact.content for n, d in lease.documents.items()} == {
        n: d.artifact.content for n, d in whole.documents.items()
    }


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", ["a version", "an edit of a draft", "a restored version", "a draft"])
async def test_without_patience_a_turn_is_left_as_a_crash_leaves_it_and_never_fails(name) -> None:
    for tries in count():
        store, told = Flaky(back=False), EventRecorder()

        async def emit(event, store=store, told=told, tries=tries) -> None:
            await told(event)
            store.away = store.tries >= tries

        running = run_turn(
            TurnRequest("task", "context", (), START.transcript, lambda closing: (), limits=LIMITS),
            llm=FakeLLM(TURNS[name]),
            tools=TOOLS,
            store=store,
            emit=emit,
            new_id=ids(),
            sleep=no_time,
        )
        try:
            await running
        except Unavailable:
            assert not any(event.state.settled for event in told.events if hasattr(event, "state"))
        else:
            assert told.statuses[-1][0] == "completed"
            break
    assert tries > 1


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", OPERATIONS)
async def test_without_patience_an_operation_never_fails_either(name) -> None:
    store = Flaky(back=False)
    harness = await OperationHarness(*REPLIES["whole"], store=store).ready()
    await harness.put(harness.text + "More\n")
    store.away, told = True, EventRecorder()
    with pytest.raises(Unavailable):
        await harness.run(OPERATIONS[name], emit=told)
    assert told.statuses == []
    store.away = False
    assert len(await harness.versions()) == 2
