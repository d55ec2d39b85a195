"""API keys in a database.

Rule 1: a key that was made or revoked has its effect on every server within the MAX_AGE of `recent_reads.py`: then what
        is in memory is compared with the table. Without the database there is no answer.
Rule 2: a key of the reserved user is refused: it would open what everyone with the shared token has. None is made, but
        a database may have one from before the name was reserved. The log names it.
Rule 3: no row is deleted, and none is revoked twice: so the number of rows, and that of revoked ones, tell every
        change, and what a key did can be traced to its user.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Row, Select, Table, func, insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.api_key import NO_KEYS, SHARED_USER, ApiKey, KeyCount
from a2a_canvas.server.accounts.sql.access_reads import AccessReads, answer_columns
from a2a_canvas.server.accounts.sql.recent_reads import RecentReads
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.readable_rows import ReadableRows
from a2a_canvas.store.sql.tables import Text, metadata
from a2a_canvas.store.sql.times import from_microseconds, to_microseconds

logger = logging.getLogger(__name__)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_hash", Text, primary_key=True),  # of the key there is nothing else
    Column("name", Text, nullable=False),
    Column("user_name", Text, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),  # null while it is in force
)

_READABLE = ReadableRows("API key")
_COUNTS = "number of keys"
_HOW_MANY = func.count(), func.count(api_keys.c.revoked_at)


class SqlApiKeys:
    """`ApiKeys` of a table (rule 1).

    Args:
        clock: seconds, for the age of what is in memory.
        reads: of the checks of streams; its own if it is None.
    """

    def __init__(
        self, database: Database, clock: Callable[[], float] = time.monotonic, reads: AccessReads | None = None
    ) -> None:
        self._database = database
        self._last: tuple[KeyCount, Mapping[str, ApiKey]] = NO_KEYS, {}
        self._reads = reads or AccessReads(database, clock)
        self._reads.add(_COUNTS, _choose_counts)
        # What counts is the age of the counts.
        self._recent = RecentReads(self._read, clock, lambda took: 0.0, single_flight=True)

    async def find(self, key_hash: str) -> ApiKey | None:
        _, in_force = await self._recent.get(None)
        return in_force.get(key_hash)

    async def exist(self) -> bool:
        counts, _ = await self._recent.get(None)
        return counts.made > 0

    async def _read(self, _: None) -> tuple[KeyCount, Mapping[str, ApiKey]]:
        """How many there are, and those in force, by hash."""
        [(*_, made, revoked)] = await self._reads.get(_COUNTS, "")
        if _count_of(made, revoked) != self._last[0]:
            async with self._database.read() as connection:
                counts = await count_keys(connection)
                in_force = (key for key in await _all(connection) if key.revoked_at is None)
                self._last = counts, {key.key_hash: key for key in in_force if not _is_reserved(key)}
        return self._last


def _is_reserved(key: ApiKey) -> bool:
    """Whether a key has the user of the shared token (`api_key.py`); the log says that it is refused."""
    if key.user != SHARED_USER:
        return False
    logger.warning(
        "The API key %s is rejected: its user %r is reserved for holders of the shared token. Run a2a-canvas key "
        "revoke %s, and create a key for another user.",
        *(key.name, SHARED_USER, key.name),
    )
    return True


async def count_keys(connection: AsyncConnection) -> KeyCount:
    """How many there are."""
    found = await connection.execute(select(*_HOW_MANY).select_from(api_keys))
    return _count_of(*found.one())


def _count_of(made: int, revoked: int) -> KeyCount:
    return KeyCount(made, made - revoked)


def _choose_counts(_: Collection[str]) -> Select[Any]:
    """How many keys there are, as an answer."""
    return select(*answer_columns(_COUNTS, [literal("")], _HOW_MANY)).select_from(api_keys)


async def list_keys(database: Database) -> list[ApiKey]:
    """All keys, the oldest first.

    Raises:
        Unavailable: the database cannot be used now.
    """
    async with database.read() as connection:
        return await _all(connection)


async def add_key(database: Database, key: ApiKey) -> bool:
    """Store a new key; False if one with its name is in force, and nothing was done.

    Raises:
        Unavailable: the database cannot be used now.
    """
    assert key.made_at
    async with database.write() as connection:
        same_name = api_keys.c.name == key.name, api_keys.c.revoked_at.is_(None)
        if await connection.scalar(select(func.count()).select_from(api_keys).where(*same_name)):
            return False
        row = {"key_hash": key.key_hash, "name": key.name, "user_name": key.user}
        await connection.execute(insert(api_keys).values(**row, made_at=to_microseconds(key.made_at)))
    return True


async def revoke_key(database: Database, name: str, now: datetime) -> bool:
    """Revoke the key of this name; whether one was in force.

    Raises:
        Unavailable: the database cannot be used now.
    """
    in_force = update(api_keys).where(api_keys.c.name == name, api_keys.c.revoked_at.is_(None))
    async with database.write() as connection:
        return bool((await connection.execute(in_force.values(revoked_at=to_microseconds(now)))).rowcount)


async def _all(connection: AsyncConnection) -> list[ApiKey]:
    rows = await connection.execute(select(api_keys).order_by(api_keys.c.made_at, api_keys.c.name))
    return _READABLE.decode(rows, _key)


def _key(row: Row[Any]) -> ApiKey:
    revoked_at = None if row.revoked_at is None else from_microseconds(row.revoked_at)
    return ApiKey(row.name, row.user_name, row.key_hash, from_microseconds(row.made_at), revoked_at)
