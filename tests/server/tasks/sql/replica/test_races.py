"""What happens at the same moment, or just before somebody goes away: nothing is lost, said twice, or left lying."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, delete, select, update
from sqlalchemy.util import await_only

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    BlockStopped,
    MessageReceived,
    State,
    StatusChanged,
    ToolInputAdded,
)
from a2a_canvas.server.agent.model import ModelText
from a2a_canvas.server.backend.sql_backend import SqlBackend
from a2a_canvas.server.tasks.errors import StreamLost, TaskNotFound
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.journal.listing import TaskQuery
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.server.tasks.sql.journal import sql_journal as journal
from a2a_canvas.server.tasks.sql.journal.journal_writing import JournalWork
from a2a_canvas.server.tasks.sql.journal.prune import Retention, prune
from a2a_canvas.server.tasks.sql.projections.inbox_messages import inbox_messages
from a2a_canvas.server.tasks.sql.projections.pages import pages
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.server.tasks.sql.replica import notifications as wakeups_of
from a2a_canvas.server.tasks.sql.replica.notifications import Notification, NotificationListener
from a2a_canvas.server.tasks.sql.replica.takeover import CLAIM_LIMIT
from a2a_canvas.store.changes import EditText
from a2a_canvas.store.errors import ArtifactNotFound, Unavailable
from a2a_canvas.store.models import Limits, Ref
from a2a_canvas.store.sql.database import READERS, WRITERS, Database
from a2a_canvas.store.text.spans import Span
from tests.database_fixtures import sqlite_url
from tests.fakes import Hold, answer, ask, broken, said, text, tool, write
from tests.new_database import create_tables
from tests.server.tasks.runtime.runtime_harness import rest, states
from tests.server.tasks.sql.replica_harness import SOON, Replica, ended

HELLO = answer(text("Hello"))


async def waiting(replica: Replica) -> str:
    """The id of a task that has asked something."""
    following = await replica.send("Paint")
    await asked(following)
    return following.snapshot.task_id


async def asked(following: TaskSubscription) -> None:
    async with asyncio.timeout(SOON):
        async for entry in following:
            if isinstance(entry.event, StatusChanged) and entry.event.state is State.INPUT_REQUIRED:
                return


def texts(record: TaskRecord) -> list[str]:
    return [message.message_id for message in record.history]


# ------------------------------------------------------------------ a sender who hangs up


async def test_a_sender_who_hangs_up_before_the_answer_has_sent_all_the_same(several) -> None:
    a = await several.start(HELLO)
    await hung_up(a, asyncio.create_task(a.send("Hi")))
    [(_, task_id)] = a.backend.journal.running
    await a.backend.commits.flushed()
    assert (await ended(a, task_id)).state is State.COMPLETED


async def hung_up(replica: Replica, sending: asyncio.Task[object]) -> None:
    """Sending is cut off when the task is just this replica's."""
    for _ in range(100_000):
        if replica.backend.journal.running:
            break
        await asyncio.sleep(0)
    sending.cancel()


async def test_an_answer_whose_sender_hangs_up_is_given_or_the_task_goes_on_to_wait(several) -> None:
    a = await several.start(answer(ask("T1", "Which?")), answer(text("Blue.")), answer(text("Blue.")))
    task_id = await waiting(a)
    await hung_up(a, asyncio.create_task(a.send("Blue", task_id)))
    record = await ended(a, task_id)
    assert (record.state, texts(record).count("m-Blue")) == (State.COMPLETED, 1)


