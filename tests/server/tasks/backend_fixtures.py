"""Where the runtime of a test keeps its tasks and artifacts: in memory, and on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from a2a_canvas.server.accounts.sharing import InMemoryShares
from a2a_canvas.server.backend.sql_backend import SqlBackend
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, Journal
from a2a_canvas.server.tasks.journal.owned_contexts import InMemoryContexts, OwnedContexts
from a2a_canvas.server.tasks.runtime.ownership import Ownership
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Limits
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import sqlite_url
from tests.new_database import create_tables
from tests.server.tasks.kept_count import assert_counted


@dataclass(frozen=True, slots=True)
class BackendParts:
    journal: Journal
    store: ArtifactStore
    owned: OwnedContexts
    ownership: Ownership | None = None


MakeBackend = Callable[[Callable[[], datetime]], BackendParts]


def in_memory(now: Callable[[], datetime], journal: type[InMemoryJournal] = InMemoryJournal) -> BackendParts:
    tasks, store = journal(now), InMemoryArtifactStore()
    return BackendParts(tasks, store, InMemoryContexts(tasks, store, InMemoryShares(now)))


@asynccontextmanager
async def on_sqlite(folder: Path) -> AsyncIterator[MakeBackend]:
    """For one runtime at a time. In the end what is kept is counted right."""
    url = sqlite_url(folder)
    database = Database(url)
    await create_tables(database)
    backends: list[SqlBackend] = []

    def make(now: Callable[[], datetime]) -> BackendParts:
        backend = SqlBackend(database, now, Limits(), spacing=0)
        backend.commits.start()
        backends.append(backend)
        return BackendParts(backend.journal, backend.store, backend.contexts, backend.ownership)

    try:
        yield make
    finally:
        for backend in backends:
            await backend.stop()
        await database.close()
    await assert_counted(url)
