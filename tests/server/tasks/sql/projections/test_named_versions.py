"""What is stored of a closed version is stored once: tasks and entries name it, and read as if they repeated it."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import AgentMessage, ArtifactChanged, State, StatusChanged, UserMessage
from a2a_canvas.server.tasks.codec import names_of_json
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal import task_log
from a2a_canvas.server.tasks.journal.listing import TaskQuery
from a2a_canvas.server.tasks.record import TaskArtifact, TaskRecord, fold, pruned_content
from a2a_canvas.server.tasks.sql.journal.prune import PruneResult, Retention, prune
from a2a_canvas.server.tasks.sql.projections.pages import page_entries, pages
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import EditText, ReplaceParts
from a2a_canvas.store.models import Ref, text_part
from a2a_canvas.store.sql.tables import metadata
from a2a_canvas.store.sql.version_contents import VersionContents
from a2a_canvas.store.text.spans import Span
from tests.fakes import Hold, answer, ask, broken, text, tool, write
from tests.server.tasks.runtime.runtime_harness import rest
from tests.server.tasks.sql.replica_harness import Replica, Replicas

DOC = Ref("c", "doc", "another-task")
TEXT = "One.\nTwo.\nThree.\n"
CALM = answer(text("Done."))


async def with_text(replica: Replica, content: str = TEXT) -> Replica:
    """With `doc` at version 1, which no task of the journal has made."""
    await replica.backend.store.apply(DOC, ReplaceParts((text_part(content),), name="d.md", last_chunk=True))
    await replica.backend.commits.flushed()
    return replica


async def run(replica: Replica, operation: dict[str, object]) -> TaskRecord:
    """The task of an operation on `doc`, as its sender saw it in the end."""
    given = {"artifactId": "doc", **operation}
    message = UserMessage(f"m-{json.dumps(given)}", (text_part("Louder"),), {CANVAS: given})
    return await (await replica.runtime.send(Incoming(message, "", "c", ""), ANONYMOUS)).wait_until_settled()


def edit_of(passage: str, content: str = TEXT) -> dict[str, object]:
    start = content.index(passage)
    return {"op": "edit", "selection": {"start": start, "end": start + len(passage), "text": passage}}


async def rows_of(replica: Replica, task_id: str) -> tuple[str, str]:
    """The artifacts of a task, and all its entries, as they are stored."""
    async with replica.backend._database.read() as connection:
        artifacts = await connection.scalar(select(tasks.c.artifacts).where(tasks.c.task_id == task_id))
        found = await connection.execute(select(pages).where(pages.c.task_id == task_id))
        return str(artifacts), json.dumps([entry for page in found for entry in json.loads(page_entries(page))])


OPERATIONS: dict[str, Iterable[dict[str, object]]] = {
    "edit": [edit_of("Two.")],
    "undo": [edit_of("Two."), {"op": "undo"}],
    "redo": [edit_of("Two."), {"op": "undo"}, {"op": "redo"}],
    "restore": [edit_of("Two."), {"op": "restore", "version": 1}],
    "put": [{"op": "put", "text": TEXT.replace("Two.", "Zwei."), "baseVersion": 1}],
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_an_operation_stores_a_name_and_reads_as_its_sender_saw_it(started: Replicas, name: str) -> None:
    replica = await with_text(await started.start(answer(text("TWO!"))))
    for operation in OPERATIONS[name]:
        seen = await run(replica, operation)
    artifacts, entries = await rows_of(replica, seen.task_id)
    assert seen.state is State.COMPLETED
    assert "Three." not in artifacts + entries
    assert await replica.record(seen.task_id) == seen
    await replica.stop()
    later = await started.start()
    assert await later.record(seen.task_id) == seen
    assert seen.artifacts["doc"].content.name == "d.md"


@pytest.mark.parametrize("append", [False, True])
async def test_a_task_names_the_version_that_its_model_has_written(started: Replicas, append: bool) -> None:
    written = write("T2", "Three.\n", append=append, last_chunk=True, at=1)
    replica = await started.start(answer(write("T1", "One.\nTwo.\n"), written), CALM)
    seen = await (await replica.send("Write")).wait_until_settled()
    artifacts, entries = await rows_of(replica, seen.task_id)
    version = 1 if append else 2
    assert json.loads(artifacts) == {"doc": {"artifact_id": "doc", "name": "", "version": version, "author": "agent"}}
    assert json.loads(entries)[-1][2]["state"] == "completed"
    assert await replica.record(seen.task_id) == seen
    assert seen.artifacts["doc"].content.text == (TEXT if append else "Three.\n")


async def test_each_task_of_a_conversation_shows_its_own_version(started: Replicas) -> None:
    replica = await with_text(await started.start(*(answer(text(str(number))) for number in range(5))))
    seen = [await run(replica, edit_of(letter)) for letter in ("O", "T", "n", "w", "r")]
    await replica.stop()
    later = await started.start()
    page = await later.backend.journal.list(TaskQuery(("",)))
    assert page.records == tuple(reversed(seen))
    assert await later.backend.journal.context("c") == tuple(seen)
    assert [record.artifacts["doc"].version for record in seen] == [2, 3, 4, 5, 6]
    assert [await later.record(record.task_id) for record in seen] == seen


async def test_a_list_without_artifacts_reads_no_version(started: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    replica = await with_text(await started.start(answer(text("TWO!"))))
    seen = await run(replica, edit_of("Two."))
    asked: list[int] = []
    read = VersionContents.read

    @functools.wraps(read)
    async def counted(self, connection, keys):
        asked.append(len(keys))
        return await read(self, connection, keys)

    monkeypatch.setattr(VersionContents, "read", counted)
    await replica.backend.journal.list(TaskQuery(("",), artifacts=False))
    assert asked == []
    [listed] = (await replica.backend.journal.list(TaskQuery(("",)))).records
    assert (asked, listed) == ([1], seen)


async def test_the_limit_of_a_list_counts_what_is_named(started: Replicas) -> None:
    replica = await with_text(await started.start(*(answer(text(str(number))) for number in range(4))), "x" * 9000)
    for number in range(4):
        await run(replica, {"op": "edit", "selection": {"start": number, "end": number + 1, "text": "x"}})
    page = await replica.backend.journal.list(TaskQuery(("",), max_bytes=22_000))
    assert (len(page.records), page.more) == (2, True)
    whole = await replica.backend.journal.list(TaskQuery(("",), max_bytes=22_000, artifacts=False))
    assert (len(whole.records), whole.more) == (4, False)


async def test_a_working_task_that_is_saved_names_what_is_closed_and_keeps_its_draft(
    started: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_log, "MIN_SAVED_CHARACTERS", 0)
    hold = Hold()
    other = {"artifact_id": "other", "parts": [{"kind": "text", "text": "A draft"}]}
    given = {"append": True, "last_chunk": False, "artifact": other}
    turn = (answer(write("T1", TEXT, last_chunk=True)), broken(tool("T2", "artifact_update", given), hold))
    replica = await started.start(*turn)
    following = await replica.send("Write")
    await hold.reached.wait()
    await replica.backend.commits.flushed()
    artifacts, _ = await rows_of(replica, following.snapshot.task_id)
    stored = json.loads(artifacts)
    assert ("content" in stored["doc"], "A draft" in json.dumps(stored["other"])) == (False, True)
    await replica.crash()
    later = await started.start(CALM)
    seen = await (await later.runtime.follow(following.snapshot.task_id, ANONYMOUS)).wait_until_settled()
    assert (seen.state, seen.artifacts["doc"].content.text) == (State.COMPLETED, TEXT)
    assert seen.artifacts["other"].content.text == await later.text("other") == "A draft"


async def test_a_draft_that_closes_while_it_is_saved_is_not_named(
    started: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_log, "MIN_SAVED_CHARACTERS", 0)
    replica = await started.start(broken(write("T1", TEXT), hold := Hold()))
    task_id = (await replica.send("Write")).snapshot.task_id
    await hold.reached.wait()
    await replica.backend.commits.flushed()
    replica.backend.commits.pause()
    label = AgentMessage("a", "x" * 10_000, label=True)
    await replica.backend.journal.append(task_id, StatusChanged(State.WORKING, label))
    taken = [replica.backend.journal.collect(), replica.backend.store.collect()]
    await replica.backend.store.close(Ref("c", "doc", task_id))
    await replica.backend._database.transact(lambda connection: [work.write(connection) for work in taken if work])
    artifacts, _ = await rows_of(replica, task_id)
    assert "Three." in artifacts
    await replica.crash()


async def test_a_content_that_is_no_version_is_stored_whole(started: Replicas) -> None:
    replica = await started.start(broken(hold := Hold()))
    following = await replica.send("Write")
    await hold.reached.wait()
    task_id = following.snapshot.task_id
    await with_text(replica)
    for version, content in ((1, "Not what version 1 is"), (2, "There is no version 2")):
        change = ArtifactChanged("doc", "d.md", "", False, (text_part(content),), True, version, "agent", 0)
        await replica.backend.journal.append(task_id, change)
        await replica.backend.commits.flushed()
        _, entries = await rows_of(replica, task_id)
        assert content in entries
    assert await replica.backend._takeover.claim_again("c", task_id)
    hold.release.set()


async def test_an_answer_after_a_restart_leaves_the_name_of_what_it_does_not_change(started: Replicas) -> None:
    replica = await started.start(answer(write("T1", TEXT, last_chunk=True)), answer(ask("T2", "Good?")))
    asked = await (await replica.send("Write")).wait_until_settled()
    assert asked.state is State.INPUT_REQUIRED
    await replica.stop()
    later = await started.start(CALM)
    answered = await (await later.send("Yes", task=asked.task_id)).wait_until_settled()
    artifacts, _ = await rows_of(later, asked.task_id)
    assert "Three." not in artifacts
    assert await later.record(asked.task_id) == answered
    assert answered.artifacts == asked.artifacts


# ------------------------------------------------------------------ followers elsewhere


@pytest.mark.postgres
async def test_a_watcher_elsewhere_sees_an_edit_as_its_sender_does(several: Replicas) -> None:
    hold = Hold()
    a = await with_text(await several.start(answer(text("TW"), hold, text("O!"))))
    b = await several.start()
    everything = await b.runtime.journal.follow_context("c")
    message = UserMessage("m", (text_part("Louder"),), {CANVAS: {"artifactId": "doc", **edit_of("Two.")}})
    here = await a.runtime.send(Incoming(message, "", "c", ""), ANONYMOUS)
    await hold.reached.wait()
    there = await b.runtime.follow(here.snapshot.task_id, ANONYMOUS)
    hold.release.set()
    ours, theirs = await rest(here), await rest(there)
    assert theirs == ours[there.snapshot.generation - here.snapshot.generation :]
    record = there.snapshot
    for entry in theirs:
        record = fold(record, entry)
    assert record == await a.record(record.task_id) == await b.record(record.task_id)
    [change] = [entry for entry in ours if isinstance(entry.event, ArtifactChanged)]
    assert (await anext(aiter(everything))).entry == change


@pytest.mark.postgres
async def test_a_page_of_several_versions_shows_each_of_them(several: Replicas) -> None:
    a, b = await with_text(await several.start(broken(hold := Hold()))), await several.start()
    following = await a.send("Write")
    await hold.reached.wait()
    task_id = following.snapshot.task_id
    there = await b.runtime.follow(task_id, ANONYMOUS)
    made = Ref("c", "doc", task_id)
    for number in range(3):  # in one step of the event loop, so in one page
        applied = await a.backend.store.apply(made, EditText(Span(0, 1), str(number), base=number + 1))
        event = ArtifactChanged("doc", "d.md", "", False, applied.parts, True, applied.version, "agent", applied.parent)
        await a.backend.journal.append(task_id, event)
    await a.backend.commits.flushed()
    entries = aiter(there)
    seen: list[str] = []
    while len(seen) < 3:
        event = (await anext(entries)).event
        seen += [event.parts[0].text] if isinstance(event, ArtifactChanged) else []  # type: ignore[union-attr]
    assert seen == [str(number) + TEXT[1:] for number in range(3)]
    _, stored = await rows_of(a, task_id)
    assert "Three." not in stored
    hold.release.set()


@pytest.mark.postgres
async def test_a_follower_with_the_document_in_memory_reads_only_what_is_new(several: Replicas) -> None:
    a, b = await with_text(await several.start(answer(text("TWO!"))), "x" * 50_000 + TEXT), await several.start()
    await b.backend.store.versions(DOC)
    changes = aiter(await b.runtime.journal.follow_context("c"))
    document = b.backend.store._cache.last(("c", "doc"))
    assert document
    await run(a, {"op": "edit", "selection": {"start": 0, "end": 1, "text": "x"}})
    event = (await anext(changes)).entry.event
    assert isinstance(event, ArtifactChanged)
    grown = b.backend.store._cache.last(("c", "doc"))
    assert grown
    assert grown.document.versions[0] is document.document.versions[0]
    assert event.parts is grown.document.versions[1].content.parts


# --------------------------------------------------------------------------- the column


async def test_a_row_has_the_names_that_it_must_be_read_with(started: Replicas) -> None:
    replica = await with_text(await started.start(answer(text("TWO!"))))
    seen = await run(replica, edit_of("Two."))
    async with replica.backend._database.read() as connection:
        found = await connection.scalar(select(tasks.c.named).where(tasks.c.task_id == seen.task_id))
        named = (await connection.scalars(select(pages.c.named).where(pages.c.task_id == seen.task_id))).all()
    assert names_of_json(found) == (("doc", 2, len(TEXT)),)
    assert [names_of_json(each) for each in named if each] == [(("doc", 2, len(TEXT)),)]


# ------------------------------------------------------------------------------ pruning

AT_ONCE = Retention(journals=timedelta.resolution, versions=timedelta.resolution)
SECRET = "A secret. Two."


async def stored(replica: Replica) -> list[str]:
    """The tables with the secret."""
    found = []
    async with replica.backend._database.read() as connection:
        for table in metadata.sorted_tables:
            rows = (await connection.execute(select(table))).all()
            found += [table.name] if "secret" in str(rows) else []
    return found


async def pruned(replica: Replica, *, dry_run: bool = False) -> PruneResult:
    soon = datetime.now(UTC) + timedelta(seconds=1)
    return await prune(replica.backend._database, AT_ONCE, soon, replica.backend.store.frozen, dry_run=dry_run)


async def test_the_text_of_a_pruned_version_is_nowhere_and_its_task_says_so(started: Replicas) -> None:
    replica = await with_text(await started.start(answer(text("TWO!"))), SECRET)
    seen = await run(replica, edit_of("Two.", SECRET))
    await replica.backend.store.apply(DOC, ReplaceParts((text_part("Clean."),), last_chunk=True))
    await replica.backend.commits.flushed()
    assert await stored(replica) == ["versions"]
    would = await pruned(replica, dry_run=True)
    assert (await stored(replica), await replica.record(seen.task_id)) == (["versions"], seen)
    assert await pruned(replica) == would
    assert (would.versions, would.tasks, would.journals) == (2, 1, 1)
    assert await stored(replica) == []
    gone = TaskArtifact("doc", pruned_content("d.md", 2), 2, "agent", closed=2, pruned=True)
    assert (await replica.record(seen.task_id)).artifacts == {"doc": gone}
    [listed] = (await replica.backend.journal.list(TaskQuery(("",)))).records
    assert listed == replace(seen, artifacts={"doc": gone})
    assert await pruned(replica) == PruneResult()


async def test_a_task_that_waited_keeps_the_name_of_what_was_pruned_meanwhile(started: Replicas) -> None:
    replica = await started.start(answer(write("T1", "A secret")), answer(ask("T2", "Good?")), CALM)
    asked = await (await replica.send("Write")).wait_until_settled()
    await replica.backend.store.apply(DOC, ReplaceParts((text_part("Clean."),), last_chunk=True))
    await replica.backend.commits.flushed()
    assert (await pruned(replica)).tasks == 1
    answered = await (await replica.send("Yes", task=asked.task_id)).wait_until_settled()
    assert answered.state is State.COMPLETED
    artifacts, _ = await rows_of(replica, asked.task_id)
    assert json.loads(artifacts) == {"doc": {"artifact_id": "doc", "name": "", "version": 1, "author": "agent"}}
    assert (await replica.record(asked.task_id)).artifacts["doc"].pruned


async def test_no_version_is_pruned_while_a_task_works_in_its_context(started: Replicas) -> None:
    replica = await started.start(answer(write("T1", TEXT, last_chunk=True)), broken(hold := Hold()))
    following = await replica.send("Write")
    await hold.reached.wait()
    await replica.backend.store.apply(DOC, ReplaceParts((text_part("Clean."),), last_chunk=True))
    await replica.backend.commits.flushed()
    assert await pruned(replica, dry_run=True) == await pruned(replica) == PruneResult()
    await replica.crash()
    later = await started.start(CALM)
    ended = await (await later.runtime.follow(following.snapshot.task_id, ANONYMOUS)).wait_until_settled()
    assert ended.artifacts["doc"].content.text == TEXT
    result = await pruned(later)
    assert (result.versions, result.tasks) == (1, 1)