@pytest.mark.parametrize("meant", ["to answer", "to cancel"])
async def test_a_task_is_not_left_behind_by_who_hangs_up_when_it_was_just_acquired(several, monkeypatch, meant) -> None:
    a = await several.start(answer(ask("T1", "Which?")), answer(text("Blue.")))
    task_id = await waiting(a)
    hold, acquire = Hold(), a.backend._takeover.acquire

    async def slowly(record: TaskRecord) -> TaskRecord | None:
        acquired = await acquire(record)
        hold.reached.set()
        await hold.release.wait()
        return acquired

    monkeypatch.setattr(a.backend._takeover, "acquire", slowly)
    step = a.send("Blue", task_id) if meant == "to answer" else a.runtime.cancel(task_id, ANONYMOUS)
    asking = asyncio.create_task(step)
    await hold.reached.wait()
    asking.cancel()
    await asyncio.wait([asking])
    hold.release.set()
    record = await ended(a, task_id)
    assert record.state is (State.COMPLETED if meant == "to answer" else State.CANCELED)


# -------------------------------------------------------------------------- taking over


async def test_a_task_that_waits_goes_on_to_wait_if_whoever_was_to_answer_it_dies_before(several) -> None:
    a = await several.start(answer(ask("T1", "Which?")))
    task_id = await waiting(a)
    assert await a.backend._takeover.acquire(await a.record(task_id))
    await a.crash()
    b = await several.start(answer(text("Blue it is.")))
    async with asyncio.timeout(SOON):
        while await state_in_database(b, task_id) != State.INPUT_REQUIRED.value:
            await b.backend._take_over()
    assert (await b.record(task_id)).state is State.INPUT_REQUIRED
    assert b.llm.requests == []
    await b.send("Blue", task_id)
    record = await ended(b, task_id)
    assert (record.state, record.message.text) == (State.COMPLETED, "Blue it is.")


async def state_in_database(replica: Replica, task_id: str) -> str:
    async with replica.backend._database.read() as connection:
        return await connection.scalar(select(tasks.c.state).where(tasks.c.task_id == task_id))


async def test_a_task_is_taken_over_once_however_many_look_for_it_at_the_same_time(several) -> None:
    hold, again = Hold(), Hold()
    a = await several.start(broken(hold))
    task_id = (await a.send("Write")).snapshot.task_id
    await hold.reached.wait()
    await a.crash()
    b = await several.start(broken(again), HELLO, HELLO)
    b.backend._heartbeat.cancel()
    async with b.backend._database.write() as connection:
        await connection.execute(delete(replicas).where(replicas.c.replica_id != b.backend._lease.id))
    await asyncio.gather(*(b.backend._take_over() for _ in range(6)))
    await again.reached.wait()
    await b.backend._take_over()
    again.release.set()
    record = await ended(b, task_id)
    assert (record.epoch, len(b.llm.requests)) == (2, 2)  # the stream that broke was asked for again


async def test_all_tasks_of_a_dead_replica_are_taken_over_in_one_go(several) -> None:
    count = CLAIM_LIMIT + 5
    holds = [Hold() for _ in range(count)]
    a = await several.start(*(broken(hold) for hold in holds))
    for n in range(count):
        await a.send(f"Write {n}")
    for hold in holds:
        await hold.reached.wait()
    await a.crash()
    b = await several.start(*(HELLO for _ in range(count)))
    b.backend._heartbeat.cancel()
    async with b.backend._database.write() as connection:
        await connection.execute(delete(replicas).where(replicas.c.replica_id != b.backend._lease.id))
    await b.backend._take_over()
    async with asyncio.timeout(SOON):
        await b.runtime.idle()
        await b.backend.commits.flushed()
    async with b.backend._database.read() as connection:
        states = (await connection.scalars(select(tasks.c.state))).all()
    assert states == [State.COMPLETED.value] * count


async def test_an_epoch_in_which_nothing_was_said_is_not_used_again(several) -> None:
    hold = Hold()
    a = await several.start(broken(hold))
    task_id = (await a.send("Write")).snapshot.task_id
    await hold.reached.wait()
    await a.crash()
    async with Mute(several.url) as mute:
        [claim] = await mute.claim()
        assert claim.epoch == 2
    b = await several.start(HELLO)
    assert (await ended(b, task_id)).epoch == 3


