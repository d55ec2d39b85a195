"""Python's own driver of SQLite, for asyncio.

Rule 1: calls that wait for locks or for the disk run in a thread: a statement together with the fetch of its rows, and
        the beginning and the commit of a write transaction. A read transaction begins and ends without a thread.
Rule 2: a call in a thread is awaited to its end, even if the caller is cancelled. So nothing else uses the connection
        in the meantime.
Rule 3: with the execution option `IN_PLACE`, statements run in the thread of their caller.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import AsyncAdaptedQueuePool
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.base import SQLiteExecutionContext
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import await_

from a2a_canvas.store.threads import run_to_end

T = TypeVar("T")

DRIVER = "sqlite+threads"
IN_PLACE = "sqlite_in_place"
_PRAGMAS = ("busy_timeout=5000", "journal_mode=WAL", "synchronous=FULL")


class Threads:
    """Threads for calls that block."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, call: Callable[[], T]) -> T:
        """Run it to its end (rule 2)."""
        self._executor = self._executor or ThreadPoolExecutor(self._count, "sqlite")
        return await run_to_end(asyncio.get_running_loop().run_in_executor(self._executor, call))

    def close(self) -> None:
        if self._executor:
            self._executor.shutdown()
            self._executor = None


class _Cursor(sqlite3.Cursor):
    """Fetches all rows when it executes."""

    server_side = False
    _rows: Iterator[Any] = iter(())

    def execute(self, *statement: Any) -> _Cursor:
        super().execute(*statement)
        self._rows = iter(super().fetchall())
        return self

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        return [*islice(self._rows, size)]

    def fetchall(self) -> list[Any]:
        return [*self._rows]

    async def _async_soft_close(self) -> None:
        """SQLAlchemy calls it before it reads rows from a result."""


class _Connection(sqlite3.Connection):
    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)


def _connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
    options |= {"isolation_level": None, "check_same_thread": False, "factory": _Connection}
    connection: sqlite3.Connection = sqlite3.connect(*arguments, **options)
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


class _Context(SQLiteExecutionContext):
    def create_server_side_cursor(self) -> Any:
        """A cursor that fetches rows on demand, in its caller's thread."""
        return self._dbapi_connection.cursor(sqlite3.Cursor)


class SqliteDialect(SQLiteDialect_pysqlite):
    """SQLAlchemy's dialect for one engine.

    Args:
        begin: the statement that begins a transaction; `BEGIN` waits for nothing.
    """

    driver = "threads"
    is_async = True
    supports_statement_cache = True
    supports_server_side_cursors = True
    execution_ctx_cls = _Context

    def __init__(self, threads: Threads, begin: str, **options: Any) -> None:
        super().__init__(**options)
        self._threads = threads
        self._begin = begin
        self._waits = begin != "BEGIN"

    @classmethod
    def get_pool_class(cls, url: Any) -> type[AsyncAdaptedQueuePool]:
        return AsyncAdaptedQueuePool

    def connect(self, *arguments: Any, **options: Any) -> Any:
        return self._run(True, partial(_connect, *arguments, **options))

    def do_begin(self, dbapi_connection: Any) -> None:
        self._run(self._waits, dbapi_connection.execute, self._begin)

    def do_commit(self, dbapi_connection: Any) -> None:
        self._run(self._waits, dbapi_connection.commit)

    def do_execute(self, cursor: Any, statement: Any, parameters: Any, context: Any = None) -> None:
        self._run(not _in_place(context), cursor.execute, statement, parameters)

    def do_execute_no_params(self, cursor: Any, statement: Any, context: Any = None) -> None:
        self._run(not _in_place(context), cursor.execute, statement)

    def do_executemany(self, cursor: Any, statement: Any, parameters: Any, context: Any = None) -> None:
        self._run(not _in_place(context), cursor.executemany, statement, parameters)

    def _run(self, waits: bool, call: Callable[..., Any], *arguments: Any) -> Any:
        return await_(self._threads.run(partial(call, *arguments))) if waits else call(*arguments)


def _in_place(context: Any) -> bool:
    return bool(context and context.execution_options.get(IN_PLACE))


registry.register("sqlite.threads", __name__, "SqliteDialect")
