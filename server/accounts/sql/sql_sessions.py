"""Sessions that have ended before their time, in a database.

Rule 1: a row without a session's id ends all sessions of its user that began before it.
Rule 2: a row is removed when it is older than any session: when another one is added.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Column, Select, Table, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.browser_session import SESSION_LIMIT, BrowserSession
from a2a_canvas.server.accounts.sql.access_reads import AccessReads, answer_columns
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
_ENDED = "ended session"


class SqlEndedSessions:
    """`EndedSessions` of a table.

    Args:
        clock: seconds, for the age of what is in memory.
        reads: of the checks of streams; its own if it is None.
        revoked: called when a session has ended.
    """

    def __init__(
        self,
        database: Database,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
        reads: AccessReads | None = None,
        revoked: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._now = now
        self._reads = reads or AccessReads(database, clock)
        self._reads.add(_ENDED, _choose)
        self._revoked = revoked

    async def has(self, session: BrowserSession) -> bool:
        for _, _, session_id, *_, ended_at, _ in await self._reads.get(_ENDED, session.user):
            if session_id == session.session_id or (session_id == _ALL and ended_at >= session.began_at * 1_000_000):
                return True
        return False

    async def add(self, session: BrowserSession) -> None:
        async with self._database.write() as connection:
            await _add(connection, session.user, session.session_id, self._now())
        self._reads.clear()
        self._revoked()


def _choose(users: Collection[str]) -> Select[Any]:
    """The ended sessions of users, as answers."""
    texts = [ended_sessions.c.user_name, ended_sessions.c.session_id]
    columns = answer_columns(_ENDED, texts, [ended_sessions.c.ended_at])
    return select(*columns).where(ended_sessions.c.user_name.in_(users))


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
