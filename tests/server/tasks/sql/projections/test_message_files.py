"""The large files of a message are stored once, before the message, and read as if they were stored with it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import State, UserMessage
from a2a_canvas.server.agent.model import Attachment
from a2a_canvas.server.tasks.journal.listing import TaskQuery
from a2a_canvas.server.tasks.kept_files import LARGE_BYTES, SMALL_BYTES, KeptFile
from a2a_canvas.server.tasks.sql.journal.prune import Retention, prune
from a2a_canvas.server.tasks.sql.projections.inbox_messages import inbox_messages
from a2a_canvas.server.tasks.sql.projections.message_files import UNNAMED_FOR, message_files, unnamed_files
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.models import FilePart, text_part
from a2a_canvas.store.sql.tables import metadata
from tests.fakes import Hold, answer, ask, broken, text
from tests.server.tasks.kept_count import counted, recounted
from tests.server.tasks.sql.replica_harness import Replica, Replicas

LARGE = random.Random(1).randbytes(8 * LARGE_BYTES)
"""Bytes that no compression makes shorter."""
PHOTO = UserMessage("photo", (text_part("Look"), FilePart(LARGE, name="photo.bin")))
AGAIN = UserMessage("again", (text_part("And again"), FilePart(LARGE, name="copy.bin")))
DONE = answer(text("Done."))
KEEP = Retention(timedelta(days=30))


async def rows_of(replica: Replica, table: Any) -> list[Any]:
    async with replica.backend._database.read() as connection:
        return [*(await connection.execute(select(table))).all()]


async def stored_bytes(replica: Replica) -> int:
    """What all rows of the database have in texts and bytes; texts as they are read."""
    rows = [row for table in metadata.tables.values() for row in await rows_of(replica, table)]
    return sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))


async def alter(replica: Replica, statement: Any) -> None:
    async with replica.backend._database.write() as connection:
        assert (await connection.execute(statement)).rowcount


async def refused(replica: Replica, message: UserMessage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a message whose file is stored, and which is then not accepted."""

    async def fail(*_: Any) -> None:
        raise Unavailable("it is full")

    with monkeypatch.context() as patch:
        patch.setattr(replica.backend.journal, "create", fail)
        with pytest.raises(Unavailable):
            await replica.send(message)


async def test_a_file_is_stored_once_and_no_group_commit_writes_it(started: Replicas) -> None:
    replica = await started.start(DONE)
    seen = await (await replica.send(PHOTO)).wait_until_settled()
    assert seen.state is State.COMPLETED
    assert len(LARGE) < await stored_bytes(replica) < 1.02 * len(LARGE)
    assert replica.backend._database.written_bytes < LARGE_BYTES / 8
    assert await counted(replica.backend._database) == await recounted(replica.backend._database)


async def test_everybody_reads_the_file_where_the_message_has_it(started: Replicas) -> None:
    replica = await started.start(DONE, DONE)
    following = await replica.send(PHOTO)
    assert following.snapshot.history == (PHOTO,)
    seen = await following.wait_until_settled()
    await replica.stop()
    later = await started.start(DONE)
    assert await later.record(seen.task_id) == seen
    assert seen.history[0] == PHOTO
    assert (await (await later.runtime.follow(seen.task_id, ANONYMOUS)).wait_until_settled()) == seen
    assert await later.backend.journal.context("c") == (seen,)
    journal = later.backend.journal
    for artifacts in (True, False):
        [listed] = (await journal.list(TaskQuery(("",), artifacts=artifacts))).records
        assert listed.history == seen.history
    await (await later.send("What was it?")).wait_until_settled()
    shown = [each for message in later.llm.requests[0].messages for each in message.content]
    assert Attachment("application/octet-stream", "photo.bin", LARGE) in shown


async def test_the_limit_of_a_list_counts_files(started: Replicas) -> None:
    replica = await started.start(DONE, DONE)
    await (await replica.send(PHOTO, context="a")).wait_until_settled()
    await (await replica.send(AGAIN, context="b")).wait_until_settled()
    page = await replica.backend.journal.list(TaskQuery(("",), max_bytes=len(LARGE) * 2, artifacts=False))
    assert (len(page.records), page.more) == (1, True)


