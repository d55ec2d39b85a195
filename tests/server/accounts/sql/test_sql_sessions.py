"""Sessions that have ended, as several servers of a database see them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select

from a2a_canvas.server.accounts.browser_session import SESSION_LIMIT, BrowserSession, new_session
from a2a_canvas.server.accounts.sql.recent_reads import MAX_AGE
from a2a_canvas.server.accounts.sql.sql_sessions import SqlEndedSessions, end_sessions_of, ended_sessions
from a2a_canvas.store.sql.database import Database

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Servers:
    """Two servers of a database, which have just looked."""

    def __init__(self, database: Database) -> None:
        self.seconds = 0.0
        self.now = NOW
        self.all = [SqlEndedSessions(database, lambda: self.now, lambda: self.seconds) for _ in range(2)]

    async def know(self, session: BrowserSession) -> list[bool]:
        return [await server.has(session) for server in self.all]


def session(user: str = "ann", began: datetime = NOW) -> BrowserSession:
    return new_session(user, began.timestamp())


async def test_one_that_ends_is_known_at_once_to_its_server_and_in_a_moment_to_the_others(database: Database) -> None:
    servers, ended, other = Servers(database), session(), session()
    assert await servers.know(ended) == [False, False]
    await servers.all[0].add(ended)
    assert await servers.know(ended) == [True, False]
    servers.seconds += MAX_AGE
    assert await servers.know(ended) == [True, True]
    assert await servers.know(other) == [False, False]
    await servers.all[1].add(ended)


async def test_an_id_of_another_user_is_another_session(database: Database) -> None:
    servers, ended = Servers(database), session()
    await servers.all[0].add(ended)
    assert await servers.know(replace(ended, user="joe")) == [False, False]


async def test_all_of_a_user_end_but_for_those_that_begin_later(database: Database) -> None:
    before, same, after = session(began=NOW - timedelta(days=1)), session(), session(began=NOW + timedelta(seconds=1))
    await end_sessions_of(database, "ann", NOW)
    servers = Servers(database)
    assert [await servers.know(each) for each in (before, same, after)] == [[True] * 2, [True] * 2, [False] * 2]
    assert await servers.know(session("joe")) == [False, False]
    await end_sessions_of(database, "ann", NOW + timedelta(seconds=1))
    servers.seconds += MAX_AGE
    assert await servers.know(after) == [True, True]


async def test_what_is_older_than_any_session_is_removed(database: Database) -> None:
    servers = Servers(database)
    await servers.all[0].add(session())
    servers.now += timedelta(seconds=SESSION_LIMIT + 1)
    await servers.all[0].add(session())
    async with database.read() as connection:
        assert await connection.scalar(select(func.count()).select_from(ended_sessions)) == 1
