"""What cannot be written fails alone: its task, and nobody else's; and the rows and the memory are one again."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import State, UserMessage
from a2a_canvas.server.backend.sql_backend import MAX_WRITE_FAILURES
from a2a_canvas.server.log_output import LineFormatter
from a2a_canvas.server.tasks.codec import message_to_json
from a2a_canvas.server.tasks.errors import StreamLost, TaskNotFound, Unwritable
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.server.tasks.runtime.turns import NOT_STORED
from a2a_canvas.server.tasks.sql.projections.inbox_messages import inbox_messages
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.store.changes import ReplaceParts
from a2a_canvas.store.errors import ArtifactNotFound, Unavailable
from a2a_canvas.store.models import Document, Ref
from a2a_canvas.store.sql import compression
from a2a_canvas.store.sql import writing as rows
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.rows import RowChanges, StoredDocument, row_changes
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.fakes import Hold, answer, ask, broken, parts, said, text, write
from tests.new_database import create_tables
from tests.server.tasks.runtime.runtime_harness import rest
from tests.server.tasks.sql.replica_harness import Replica, Replicas

SOON = 20.0
"""Seconds after which a test says that what it waits for never comes."""
POISON = "poison"
WRITTEN = answer(text("Written."))

BlockPosition = tuple[str, str]
"""A table, and the column of it that does not take `POISON`."""

PAGES, DRAFTS, VERSIONS = ("pages", "entries"), ("drafts", "content"), ("versions", "content")


@pytest.fixture(params=["sqlite", "postgresql"])
async def several(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Replicas]:
    monkeypatch.setattr(compression, "COMPRESSED_AT_MOST", 0)  # the database shall find `POISON`
    started = Replicas(sqlite_url(tmp_path) if request.param == "sqlite" else postgresql_url())
    database = Database(started.url)
    await create_tables(database)
    await database.close()
    try:
        yield started
    finally:
        await started.stop()


async def refuse(replica: Replica, *places: BlockPosition) -> None:
    """From now on no row of these tables takes the word."""
    database = replica.backend._database
    async with database.write() as connection:
        for table, column in places:
            if database.dialect == "postgresql":
                rule = f"ALTER TABLE {table} ADD CHECK (position('{POISON}' in {column}) = 0)"
                await connection.exec_driver_sql(rule)
                continue
            for event in ("INSERT", "UPDATE"):
                rule = (
                    f"CREATE TRIGGER no_{table}_{event} BEFORE {event} ON {table} WHEN instr(NEW.{column}, '{POISON}')"
                )
                await connection.exec_driver_sql(f"{rule} BEGIN SELECT RAISE(ABORT, 'not in here'); END")


async def lost(following: TaskSubscription) -> None:
    with pytest.raises(StreamLost):
        await rest(following)


async def ended(replica: Replica, task_id: str) -> TaskRecord:
    """The task when it has ended; whoever comes back sees how."""
    async with asyncio.timeout(SOON):
        while True:
            try:
                await rest(await replica.runtime.follow(task_id, ANONYMOUS))
                break
            except StreamLost:
                continue
        await replica.backend.commits.flushed()
    return await replica.record(task_id)


def numbered(following: TaskSubscription, entries: list[Entry]) -> bool:
    first = following.snapshot.generation + 1
    return [(entry.epoch, entry.generation) for entry in entries] == [(1, first + n) for n in range(len(entries))]


@pytest.mark.parametrize(
    ("place", "last_chunk", "left"),
    [(PAGES, True, "one "), (VERSIONS, True, "one "), (DRAFTS, False, "one "), (VERSIONS, False, None)],
    ids=["entries", "versions", "drafts", "what the task has begun"],
)
async def test_of_several_turns_the_one_that_cannot_be_written_fails_and_the_others_go_on(
    several: Replicas,
    place: BlockPosition,
    last_chunk: bool,
    left: str | None,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caplog.handler, "formatter", LineFormatter("text"))  # the handler is that of all tests
    words = ["two", "three", POISON, "four"]
    holds = [Hold() for _ in words]
    calls = [
        answer(write("T1", "one ", append=True), hold, write("T2", word, append=True, last_chunk=last_chunk, at=1))
        for word, hold in zip(words, holds, strict=True)
    ]

    async def committed() -> None:
        await a.backend.commits.flushed()

    a = await several.start(*calls, *(answer(committed, text("Written.")) for _ in words))
    await refuse(a, place)
    lease = a.backend._lease.id
    followed = []
    for number, hold in enumerate(holds):
        followed.append(await a.send("Write", context=f"c{number}"))
        await hold.reached.wait()
    for hold in holds:
        hold.release.set()
    async with asyncio.timeout(SOON):
        said = await asyncio.gather(*(rest(each) for each in followed), return_exceptions=True)
    for number, (following, entries) in enumerate(zip(followed, said, strict=True)):
        if words[number] == POISON:
            assert isinstance(entries, StreamLost)
            record = await ended(a, following.snapshot.task_id)
            assert record.state is State.FAILED
            assert record.epoch > 1
            assert record.message
            assert record.message.text == NOT_STORED
        else:
            assert numbered(following, entries)
            assert (await a.record(following.snapshot.task_id)).state is State.COMPLETED
    assert a.backend._lease.id == lease
    b = await several.start()  # it has the rows alone
    for replica in (a, b):
        artifacts = [await replica.backend.store.list(f"c{number}") for number in range(len(words))]
        expected = ["one two", "one three", *([left] if left else ()), "one four"]
        assert [artifact.text for of_context in artifacts for artifact in of_context] == expected
        assert not any(artifact.open for of_context in artifacts for artifact in of_context)
    assert {record.levelname for record in caplog.records} == {"ERROR"}
    discarded = [vars(record)["fields"] for record in caplog.records if "Staged writes" in record.getMessage()]
    assert discarded
    assert all(fields == {"context": "c2"} for fields in discarded)
    assert "poison" not in caplog.text.lower()
    assert "not in here" in caplog.text or "check constraint" in caplog.text


@pytest.mark.parametrize("several", ["postgresql"], indirect=True)  # a SQLite file has one server
async def test_what_a_failed_task_held_can_be_changed_elsewhere(several: Replicas) -> None:
    a = await several.start(answer(write("T1", POISON, last_chunk=True)))
    await refuse(a, VERSIONS)
    following = await a.send("Write")
    await lost(following)
    await ended(a, following.snapshot.task_id)
    b = await several.start(answer(write("T1", "one", last_chunk=True)), WRITTEN)
    async with asyncio.timeout(SOON):
        await rest(await b.send("Write again"))
    assert await b.text() == "one"


async def test_a_message_that_cannot_be_written_is_refused_and_leaves_nothing(several: Replicas) -> None:
    a = await several.start(WRITTEN)
    await refuse(a, ("tasks", "head"))
    with pytest.raises(Unwritable) as refused:
        await a.send(POISON)
    with pytest.raises(TaskNotFound):
        await a.record(refused.value.task_id)
    await asyncio.gather(*a.backend._failing)
    assert a.backend.journal.running == ()
    assert (a.backend._write_failures, a.backend.ownership.acquiring) == ({}, {})
    following = await a.send("Hello")
    await rest(following)
    assert (await a.record(following.snapshot.task_id)).state is State.COMPLETED


async def test_an_answer_that_cannot_be_written_is_refused_and_the_task_waits_as_before(several: Replicas) -> None:
    a = await several.start(answer(ask("T1", "Which?")), WRITTEN)
    await refuse(a, PAGES)
    task_id = (await a.send("Paint")).snapshot.task_id
    await a.runtime._turns.get(task_id).wait()  # type: ignore[union-attr]
    await a.backend.commits.flushed()
    for number in range(MAX_WRITE_FAILURES + 1):
        with pytest.raises(Unwritable):
            await a.send(said(f"m-{number}", POISON), task_id)
        await asyncio.gather(*a.backend._failing)
    async with asyncio.timeout(SOON):
        following = await a.send("Blue", task_id)
        await rest(following)
    record = await a.record(task_id)
    assert record.state is State.COMPLETED
    assert [message.message_id for message in record.history if isinstance(message, UserMessage)] == [
        "m-Paint",
        "m-Blue",
    ]


async def test_a_task_that_cannot_even_be_made_to_fail_is_taken_up_again(
    several: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*task: object) -> None:
        raise RuntimeError("Something is odd")

    a = await several.start(answer(write("T1", POISON, last_chunk=True)), WRITTEN, WRITTEN)
    await refuse(a, VERSIONS)
    with monkeypatch.context() as patch:
        patch.setattr(a.backend._takeover, "claim_again", fails)
        following = await a.send("Write")
        await lost(following)
        await asyncio.gather(*a.backend._failing)
    assert (await ended(a, following.snapshot.task_id)).state is State.COMPLETED


async def test_a_change_that_cannot_be_encoded_fails_its_task_alone(
    several: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encoded(known: StoredDocument, document: Document, *rest: Any) -> RowChanges:
        if POISON in document.artifact.text:
            raise ValueError("no such code")
        return row_changes(known, document, *rest)

    monkeypatch.setattr(rows, "row_changes", encoded)
    hold = Hold()
    a = await several.start(answer(hold, text("Well.")), answer(write("T1", POISON)), WRITTEN)
    other = await a.send("Talk", context="other")
    await hold.reached.wait()
    following = await a.send("Write")
    await lost(following)
    assert (await ended(a, following.snapshot.task_id)).state is State.FAILED
    with pytest.raises(ArtifactNotFound):
        await a.text()
    hold.release.set()
    assert numbered(other, await rest(other))


async def test_another_turn_of_the_same_context_is_taken_up_again(several: Replicas) -> None:
    hold = Hold()
    a = await several.start(broken(write("T1", "one "), hold), answer(write("T1", POISON)), *(WRITTEN, WRITTEN))
    await refuse(a, PAGES)
    other = await a.send("Write")
    await hold.reached.wait()
    await a.backend.commits.flushed()
    following = await a.send("Write the other", context="c")
    await lost(following)
    await lost(other)
    assert (await ended(a, following.snapshot.task_id)).state is State.FAILED
    assert (await ended(a, other.snapshot.task_id)).state is State.COMPLETED
    assert await a.text() == "one "


async def test_what_was_not_committed_is_not_shown_to_who_waits_for_it(several: Replicas) -> None:
    a = await several.start()
    await refuse(a, VERSIONS)
    ref = Ref("c", "doc", "t")
    await a.backend.store.apply(ref, ReplaceParts(parts(POISON)))
    await a.backend.store.close(ref)
    with pytest.raises(Unavailable):
        await a.backend.store.get(ref)
    with pytest.raises(ArtifactNotFound):
        await a.backend.store.get(ref)
    assert await a.backend.store.list("c") == ()


async def test_a_message_that_was_being_taken_when_its_context_was_given_up_is_taken_again(several: Replicas) -> None:
    hold = Hold()
    a = await several.start(answer(text("Hm."), hold), answer(text("Heard.")))
    following = await a.send("Write")
    task_id = following.snapshot.task_id
    await hold.reached.wait()
    await a.backend.commits.flushed()
    message = {"context_id": "c", "task_id": task_id, "inbox_id": "m", "sent_at": 1, "key": ""}
    async with a.backend._database.write() as connection:
        letter = message_to_json(UserMessage("m-2", parts("And this")))
        await connection.execute(inbox_messages.insert().values(**message, message=letter))
    await a.backend._inbox.deliver_pending(a.runtime)
    a.backend._on_unwritable("c", RuntimeError("of another task"))  # before what it has taken is committed
    assert a.backend._inbox._seen == {}
    hold.release.set()
    async with asyncio.timeout(SOON):
        while not await _told(a, task_id, "And this"):
            await a.backend._take_over()
            await a.backend._inbox.deliver_pending(a.runtime)
            await asyncio.sleep(0)


async def _told(replica: Replica, task_id: str, words: str) -> bool:
    history = (await replica.record(task_id)).history
    return any(isinstance(each, UserMessage) and each.parts == parts(words) for each in history)


async def test_a_message_that_cannot_be_decoded_is_removed_and_a_cancel_is_carried_out(several: Replicas) -> None:
    hold = Hold()
    a = await several.start(answer(text("Hm."), hold))
    following = await a.send("Write")
    task_id = following.snapshot.task_id
    await hold.reached.wait()
    await a.backend.commits.flushed()
    row = {"context_id": "c", "task_id": task_id, "inbox_id": "m", "sent_at": 1, "key": "", "message": "{"}
    async with a.backend._database.write() as connection:
        await connection.execute(inbox_messages.insert().values(row))
        await connection.execute(tasks.update().values(cancel_requested=True))
    await a.backend._inbox.deliver_pending(a.runtime)
    async with asyncio.timeout(SOON):
        await rest(following)
    assert (await a.record(task_id)).state is State.CANCELED
    await a.backend.commits.flushed()
    async with a.backend._database.read() as connection:
        assert (await connection.execute(inbox_messages.select())).all() == []