async def test_a_message_that_is_sent_again_joins_its_task_and_stores_nothing(started: Replicas) -> None:
    replica = await started.start(DONE)
    seen = await (await replica.send(PHOTO)).wait_until_settled()
    before = await stored_bytes(replica)
    assert (await (await replica.send(PHOTO)).wait_until_settled()) == seen
    assert await stored_bytes(replica) == before


async def test_a_message_that_was_refused_is_accepted_when_it_is_sent_again(
    started: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = await started.start(DONE)
    await refused(replica, PHOTO, monkeypatch)
    assert len(await rows_of(replica, unnamed_files)) == 1
    seen = await (await replica.send(PHOTO)).wait_until_settled()
    assert seen.history[0] == PHOTO
    assert await rows_of(replica, unnamed_files) == []
    assert await counted(replica.backend._database) == await recounted(replica.backend._database)


async def test_messages_of_a_context_with_the_same_file_share_its_row(started: Replicas) -> None:
    replica = await started.start(DONE, DONE, DONE)
    tasks = [await (await replica.send(message)).wait_until_settled() for message in (PHOTO, AGAIN)]
    assert len(await rows_of(replica, message_files)) == 1
    await (await replica.send(PHOTO, context="other")).wait_until_settled()
    assert sorted(row.context_id for row in await rows_of(replica, message_files)) == ["c", "other"]
    assert [(await replica.record(each.task_id)).history[0] for each in tasks] == [PHOTO, AGAIN]
    assert await counted(replica.backend._database) == await recounted(replica.backend._database)


async def test_small_files_stay_in_their_message(started: Replicas) -> None:
    replica = await started.start(DONE, DONE)
    small = UserMessage("small", (FilePart(LARGE[:LARGE_BYTES]),))
    await (await replica.send(small)).wait_until_settled()
    assert await rows_of(replica, message_files) == []
    icon, photo = LARGE[: SMALL_BYTES - 1], LARGE[: LARGE_BYTES + 1]
    both = await (await replica.send(UserMessage("both", (FilePart(icon), FilePart(photo))))).wait_until_settled()
    assert [row.content for row in await rows_of(replica, message_files)] == [photo]
    assert (await replica.record(both.task_id)).history[0] == both.history[0]


async def test_files_come_with_answers_and_with_messages_to_a_turn(started: Replicas) -> None:
    hold = Hold()
    replica = await started.start(answer(ask("T1", "Which?")), answer(text("Well", "…"), hold), DONE)
    asked = await (await replica.send("Draw")).wait_until_settled()
    following = await replica.send(PHOTO, asked.task_id)
    await hold.reached.wait()
    await replica.send(AGAIN, asked.task_id)
    hold.release.set()
    seen = await following.wait_until_settled()
    assert [each for each in seen.history if isinstance(each, UserMessage)][1:] == [PHOTO, AGAIN]
    assert len(await rows_of(replica, message_files)) == 1
    await replica.stop()
    assert await (await started.start()).record(seen.task_id) == seen


async def test_the_next_owner_of_a_task_has_its_files(started: Replicas) -> None:
    hold = Hold()
    replica = await started.start(broken(text("Let me", " see"), hold))
    following = await replica.send(PHOTO)
    await hold.reached.wait()
    await replica.send(AGAIN, following.snapshot.task_id)
    await replica.crash()
    later = await started.start(DONE, DONE)
    seen = await (await later.runtime.follow(following.snapshot.task_id, ANONYMOUS)).wait_until_settled()
    assert (seen.state, *seen.history[:2]) == (State.COMPLETED, PHOTO, AGAIN)
    assert await later.record(seen.task_id) == seen
    assert len(LARGE) < await stored_bytes(later) < 1.02 * len(LARGE)


@pytest.mark.postgres
async def test_a_file_for_a_task_that_runs_elsewhere_reaches_its_turn_and_its_followers(several: Replicas) -> None:
    hold = Hold()
    owner = await several.start(answer(text("Well", "…"), hold), DONE)
    other = await several.start()
    following = await owner.send("Draw")
    await hold.reached.wait()
    elsewhere = await other.runtime.follow(following.snapshot.task_id, ANONYMOUS)
    await other.send(PHOTO, following.snapshot.task_id)
    hold.release.set()
    seen = await following.wait_until_settled()
    assert seen.history[1] == PHOTO
    assert await elsewhere.wait_until_settled() == seen
    assert await rows_of(owner, inbox_messages) == []
    assert len(LARGE) < await stored_bytes(owner) < 1.02 * len(LARGE)


async def test_a_file_that_no_task_names_is_deleted_after_two_days(
    started: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = await started.start(DONE)
    database = replica.backend._database
    await (await replica.send(PHOTO, context="named")).wait_until_settled()
    await refused(replica, AGAIN, monkeypatch)
    now = datetime.now(UTC)
    await prune(database, KEEP, now + UNNAMED_FOR - timedelta(minutes=1))
    assert len(await rows_of(replica, message_files)) == 2
    await prune(database, KEEP, now + UNNAMED_FOR + timedelta(minutes=1))
    assert [row.context_id for row in await rows_of(replica, message_files)] == ["named"]
    assert await rows_of(replica, unnamed_files) == []
    assert await counted(database) == await recounted(database)


async def test_a_file_that_was_deleted_before_its_message_was_accepted_is_written_with_it(
    started: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = await started.start(DONE)
    keep = replica.backend.journal.keep_files

    async def lose(context_id: str, message: UserMessage) -> None:
        await keep(context_id, message)
        await prune(replica.backend._database, KEEP, datetime.now(UTC) + 2 * UNNAMED_FOR)
        assert await rows_of(replica, message_files) == []

    monkeypatch.setattr(replica.backend.journal, "keep_files", lose)
    seen = await (await replica.send(PHOTO)).wait_until_settled()
    assert (await replica.record(seen.task_id)).history[0] == PHOTO
    assert await counted(replica.backend._database) == await recounted(replica.backend._database)


DAMAGES = {
    "missing": delete(message_files).where(message_files.c.context_id == "c"),
    "cut off": update(message_files).where(message_files.c.context_id == "c").values(content=LARGE[:-1]),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_file_that_cannot_be_read_is_shown_empty_and_keeps_its_name(started: Replicas, damage: str) -> None:
    replica = await started.start(answer(ask("T1", "Which?")), DONE, DONE)
    asked = await (await replica.send(PHOTO)).wait_until_settled()
    other = await (await replica.send(PHOTO, context="other")).wait_until_settled()
    await replica.stop()
    later = await started.start(DONE)
    await alter(later, DAMAGES[damage])
    shown = (await later.record(asked.task_id)).history[0]
    assert shown == UserMessage("photo", (text_part("Look"), FilePart(b"", name="photo.bin")))
    page = (await later.backend.journal.list(TaskQuery(("",)))).records
    assert {each.task_id for each in page} == {asked.task_id, other.task_id}
    assert (await later.record(other.task_id)).history[0] == PHOTO
    seen = await (await later.send("This one", asked.task_id)).wait_until_settled()
    assert seen.state is State.COMPLETED
    mended = {"context_id": "c", "digest": KeptFile.from_content(LARGE).digest, "content": LARGE}
    await alter(later, delete(message_files).where(message_files.c.context_id == "c")) if damage != "missing" else None
    await alter(later, message_files.insert().values(mended))
    assert (await later.record(asked.task_id)).history[0] == PHOTO


async def test_files_go_with_their_context(started: Replicas) -> None:
    replica = await started.start(DONE, DONE)
    for context in ("c", "d"):
        await (await replica.send(PHOTO, context=context)).wait_until_settled()
    await replica.backend.contexts.remove("c", "")
    assert [row.context_id for row in await rows_of(replica, message_files)] == ["d"]
    assert await counted(replica.backend._database) == await recounted(replica.backend._database)


async def test_while_nothing_can_be_written_a_file_is_refused_at_once(
    started: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = await started.start(DONE)
    with monkeypatch.context() as patch:
        patch.setattr(replica.backend.commits, "failing", Unavailable("the disk is full"))
        with pytest.raises(Unavailable, match="the disk is full"):
            await replica.send(PHOTO)
        assert await rows_of(replica, message_files) == []
    seen = await (await replica.send(PHOTO)).wait_until_settled()
    assert seen.history[0] == PHOTO
