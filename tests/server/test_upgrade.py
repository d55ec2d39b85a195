"""A database of an earlier version: after the upgrade its tasks, versions and drafts are there, and work continues.

`fixtures/schema_0001.sql` was written by version 0.1.0, which was killed while a task worked.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, DateTime, MetaData, Table, select

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.intent import Converse, Put
from a2a_canvas.server.backend.migrations import REVISIONS, upgrade
from a2a_canvas.server.backend.migrations.schema import run_revisions
from a2a_canvas.server.tasks.journal.listing import TaskQuery
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal.journal_tables import rewrites, tasks
from a2a_canvas.server.tasks.sql.journal.rewriting import name_versions
from a2a_canvas.store.models import Ref
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.fakes import answer, ask, no_time, text, write
from tests.server.tasks.sql.replica_harness import Replica

DUMP = Path(__file__).parent / "fixtures" / "schema_0001.sql"
STORY, QUESTION, CRASH = "id-6", "id-8", "id-11"
CALLS = (
    answer(write("T5", "Two.", append=True)),
    answer(text("Resumed.")),
    answer(text("Blue it is.")),
    answer(ask("T6", "Shall I go on?")),
)

pytestmark = [
    pytest.mark.parametrize("url", [sqlite_url, lambda _: postgresql_url()], ids=["sqlite", "postgresql"]),
    pytest.mark.parametrize("before", ["0001", "0002", "0003"]),
]


@pytest.fixture
async def replica(url: Callable[[Path], str], before: str, tmp_path: Path) -> AsyncIterator[Replica]:
    """A server on the upgraded database."""
    where = url(tmp_path)
    database = Database(where)
    if database.dialect == "sqlite":
        with closing(sqlite3.connect(database.url.database or "")) as file:
            file.executescript(DUMP.read_text())
    async with database.write() as connection:
        await connection.run_sync(_restore, before)
    await upgrade(database)
    await database.close()
    replica = Replica(where, CALLS)
    await replica.backend.start(replica.runtime)
    yield replica
    await replica.stop()


def _restore(connection: Connection, revision: str) -> None:
    """The rows of the dump, at a revision; on SQLite they are there already."""
    if connection.dialect.name == "postgresql":
        run_revisions(connection, "0001")
        _copy_rows(connection)
    run_revisions(connection, revision)


def _copy_rows(connection: Connection) -> None:
    tables = MetaData()
    tables.reflect(connection)
    with closing(sqlite3.connect(":memory:")) as dump:
        dump.executescript(DUMP.read_text())
        dump.row_factory = sqlite3.Row
        for table in tables.tables.values():
            for row in dump.execute(f"SELECT * FROM {table.name}") if table.name != REVISIONS else ():
                connection.execute(table.insert().values(_typed(table, row)))


def _typed(table: Table, row: sqlite3.Row) -> dict[str, object]:
    values: dict[str, object] = {}
    for name in row.keys():  # noqa: SIM118 (a `sqlite3.Row` iterates its values)
        kind, value = table.c[name].type, row[name]
        if isinstance(kind, DateTime):
            value = datetime.fromisoformat(value).replace(tzinfo=UTC)
        values[name] = bool(value) if kind.python_type is bool else value
    return values


async def settled(replica: Replica, task_id: str) -> State:
    async with asyncio.timeout(20):
        return (await (await replica.runtime.follow(task_id, ANONYMOUS)).settled()).state


async def test_its_tasks_and_versions_are_there(replica: Replica) -> None:
    first, second = await replica.backend.journal.context("story")
    assert [message.message_id for message in first.history] == ["m-1", "id-5"]
    assert (first.intent, second.operation) == (Converse(), Put("doc", "Hello new world.\nA second line.", None))
    assert second.artifacts["doc"].version == 2
    versions = await replica.backend.store.versions(Ref("story", "doc", ""))
    assert [version.content.text[:9] for version in versions] == ["Hello old", "Hello new"]
    page = await replica.backend.journal.list(TaskQuery(("",), context_id="story"))
    assert [record.task_id for record in page.records] == [STORY, "id-1"]
    following = await replica.backend.journal.follow_context("story")
    assert following.snapshot.artifacts["doc"].task_id == STORY


async def test_a_task_that_worked_is_taken_over_with_its_draft(replica: Replica) -> None:
    assert await settled(replica, CRASH) is State.COMPLETED
    assert await replica.text(context="crash") == "One. Two."
    assert await replica.text(context="story") == "Hello new world.\nA second line."


async def test_its_conversations_continue(replica: Replica) -> None:
    await settled(replica, CRASH)  # the first two calls of the model
    answered = await replica.send("Blue", task=QUESTION, context="question")
    assert (await answered.settled()).message.text == "Blue it is."  # type: ignore[union-attr]
    again = await replica.send("m-1", context="story")
    assert (await again.settled()).state is State.INPUT_REQUIRED
    request = replica.llm.requests[-1]
    assert "Saved doc as version 2." in str(request.messages)
    assert (await replica.runtime.cancel(again.snapshot.task_id, ANONYMOUS)).state is State.CANCELED


async def shown(replica: Replica, context: str) -> list[TaskRecord]:
    """The tasks of a context without `closed`, which old rows lack and only notifications use."""
    records = await replica.backend.journal.context(context)
    artifacts = [{key: replace(each, closed=0) for key, each in record.artifacts.items()} for record in records]
    return [replace(record, artifacts=each) for record, each in zip(records, artifacts, strict=True)]


async def test_its_tasks_name_their_versions_in_the_end_and_read_as_before(replica: Replica) -> None:
    await settled(replica, CRASH)
    before = [await shown(replica, context) for context in ("story", "question", "crash")]
    assert any(record.artifacts for records in before for record in records)
    await name_versions(replica.backend._database, replica.backend._lease, no_time)
    after = [await shown(replica, context) for context in ("story", "question", "crash")]
    assert after == before
    async with replica.backend._database.read() as connection:
        kept = (await connection.scalars(select(tasks.c.artifacts))).all()
        assert await connection.scalar(select(rewrites.c.name)) is None
    assert not [each for each in kept if '"content"' in each]
