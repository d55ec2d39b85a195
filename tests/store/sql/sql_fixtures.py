"""Stores on real databases, and replicas that live and die as a test says."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store.models import Limits
from a2a_canvas.store.sql.commit import GroupCommit
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.kept import kept_bytes
from a2a_canvas.store.sql.sql_artifact_store import SqlArtifactStore
from a2a_canvas.store.sql.tables import artifacts, drafts, metadata, versions
from tests.database_fixtures import postgresql_url, sqlite_url

TABLES = [artifacts, drafts, kept_bytes, versions]


class FakeReplica:
    """A holder. Replicas know of each other's end by the set of the living that they share."""

    def __init__(self, name: str = "r1", living: set[str] | None = None) -> None:
        self.id = name
        self.exclusive = living is None
        self.living = {name} if living is None else living

    async def alive(self, connection: AsyncConnection, replica_id: str) -> bool:
        return replica_id in self.living


class SqlStoreHarness:
    """A store with what it stands on.

    Attributes:
        lost: how often it was told that another replica took over.
        unwritten: the contexts of which something could not be written.
    """

    def __init__(
        self, database: Database, replica: FakeReplica, limits: Limits | None = None, shown_interval: float = 0
    ) -> None:
        self.lost = 0
        self.unwritten: list[str] = []
        self.database = database
        self.replica = replica
        self.commits = GroupCommit(database, self._lose, self._drop, spacing=0)
        self.store = SqlArtifactStore(database, self.commits, replica, limits, shown_interval)
        self.commits.join(self.store)

    def _lose(self) -> None:
        self.lost += 1
        self.store.forget()
        self.commits.give_up()

    def _drop(self, context_id: str, error: Exception) -> None:
        self.unwritten.append(context_id)
        self.store.drop(context_id)


@asynccontextmanager
async def open_store(
    database: Database, replica: FakeReplica, limits: Limits | None = None, shown_interval: float = 0
) -> AsyncIterator[SqlStoreHarness]:
    """A store that writes what is staged until the block ends."""
    harness = SqlStoreHarness(database, replica, limits, shown_interval)
    harness.commits.start()
    try:
        yield harness
    finally:
        await harness.commits.stop()


@asynccontextmanager
async def sqlite_database() -> AsyncIterator[Database]:
    """A new file."""
    with TemporaryDirectory() as folder:
        async with _opened(sqlite_url(Path(folder))) as database:
            yield database


@asynccontextmanager
async def postgresql_database() -> AsyncIterator[Database]:
    """The tests' one database, with no rows in it."""
    async with _opened(_one_url()) as database:
        async with database.write() as connection:
            for table in TABLES:
                await connection.execute(table.delete())
        yield database


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Database]:
    database = Database(url)
    try:
        async with database.write() as connection:
            await connection.run_sync(metadata.create_all, tables=TABLES)
        yield database
    finally:
        await database.close()


@functools.cache
def _one_url() -> str:
    return postgresql_url()
