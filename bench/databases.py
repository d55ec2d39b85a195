"""New, empty databases for measured servers: SQLite files, and a private PostgreSQL, both with default settings."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from bench.servers import ROOT
from tests.database_fixtures import private_postgresql, why_not

Kind = Literal["sqlite", "postgresql"]
New = Callable[[], str]
"""Makes a database and returns its address."""

CHANGE_COUNTER = slice(8, 12)
"""The bytes of the wal-index header that count transactions: the field `iChange` in SQLite's file format."""


@contextmanager
def databases(kind: Kind) -> Iterator[New]:
    """Databases that are removed at the end.

    Raises:
        RuntimeError: PostgreSQL is not installed; the message says what to do.
    """
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield lambda: f"sqlite:///{tempfile.mkdtemp(dir=folder)}/canvas.db"
        return
    if missing := why_not():
        raise RuntimeError(missing)
    with private_postgresql() as server:
        yield server.new_database


async def upgrade(url: str) -> str:
    """Create our tables in a new database, and return its address. A server creates them itself only on SQLite.

    Raises:
        RuntimeError: it failed; the message has the output.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "a2a_canvas", "db", "upgrade", "--database", url),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"db upgrade: {said.decode()}")
    return url


def commits(url: str) -> int:
    """The number of transactions committed to a SQLite file since it was opened.

    Read without a lock from the memory that the file's connections share (`FILE-shm`); transactions without changes do
    not count.

    Raises:
        OSError: no process has the file open.
    """
    with Path(f"{url.removeprefix('sqlite:///')}-shm").open("rb") as file:
        return int.from_bytes(file.read(CHANGE_COUNTER.stop)[CHANGE_COUNTER], sys.byteorder)
