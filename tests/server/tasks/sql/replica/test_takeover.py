"""Tasks of a dead server: however long they are, and whatever is the matter with one of them, all others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from sqlalchemy import func, select, update

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    BlockPosition,
    State,
    StatusChanged,
    TextAdded,
    ThinkingAdded,
    TurnEvent,
)
from a2a_canvas.server.push.fair_choice import FreePlaces
from a2a_canvas.server.tasks.errors import RunsNoTurns, StreamLost, Unreadable
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.listing import TaskQuery
from a2a_canvas.server.tasks.journal.task_log import MIN_SAVED_CHARACTERS
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.tasks.sql.journal import journal_reading as reading
from a2a_canvas.server.tasks.sql.journal.journal_reading import FOLD_SLICE
from a2a_canvas.server.tasks.sql.projections.pages import pages
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.server.tasks.sql.replica.notifications import Notification
from a2a_canvas.server.tasks.sql.replica.takeover import CLAIM_LIMIT, Claim
from a2a_canvas.store.changes import ReplaceParts
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Ref
from a2a_canvas.store.sql import compression
from a2a_canvas.store.sql.commit import GroupCommit
from a2a_canvas.store.sql.database import Database
from tests.fakes import Hold, answer, broken, parts, said, text, write
from tests.server.tasks.kept_count import counted, recounted
from tests.server.tasks.runtime.runtime_harness import rest
from tests.server.tasks.sql.replica_harness import SOON, Replica, Replicas, ended

HELLO = answer(text("Hello"))
PIECE = "twenty characters.. "


def deltas(count: int, first: int = 0) -> list[TurnEvent]:
    """What is said while the model thinks and writes an artifact: two events for each of its pieces."""
    call = ThinkingAdded(BlockPosition(0, 1, 0), PIECE)
    events = (
        (call, ArtifactChanged("doc", "", "", n > 0, parts(PIECE), False, 0, "agent", 0))
        for n in range(first, first + count)
    )
    return [event for pair in events for event in pair]


async def working(replica: Replica, count: int, pieces: int, state: State = State.WORKING) -> list[str]:
    """Tasks of a replica that have written so much; nobody runs them but its journal."""
    journal = replica.backend.journal
    ids = [f"t{n}" for n in range(count)]
    for task_id in ids:
        await journal.create(TaskRecord(task_id, f"c-{task_id}", "", datetime.now(UTC), history=(said("m", "Write"),)))
        await journal.append(task_id, StatusChanged(State.WORKING))
    for first in range(0, pieces, 50):
        for task_id in ids:
            await journal.append(task_id, *deltas(min(50, pieces - first), first))
        await replica.backend.commits.flushed()
    return ids


async def take_over(replica: Replica) -> None:
    """Everything that any other replica has left, at once."""
    async with replica.backend._database.write() as connection:
        await connection.execute(replicas.delete().where(replicas.c.replica_id != replica.backend._lease.id))
    await replica.backend._take_over()


async def idle(several: Replicas, *calls: Sequence[object]) -> Replica:
    """A replica that takes over what it is told to, and nothing else."""
    replica = await several.start(*calls)
    replica.backend._heartbeat.cancel()
    replica.backend._takeover_task.cancel()
    return replica


async def columns(replica: Replica, task_id: str, *names: str) -> tuple[object, ...]:
    async with replica.backend._database.read() as connection:
        found = select(*(tasks.c[name] for name in names)).where(tasks.c.task_id == task_id)
        return tuple((await connection.execute(found)).one())


# ------------------------------------------------------------------------- long turns


async def test_a_replica_that_only_serves_streams_takes_no_message_and_nothing_over(several) -> None:
    hold = Hold()
    owner = await several.start(answer(text("Half"), hold))
    other = await several.start(admission=Admission(0), takes_over=False)
    with pytest.raises(RunsNoTurns, match="only serves streams"):
        await other.send("Write")
    task_id = (await owner.send("Write")).snapshot.task_id
    await hold.reached.wait()
    following = await other.runtime.follow(task_id, ANONYMOUS)
    await owner.crash()
    await other.backend._take_over()
    await other.backend._on_notification(Notification(handed=(task_id,)))
    assert (other.backend.journal.running, other.backend._takeover._handed) == ((), set())
    third = await several.start(answer(text("Whole")))
    async with asyncio.timeout(SOON):
        assert (await rest(following))[-1].event.state is State.COMPLETED
    assert (await third.record(task_id)).state is State.COMPLETED


async def test_no_record_is_read_before_all_claims_are_committed_and_no_row_is_locked(several) -> None:
    a = await several.start()
    ids = await working(a, 5, 10)
    await a.crash(expire=False)
    b = await idle(several, *(HELLO for _ in ids))
    orphan, claimed = b.backend._takeover.read_orphan, []

    async def looking(claim: Claim):
        b.backend._takeover.read_orphan = orphan
        async with b.backend._database.write() as connection:
            claimed.extend(await connection.scalars(select(tasks.c.replica).with_for_update(nowait=True)))
        return await orphan(claim)

    b.backend._takeover.read_orphan = looking
    await take_over(b)
    assert claimed == [b.backend._lease.id] * len(ids)
    assert [(await ended(b, task_id)).state for task_id in ids] == [State.COMPLETED] * len(ids)


async def test_long_turns_are_read_in_short_steps(several, monkeypatch) -> None:
    monkeypatch.setattr(
        "a2a_canvas.server.tasks.journal.task_log.MIN_SAVED_CHARACTERS", 10**9
    )  # as if there were no snapshots
    a = await several.start()
    ids = await working(a, 3, 2 * FOLD_SLICE)
    await a.crash(expire=False)
    b = await idle(several, *(HELLO for _ in ids))
    folds, steps = 0, []
    fold = reading.fold

    def counted(record, entry):
        nonlocal folds
        folds += 1
        return fold(record, entry)

    async def count() -> None:
        while True:
            before = folds
            await asyncio.sleep(0)
            steps.append(folds - before)

    monkeypatch.setattr(reading, "fold", counted)
    counting = asyncio.create_task(count())
    await take_over(b)
    counting.cancel()
    assert folds > len(ids) * 4 * FOLD_SLICE
    assert max(steps) <= FOLD_SLICE
    for task_id in ids:
        record = await ended(b, task_id)
        assert (record.state, str(record.artifacts["doc"].content.text)) == (State.COMPLETED, PIECE * 2 * FOLD_SLICE)


async def test_all_long_turns_go_on_while_the_survivor_keeps_its_lease(several) -> None:
    a = await several.start()
    ids = await working(a, CLAIM_LIMIT + 5, 400)
    await a.crash()
    b = await several.start(*(HELLO for _ in ids))
    lease = b.backend._lease.id
    records = [await ended(b, task_id) for task_id in ids]
    assert {(r.state, r.epoch, str(r.artifacts["doc"].content.text)) for r in records} == {
        (State.COMPLETED, 2, PIECE * 400)
    }
    assert b.backend._lease.id == lease
    assert set((await miscounted(b.backend._database)).values()) == {0}


# --------------------------------------------------------------------------- snapshots


async def weights(replica: Replica, task_id: str) -> tuple[int, int]:
    """Characters of a task's snapshot, and of the pages behind it."""
    of_snapshot = func.length(tasks.c.head) + func.length(tasks.c.transcript) + func.length(tasks.c.artifacts)
    behind = func.coalesce(func.sum(func.length(pages.c.entries)), 0)
    async with replica.backend._database.read() as connection:
        snapshot, at = (
            await connection.execute(select(of_snapshot, tasks.c.snapshot).where(tasks.c.task_id == task_id))
        ).one()
        size = await connection.scalar(select(behind).where(pages.c.task_id == task_id, pages.c.first > at))
    return snapshot, size


