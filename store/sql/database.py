"""A database: its connections, how transactions begin, and the meaning of its errors.

Rule 1: a read transaction sees one snapshot, however many statements it makes.
Rule 2: on SQLite there is one writer at a time, so the file is never locked by another connection of this process.
Rule 3: an error that a retry could solve (no connection, full disk, deadlock) is `Unavailable`. Any other error is a
        bug and is not translated.
Rule 4: a database that was terminated, and a SQLite file that was removed or replaced, are `Unavailable` at once.
Rule 5: SQLite blocks its caller. `read` and `write` run each statement in a thread (`sqlite_driver.py`);
        `transact` does so only for BEGIN and COMMIT, which wait for locks and for the disk. A thread switch costs more
        than the small statements of the group commit, and their values derive from ropes, which only the event loop
        may read while it appends to others that share their buffer (`store/text/rope.py`).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from sqlalchemy import URL, BigInteger, Connection, Table, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, InvalidRequestError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.postgresql.confirmed_commit import ConfirmedCommits
from a2a_canvas.store.sql.postgresql.primary import Primary, join_hosts, split_hosts
from a2a_canvas.store.sql.sqlite_driver import DRIVER, IN_PLACE, Threads
from a2a_canvas.store.sql.sqlite_file import DatabaseFile

T = TypeVar("T")

Dialect = Literal["sqlite", "postgresql"]

READERS = 8
"""Connections for reads."""
WRITERS = 6
"""Connections to PostgreSQL for writes. The heartbeat has one more."""
CONNECTIONS = READERS + WRITERS + 1
"""Connections of a server to PostgreSQL."""
FEWEST_CONNECTIONS = 6
"""The fewest that a server works with: 2 readers; 3 writers, one of which listens; the heartbeat's."""
TIMEOUT = 10
"""The timeout of a statement and of a connection attempt on PostgreSQL, in seconds."""
HEARTBEAT_TIMEOUT = 2
"""The same for the heartbeat, which needs time for a second attempt before its lease expires."""

COMMIT_SHARE = 0.9
"""The part of these after which a COMMIT is given up; the driver would cancel it (`postgresql/confirmed_commit.py`)."""

IDLE_IN_TRANSACTION = "3s"
"""How long a transaction on PostgreSQL may be idle. A stopped or disconnected client must not hold its locks for longer
than its lease (`server/tasks/sql/replica/lease.py`)."""

_COMMIT_ALONE = text("SET LOCAL synchronous_commit = local")

_WRITTEN = "a2a_canvas.written_bytes"
"""In `Connection.info`: what the transaction has written so far."""
_AFTER_COMMIT = "a2a_canvas.after_commit"
"""In `Connection.info`: what is called when the transaction is committed."""

_RETRYABLE = ("08", "25P03", "28", "3D000", "40", "53", "55000", "55P03", "57P", "57014", "58", "25006")
"""Prefixes of PostgreSQL's error codes: connection, login, no such database, rollback, resources, closed to
connections, locks, shutdown, time-out, disk, read-only."""


_ENDED = "This connection is closed"
"""What the pool says if a connection has ended twice before it was used (`_check_open`)."""


