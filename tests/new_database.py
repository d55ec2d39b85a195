"""New databases with all tables of the server."""

from __future__ import annotations

import asyncio
import functools
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import a2a_canvas.server.backend.durable_backend  # noqa: F401  (it enters all tables)
from a2a_canvas.server.backend.migrations import upgrade
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.tables import metadata


async def with_tables(url: str) -> str:
    """The url of a database, which a server's tables are in now, with their revision."""
    database = Database(url)
    await upgrade(database)
    await database.close()
    return url


async def create_tables(database: Database) -> None:
    """Create all tables, unless the database has them. No connection to it may be open."""
    if not _is_copied(database):
        await database.transact(metadata.create_all)


def _is_copied(database: Database) -> bool:
    """Whether it is a SQLite file that did not exist: now it is a copy of one with all tables."""
    path = Path(database.url.database or "")
    if not database.file or path.exists():
        return False
    database.file.create()
    path.write_bytes(_file_with_tables())
    return True


@functools.cache
def _file_with_tables() -> bytes:
    """A SQLite file with all tables: to copy it takes a fraction of the time of creating them."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _created(f"sqlite:///{folder}/tables.db")).result()
        return Path(folder, "tables.db").read_bytes()


async def _created(url: str) -> None:
    database = Database(url)
    await database.transact(metadata.create_all)
    await database.close()
