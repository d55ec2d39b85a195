"""Where the runtime of a test keeps its tasks and artifacts: in memory, and on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from server.tasks.journal import InMemoryJournal, Journal
from server.tasks.ownership import Ownership
from server.tasks.sql.house import House
from server.tasks.sql.tables import metadata
from store.base import ArtifactStore
from store.memory import InMemoryArtifactStore
from store.models import Limits
from store.sql.database import Database
from tests.databases import sqlite_url


@dataclass(frozen=True, slots=True)
class Kept:
    journal: Journal
    store: ArtifactStore
    ownership: Ownership | None = None


Backend = Callable[[Callable[[], datetime]], Kept]


def in_memory(now: Callable[[], datetime], journal: type[InMemoryJournal] = InMemoryJournal) -> Kept:
    return Kept(journal(now), InMemoryArtifactStore())


@asynccontextmanager
async def on_sqlite(folder: Path) -> AsyncIterator[Backend]:
    """For one runtime at a time."""
    database = Database(sqlite_url(folder))
    async with database.write() as connection:
        await connection.run_sync(metadata.create_all)
    houses: list[House] = []

    def make(now: Callable[[], datetime]) -> Kept:
        house = House(database, now, Limits(), spacing=0)
        house.commits.start()
        houses.append(house)
        return Kept(house.journal, house.store, house)

    try:
        yield make
    finally:
        for house in houses:
            await house.stop()
        await database.close()
