"""Opens a database for a server or for one of the commands, or says in one line why that is not possible."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from a2a_canvas.server.migrations import SchemaError, prepare
from a2a_canvas.server.settings import without_password
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.sqlite_file import DatabaseInUse, FileLock


class DatabaseError(Exception):
    """A database cannot be opened or reached, or has another schema; `str()` is one line that says what to do."""


class LockedDatabase(Database):
    """A SQLite file that no other process can open from `lock` until it is closed."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._lock = FileLock(Path(self.url.database or ""))

    def lock(self) -> None:
        """Raises `DatabaseInUse` if another server has it open, `OSError` if the lock cannot be made."""
        self._lock.acquire()

    async def close(self) -> None:
        await super().close()
        self._lock.release()


def make_database(url: str) -> Database:
    """A database that is not opened yet; a SQLite file will be locked."""
    return LockedDatabase(url) if url.startswith("sqlite:") else Database(url)


async def prepare_database(database: Database) -> None:
    """Open a database for a server; a SQLite file is locked until it is closed.

    Raises:
        DatabaseError: it cannot be opened or reached, is open in another server, or has another schema; it is closed.
    """
    async with _close_on_failure(database):
        await _open(database, new=True)
        await prepare(database)


@asynccontextmanager
async def open_database(url: str, *, shared: bool = False, new: bool = False) -> AsyncIterator[Database]:
    """A database that answers, with any schema; it is closed at the end.

    Args:
        shared: do not lock a SQLite file.
        new: create a SQLite file that is not there.

    Raises:
        DatabaseError: it cannot be opened, reached or used, or is open in another server.
    """
    database = Database(url) if shared else make_database(url)
    async with _close_on_failure(database):
        await _open(database, new=new)
        yield database
    await database.close()


async def _open(database: Database, *, new: bool) -> None:
    if database.dialect == "sqlite" and (fault := _fault_of_file(Path(database.url.database or ""), new)):
        raise _unusable(database.name, fault)
    if isinstance(database, LockedDatabase):
        database.lock()
    if database.file and new:
        database.file.create()
    async with database.read():
        pass  # raises `Unavailable`
    if database.file:
        database.file.opened()


@asynccontextmanager
async def _close_on_failure(database: Database) -> AsyncIterator[None]:
    """Closes the database if anything fails; raises `DatabaseError` in place of the errors of opening it."""
    try:
        yield
    except BaseException as error:
        await database.close()
        if translated := _translated(database.name, error):
            raise translated from error
        raise


def _translated(url: str, error: BaseException) -> DatabaseError | None:
    match error:
        case DatabaseInUse() | SchemaError():
            return DatabaseError(str(error))
        case Unavailable():
            return _unusable(url, error.reason)
        case OSError():
            return _unusable(url, error.strerror or "")
        case _ if original := getattr(error, "orig", None):
            # A file that is no database, a wrong password, no permission: the driver's message says it.
            return _unusable(url, str(original))
        case _:
            return None


def _unusable(url: str, reason: str) -> DatabaseError:
    words = re.sub(r"^\[Errno -?\d+\] ", "", (reason.splitlines() or ["it does not answer"])[0])
    verb = "opened" if url.startswith("sqlite:") else "used"
    return DatabaseError(f"The database {without_password(url)} cannot be {verb}: {words}.")


def _fault_of_file(path: Path, new: bool) -> str:
    """What is wrong with a SQLite file, where SQLite's own message would not say it."""
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    if path.exists() and path.stat().st_nlink > 1:
        return "the file has a second name (a hard link), by which another server could open it, too"
    if not path.exists() and path.with_name(f"{path.name}-wal").exists():
        return "it is gone, but its -wal is there: restore the file, or remove the -wal to begin anew"
    if not (new or path.exists()):
        return "there is no such file yet; a2a-canvas serve makes it, and so does a2a-canvas db upgrade"
    return ""