async def test_what_is_behind_the_snapshot_of_a_working_task_never_weighs_more_than_it_does(
    several: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "COMPRESSED_AT_MOST", 0)  # compressed, they would say nothing of the work
    a, b = await several.start(), await several.start()
    await working(a, 1, 1)
    following = await b.backend.journal.follow("t0")
    snapshots, last = [], 0
    for first in range(1, 3000, 100):
        await a.backend.journal.append("t0", *deltas(100, first))
        await a.backend.commits.flushed()
        snapshot, behind = await weights(b, "t0")
        assert behind <= max(snapshot, MIN_SAVED_CHARACTERS)
        snapshots += [snapshot] if snapshot != last else []
        last = snapshot
        record = a.backend.journal._running["t0"].newest
        assert await b.record("t0") == record
        [shown] = (await b.backend.journal.list(TaskQuery(("",)))).records
        assert shown == record
    async with b.backend._database.read() as connection:
        said_in_all = sum(len(entries) for entries in await connection.scalars(select(pages.c.entries)))
    assert len(snapshots) > 5
    assert sum(snapshots) <= 2 * said_in_all
    await a.backend.journal.append("t0", StatusChanged(State.COMPLETED))
    async with asyncio.timeout(SOON):
        entries = await rest(following)
    generations = [entry.generation for entry in entries]
    assert generations == [*range(following.snapshot.generation + 1, record.generation + 2)]