class Database:
    """Engines for reading and writing.

    Args:
        url: `sqlite:///FILE` or `postgresql://…`, with one host or several.
        connections: to PostgreSQL, from `FEWEST_CONNECTIONS` to `CONNECTIONS`.

    Attributes:
        has_several_hosts: it may fail over.
        writers: how many of the connections to PostgreSQL write; one of them listens.
        file: the file of a SQLite database.
        threads: for SQLite's waits for locks and for the disk.
        terminated: `terminate` was called.
        written_bytes: size of the rows that `transact` has written (`count_written`).
    """

    def __init__(self, url: str, connections: int = CONNECTIONS) -> None:
        with_one_host, hosts = split_hosts(url)
        parsed = make_url(with_one_host)
        self.dialect: Dialect = "sqlite" if parsed.get_backend_name() == "sqlite" else "postgresql"
        self.name = parsed.render_as_string(hide_password=True)
        if self.dialect == "postgresql":
            self.name = join_hosts(self.name, hosts)
        self.url = _async_url(parsed)
        self.has_several_hosts = len(hosts) > 1
        self._write_lock = asyncio.Lock()
        self._commits = ConfirmedCommits()
        self._primary = Primary(hosts)
        self._connecting: set[asyncio.Task[Any]] = set()
        self.writers = max(3, connections * WRITERS // CONNECTIONS)
        self.terminated = False
        self.written_bytes = 0
        self.file = file = DatabaseFile(Path(parsed.database or "")) if self.dialect == "sqlite" else None
        self.threads = Threads(READERS + 1)
        if file:
            self._reader = self._single_reader = _sqlite(self.url, self.threads, "BEGIN", READERS)
            self._writer = self._heartbeat = _sqlite(self.url, self.threads, "BEGIN IMMEDIATE", 1)
            event.listen(self._writer.sync_engine, "close", lambda connection, record: file.record_disconnected())
        else:
            self._writer = self._postgresql(self.writers)
            self._heartbeat = self._postgresql(1, HEARTBEAT_TIMEOUT)
            readers = self._postgresql(connections - 1 - self.writers)
            self._reader = readers.execution_options(isolation_level="REPEATABLE READ")
            self._single_reader = readers.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A read transaction.

        Raises:
            Unavailable: rules 3 and 4.
        """
        self._check()
        with translate_errors():
            async with self._reader.connect() as connection, connection.begin():
                yield connection

    @asynccontextmanager
    async def read_at_once(self) -> AsyncIterator[AsyncConnection]:
        """A connection for SELECTs that need not see one state: PostgreSQL is asked once for each, and no BEGIN and
        COMMIT are sent.

        Raises:
            Unavailable: rules 3 and 4.
        """
        self._check()
        with translate_errors():
            async with self._single_reader.connect() as connection:
                yield connection

    def write(self, *, alone: bool = False) -> AbstractAsyncContextManager[AsyncConnection]:
        """A write transaction; it is committed if the block ends without an exception.

        Args:
            alone: no standby needs what it writes, and the commit waits for none.

        Raises:
            Unavailable: rules 3 and 4. Nothing was written, or it is unknown (the connection broke in the commit).
        """
        return self._writing(self._writer, TIMEOUT, alone=alone)

    async def transact(self, statements: Callable[[Connection], T]) -> T:
        """Run one function as a write transaction; it is committed if the function returns (rule 5).

        Args:
            statements: runs in the thread of the caller.

        Raises:
            Unavailable: as `write`.
        """
        async with self.write() as connection:
            connection.info[_WRITTEN] = 0
            result = await connection.run_sync(lambda sync: statements(sync.execution_options(**{IN_PLACE: True})))
            written: int = connection.info[_WRITTEN]
        self.written_bytes += written
        return result

    def heartbeat(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """As `write`, for the heartbeat, which has a PostgreSQL connection of its own.

        Raises:
            Unavailable: as `write`.
        """
        return self._writing(self._heartbeat, HEARTBEAT_TIMEOUT)

    @asynccontextmanager
    async def _writing(
        self, engine: AsyncEngine, within: float, *, alone: bool = False
    ) -> AsyncIterator[AsyncConnection]:
        self._check()
        with translate_errors():
            if self.file is None:
                async with engine.connect() as connection, connection.begin() as transaction:
                    calls: list[Callable[[], object]] = []
                    connection.info[_AFTER_COMMIT] = calls
                    await (connection.execute(_COMMIT_ALONE) if alone else self._commits.check(connection))
                    yield connection
                    await self._commits.commit(connection, transaction, within * COMMIT_SHARE)
                for call in calls:
                    call()
                return
            async with self._write_lock, engine.begin() as connection:
                self.file.record_writing()
                yield connection
                self._check()

    @asynccontextmanager
    async def listener(self) -> AsyncIterator[Any]:
        """A connection of the driver (`asyncpg.Connection`) for LISTEN. PostgreSQL only."""
        async with self._writer.connect() as connection:
            raw = await connection.get_raw_connection()
            try:
                yield raw.driver_connection
            finally:
                await connection.invalidate()  # a pooled connection would still listen

    def _check(self) -> None:
        if self.terminated:
            raise Unavailable("this server is stopping")
        if self.file:
            self.file.check()

    def terminate(self) -> None:
        """Cut all connections to PostgreSQL: waiting callers get `Unavailable` immediately.

        A cancelled call would wait for the driver's timeouts, because the driver first rolls the transaction back.
        """
        self.terminated = self.dialect == "postgresql"
        for driver in tuple(self._primary.drivers):
            driver.terminate()
        for connecting in self._connecting:
            connecting.cancel()

    async def close(self) -> None:
        for engine in (self._writer, self._heartbeat, self._reader):
            await engine.dispose()
        self.threads.close()

    def _postgresql(self, connections: int, timeout: float = TIMEOUT) -> AsyncEngine:
        engine = create_async_engine(
            self.url,
            pool_size=connections,
            max_overflow=0,
            pool_timeout=timeout,
            pool_pre_ping=False,
            hide_parameters=True,
            connect_args={
                "async_creator_fn": self._connect,
                "timeout": timeout,
                "command_timeout": timeout,
                "server_settings": {
                    "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION,
                    "statement_timeout": "0",  # it would cancel the wait of a COMMIT (`confirmed_commit.py`)
                    "client_min_messages": "warning",
                },
            },
        )
        event.listen(engine.sync_engine, "checkout", _check_open)
        return engine

    async def _connect(self, **options: Any) -> Any:
        made: list[Any] = []

        async def make() -> None:
            made.append(await self._primary.connect(**options))

        connecting = asyncio.create_task(make())
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        try:
            await connecting
        except asyncio.CancelledError:
            # It may have connected in the same step: asyncio drops the result of a task that is cancelled as it ends.
            connecting.add_done_callback(lambda _: [driver.terminate() for driver in made])
            waiting = asyncio.current_task()
            if waiting and waiting.cancelling():
                raise
            raise ConnectionError("this server is stopping") from None  # `terminate`
        return made[0]


def _check_open(connection: Any, record: object, proxy: object) -> None:
    """Have the pool replace a connection that has ended while nobody used it, such as those to a lost primary."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError


def _async_url(url: URL) -> URL:
    if url.get_backend_name() == "sqlite":
        return url.set(drivername=DRIVER)
    names = {"sslmode": "ssl", "host": "host"}  # it is always the primary that we connect to
    query = {names[key]: value for key, value in url.query.items() if key in names}
    return url.set(drivername="postgresql+asyncpg", query=query)


def _sqlite(url: URL, threads: Threads, begin: str, connections: int) -> AsyncEngine:
    return create_async_engine(
        url, threads=threads, begin=begin, pool_size=connections, max_overflow=0, hide_parameters=True
    )


def count_written(connection: Connection, rows: Iterable[Iterable[Any]]) -> None:
    """Count the sizes of values that this transaction writes; for a text its characters."""
    size = sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))
    connection.info[_WRITTEN] = connection.info.get(_WRITTEN, 0) + size


