"""Journals for tests, by where they keep their tasks; each call of a maker gives an empty one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from a2a_canvas.server.agent.events import TurnEvent
from a2a_canvas.server.broker.broker import Broker
from a2a_canvas.server.push.sql.outbox_rows import SqlOutboxWriter
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, Journal
from a2a_canvas.server.tasks.presence.present_people import PresentPeople
from a2a_canvas.server.tasks.push_configs import PushConfig
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal.sql_journal import SqlJournal
from a2a_canvas.server.tasks.sql.replica.broker_exchange import BrokerExchange
from a2a_canvas.server.tasks.sql.replica.lease import Lease, LeaseTiming
from a2a_canvas.server.tasks.sql.replica.notifications import Notification, notify
from a2a_canvas.server.tasks.sql.replica.presence_exchange import PresenceExchange
from a2a_canvas.store.sql.commit import GroupCommit
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.sql_artifact_store import SqlArtifactStore
from a2a_canvas.store.sql.tables import metadata
from tests.broker_fixtures import private_nats
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


class ReadElsewhere:
    """A journal that is written on one replica, and followed on another one, which gets its pages by a broker."""

    def __init__(self, written: SqlJournal, read: SqlJournal) -> None:
        self._written = written
        self.follow, self.follow_context = read.follow, read.follow_context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._written, name)


@asynccontextmanager
async def on_postgresql_with_broker(folder: Path) -> AsyncIterator[Make]:
    with private_nats() as nats:
        async with AsyncExitStack() as stack:
            url = postgresql_url()
            make_written = await stack.enter_async_context(_in(url))
            database = Database(url)
            stack.push_async_callback(database.close)
            brokers = [Broker([nats.url]) for _ in range(2)]
            exchanges = [exchange(each, database) for each in brokers]
            for each in exchanges:
                each.start()
            for broker in brokers:
                stack.push_async_callback(broker.stop)
                await broker.connected.wait()

            async def make(now: Callable[[], datetime]) -> Journal:
                written = await make_written(now)
                read = journal_on(database, GroupCommit(database, _unexpected, _unwritable), now)
                for journal, its_exchange in zip((written, read), exchanges, strict=True):
                    journal.connect(its_exchange)
                stack.push_async_callback(read.stop)
                return ReadElsewhere(written, read)

            yield make


def exchange(broker: Broker, database: Database) -> BrokerExchange:
    presence = PresenceExchange(database, PresentPeople())
    return BrokerExchange(broker, b"k" * 32, presence, lambda notification: None, lambda: None)


def journal_on(database: Database, commits: GroupCommit, now: Callable[[], datetime]) -> SqlJournal:
    lease = Lease(database, LeaseTiming())
    versions = SqlArtifactStore(database, commits, lease).version_contents
    return PromptJournal(database, commits, lease, versions, _notify, SqlOutboxWriter(), now)


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
