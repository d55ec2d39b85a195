"""Opens a database for a server or a command, or says in one line why that failed.

Rule 1: a SQLite file of another program is refused before anything is written, including a lock or a journal mode.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from a2a_canvas.server.backend.migrations import REVISIONS, SchemaError, prepare
from a2a_canvas.server.settings.value_types import without_password
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.database import CONNECTIONS, Database
from a2a_canvas.store.sql.postgresql.primary import NoPrimary
from a2a_canvas.store.sql.sqlite_file import DatabaseInUse, FileLock
from a2a_canvas.store.text.wording import choice

_OTHER_FILE: Final = "name another file with --database"
_CHECK_ADDRESS: Final = "Check that PostgreSQL runs, and the address, the user and the password in --database."
_FIND_PRIMARY: Final = "Name the primary in --database, too (HOST1:PORT,HOST2:PORT), or promote the standby."
_NAMED_TABLES: Final = 3
"""The most tables of another program that a message names."""


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


def make_database(url: str, connections: int = CONNECTIONS) -> Database:
    """A database, not opened yet; a SQLite file will be locked, PostgreSQL gets so many connections."""
    return LockedDatabase(url) if url.startswith("sqlite:") else Database(url, connections)


async def prepare_database(database: Database) -> None:
    """Open a database for a server; a SQLite file is locked until it is closed.

    Raises:
        DatabaseError: it cannot be opened or reached, is open in another server, or has another schema; it is closed.
    """
    async with _close_on_failure(database):
        await _open(database, new=True)
        await prepare(database)


def file_of(url: str) -> Path | None:
    """The file of a SQLite database; None for PostgreSQL."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:") else None


def place_of(url: str) -> str:
    """The absolute path of a SQLite file, else the address without its password."""
    file = file_of(url)
    return str(file.absolute()) if file else without_password(url)


@asynccontextmanager
async def open_database(url: str, *, shared: bool = False, new: bool = False) -> AsyncIterator[Database]:
    """Open a database with any schema; it is closed at the end.

    Args:
        shared: do not lock a SQLite file.
        new: create a missing SQLite file.

    Raises:
        DatabaseError: it cannot be opened, reached or used, or is open in another server.
    """
    database = Database(url) if shared else make_database(url)
    async with _close_on_failure(database):
        await _open(database, new=new)
        if database.file and new:
            database.file.warn_of_others()
        yield database
    await database.close()


async def _open(database: Database, *, new: bool) -> None:
    if database.dialect == "sqlite":
        writes = new or isinstance(database, LockedDatabase)
        check_file(Path(database.url.database or ""), database.name, new=new, writes=writes)
    if isinstance(database, LockedDatabase):
        database.lock()
    if database.file and new:
        database.file.create()
    async with database.read():
        pass  # raises `Unavailable`
    if database.file:
        database.file.record_opened()


@asynccontextmanager
async def _close_on_failure(database: Database) -> AsyncIterator[None]:
    """Closes the database if anything fails; raises `DatabaseError` in place of the errors of opening it."""
    try:
        yield
    except BaseException as error:
        await database.close()
        if translated := _translate(database.name, error):
            raise translated from error
        raise


def _translate(url: str, error: BaseException) -> DatabaseError | None:
    match error:
        case DatabaseInUse() | SchemaError():
            return DatabaseError(str(error))
        case Unavailable(__cause__=NoPrimary()):
            return _unusable(url, error.reason, _FIND_PRIMARY)
        case Unavailable():
            return _unusable(url, error.reason)
        case OSError():
            return _unusable(url, error.strerror or "")
        case _ if original := getattr(error, "orig", None):
            # Not a database, a wrong password, no permission: the driver's message says which.
            return _unusable(url, str(original))
        case _:
            return None


