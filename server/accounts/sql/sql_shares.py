"""Shares in a database.

Rule 1: what was added or revoked has its effect on every server within the MAX_AGE of `recent_reads.py`.
Rule 2: a share expires by the clock of the server that is asked, also while it is in memory. Its row is removed when
        its context is shared again, a day later, or with its context.
Rule 3: a context is locked while a share of it is added, so that none is left when the context is removed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Index,
    Row,
    Select,
    Table,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.access import Caller, Level, Share
from a2a_canvas.server.accounts.errors import ContextNotFound
from a2a_canvas.server.accounts.sql.access_reads import AccessReads, answer_columns
from a2a_canvas.server.accounts.sql.recent_reads import RecentReads
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.database import Database, TextSize
from a2a_canvas.store.sql.kept import add_kept, delete_expired
from a2a_canvas.store.sql.readable_rows import ReadableRows
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata, without_shard
from a2a_canvas.store.sql.times import from_microseconds, to_microseconds

shares = Table(
    "shares",
    metadata,
    Column("share_id", Text, primary_key=True),
    Column("context_id", ContextKeyText, nullable=False),  # the context's key
    Column("owner", Text, nullable=False),
    Column("level", Text, nullable=False),  # the word of a `Level`
    Column("made_at", BigInteger, nullable=False),
    Column("user_name", Text, nullable=False),  # empty for a link
    Column("token_hash", Text, nullable=False),  # empty for a user
    Column("expires_at", BigInteger),  # null for never
    Index("shares_by_context", "context_id"),  # its list, and the removal of a context
    Index("shares_by_user", "user_name"),  # what a caller may see
    Index("shares_by_token", "token_hash"),  # a link
)

SHARE_SIZE = TextSize(*(shares.c[name] for name in ("share_id", "context_id", "owner", "user_name", "token_hash")))

_OF_USER, _OF_LINK = "share of user", "share of link"
"""Kinds of questions."""

EXPIRED_FOR = timedelta(days=1)
"""How long the row of an expired share stays."""

Found = tuple[Share, ...]


class SqlShares:
    """`Shares` of a table.

    Args:
        lock_context: keeps a context from being removed in a transaction; False if there is none.
        clock: seconds, for the age of what is in memory.
        reads: of the checks of streams; its own if it is None.
        revoked: called when shares have changed.
    """

    def __init__(
        self,
        database: Database,
        lock_context: Callable[[AsyncConnection, ContextKey], Awaitable[bool]],
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
        reads: AccessReads | None = None,
        revoked: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._lock_context = lock_context
        self._now = now
        self._recent = RecentReads(self._with_token, clock)
        self._reads = reads or AccessReads(database, clock)
        self._reads.add(_OF_USER, partial(_choose, _OF_USER, shares.c.user_name))
        self._reads.add(_OF_LINK, partial(_choose, _OF_LINK, shares.c.share_id))
        self._revoked = revoked
        self._readable = ReadableRows("share", clock)

    async def for_caller(self, caller: Caller) -> Found:
        if not (caller.link or caller.name):
            return ()
        question = (_OF_LINK, caller.link) if caller.link else (_OF_USER, caller.name)
        found = self._readable.decode(await self._reads.get(*question), _share_of_answer)
        return self._in_force(tuple(sorted(found, key=lambda share: (share.made_at, share.share_id))))

    async def link(self, token_hash: str) -> Share | None:
        found = self._in_force(await self._recent.get(token_hash))
        return found[0] if found else None

    async def list(self, context: ContextKey) -> Found:
        return self._in_force(await self._with(("context_id", context)))

    async def add(self, share: Share) -> None:
        over = shares.c.expires_at <= to_microseconds(self._now())
        same = and_(shares.c.user_name == share.user, shares.c.user_name != "")
        replaced = and_(shares.c.context_id == share.context, or_(over, same))
        async with self._database.write() as connection:
            if not await self._lock_context(connection, share.context):
                raise ContextNotFound(share.context)
            freed = sum(await connection.scalars(delete(shares).where(replaced).returning(SHARE_SIZE)))
            added = await connection.scalar(insert(shares).values(_row_of(share)).returning(SHARE_SIZE)) or 0
            await connection.run_sync(add_kept, {share.context: added - freed})
        self._announce_change()

    async def revoke(self, context: ContextKey, share_id: str) -> bool:
        this = shares.c.context_id == context, shares.c.share_id == share_id
        async with self._database.write() as connection:
            freed = await connection.scalar(delete(shares).where(*this).returning(SHARE_SIZE))
            await connection.run_sync(add_kept, {context: -(freed or 0)})
        self._announce_change()
        return freed is not None

    def forget(self) -> None:
        """Believe nothing that was read before."""
        self._recent.clear()
        self._reads.clear()

    def _announce_change(self) -> None:
        self.forget()
        self._revoked()

    async def givers(self, user: str) -> Mapping[str, int]:
        in_force = or_(shares.c.expires_at.is_(None), shares.c.expires_at > to_microseconds(self._now()))
        query = select(shares.c.owner, func.count()).where(shares.c.user_name == user, in_force)
        async with self._database.read() as connection:
            return {owner: number for owner, number in await connection.execute(query.group_by(shares.c.owner))}

    async def _with_token(self, token_hash: str) -> Found:
        return await self._with(("token_hash", token_hash))

    async def _with(self, wanted: tuple[str, str]) -> Found:
        """The shares with a value in a column."""
        column, value = wanted
        query = select(shares).where(shares.c[column] == value).order_by(shares.c.made_at, shares.c.share_id)
        async with self._database.read() as connection:
            return tuple(self._readable.decode(await connection.execute(query), _share_of))

    def _in_force(self, found: Found) -> Found:
        now = self._now()
        return tuple(share for share in found if share.in_force(now))


def _choose(kind: str, by: ColumnElement[str], names: Collection[str]) -> Select[Any]:
    """The shares with one of these names in a column, as answers."""
    texts = [by, shares.c.share_id, shares.c.context_id, shares.c.owner, shares.c.level, shares.c.user_name]
    columns = answer_columns(kind, [*texts, shares.c.token_hash], [shares.c.made_at, shares.c.expires_at])
    return select(*columns).where(by.in_(names))


def _share_of_answer(row: Any) -> Share:
    _, _, share_id, context, owner, level, user, token_hash, made_at, expires_at = row
    expires = None if expires_at is None else from_microseconds(expires_at)
    key = ContextKey(without_shard(context))
    return Share(share_id, key, owner, Level.from_word(level), from_microseconds(made_at), user, token_hash, expires)


def _row_of(share: Share) -> dict[str, Any]:
    return {
        "share_id": share.share_id,
        "context_id": share.context,
        "owner": share.owner,
        "level": share.level.word,
        "made_at": to_microseconds(share.made_at),
        "user_name": share.user,
        "token_hash": share.token_hash,
        "expires_at": None if share.expires_at is None else to_microseconds(share.expires_at),
    }


def _share_of(row: Row[Any]) -> Share:
    expires_at = None if row.expires_at is None else from_microseconds(row.expires_at)
    made_at = from_microseconds(row.made_at)
    return Share(
        row.share_id,
        row.context_id,
        row.owner,
        Level.from_word(row.level),
        made_at,
        row.user_name,
        row.token_hash,
        expires_at,
    )


async def prune_shares(database: Database, now: datetime) -> None:
    """Delete the shares that expired long ago."""
    old = shares.c.expires_at < to_microseconds(now - EXPIRED_FOR)
    await delete_expired(database, shares.c.share_id, old, SHARE_SIZE)
