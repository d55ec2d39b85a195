"""A database: where it is, how its transactions begin, and what its errors mean.

Rule 1: a read sees one consistent state, however many statements it makes.
Rule 2: on SQLite there is one writer at a time, so nothing here ever finds the file locked by its own process.
Rule 3: what another try could mend (the server is away, the disk is full, a deadlock) is `Unavailable`; anything else
        is a fault of ours and passes as it is.
Rule 4: a database that was terminated, and a SQLite file that was removed or replaced, is `Unavailable` at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal
from weakref import WeakSet

from sqlalchemy import URL, ColumnElement, Table, event, func, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.sqlite_file import DatabaseFile

Dialect = Literal["sqlite", "postgresql"]

READERS = 8
"""Connections that read at the same time."""
WRITERS = 6
"""Connections to PostgreSQL besides those. One more is the heartbeat's."""
TIMEOUT = 10
"""Seconds that a statement on PostgreSQL may take, and a connection to be made."""
HEARTBEAT_TIMEOUT = 2
"""The same of the heartbeat: it must have time for another try before its lease has run out."""

IDLE = "3s"
"""How long a transaction on PostgreSQL may wait for its client. One that stands still, or has been cut off without
a word, must not keep its locks for longer than its lease (`server/tasks/sql/lease.py`)."""

_MENDABLE = ("08", "25P03", "40", "53", "55P03", "57P", "57014", "58", "25006")
"""PostgreSQL's error codes, by how they begin: connection, rollback, resources, shutdown, time-out, disk, read-only."""