def _unusable(url: str, reason: str, cure: str = _CHECK_ADDRESS) -> DatabaseError:
    words = re.sub(r"^\[Errno -?\d+\] ", "", (reason.splitlines() or ["it does not answer"])[0])
    if url.startswith("sqlite:"):
        return _cannot_open(url, f"{words}. {_OTHER_FILE.capitalize()}")
    return DatabaseError(f"The database {without_password(url)} cannot be used: {words}. {cure}")


def _cannot_open(url: str, fault: str) -> DatabaseError:
    return DatabaseError(f"The database {url} cannot be opened: {fault}.")


# ------------------------------------------------------------------------- SQLite files


def check_file(path: Path, name: str, *, new: bool, writes: bool) -> None:
    """Check a SQLite file before it is opened; nothing is written (rule 1).

    Args:
        name: its name in messages.
        new: it may be missing.
        writes: it and its folder must be writable.

    Raises:
        DatabaseError: it cannot be opened or created, or belongs to another program.
    """
    if fault := _fault_of_place(path) or _fault_of_permissions(path, writes):
        raise _cannot_open(name, fault)
    if not (new or path.exists()):
        fault = "there is no such file yet; a2a-canvas serve makes it, and so does a2a-canvas db upgrade"
        raise _cannot_open(name, fault)
    if tables := _tables_of_another(path, name):
        has = "the table" if len(tables) == 1 else "the tables"
        raise DatabaseError(
            f"The database {name} belongs to another program: it has {has} {_some_of(tables)}. "
            f"{_OTHER_FILE.capitalize()}."
        )


def _fault_of_place(path: Path) -> str:
    """The fault of a SQLite file, where SQLite's own message would not name it."""
    if path.is_dir():
        return f"it is a folder. {_OTHER_FILE.capitalize()}"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}. Make it, or {_OTHER_FILE}"
    if path.exists() and path.stat().st_nlink > 1:
        return (
            "the file has a second name (a hard link), by which another server could open it, too. "
            f"Remove one of the names, or {_OTHER_FILE}"
        )
    if not path.exists() and path.with_name(f"{path.name}-wal").exists():
        return "it is gone, but its -wal is there: restore the file, or remove the -wal to start with an empty database"
    return ""


def _fault_of_permissions(path: Path, writes: bool) -> str:
    if path.exists() and not os.access(path, os.R_OK, effective_ids=True):
        return f"you may not read the file. Make it readable, or {_OTHER_FILE}"
    places = ((path.parent, f"the folder {path.parent.absolute()}"), (path, "the file")) if writes else ()
    for place, called in places:
        if place.exists() and not os.access(place, os.W_OK, effective_ids=True):
            return f"{called} is read-only. Make it writable, or {_OTHER_FILE}"
    return ""


def _tables_of_another(path: Path, name: str) -> Sequence[str]:
    """The tables of a file without ours; empty if it has ours, has none, or cannot be read now."""
    if not path.exists():
        return ()
    # `immutable` takes no locks and makes no -wal. With one of these files, another process may be writing. After its
    # crash with a -journal, only `immutable` reads the file and leaves it unchanged.
    in_use = any(path.with_name(f"{path.name}{end}").exists() for end in ("-wal", "-journal"))
    crashed = path.with_name(f"{path.name}-journal").exists()
    for mode in (*(["mode=ro"] if in_use else []), *(["immutable=1"] if crashed or not in_use else [])):
        try:
            tables = _tables(path, mode)
        except sqlite3.OperationalError:
            continue  # opening it raises the error
        except sqlite3.DatabaseError:
            raise _cannot_open(name, f"it is not a SQLite database. {_OTHER_FILE.capitalize()}") from None
        return () if REVISIONS in tables else tables
    return ()


def _tables(path: Path, mode: str) -> Sequence[str]:
    """The tables of a SQLite file; raises SQLite's errors."""
    with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)) as file:
        listed = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        return sorted(table for (table,) in file.execute(listed))


def _some_of(tables: Sequence[str]) -> str:
    rest = len(tables) - _NAMED_TABLES
    return choice([*tables[:_NAMED_TABLES], *([f"{rest} more"] if rest > 0 else [])], "and")
