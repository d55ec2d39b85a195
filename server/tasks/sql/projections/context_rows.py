"""The contexts: how many tasks and artifact changes each has had, which numbers the next ones; and the removed ones.

Rule 1: a new row gets a new incarnation, because the context may have been removed before.
Rule 2: of a removed context whose id can be shared with users a hash of its key stays (`access.py`, rule 5).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Column, Connection, Integer, Table, false, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.access import KnownContexts
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit, StagedTask
from a2a_canvas.store.ids import ContextKey, is_unique, public_id, shard_of
from a2a_canvas.store.models import new_incarnation
from a2a_canvas.store.sql.database import Dialect, insert
from a2a_canvas.store.sql.row_statement import upsert
from a2a_canvas.store.sql.tables import ContextKeyText, Text, incarnation, metadata, with_shard
from a2a_canvas.store.sql.times import to_microseconds

contexts = Table(
    "contexts",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("tasks", Integer, nullable=False),  # number of tasks that it ever had
    Column("position", BigInteger, nullable=False),  # of its newest `ContextChange`
    Column("changed_at", BigInteger, nullable=False),
    incarnation(),
)

removed_contexts = Table(
    "removed_contexts",  # the ids that users have used (`access.py`, rule 5), without a way back to them
    metadata,
    Column("key_hash", Text, primary_key=True),
)


@cache
def _count_changes(dialect: Dialect) -> Any:
    """Adds tasks and changes to contexts; returns the sums and the incarnations."""
    added = upsert(contexts, ["changed_at"], ["tasks", "position"])(dialect)
    return added.returning(contexts.c.context_id, contexts.c.tasks, contexts.c.position, contexts.c.incarnation)


def write(connection: Connection, commit: JournalCommit) -> None:
    """Count new tasks and changes, and give them their places."""
    by_context: defaultdict[ContextKey, list[StagedTask]] = defaultdict(list)
    for each in commit.tasks:
        by_context[each.context_id].append(each)
    added = {
        context_id: (sum(each.batch.created is not None for each in some), sum(each.changes for each in some))
        for context_id, some in sorted(by_context.items())  # in order, so that two replicas cannot deadlock
    }
    at = to_microseconds(commit.at)
    rows = [
        {
            "context_id": context_id,
            "tasks": new,
            "position": changes,
            "changed_at": at,
            "incarnation": new_incarnation(),  # each its own: they distinguish contexts of the same name, too
        }
        for context_id, (new, changes) in added.items()
        if new or changes
    ]
    if not rows:
        return
    counted = connection.execute(_count_changes(connection.dialect.name), rows)
    for context_id, tasks_after, position_after, its_incarnation in counted:
        new, changes = added[context_id]
        number, position = tasks_after - new, position_after - changes
        for each in by_context[context_id]:
            number += each.batch.created is not None
            each.number, each.position, each.incarnation = number, position, its_incarnation
            position += each.changes


async def read_known(connection: AsyncConnection, keys: Collection[str]) -> KnownContexts:
    """Which of these contexts have begun, and which were removed."""
    hashes, stored = {hash_of_removed(key): key for key in keys}, {with_shard(key): key for key in keys}
    begun = select(contexts.c.context_id, false()).where(contexts.c.context_id.in_(keys), contexts.c.tasks > 0)
    removed = select(removed_contexts.c.key_hash, true()).where(removed_contexts.c.key_hash.in_([*hashes]))
    # The rows have the type of the first SELECT: a plain text.
    rows = [(found, bool(gone)) for found, gone in await connection.execute(removed.union_all(begun))]
    return KnownContexts(
        frozenset(stored[found] for found, gone in rows if not gone),
        frozenset(hashes[found] for found, gone in rows if gone),
    )


class ContextPosition(NamedTuple):
    """The last position of a context; the incarnation is None if it has no row."""

    incarnation: int | None
    position: int


NO_POSITION = ContextPosition(None, 0)


async def read_position(connection: AsyncConnection, context_id: ContextKey) -> ContextPosition:
    query = select(contexts.c.incarnation, contexts.c.position).where(contexts.c.context_id == context_id)
    row = (await connection.execute(query)).one_or_none()
    return ContextPosition(row.incarnation, row.position) if row else NO_POSITION


async def lock_to_share(connection: AsyncConnection, context_id: ContextKey) -> bool:
    """Keep a context from being removed in this transaction; False if there is none."""
    query = select(contexts.c.context_id).where(contexts.c.context_id == context_id).with_for_update(read=True)
    return await connection.scalar(query) is not None


async def remember_removed(connection: AsyncConnection, context_id: ContextKey) -> None:
    """Store that a context was removed (rule 2)."""
    if is_unique(public_id(context_id)):
        row = insert(connection, removed_contexts).values(key_hash=hash_of_removed(context_id))
        await connection.execute(row.on_conflict_do_nothing())


def hash_of_removed(key: str) -> str:
    """What is stored of the key of a removed context: its shard, and 128 bits, so that no second key has the same."""
    return f"{shard_of(key):03x}{hashlib.sha256(key.encode()).hexdigest()[:32]}"
