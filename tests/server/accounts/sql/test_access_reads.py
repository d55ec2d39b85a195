"""However many streams ask whether their share, session and key are in force, the database is asked once a second."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import event

from a2a_canvas.server.accounts.access import Caller, Level, Share
from a2a_canvas.server.accounts.api_key import ApiKey
from a2a_canvas.server.accounts.browser_session import BrowserSession
from a2a_canvas.server.accounts.sql.access_reads import AccessReads
from a2a_canvas.server.accounts.sql.recent_reads import MAX_AGE
from a2a_canvas.server.accounts.sql.sql_api_keys import SqlApiKeys, add_key, revoke_key
from a2a_canvas.server.accounts.sql.sql_sessions import SqlEndedSessions
from a2a_canvas.server.accounts.sql.sql_shares import SqlShares
from a2a_canvas.store.ids import context_key
from a2a_canvas.store.sql.database import Database
from tests.fakes import Seconds

NOW = datetime(2026, 1, 1, tzinfo=UTC)
USERS = [f"user{number}" for number in range(20)]


class World:
    """The stores of a server."""

    def __init__(self, database: Database) -> None:
        self.clock, self.asked = Seconds(), list[str]()
        self.database = database
        reads = AccessReads(database, self.clock)
        self.shares = SqlShares(database, has_context, lambda: NOW, self.clock, reads)
        self.sessions = SqlEndedSessions(database, lambda: NOW, self.clock, reads)
        self.keys = SqlApiKeys(database, self.clock, reads)
        event.listen(
            database._reader.sync_engine,
            "before_cursor_execute",
            lambda _, __, statement, *___: self.asked.append(statement),
        )

    async def check_all(self) -> list[tuple[int, bool, bool]]:
        """What the streams of all users find: their shares, whether the session has ended, and the key is in force."""
        found = []
        for user in USERS:
            shares = await self.shares.for_caller(Caller(user))
            ended = await self.sessions.has(session_of(user))
            found.append((len(shares), ended, await self.keys.find(f"hash of {user}") is not None))
            link = await self.shares.for_caller(Caller(link=f"link of {user}"))
            assert len(link) == 1
        return found


def session_of(user: str) -> BrowserSession:
    began_at = int(NOW.timestamp()) - 1
    return BrowserSession(f"session of {user}", user, began_at, began_at + 1000)


async def has_context(connection: object, context: str) -> bool:
    return True


async def test_the_checks_of_all_streams_are_one_query_a_second_and_find_every_change(database: Database) -> None:
    world = World(database)
    for user in USERS:
        key = context_key("ann", "c")
        await world.shares.add(Share(f"share of {user}", key, "ann", Level.READ, NOW, user))
        await world.shares.add(Share(f"link of {user}", key, "ann", Level.READ, NOW, token_hash=user))
        await add_key(database, ApiKey(user, user, f"hash of {user}", NOW))
    other = World(database)
    await world.check_all()
    assert await world.check_all() == [(1, False, True)] * len(USERS)
    for _ in range(3):
        world.asked.clear()
        world.clock.now += MAX_AGE
        await world.check_all()
        assert len(world.asked) == 1
    await other.shares.revoke(key, "share of user3")
    await other.sessions.add(session_of("user4"))
    await revoke_key(database, "user5", NOW)
    world.clock.now += MAX_AGE
    expected = {3: (0, False, True), 4: (1, True, True), 5: (1, False, False)}
    assert await world.check_all() == [expected.get(number, (1, False, True)) for number in range(len(USERS))]
