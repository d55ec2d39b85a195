"""Several PostgreSQL servers: writes go to the primary on the newest timeline, and count when the standby has them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi
from sqlalchemy.exc import InternalError

from a2a_canvas.server.backend.open_database import DatabaseError, open_database
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql import database as sql_database
from a2a_canvas.store.sql.database import Database, translate_errors
from a2a_canvas.store.sql.postgresql.primary import NoPrimary, ServerAnswer, choose, join_hosts, split_hosts
from tests.database_fixtures import cut_connections, execute
from tests.postgresql_pair import PostgresqlPair, cancel_waits, postgresql_pair, waits_for_standby
from tests.server.faults.server_processes import eventually

STANDBY = None


@pytest.mark.parametrize(
    ("timelines", "newest", "chosen"),
    [
        ([1], 0, "db0"),
        ([1, STANDBY], 1, "db0"),
        ([STANDBY, 1], 1, "db1"),
        ([1, 2], 0, "db1"),
        ([1, 2], 1, "db1"),
        ([2, 1, STANDBY], 2, "db0"),
        ([STANDBY, STANDBY], 1, None),
        ([1], 2, None),
        ([1, STANDBY], 2, None),
        ([], 1, None),
        ([0], 0, "db0"),
        ([0], 1, None),
    ],
)
def test_the_primary_on_the_newest_timeline_is_chosen(
    timelines: list[int | None], newest: int, chosen: str | None
) -> None:
    answers = [ServerAnswer(f"db{number}", timeline) for number, timeline in enumerate(timelines)]
    found = choose(answers, newest)
    assert (found and found.name) == chosen


def test_of_two_primaries_on_one_timeline_neither_is_chosen() -> None:
    with pytest.raises(NoPrimary, match=r"db1 and db2 are both primaries; stop the one without the current data"):
        choose([ServerAnswer("db2", 3), ServerAnswer("db1", 3), ServerAnswer("db3", 2)], 2)


def test_hosts_are_split_and_joined() -> None:
    url = "postgresql://me:s%40@db1:1,[::1]:2/canvas?sslmode=require"
    assert split_hosts(url) == ("postgresql://me:s%40@db1:1/canvas?sslmode=require", ["db1:1", "[::1]:2"])
    assert join_hosts(split_hosts(url)[0], ["db1:1", "[::1]:2"]) == url
    assert split_hosts("postgresql:///canvas?host=/run") == ("postgresql:///canvas?host=/run", [""])
    assert split_hosts("sqlite:////a/b@c,d.db")[0] == "sqlite:////a/b@c,d.db"


def test_a_database_is_named_with_all_hosts_and_without_its_password() -> None:
    database = Database("postgresql://me:secret@db1,db2:1/canvas?target_session_attrs=read-write")
    assert database.name == "postgresql://me:***@db1,db2:1/canvas?target_session_attrs=read-write"


# ------------------------------------------------------------------------ real servers


@pytest.fixture(scope="module")
def servers() -> Iterator[PostgresqlPair]:
    with postgresql_pair() as pair:
        yield pair


@pytest.fixture
def pair(servers: PostgresqlPair) -> PostgresqlPair:
    """A primary with a standby, whatever the test before has done to them."""
    if servers.standby is None:
        servers.add_standby()
    return servers


@pytest.fixture
async def database(pair: PostgresqlPair) -> AsyncIterator[Database]:
    opened = Database(pair.url(pair.primary.new_database()))
    async with opened.write() as connection:
        await connection.execute(text("CREATE TABLE words (word TEXT PRIMARY KEY)"))
    yield opened
    await opened.close()


async def put(database: Database, word: str) -> None:
    async with database.write() as connection:
        await connection.execute(text("INSERT INTO words VALUES (:word)"), {"word": word})


async def put_when_possible(database: Database, word: str) -> None:
    async def is_put() -> bool:
        with suppress(Unavailable):
            await put(database, word)
            return True
        return False

    await eventually(is_put)


async def words(database: Database) -> list[str]:
    async with database.read() as connection:
        return [*await connection.scalars(text("SELECT word FROM words ORDER BY word"))]


def words_on(server_url: str) -> list[str]:
    return [row["word"] for row in execute(server_url, "SELECT word FROM words ORDER BY word")]


@pytest.mark.postgres
async def test_after_a_failover_the_promoted_standby_is_used_and_a_returning_primary_refused(
    pair: PostgresqlPair, database: Database
) -> None:
    name = database.url.database or ""
    await put(database, "a")
    pair.fail_over()
    await put_when_possible(database, "b")
    assert pair.old
    pair.old.configure(synchronous_standby_names="")  # so that only we keep writes from it
    pair.old.start()
    cut_connections(pair.primary.url(name))
    await put_when_possible(database, "c")
    assert words_on(pair.primary.url(name)) == ["a", "b", "c"]
    pair.primary.stop()
    for _ in range(3):  # the first finds that its connection has ended
        refusals = await asyncio.gather(put(database, "d"), words(database), return_exceptions=True)
        assert [type(refusal) for refusal in refusals] == [Unavailable, Unavailable]
    assert all("is an old primary (timeline " in str(refusal) for refusal in refusals)
    pair.primary.start()
    await put_when_possible(database, "e")
    assert words_on(pair.primary.url(name)) == ["a", "b", "c", "e"]
    assert words_on(pair.old.url(name)) == ["a"]
    async with open_database(pair.url(pair.primary.url(name))) as another:  # it has seen no timeline, and asks both
        assert await words(another) == ["a", "b", "c", "e"]


@pytest.mark.postgres
async def test_a_primary_that_stands_still_is_left_when_the_other_is_promoted(
    pair: PostgresqlPair, database: Database
) -> None:
    """Its connections are cut, too: it could go on and accept what is lost."""
    name = database.url.database or ""
    await put(database, "a")
    with pytest.raises(Unavailable):
        async with database.read() as reading:
            await reading.execute(text("SELECT 1"))
            pair.primary.signal(signal.SIGSTOP)
            pair.promote()
            async with database.heartbeat() as connection:
                await connection.execute(text("INSERT INTO words VALUES ('b')"))
            assert pair.old
            pair.old.signal(signal.SIGCONT)
            await reading.execute(text("SELECT 1"))
    await put_when_possible(database, "c")
    assert await words(database) == words_on(pair.primary.url(name)) == ["a", "b", "c"]


@pytest.mark.postgres
async def test_a_standby_alone_is_refused_in_one_sentence_with_the_cure(pair: PostgresqlPair) -> None:
    assert pair.standby
    host = f"127.0.0.1:{pair.standby.port}"
    for options in ("", "?target_session_attrs=read-write"):
        url = f"{pair.standby.url()}{options}"
        with pytest.raises(DatabaseError) as caught:
            async with open_database(url):
                pass
        assert str(caught.value) == (
            f"The database postgresql://postgres@{host}/postgres{options} cannot be used: {host} is a standby, which "
            "accepts no writes. Name the primary in --database, too (HOST1:PORT,HOST2:PORT), or promote the standby."
        )


# ---------------------------------------------------------------- commits that wait


@asynccontextmanager
async def waiting_commit(pair: PostgresqlPair, database: Database) -> AsyncIterator[asyncio.Task[None]]:
    """A commit that waits for a standby that stands still."""
    assert pair.standby
    pair.standby.signal(signal.SIGSTOP)
    task = asyncio.create_task(put(database, "unknown"))

    async def waits() -> bool:
        return waits_for_standby(pair.primary.url()) > 0

    await eventually(waits)
    yield task


@pytest.mark.postgres
async def test_a_commit_whose_wait_for_the_standby_is_cancelled_is_unknown(
    pair: PostgresqlPair, database: Database
) -> None:
    """The server says that it is committed, with a warning; but it may be so on the old primary alone."""
    name = database.url.database or ""
    async with waiting_commit(pair, database) as waiting:
        cancel_waits(pair.primary.url())
        with pytest.raises(Unavailable, match="the standby has not confirmed a commit"):
            await waiting
    assert words_on(pair.primary.url(name)) == ["unknown"]
    pair.kill_primary()
    pair.restart_standby()
    pair.promote()
    assert words_on(pair.primary.url(name)) == []
    await put_when_possible(database, "unknown")
    assert await words(database) == ["unknown"]


@pytest.mark.postgres
@pytest.mark.parametrize("ended_by", ["its caller", "its limit"])
async def test_a_commit_that_is_given_up_stays_invisible_until_the_standby_has_it(
    pair: PostgresqlPair, database: Database, ended_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_database, "COMMIT_SHARE", 0.05 if ended_by == "its limit" else 1.0)
    async with waiting_commit(pair, database) as waiting:
        if ended_by == "its caller":
            waiting.cancel()
        with pytest.raises((Unavailable, asyncio.CancelledError)):
            await waiting
    assert pair.standby
    assert await words(database) == []
    pair.standby.signal(signal.SIGCONT)

    async def is_visible() -> bool:
        return await words(database) == ["unknown"]

    await eventually(is_visible)


@pytest.mark.postgres
async def test_while_no_standby_confirms_few_connections_wait_for_one_and_reads_go_on(
    pair: PostgresqlPair, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pair.standby
    await put(database, "before")
    monkeypatch.setattr(sql_database, "COMMIT_SHARE", 0.01)
    pair.standby.signal(signal.SIGSTOP)
    for number in range(10):
        with pytest.raises(Unavailable, match=r"in the middle of operation|no standby confirms its commits"):
            await put(database, f"{number}")
    assert waits_for_standby(pair.primary.url()) == 1
    assert await words(database) == ["before"]
    monkeypatch.undo()
    pair.standby.signal(signal.SIGCONT)
    await put_when_possible(database, "after")
    assert await words(database) == ["0", "after", "before"]


async def test_a_statement_after_the_last_words_of_a_server_is_tried_again() -> None:
    error = AsyncAdapt_asyncpg_dbapi.InternalClientError(
        "cannot switch to state 12; another operation (2) is in progress"
    )
    error.__cause__ = asyncpg.InternalClientError(str(error))
    with pytest.raises(Unavailable), translate_errors():
        raise InternalError("SELECT 1", None, error)
    with pytest.raises(InternalError), translate_errors():
        raise InternalError("SELECT 1", None, AsyncAdapt_asyncpg_dbapi.InternalServerError("out of memory"))