class Mute:
    """A replica that takes tasks over and dies before it has said a word."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        backend = SqlBackend(self._database, lambda: datetime.now(UTC), Limits())
        self._lease, self._takeover = backend._lease, backend._takeover

    async def __aenter__(self) -> "Mute":
        await self._lease.register()
        return self

    async def claim(self):
        async with self._database.write() as connection:
            await connection.execute(delete(replicas).where(replicas.c.replica_id != self._lease.id))
        return await self._takeover.claim(())

    async def __aexit__(self, *error: object) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(replicas))
        await self._database.close()


async def test_whoever_follows_a_task_on_the_replica_that_takes_it_over_sees_it_go_on(several) -> None:
    hold = Hold()
    a = await several.start(broken(write("T1", "One. ", append=True, cut=20), hold))
    b = await several.start(answer(text("Written.")))
    here = await a.send("Write")
    task_id = here.snapshot.task_id
    there = await b.runtime.follow(task_id, ANONYMOUS)
    await b.backend._listener.stop()  # news are slower than the takeover
    await hold.reached.wait()
    await a.backend.commits.flushed()
    pieces, whole = input_of(await ready(here))
    await a.crash()
    async with asyncio.timeout(SOON):
        entries = await rest(there)
    others = [entry for entry in entries if not isinstance(entry.event, ToolInputAdded)]
    numbers = range(there.snapshot.generation + 1, entries[-1].generation + 1)
    assert [entry.generation for entry in others] == [each for each in numbers if each not in pieces]
    assert [entry for entry in entries if isinstance(entry.event, ToolInputAdded)] == [whole]
    assert [entry.epoch for entry in entries] == sorted(entry.epoch for entry in entries)
    assert entries[-1].event.state is State.COMPLETED
    b.backend._listener.start()


async def ready(following: TaskSubscription) -> list[Entry]:
    """The entries that can be read now."""
    entries = []
    while following.has_next:
        entries.append(await anext(following))
    return entries


def input_of(entries: list[Entry]) -> tuple[set[int], Entry]:
    """The numbers of the pieces of the only call's input, and the entry with all of it: that of its block's end."""
    pieces = {entry.generation: entry.event for entry in entries if isinstance(entry.event, ToolInputAdded)}
    first = next(iter(pieces.values()))
    given = "".join(piece.partial_json for piece in pieces.values())
    ends = (entry for entry in entries if isinstance(entry.event, BlockStopped) and entry.event.place == first.place)
    return {*pieces}, replace(next(ends), event=replace(first, partial_json=given))


class Stubborn(Hold):
    """A model call that takes its time to end when it is cancelled."""

    async def __call__(self) -> None:
        self.reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await self.release.wait()
            raise


async def test_a_turn_that_was_abandoned_says_nothing_even_if_its_replica_runs_the_task_again(several) -> None:
    stubborn, hold = Stubborn(), Hold()
    a = await several.start(
        broken(write("T1", "One. ", append=True), write("T2", "half", append=True, at=1, stopped=False), stubborn),
        answer(hold, write("T3", "Two.", append=True)),
        answer(text("Written.")),
    )
    task_id = (await a.send("Write")).snapshot.task_id
    await stubborn.reached.wait()
    await a.backend.commits.flushed()
    detached = a.runtime._turns.get(task_id)
    async with a.backend._database.write() as connection:
        await connection.execute(delete(replicas))
    async with asyncio.timeout(SOON):
        await hold.reached.wait()  # it is taken up again
        stubborn.release.set()
        await detached.wait()
    hold.release.set()
    record = await ended(a, task_id)
    assert (record.state, await a.text()) == (State.COMPLETED, "One. Two.")


async def test_a_cancel_that_comes_while_a_task_is_taken_up_leaves_no_draft_open(several, monkeypatch) -> None:
    hold, taking = Hold(), Hold()
    a = await several.start(broken(write("T1", "One. ", append=True), hold))
    b = await several.start()
    listed = b.backend.store.list

    async def slowly(context_id: str):
        found = await listed(context_id)
        await taking()
        return found

    monkeypatch.setattr(b.backend.store, "list", slowly)
    task_id = (await a.send("Write")).snapshot.task_id
    await hold.reached.wait()
    await a.backend.commits.flushed()
    await a.crash()
    await taking.reached.wait()
    taking.release.set()
    async with asyncio.timeout(SOON):
        assert (await b.runtime.cancel(task_id, ANONYMOUS)).state is State.CANCELED
    monkeypatch.undo()
    [artifact] = await b.backend.store.list("c")
    assert (artifact.open, artifact.text, artifact.version) == (False, "One. ", 1)
    assert b.llm.requests == []


# --------------------------------------------------------------------------- the same twice


async def test_a_message_for_a_working_task_that_comes_by_two_ways_at_once_is_taken_once(several) -> None:
    hold = Hold()
    a = await several.start(answer(tool("T1", "artifact_list"), hold), answer(text("Short.")))
    b, c = await several.start(), await several.start()
    task_id = (await a.send("Write")).snapshot.task_id
    await hold.reached.wait()
    async with asyncio.timeout(SOON):
        await asyncio.gather(*(each.send("Keep it short", task_id) for each in (b, c, a)))
    hold.release.set()
    record = await ended(a, task_id)
    assert texts(record).count("m-Keep it short") == 1
    assert [ModelText("Keep it short")] == [
        content for content in a.llm.requests[1].messages[-1].content if isinstance(content, ModelText)
    ]
    async with b.backend._database.read() as connection:
        assert (await connection.execute(select(inbox_messages))).all() == []


async def test_an_answer_that_comes_by_two_ways_at_once_is_taken_once(several) -> None:
    a = await several.start(answer(ask("T1", "Which?")))
    task_id = await waiting(a)
    hold = Hold()
    b, c = await several.start(answer(hold, text("Blue."))), await several.start(answer(hold, text("Blue.")))
    async with asyncio.timeout(SOON):
        await asyncio.gather(*(each.send("Blue", task_id) for each in (b, c)))
    hold.release.set()
    assert texts(await ended(a, task_id)).count("m-Blue") == 1


async def test_changes_that_come_by_two_ways_at_once_are_made_once(several) -> None:
    a = await several.start(answer(write("T1", "One", last_chunk=True)), HELLO)
    await rest(await a.send("Write"))
    b, c = await several.start(HELLO), await several.start(HELLO)
    change = EditText(Span(0, 3), "Mine", None)
    incoming = Incoming(said("m", "Look"), "", "c", "", (("doc", change),))
    async with asyncio.timeout(SOON):
        first, second = await asyncio.gather(*(each.runtime.send(incoming, ANONYMOUS) for each in (b, c)))
    assert first.snapshot.task_id == second.snapshot.task_id
    await ended(a, first.snapshot.task_id)
    versions = await a.backend.store.versions(Ref("c", "doc", ""))
    assert [version.content.text for version in versions] == ["One", "Mine"]


async def test_a_message_and_the_changes_that_come_with_it_are_one_transaction(several, monkeypatch) -> None:
    a = await several.start(answer(write("T1", "One", last_chunk=True)), HELLO)
    await rest(await a.send("Write"))
    written: list[tuple[int, int]] = []
    collect = a.backend.store.collect

    def collected(contexts=None):
        work = collect()
        written.append((len(a.backend.journal.running), len(work._writes) if work else 0))
        return work

    monkeypatch.setattr(a.backend.store, "collect", collected)
    incoming = Incoming(said("m", "Look"), "", "c", "", (("doc", EditText(Span(0, 3), "Mine", None)),))
    await rest(await a.runtime.send(incoming, ANONYMOUS))
    assert next(writes for owned, writes in written if owned) == 1


async def test_a_sender_who_hangs_up_has_sent_changes_and_all(several) -> None:
    a = await several.start(answer(write("T1", "One", last_chunk=True)), HELLO, HELLO)
    await rest(await a.send("Write"))
    incoming = Incoming(said("m", "Look"), "", "c", "", (("doc", EditText(Span(0, 3), "Mine", None)),))
    await hung_up(a, asyncio.create_task(a.runtime.send(incoming, ANONYMOUS)))
    [(_, task_id)] = a.backend.journal.running
    async with asyncio.timeout(SOON):
        await a.backend.commits.flushed()
        assert (await ended(a, task_id)).state is State.COMPLETED
    assert await a.text() == "Mine"


# ------------------------------------------------------------------------------- cancelling


async def test_a_cancel_that_comes_when_the_task_has_just_asked_cancels_it(several, monkeypatch) -> None:
    hold = Hold()
    a, b = await several.start(answer(hold, ask("T1", "Which?"))), await several.start()
    following = await a.send("Paint")
    task_id = following.snapshot.task_id
    await hold.reached.wait()
    request_cancel = b.backend.ownership.request_cancel

    async def too_late(task_id: str) -> None:
        hold.release.set()
        await asked(following)
        monkeypatch.undo()
        await request_cancel(task_id)

    monkeypatch.setattr(b.backend.ownership, "request_cancel", too_late)
    async with asyncio.timeout(SOON):
        assert (await b.runtime.cancel(task_id, ANONYMOUS)).state is State.CANCELED


# -------------------------------------------------------------------------------- following


async def test_two_who_follow_a_context_at_once_both_see_what_follows(several) -> None:
    a, b = await several.start(answer(write("T1", "One", last_chunk=True)), HELLO), await several.start()
    both = await asyncio.gather(*(b.backend.journal.follow_context("c") for _ in range(2)))
    await rest(await a.send("Write"))
    async with asyncio.timeout(SOON):
        for following in both:
            assert isinstance((await anext(aiter(following))).entry.event, ArtifactChanged)


async def test_who_could_not_read_for_so_long_that_it_was_pruned_is_told_and_comes_back(several) -> None:
    hold = Hold()
    a = await several.start(answer(write("T1", "One"), hold), HELLO)
    b = await several.start()
    writing = await a.send("Write")
    task_id = writing.snapshot.task_id
    await hold.reached.wait()
    await a.backend.commits.flushed()
    task, context = await b.runtime.follow(task_id, ANONYMOUS), await b.backend.journal.follow_context("c")
    await b.backend._listener.stop()  # it hears nothing, for as long as it takes
    hold.release.set()
    await rest(writing)
    await a.backend.commits.flushed()
    later = datetime.now(UTC) + timedelta(days=30)
    assert (await prune(a.backend._database, Retention(timedelta(days=5)), later, dry_run=False)).journals
    await b.backend.journal.refresh_all()
    async with asyncio.timeout(SOON):
        for lost in (task, context):
            with pytest.raises(StreamLost):
                await rest(lost)
    assert (await b.runtime.follow(task_id, ANONYMOUS)).snapshot.state is State.COMPLETED
    there = (await b.backend.journal.follow_context("c")).snapshot
    assert (there.position, there.artifacts["doc"].closed) == (context.snapshot.position + 1, True)


async def test_who_comes_to_a_task_of_which_another_has_missed_something_begins_anew(several) -> None:
    hold = Hold()
    a = await several.start(answer(hold, ask("T1", "Which?")))
    b = await several.start()
    task_id = (await a.send("Paint")).snapshot.task_id
    await hold.reached.wait()
    missed = await b.runtime.follow(task_id, ANONYMOUS)
    await b.backend._listener.stop()
    hold.release.set()
    await a.runtime.idle()
    await a.backend.commits.flushed()
    async with a.backend._database.write() as connection:
        await connection.execute(delete(pages))
    assert (await b.runtime.follow(task_id, ANONYMOUS)).snapshot.state is State.INPUT_REQUIRED
    with pytest.raises(StreamLost):
        await rest(missed)


async def test_the_poll_is_not_left_out_because_there_is_always_news(monkeypatch) -> None:
    monkeypatch.setattr(wakeups_of, "POLL_INTERVAL", 0)
    polled = asyncio.Event()

    async def heard(news: Notification) -> None:
        listener._receive(None, 0, "", payload)  # before this is taken in, there is more
        await asyncio.sleep(0)
        if news.everything:
            polled.set()

    [payload] = Notification(tasks=("t",)).payloads()
    listener = NotificationListener(Database("sqlite:///unused.db"), heard)
    listener._receive(None, 0, "", payload)
    listener.start()
    async with asyncio.timeout(SOON):
        await polled.wait()
    await listener.stop()


async def test_news_that_come_while_others_are_taken_in_are_taken_in_together() -> None:
    hold = Hold()
    heard: list[Notification] = []

    async def slowly(news: Notification) -> None:
        heard.append(news)
        await hold()

    listener = NotificationListener(Database("sqlite:///unused.db"), slowly)
    listener.start()
    listener._receive(None, 0, "", Notification(tasks=("0",)).payloads()[0])
    await hold.reached.wait()
    for n in range(1, 100):
        [payload] = Notification(tasks=(str(n % 3),), inboxes=("p",), given_up=n == 50).payloads()
        listener._receive(None, 0, "", payload)
    hold.reached.clear()
    hold.release.set()
    await hold.reached.wait()
    await listener.stop()
    assert (heard[0].tasks, len(heard)) == (("0",), 2)
    assert (set(heard[1].tasks), heard[1].inboxes, heard[1].given_up) == ({"0", "1", "2"}, ("p",), True)


# ----------------------------------------------------------------------------------- leases


async def test_many_who_read_do_not_cost_a_replica_its_lease(several) -> None:
    a = await several.start(HELLO)
    async with AsyncExitStack() as reading:
        for _ in range(READERS):
            await reading.enter_async_context(a.backend._database.read())
        more = [asyncio.create_task(a.record("none")) for _ in range(READERS)]
        await asyncio.sleep(0)
        async with asyncio.timeout(SOON / 2):
            assert await a.backend._lease.heartbeat()
    await asyncio.gather(*more, return_exceptions=True)


async def test_neither_do_many_who_write(several) -> None:
    a = await several.start(HELLO)
    async with AsyncExitStack() as writing:
        for _ in range(WRITERS - 1):  # one listens
            await writing.enter_async_context(a.backend._database.write())
        waiting = asyncio.create_task(a.send("Hi"))
        async with asyncio.timeout(SOON / 2):
            assert await a.backend._lease.heartbeat()
    await rest(await waiting)


async def test_a_replica_in_the_middle_of_a_long_transaction_is_alive(several) -> None:
    """The transaction holds its row, so that its heartbeat waits; nobody takes that for death, or waits for it."""
    a, b = await several.start(), await several.start()
    for replica in (a, b):
        replica.backend._heartbeat.cancel()
    b.backend._lease._steady_since = 0.0
    replica_id = a.backend._lease.id
    async with a.backend._database.write() as connection:
        await connection.execute(update(replicas).where(replicas.c.replica_id == replica_id).values(heartbeat_at=0))
    async with a.backend._database.write() as connection:
        await connection.run_sync(a.backend._lease.collect().write)
        async with asyncio.timeout(SOON / 2):
            await b.backend._lease.expire_dead()
    await b.backend._lease.expire_dead()  # the transaction itself has said that it lives
    assert await a.backend._lease.heartbeat()


async def test_a_beat_that_its_replica_was_renewed_in_does_not_cost_the_new_one_its_life(several) -> None:
    a = await several.start()
    a.backend._heartbeat.cancel()
    lease, database = a.backend._lease, a.backend._database

    class Renewing:
        def heartbeat(self):
            lease._database = database
            lease.renew()
            return database.heartbeat()

    lease._database = Renewing()
    assert await lease.heartbeat()


# ---------------------------------------------------------------------------- odd characters


@pytest.mark.parametrize("odd", ["half \ud83d", "nothing \0"])
async def test_what_no_database_can_carry_costs_no_replica_its_lease(several, odd) -> None:
    a = await several.start(answer(tool("T1", odd), tool("T2", "artifact_list", {odd: odd}, at=1)), HELLO)
    before = a.backend._lease.id
    following = await a.send("Hi")
    record = await ended(a, following.snapshot.task_id)
    assert (record.state, record.epoch, a.backend._lease.id) == (State.COMPLETED, 1, before)


@pytest.mark.parametrize("odd", ["half \ud83d", "nothing \0"])
async def test_nobody_has_what_no_database_can_carry(several, odd) -> None:
    a = await several.start()
    with pytest.raises(TaskNotFound):
        await a.record(odd)
    with pytest.raises(ArtifactNotFound):
        await a.backend.store.get(Ref("c", odd, ""))
    assert not await a.backend.journal.has_context(odd, "")
    assert await a.backend.store.list(odd) == ()
    assert (await a.backend.journal.follow_context(odd)).snapshot.artifacts == {}


# ------------------------------------------------------------------------- alone on a file


async def test_alone_a_task_that_was_left_lying_waiting_goes_on_to_wait(tmp_path) -> None:
    database = Database(sqlite_url(tmp_path))
    await create_tables(database)

    class Nobody:
        resumed = False

        def resume(self, orphan) -> None:
            self.resumed = True

    def now() -> datetime:
        return datetime.now(UTC)

    first = SqlBackend(database, now, Limits())
    await first.start(Nobody())
    await first.journal.create(TaskRecord("t", "c", "", now(), history=(said("m", "Hi"),)))
    await first.journal.append("t", MessageReceived(said("n", "Hm")), StatusChanged(State.INPUT_REQUIRED))
    await first.commits.flushed()
    assert await first._takeover.acquire(await first.journal.get("t"))
    await first.stop()
    second = SqlBackend(Database(sqlite_url(tmp_path)), now, Limits())
    nobody = Nobody()
    await second.start(nobody)
    assert not nobody.resumed
    assert await second.ownership.acquire("t")
    await second.stop()


# ------------------------------------------------------------------- a database that is too slow


async def stall(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on nothing is written, and whoever waits for it soon has waited too long."""
    monkeypatch.setattr(journal, "COMMIT_TIMEOUT", 0.05)
    replica.backend.commits._task.cancel()