async def test_snapshots_that_are_due_at_the_same_time_are_written_one_after_the_other(several, monkeypatch) -> None:
    monkeypatch.setattr("a2a_canvas.server.tasks.sql.projections.records.MAX_SAVED_CHARACTERS", 1)
    a = await several.start()
    ids = await working(a, 3, 1)
    taken = []
    for first in range(1, 1500, 300):
        for task_id in ids:
            await a.backend.journal.append(task_id, *deltas(300, first))
        await a.backend.commits.flushed()
        taken.append(sum([(await columns(a, task_id, "snapshot"))[0] > 1 for task_id in ids]))
    assert taken == [0, 1, 2, 3, 3]


# ------------------------------------------------------- records that cannot be decoded

DAMAGED = {
    "its head": update(tasks).values(head="{"),
    "its transcript": update(tasks).values(transcript='[{"_type":"Unheard"}]'),
    "its artifacts": update(tasks).values(artifacts='{"doc":7}'),
    "a page": update(pages).values(entries=b'[[2,"2026-01-01T00:00:00+00:00",{"_type":"New"}]]'),
    "half a page": update(pages).values(entries=b'[[2,"2026'),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
async def test_a_record_that_cannot_be_read_stops_neither_a_start_nor_the_others(several, caplog, damage) -> None:
    a = await several.start()
    ids = await working(a, 4, 10)
    await a.crash(expire=False)
    b = await idle(several)
    async with b.backend._database.write() as connection:
        await connection.execute(damage.where(damage.table.c.task_id == "t1"))
        await connection.execute(replicas.delete())
    before = await miscounted(b.backend._database)
    c = await several.start(*(HELLO for _ in ids))
    assert [(await ended(c, task_id)).state for task_id in ids if task_id != "t1"] == [State.COMPLETED] * 3
    for _ in range(3):
        await c.backend._take_over()
    [said_once] = [record for record in caplog.records if "The task cannot be resumed" in record.getMessage()]
    assert vars(said_once)["fields"]["task"] == "t1"
    assert await columns(c, "t1", "state", "resumptions", "cancel_requested") == ("failed", 1, False)
    for asked in (
        c.record,
        lambda task_id: c.runtime.follow(task_id, ANONYMOUS),
        lambda task_id: c.runtime.cancel(task_id, ANONYMOUS),
    ):
        with pytest.raises(Unreadable, match="send the message again"):
            await asked("t1")
    listed = {record.task_id: record for record in (await c.backend.journal.list(TaskQuery(("",)))).records}
    assert listed.keys() == set(ids)
    assert (listed["t1"].state, listed["t1"].owner, listed["t1"].context_id) == (State.FAILED, "", "c-t1")
    assert "cannot be read" in listed["t1"].message.text
    assert await c.backend.journal.context("c-t1") == ()
    assert await miscounted(c.backend._database) == before


async def miscounted(database: Database) -> dict[str, int]:
    """How much more is kept of contexts than was counted: what a test has changed behind the server's back."""
    right, known = await recounted(database), await counted(database)
    return {context_id: size - known[context_id] for context_id, size in right.items()}


def pushed(task_id: str) -> PushConfig:
    key = ConfigKey(f"c-{task_id}", task_id, "p")
    return PushConfig(key, ANONYMOUS, "1.0", "https://hooks.example.com/", "hooks.example.com:443")


async def states_told(replica) -> list[str]:
    """The states that the push notifications of one config tell of, in order."""
    [delivery] = await replica.backend.push.claim(FreePlaces(1, 1, 1, 1, 1))
    found = []
    while delivery:
        found.append(delivery.entry.event.state)
        delivery = await replica.backend.push.mark_delivered(delivery)
    return found


async def test_push_notifications_go_on_with_a_task_that_was_taken_over(several) -> None:
    a = await several.start()
    [task_id] = await working(a, 1, 10)
    await a.backend.push.add(pushed(task_id))
    await a.crash()
    b = await several.start(HELLO)
    await ended(b, task_id)
    assert await states_told(b) == [State.COMPLETED]


async def test_the_end_of_a_task_that_cannot_be_resumed_is_pushed(several) -> None:
    a = await several.start()
    [task_id] = await working(a, 1, 10)
    await a.backend.push.add(pushed(task_id))
    await a.crash(expire=False)
    b = await idle(several)
    async with b.backend._database.write() as connection:
        await connection.execute(update(tasks).values(head="{"))
        await connection.execute(replicas.delete())
    c = await several.start()
    assert await states_told(c) == [State.FAILED]


async def test_not_even_a_task_that_cannot_be_set_aside_stops_them(several, caplog, monkeypatch) -> None:
    a = await several.start()
    ids = await working(a, 4, 10)
    await a.crash(expire=False)
    b = await idle(several)
    async with b.backend._database.write() as connection:
        await connection.execute(update(tasks).values(head="{").where(tasks.c.task_id == "t1"))
        await connection.execute(update(pages).values(last=99).where(pages.c.task_id == "t1"))
        await connection.execute(replicas.delete())
    c = await several.start(*(HELLO for _ in ids))
    assert [(await ended(c, task_id)).state for task_id in ids if task_id != "t1"] == [State.COMPLETED] * 3
    assert (await columns(c, "t1", "state", "generation")) == ("failed", 100)


async def test_more_tasks_than_a_statement_has_room_for_are_read(several) -> None:
    a = await several.start()
    many = [TaskRecord(f"many-{n}", "many", "", datetime.now(UTC), State.WORKING) for n in range(1100)]
    for record in many:
        await a.backend.journal.create(record)
    await a.backend.commits.flushed()
    for record in many:
        await a.backend.journal.append(record.task_id, TextAdded(BlockPosition(0, 1, 0), "x"))
    await a.backend.commits.flushed()
    assert len(await a.backend.journal.context("many")) == 1100


async def test_whoever_follows_a_task_that_is_set_aside_is_told_that_it_failed(several) -> None:
    a, b = await several.start(), await several.start()
    await working(a, 1, 10)
    following = await b.backend.journal.follow("t0")
    async with b.backend._database.write() as connection:
        await connection.execute(update(tasks).values(head="{"))
    await a.crash()
    async with asyncio.timeout(SOON):
        entries = await rest(following)
    assert entries[-1].event.state is State.FAILED
    assert "Send it again" in entries[-1].event.message.text


async def test_followers_of_a_context_begin_anew_when_a_page_of_it_cannot_be_read(several) -> None:
    a, b = await several.start(), await several.start()
    [task_id] = await working(a, 1, 1)
    following = await b.backend.journal.follow_context("c-t0")
    await b.backend._listener.stop()
    await a.backend.journal.append(task_id, *deltas(1, 1))
    await a.backend.commits.flushed()
    async with b.backend._database.write() as connection:
        await connection.execute(update(pages).values(entries=b"["))
    await b.backend.journal.refresh_all()
    with pytest.raises(StreamLost):
        await anext(aiter(following))
    await b.backend.journal.refresh_all()
    assert (await b.backend.journal.follow_context("c-t0")).snapshot.artifacts == {}


async def test_a_draft_of_a_task_that_is_set_aside_is_closed(several) -> None:
    hold = Hold()
    a = await several.start(broken(write("T1", "One. ", append=True), hold))
    task_id = (await a.send("Write")).snapshot.task_id
    await hold.reached.wait()
    await a.backend.commits.flushed()
    await a.crash(expire=False)
    b = await idle(several, answer(write("T2", "Two.", append=True, last_chunk=True)), HELLO)
    async with b.backend._database.write() as connection:
        await connection.execute(update(tasks).values(head="{"))
    await take_over(b)
    assert await columns(b, task_id, "state") == ("failed",)
    await rest(await b.send("Go on"))
    assert [v.content.text for v in await b.backend.store.versions(Ref("c", "doc", ""))] == ["One. ", "One. Two."]


async def test_a_conversation_goes_on_without_a_turn_that_cannot_be_read(several) -> None:
    a = await several.start(HELLO, HELLO)
    await rest(await a.send("One"))
    async with a.backend._database.write() as connection:
        await connection.execute(update(tasks).values(transcript="["))
    following = await a.send("Two")
    assert (await ended(a, following.snapshot.task_id)).state is State.COMPLETED


async def test_a_task_that_cannot_be_resumed_at_all_fails_alone_and_the_log_names_the_error(several, caplog) -> None:
    """What an earlier version has accepted, this one may refuse."""
    a = await several.start()
    ids = await working(a, 3, 1)
    await a.crash(expire=False)
    b = await idle(several, *(HELLO for _ in ids))
    resume = b.runtime.resume

    def refusing(orphan) -> None:
        if orphan.record.task_id == "t1":
            raise ValueError("Not in this version")
        resume(orphan)

    b.runtime.resume = refusing
    await take_over(b)
    states = [(await ended(b, task_id)).state for task_id in ids]
    assert states == [State.COMPLETED, State.FAILED, State.COMPLETED]
    [logged] = [record for record in caplog.records if "The task cannot be resumed" in record.getMessage()]
    assert "Not in this version" in logged.getMessage()


# ------------------------------------------------------------------------- resumptions


async def test_nothing_is_taken_over_while_nothing_can_be_written(several) -> None:
    a = await several.start()
    await working(a, 1, 1)
    await a.crash(expire=False)
    b = await idle(several, HELLO)
    b.backend.commits.failing = Unavailable("the last try failed")
    await take_over(b)
    assert await columns(b, "t0", "resumptions", "epoch") == (0, 1)
    b.backend.commits.failing = None
    await take_over(b)
    assert (await ended(b, "t0")).state is State.COMPLETED


async def test_a_takeover_that_comes_to_nothing_is_no_resumption_when_it_is_made_good(several) -> None:
    a = await several.start()
    await working(a, 1, 1)
    await a.crash(expire=False)
    hold = Hold()
    b = await idle(several, answer(hold, text("Hello")))
    orphan = b.backend._takeover.read_orphan

    async def away(claim: Claim):
        raise Unavailable("the connection broke")

    b.backend._takeover.read_orphan = away
    for _ in range(5):
        with pytest.raises(Unavailable):
            await take_over(b)
            await take_over(b)
    b.backend._takeover.read_orphan = orphan
    await take_over(b)
    await take_over(b)
    assert await columns(b, "t0", "resumptions") == (1,)
    hold.release.set()
    assert (await ended(b, "t0")).state is State.COMPLETED


# ---------------------------------------------------------- a lease that is lost meanwhile


async def test_a_lease_that_is_lost_during_a_takeover_does_not_cost_the_new_one(several) -> None:
    a = await several.start()
    await working(a, 2, 1)
    await a.crash(expire=False)
    b = await idle(several, HELLO, HELLO, HELLO)
    orphan = b.backend._takeover.read_orphan

    async def losing(claim: Claim):
        found = await orphan(claim)
        b.backend._takeover.read_orphan = orphan
        b.backend._on_lease_lost()
        return found

    b.backend._takeover.read_orphan = losing
    await take_over(b)
    renewed = b.backend._lease.id
    assert b.backend.journal.running == ()
    own = await b.send("Hi", context="own")
    assert (await ended(b, own.snapshot.task_id)).state is State.COMPLETED
    await take_over(b)
    assert [(await ended(b, task_id)).state for task_id in ("t0", "t1")] == [State.COMPLETED] * 2
    assert b.backend._lease.id == renewed


async def test_a_lease_that_is_lost_while_an_answer_is_accepted_does_not_cost_the_new_one(several) -> None:
    a = await several.start(HELLO)
    await working(a, 1, 1)
    await a.backend.journal.append("t0", StatusChanged(State.INPUT_REQUIRED))
    await a.backend.commits.flushed()
    acquire = a.backend._takeover.acquire

    async def losing(record: TaskRecord):
        found = await acquire(record)
        a.backend._on_lease_lost()
        return found

    a.backend._takeover.acquire = losing
    assert await a.backend.ownership.acquire("t0") is None
    renewed = a.backend._lease.id
    assert a.backend.journal.running == ()
    own = await a.send("Hi", context="own")
    assert (await ended(a, own.snapshot.task_id)).state is State.COMPLETED
    assert a.backend._lease.id == renewed


# ---------------------------------------------------------------------- the same twice


async def test_a_message_with_changes_that_is_sent_again_before_it_is_durable_changes_once(
    several, monkeypatch
) -> None:
    a = await several.start(answer(write("T1", "One", last_chunk=True)), HELLO, HELLO)
    await rest(await a.send("Write"))
    writing, commit = Hold(), GroupCommit._commit

    async def slowly(self: GroupCommit, contexts: set[ContextKey] | None) -> None:
        await writing()
        await commit(self, contexts)

    monkeypatch.setattr(GroupCommit, "_commit", slowly)
    incoming = Incoming(said("m", "Look"), "", "c", "", (("doc", ReplaceParts(parts("Mine"), last_chunk=True)),))
    first = asyncio.create_task(a.runtime.send(incoming, ANONYMOUS))
    await writing.reached.wait()
    first.cancel()  # its sender hangs up
    await asyncio.wait([first])
    again = asyncio.create_task(a.runtime.send(incoming, ANONYMOUS))
    for _ in range(100):
        await asyncio.sleep(0)
    writing.release.set()
    async with asyncio.timeout(SOON):
        following = await again
    await ended(a, following.snapshot.task_id)
    versions = await a.backend.store.versions(Ref("c", "doc", ""))
    assert [version.content.text for version in versions] == ["One", "Mine"]
