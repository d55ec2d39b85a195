"""Databases: transactions, and which errors another try could mend."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError, InvalidRequestError, ProgrammingError

from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.database import Database, translate_errors
from tests.database_fixtures import cut_connections, execute, postgresql_url, private_postgresql, sqlite_url


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(sqlite_url(tmp_path) if request.param == "sqlite" else postgresql_url())
    async with opened.write() as connection:
        await connection.execute(text("CREATE TABLE words (word TEXT PRIMARY KEY)"))
    yield opened
    await opened.close()


Putting = Callable[..., Coroutine[None, None, None]]

INSERT = text("INSERT INTO words VALUES (:word)")


async def put(database: Database, *words: str) -> None:
    async with database.write() as connection:
        for word in words:
            await connection.execute(INSERT, {"word": word})


async def transact(database: Database, *words: str) -> None:
    def put(connection: Connection) -> None:
        for word in words:
            connection.execute(INSERT, {"word": word})

    await database.transact(put)


@pytest.fixture(params=[put, transact])
def putting(request: pytest.FixtureRequest) -> Putting:
    """Both ways to write."""
    way: Putting = request.param
    return way


async def words(database: Database) -> list[str]:
    async with database.read() as connection:
        return [*await connection.scalars(text("SELECT word FROM words ORDER BY word"))]


async def test_a_transaction_is_written_whole_or_not_at_all(database: Database, putting: Putting) -> None:
    await putting(database, "a", "b")
    with pytest.raises(IntegrityError):
        await putting(database, "c", "a")
    assert await words(database) == ["a", "b"]


async def check_one_state(database: Database, new: str) -> None:
    """What is written during a read is not seen by it."""
    before = await words(database)
    async with database.read() as connection:
        for _ in range(2):
            assert [*await connection.scalars(text("SELECT word FROM words ORDER BY word"))] == before
            await put(database, new)
            new += new
    assert len(await words(database)) == len(before) + 2


async def test_a_read_sees_one_state_whatever_is_written_meanwhile(database: Database) -> None:
    await put(database, "a")
    await check_one_state(database, "b")


@pytest.mark.postgres
async def test_reads_that_need_not_see_one_state_have_no_begin() -> None:
    database = Database(postgresql_url())
    begun: dict[str, list[str]] = {"read": [], "read_at_once": []}
    for name, asked in begun.items():

        def log(query: Any, asked: list[str] = asked) -> None:
            asked.append(query.query)

        async with getattr(database, name)() as connection:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            driver.add_query_logger(log)
            assert await connection.scalar(text("SELECT 1")) == 1
        await asyncio.sleep(0)  # the log is called by the loop
        driver.remove_query_logger(log)
    assert begun == {"read": ["BEGIN ISOLATION LEVEL REPEATABLE READ;", "COMMIT;"], "read_at_once": []}
    await database.close()


async def test_what_is_read_at_once_is_there_and_the_next_read_sees_one_state(database: Database) -> None:
    await put(database, "a")
    async with database.read_at_once() as connection:
        assert [*await connection.scalars(text("SELECT word FROM words"))] == ["a"]
    await check_one_state(database, "b")


async def test_many_write_and_read_at_once_and_none_finds_it_locked(database: Database) -> None:
    both = [way(database, f"{way.__name__} {number}") for number in range(15) for way in (put, transact)]
    await asyncio.gather(*both, *(words(database) for _ in range(30)))
    assert len(await words(database)) == 30


async def test_a_database_can_be_used_again_after_it_was_closed(database: Database, putting: Putting) -> None:
    await putting(database, "a")
    await database.close()
    await putting(database, "b")
    assert await words(database) == ["a", "b"]


@pytest.mark.postgres
async def test_a_fault_of_ours_passes_as_it_is() -> None:
    database = Database(postgresql_url())
    with pytest.raises(ProgrammingError, match="nowhere"):
        async with database.read() as connection:
            await connection.execute(text("SELECT * FROM nowhere"))
    await database.close()


async def test_the_statements_of_a_transaction_run_where_their_values_are_changed(database: Database) -> None:
    """In the thread of the event loop: it goes on to change what their values share, such as the texts of drafts."""
    assert await database.transact(lambda _: threading.get_ident()) == threading.get_ident()


async def test_a_cancelled_transaction_leaves_nothing_behind(database: Database, putting: Putting) -> None:
    for steps in range(0, 60, 3):
        writing = asyncio.create_task(putting(database, f"a{steps}", f"b{steps}"))
        for _ in range(steps):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])
    found = await words(database)
    assert [word[1:] for word in found if word[0] == "a"] == [word[1:] for word in found if word[0] == "b"]
    await put(database, "c")


async def test_a_database_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/none/file.db", "postgresql://nobody@127.0.0.1:1/none"):
        database = Database(url)
        with pytest.raises(Unavailable):
            await put(database, "a")
        await database.close()


async def test_a_full_disk_is_unavailable_and_can_be_mended(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    async with database.write() as connection:
        await connection.execute(text("CREATE TABLE words (word TEXT PRIMARY KEY)"))
        await connection.exec_driver_sql("PRAGMA max_page_count = 10")
    with pytest.raises(Unavailable, match="full"):
        await put(database, "x" * 100_000)
    await put(database, "a")
    async with database.write() as connection:
        await connection.exec_driver_sql("PRAGMA max_page_count = 1000")
    await put(database, "x" * 100_000)
    assert len(await words(database)) == 2
    await database.close()


@pytest.mark.postgres
async def test_cut_connections_are_made_again() -> None:
    url = postgresql_url()
    database = Database(url)
    async with database.write() as connection:
        await connection.execute(text("CREATE TABLE words (word TEXT PRIMARY KEY)"))
    with pytest.raises(Unavailable):
        async with database.write() as connection:
            cut_connections(url)
            await connection.execute(text("INSERT INTO words VALUES ('a')"))
    await put(database, "b")
    assert await words(database) == ["b"]
    await database.close()


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("refuse", "admit"),
    [
        ("ALTER ROLE visitor NOLOGIN", "ALTER ROLE visitor LOGIN"),
        ("ALTER DATABASE words ALLOW_CONNECTIONS false", "ALTER DATABASE words ALLOW_CONNECTIONS true"),
        ("ALTER DATABASE words RENAME TO others", "ALTER DATABASE others RENAME TO words"),
    ],
    ids=["role", "closed", "missing"],
)
async def test_a_server_that_lets_nobody_in_is_unavailable_meanwhile(refuse: str, admit: str) -> None:
    with private_postgresql(fsync="off") as server:
        for statement in ("CREATE ROLE visitor LOGIN", "CREATE DATABASE words OWNER visitor", refuse):
            execute(server.url(), statement)
        database = Database(server.url("words").replace("postgres@", "visitor@"))
        for work in (put(database, "a"), transact(database, "a"), words(database)):
            with pytest.raises(Unavailable):
                await work
        execute(server.url(), admit)
        async with database.read() as connection:
            assert await connection.scalar(text("SELECT 1")) == 1
        await database.close()


@pytest.mark.postgres
async def test_a_server_that_stops_and_starts_is_unavailable_meanwhile() -> None:
    with private_postgresql(fsync="off") as server:
        database = Database(server.url())
        async with database.write() as connection:
            await connection.execute(text("CREATE TABLE words (word TEXT PRIMARY KEY)"))
        server.stop()
        for _ in range(3):
            with pytest.raises(Unavailable):
                await put(database, "a")
        server.start()
        tries = [await asyncio.gather(put(database, str(number)), return_exceptions=True) for number in range(3)]
        assert tries[-1] == [None]
        await database.close()


@pytest.mark.parametrize(
    ("error", "unavailable"),
    [
        (asyncpg.AdminShutdownError("terminating connection"), True),
        (asyncpg.InterfaceError("connection is closed"), True),
        (asyncpg.InternalClientError("another operation is in progress"), True),
        (InvalidRequestError("This connection is closed"), True),
        (InvalidRequestError("A transaction is already begun"), False),
        (asyncpg.UndefinedTableError("no such table"), False),
    ],
)
def test_a_connection_that_ends_while_it_is_set_up_is_unavailable(error: Exception, unavailable: bool) -> None:
    with pytest.raises(Unavailable if unavailable else type(error)), translate_errors():
        raise error


def test_a_password_is_never_shown() -> None:
    database = Database("postgresql://user:secret@127.0.0.1:1/name")
    assert "secret" not in database.name
    assert database.dialect == "postgresql"


async def test_a_connection_that_is_made_as_its_caller_is_cancelled_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = asyncio.Event()

    class Driver:
        def terminate(self) -> None:
            cut.set()

    async def connect(**options: object) -> Driver:
        caller.cancel()
        return Driver()

    monkeypatch.setattr("asyncpg.connect", connect)
    database = Database("postgresql://nobody@127.0.0.1:1/none")
    caller = asyncio.create_task(database._connect())
    with pytest.raises(asyncio.CancelledError):
        await caller
    await asyncio.wait_for(cut.wait(), 5)
    await database.close()


@pytest.mark.postgres
@pytest.mark.parametrize("connections", [6, 15])
async def test_a_process_has_no_more_connections_to_postgresql_than_it_may(connections: int) -> None:
    database = Database(postgresql_url(), connections)
    count = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    seen: list[int] = []

    async def use(transaction: Callable[[], Any]) -> None:
        async with transaction() as connection:
            seen.append((await connection.execute(count)).scalar_one())

    ways = (database.read, database.read_at_once, database.write, database.heartbeat)
    try:
        await asyncio.gather(*(use(way) for way in ways * 20))
        assert max(seen) == connections
    finally:
        await database.close()