async def test_a_message_that_nobody_has_begun_to_write_when_it_is_refused_is_not_kept(several, monkeypatch) -> None:
    a = await several.start(HELLO)
    await stall(a, monkeypatch)
    with pytest.raises(Unavailable):
        await a.send("Hello")
    monkeypatch.undo()
    a.backend.commits.start()
    await a.backend.commits.flushed()
    assert (await a.backend.journal.list(TaskQuery(("",)))).total == 0
    assert a.backend.journal.running == ()
    assert states(await rest(await a.send("Hello")))[-1] is State.COMPLETED
    assert (await a.backend.journal.list(TaskQuery(("",)))).total == 1


async def test_a_message_that_is_being_written_when_its_sender_is_told_to_try_again_is_carried_out_once(
    several, monkeypatch
) -> None:
    a = await several.start(HELLO)
    begun, go_on = asyncio.Event(), asyncio.Event()
    write_it = JournalWork.write

    def slowly(work: JournalWork, connection: Connection) -> None:
        begun.set()
        await_only(go_on.wait())
        write_it(work, connection)

    monkeypatch.setattr(JournalWork, "write", slowly)
    monkeypatch.setattr(journal, "COMMIT_TIMEOUT", 1.0)  # long enough for the writing to begin
    with pytest.raises(Unavailable):
        await a.send("Hello")
    assert begun.is_set()
    monkeypatch.undo()
    go_on.set()
    assert states(await rest(await a.send("Hello")))[-1] is State.COMPLETED
    assert (await a.backend.journal.list(TaskQuery(("",)))).total == 1
    assert len(a.llm.requests) == 1
