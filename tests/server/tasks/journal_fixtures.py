"""Journals for tests, by where they keep their tasks; each call of a maker gives an empty one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from a2a_canvas.server.agent.events import TurnEvent
from a2a_canvas.server.push.sql.outbox_rows import SqlOutboxWriter
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, Journal
from a2a_canvas.server.tasks.push_configs import PushConfig
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal.sql_journal import SqlJournal
from a2a_canvas.server.tasks.sql.replica.lease import Lease, LeaseTiming
from a2a_canvas.server.tasks.sql.replica.notifications import Notification, notify
from a2a_canvas.store.sql.commit import GroupCommit
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.sql_artifact_store import SqlArtifactStore
from a2a_canvas.store.sql.tables import metadata
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.new_database import create_tables

Make = Callable[[Callable[[], datetime]], Awaitable[Journal]]


class PromptJournal(SqlJournal):
    """Waits, as no turn does, until what it was told is durable: then it is as visible as it ever will be."""

    async def create(self, record: TaskRecord, key: str = "", push: PushConfig | None = None) -> None:
        await super().create(record, key)
        await self.flushed(record.task_id)

    async def append(self, task_id: str, *events: TurnEvent) -> None:
        if not self.runs_here(task_id):
            await self.get(task_id)
        await super().append(task_id, *events)
        await self.flushed(task_id)


@asynccontextmanager
async def in_memory(folder: Path) -> AsyncIterator[Make]:
    async def make(now: Callable[[], datetime]) -> Journal:
        return InMemoryJournal(now)

    yield make


@asynccontextmanager
async def on_sqlite(folder: Path) -> AsyncIterator[Make]:
    async with _in(sqlite_url(folder)) as make:
        yield make


@asynccontextmanager
async def on_postgresql(folder: Path) -> AsyncIterator[Make]:
    async with _in(postgresql_url()) as make:
        yield make


@asynccontextmanager
async def _in(url: str) -> AsyncIterator[Make]:
    database = Database(url)
    opened: list[tuple[GroupCommit, SqlJournal]] = []
    await create_tables(database)

    async def make(now: Callable[[], datetime]) -> Journal:
        await close()
        async with database.write() as connection:
            for table in metadata.sorted_tables:
                await connection.execute(table.delete())
        commits = GroupCommit(database, _unexpected, _unwritable, spacing=0)
        lease = Lease(database, LeaseTiming())
        commits.join(lease)
        await lease.register()
        commits.start()
        versions = SqlArtifactStore(database, commits, lease).version_contents
        journal = PromptJournal(database, commits, lease, versions, _notify, SqlOutboxWriter(), now)
        commits.join(journal)
        opened.append((commits, journal))
        return journal

    async def close() -> None:
        while opened:
            commits, journal = opened.pop()
            await commits.stop()
            await journal.stop()

    try:
        yield make
    finally:
        await close()
        await database.close()


def _notify(connection: Connection, *written: object) -> None:
    notify(connection, Notification())


def _unexpected() -> None:
    raise AssertionError("Nobody else is there to take over")


def _unwritable(context_id: str, error: Exception) -> None:
    raise AssertionError(context_id) from error