class Database:
    """Engines for reading and writing.

    Args:
        url: `sqlite:///FILE` or `postgresql://…`.

    Attributes:
        file: of SQLite.
        terminated: it is of no use any more (`terminate`).
    """

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self.dialect: Dialect = "sqlite" if parsed.get_backend_name() == "sqlite" else "postgresql"
        self.name = parsed.render_as_string(hide_password=True)
        self.url = _async_url(parsed)
        self._turn = asyncio.Lock()
        self._drivers: WeakSet[Any] = WeakSet()
        self._connecting: set[asyncio.Task[Any]] = set()
        self.terminated = False
        self.file = DatabaseFile(Path(parsed.database or "")) if self.dialect == "sqlite" else None
        if self.file:
            self._reader = _sqlite(self.url, "BEGIN", READERS)
            self._writer = self._heartbeat = _sqlite(self.url, "BEGIN IMMEDIATE", 1)
            event.listen(self._writer.sync_engine, "close", self._disconnected)
        else:
            self._writer = self._postgresql(WRITERS)
            self._heartbeat = self._postgresql(1, HEARTBEAT_TIMEOUT)
            self._reader = self._postgresql(READERS).execution_options(isolation_level="REPEATABLE READ")

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that reads.

        Raises:
            Unavailable: rules 3 and 4.
        """
        self._check()
        with translated():
            async with self._reader.connect() as connection, connection.begin():
                yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that writes; it is committed when the block ends without an exception.

        Raises:
            Unavailable: rules 3 and 4. Nothing was written, or nobody can tell (the connection broke in the commit).
        """
        async with self._writing(self._writer) as connection:
            yield connection

    @asynccontextmanager
    async def heartbeat(self) -> AsyncIterator[AsyncConnection]:
        """As `write`, for the heartbeat alone: on PostgreSQL by a connection that it need not wait for.

        Raises:
            Unavailable: as `write`.
        """
        async with self._writing(self._heartbeat) as connection:
            yield connection

    @asynccontextmanager
    async def _writing(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        self._check()
        with translated():
            if self.dialect == "postgresql":
                async with engine.begin() as connection:
                    yield connection
            else:
                async with self._turn, engine.begin() as connection:
                    if self.file:
                        self.file.writing()
                    yield connection
                    self._check()

    @asynccontextmanager
    async def listener(self) -> AsyncIterator[Any]:
        """The driver's own connection, to listen with: `asyncpg.Connection`. PostgreSQL only."""
        async with self._writer.connect() as connection:
            raw = await connection.get_raw_connection()
            try:
                yield raw.driver_connection
            finally:
                await connection.invalidate()  # what it listens to must not stay behind in the pool

    def _check(self) -> None:
        if self.terminated:
            raise Unavailable("this server is stopping")
        if self.file:
            self.file.check()

    def _disconnected(self, connection: Any, record: Any) -> None:
        if self.file:
            self.file.disconnected()

    def terminate(self) -> None:
        """Cut all connections to PostgreSQL: whoever waits for one that does not answer gets `Unavailable` now.

        The driver itself would wait for its time-outs, also when it is cancelled: a transaction is to be rolled back.
        """
        self.terminated = self.dialect == "postgresql"
        for driver in tuple(self._drivers):
            driver.terminate()
        for connecting in self._connecting:
            connecting.cancel()

    async def close(self) -> None:
        await self._writer.dispose()
        await self._heartbeat.dispose()
        await self._reader.dispose()

    def _postgresql(self, connections: int, timeout: float = TIMEOUT) -> AsyncEngine:
        return create_async_engine(
            self.url,
            pool_size=connections,
            max_overflow=0,
            pool_timeout=timeout,
            pool_pre_ping=False,
            connect_args={
                "async_creator_fn": self._connect,
                "timeout": timeout,
                "command_timeout": timeout,
                "server_settings": {"idle_in_transaction_session_timeout": IDLE},
            },
        )

    async def _connect(self, **options: Any) -> Any:
        from asyncpg import connect  # who uses SQLite need not wait for it

        connecting = asyncio.create_task(connect(**options))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        try:
            driver = await connecting
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            if waiting and waiting.cancelling():
                raise
            raise ConnectionError("this server is stopping") from None  # `terminate`
        self._drivers.add(driver)
        return driver


def _async_url(url: URL) -> URL:
    if url.get_backend_name() == "sqlite":
        return url.set(drivername="sqlite+aiosqlite")
    query = {"ssl" if key == "sslmode" else key: value for key, value in url.query.items()}
    return url.set(drivername="postgresql+asyncpg", query=query)


def _sqlite(url: URL, begin: str, connections: int) -> AsyncEngine:
    engine = create_async_engine(url, pool_size=connections, max_overflow=0)

    @event.listens_for(engine.sync_engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver would begin transactions by rules of its own
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine


def insert(connection: AsyncConnection, table: Table) -> Any:
    """An INSERT that knows ON CONFLICT."""
    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)


def text_size(connection: AsyncConnection, column: ColumnElement[str]) -> ColumnElement[int]:
    """How long a text is, about: in bytes on PostgreSQL, in characters on SQLite."""
    # SQLite has octet_length since 3.43 only; PostgreSQL's length would unpack the text.
    return func.length(column) if connection.dialect.name == "sqlite" else func.octet_length(column)


@contextmanager
def translated() -> Iterator[None]:
    """Raises `Unavailable` in place of what another try could mend."""
    try:
        yield
    except Unavailable:
        raise
    except (DBAPIError, PoolTimeout, OSError) as error:
        reason = mendable(error)
        if reason is None:
            raise
        raise Unavailable(reason) from error


def mendable(error: Exception) -> str | None:
    """Why it failed, in words, if another try could go well."""
    if not isinstance(error, DBAPIError):
        return str(error) or "it does not answer"
    cause: BaseException = error.orig or error
    # SQLAlchemy wraps asyncpg's errors twice.
    code = str(getattr(cause, "sqlstate", None) or getattr(cause.__cause__, "sqlstate", None) or "")
    reason = str(cause.__cause__ or cause).splitlines()[0] if str(cause) else "it does not answer"
    if code:
        return reason if code.startswith(_MENDABLE) else None
    if error.connection_invalidated or isinstance(error, OperationalError | InterfaceError):
        return reason
    return None
