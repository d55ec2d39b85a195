"""Sessions that have ended before their time, in a database.

Rule 1: a row without a session's id ends all sessions of its user that began before it.
Rule 2: a row is removed when it is older than any session: when another one is added.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, Column, Table, and_, delete, exists, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.browser_session import SESSION_LIMIT, BrowserSession
from a2a_canvas.server.accounts.sql.recent_reads import RecentReads
from a2a_canvas.store.sql.database import Database, insert
from a2a_canvas.store.sql.tables import Text, metadata
from a2a_canvas.store.sql.times import to_microseconds

ended_sessions = Table(
    "ended_sessions",  # of browsers, before their time
    metadata,
    Column("user_name", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),  # empty for all of the user that began until then
    Column("ended_at", BigInteger, nullable=False),
)

_ALL = ""
_Key = tuple[str, str, int]


class SqlEndedSessions:
    """`EndedSessions` of a table.

    Args:
        clock: seconds, for the age of what is in memory.
    """

    def __init__(
        self, database: Database, now: Callable[[], datetime], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._now = now
        self._recent = RecentReads(self._has, clock)

    async def has(self, session: BrowserSession) -> bool:
        return await self._recent.get((session.user, session.session_id, session.began_at))

    async def add(self, session: BrowserSession) -> None:
        async with self._database.write() as connection:
            await _add(connection, session.user, session.session_id, self._now())
        self._recent.clear()

    async def _has(self, key: _Key) -> bool:
        user, session_id, began_at = key
        all_of_them = and_(ended_sessions.c.session_id == _ALL, ended_sessions.c.ended_at >= began_at * 1_000_000)
        ended = or_(ended_sessions.c.session_id == session_id, all_of_them)
        async with self._database.read() as connection:
            return bool(await connection.scalar(select(exists().where(ended_sessions.c.user_name == user, ended))))


async def end_sessions_of(database: Database, user: str, now: datetime) -> None:
    """End all sessions of a user that have begun.

    Raises:
        Unavailable: the database cannot be used now.
    """
    async with database.write() as connection:
        await _add(connection, user, _ALL, now)


async def _add(connection: AsyncConnection, user: str, session_id: str, now: datetime) -> None:
    over = ended_sessions.c.ended_at < to_microseconds(now - timedelta(seconds=SESSION_LIMIT))
    await connection.execute(delete(ended_sessions).where(over))
    row = {"user_name": user, "session_id": session_id, "ended_at": to_microseconds(now)}
    keys = ["user_name", "session_id"]
    added = insert(connection, ended_sessions).values(row)
    await connection.execute(added.on_conflict_do_update(index_elements=keys, set_={"ended_at": row["ended_at"]}))
