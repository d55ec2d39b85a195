"""New, empty databases for servers that are measured: SQLite files, and a private PostgreSQL, both as shipped."""

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
"""Makes a database; what comes back is its address."""

CHANGES = slice(8, 12)
"""Where the header of a wal-index counts its transactions: the field `iChange` in SQLite's file format."""


@contextmanager
def databases(kind: Kind) -> Iterator[New]:
    """Databases that are gone at the end.

    Raises:
        RuntimeError: there is no PostgreSQL here; the message says what to do.
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
    """Make our tables in a new database, and give it back. A server does it for itself only on SQLite.

    Raises:
        RuntimeError: it failed; the message has what was said.
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
    """How many transactions have been committed to a SQLite file since it was opened.

    It is read from outside, without a lock, from the memory that the connections of a file share (`FILE-shm`); a
    transaction that changed nothing does not count.

    Raises:
        OSError: nobody has the file open.
    """
    with Path(f"{url.removeprefix('sqlite:///')}-shm").open("rb") as file:
        return int.from_bytes(file.read(CHANGES.stop)[CHANGES], sys.byteorder)