def after_commit(connection: Connection, call: Callable[[], object]) -> None:
    """Call a function when a write transaction on PostgreSQL is known to be committed; otherwise never."""
    connection.info[_AFTER_COMMIT].append(call)


def insert(connection: AsyncConnection | Connection, table: Table) -> Any:
    """An INSERT that supports ON CONFLICT."""
    return insert_on("sqlite" if connection.dialect.name == "sqlite" else "postgresql", table)


def insert_on(dialect: Dialect, table: Table) -> Any:
    """An INSERT that supports ON CONFLICT."""
    return (sqlite if dialect == "sqlite" else postgresql).insert(table)


class TextSize(FunctionElement[int]):
    """The bytes of the texts in some columns, as they are stored (`stored_size`)."""

    type = BigInteger()
    inherit_cache = True


@compiles(TextSize)
def _octet_length(element: TextSize, compiler: SQLCompiler, **options: Any) -> str:
    # octet_length needs SQLite 3.43; PostgreSQL's length would decompress the text.
    size = "length(CAST({} AS BLOB))" if compiler.dialect.name == "sqlite" else "octet_length({})"
    columns = (size.format(compiler.process(column, **options)) for column in element.clauses)
    return f"({' + '.join(f'coalesce({each}, 0)' for each in columns)})"


def stored_size(value: str | bytes | memoryview | None) -> int:
    """The bytes of a value as passed to the driver."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    return 0 if value is None else len(value)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raises `Unavailable` for errors that a retry could solve (rule 3)."""
    try:
        yield
    except _errors() as error:
        reason = retryable_reason(error)
        if reason is None:
            raise
        raise Unavailable(reason) from error


def _errors() -> tuple[type[Exception], ...]:
    """Those that may be `Unavailable`: of SQLAlchemy, and of asyncpg if a connection ends while it is set up."""
    driver = sys.modules.get("asyncpg")  # not imported for SQLite
    of_driver = (driver.PostgresError, driver.InterfaceError, driver.InternalClientError) if driver else ()
    return (DBAPIError, PoolTimeout, InvalidRequestError, OSError, *of_driver)


def retryable_reason(error: Exception) -> str | None:
    """The reason for a failure, if a retry could succeed; else None."""
    if isinstance(error, InvalidRequestError):
        return str(error) if _ENDED in str(error) else None
    if not isinstance(error, DBAPIError):
        retryable = str(getattr(error, "sqlstate", None) or _RETRYABLE[0]).startswith(_RETRYABLE)
        return (str(error) or "it does not answer") if retryable else None
    cause: BaseException = error.orig or error
    # SQLAlchemy wraps asyncpg's errors twice.
    code = str(getattr(cause, "sqlstate", None) or getattr(cause.__cause__, "sqlstate", None) or "")
    reason = str(cause.__cause__ or cause).splitlines()[0] if str(cause) else "it does not answer"
    if code:
        return reason if code.startswith(_RETRYABLE) else None
    ended = error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
    return reason if ended or _is_ending(cause.__cause__) else None


def _is_ending(error: BaseException | None) -> bool:
    """Whether a statement came between the server's last words on a connection and its end."""
    driver = sys.modules.get("asyncpg")
    return driver is not None and isinstance(error, driver.InternalClientError)
