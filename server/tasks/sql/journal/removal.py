"""Removes a context with all its rows, in one transaction, unless something uses it.

Rule: of a context whose id can be shared with users a hash of its key stays (`access.py`, rule 5).
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

from sqlalchemy import ColumnElement, Table, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.sql.account_tables import contexts, removed_contexts, shares
from a2a_canvas.server.tasks.sql.journal.journal_tables import (
    message_keys,
    replicas,
    task_contexts,
    tasks,
)
from a2a_canvas.server.tasks.sql.journal.task_counts import add_counts, counts_of_context
from a2a_canvas.store.ids import ContextKey, is_unique, public_id
from a2a_canvas.store.sql.database import Database, insert
from a2a_canvas.store.sql.tables import artifacts, kept_bytes, metadata

FreezeContext = Callable[[ContextKey], AbstractContextManager[bool]]
"""`SqlArtifactStore.frozen`."""


async def remove_context(
    database: Database,
    context_id: ContextKey,
    freeze: FreezeContext,
    check: Callable[[AsyncConnection], Awaitable[bool]],
) -> bool:
    """Whether it was removed.

    Args:
        freeze: keeps the store of this process out of the context, or says that it is in use: then nothing is removed.
        check: whether it may be removed, by its rows, which nobody changes meanwhile.
    """
    with freeze(context_id) as free:
        if not free:
            return False
        async with database.write() as connection:
            # A new task waits for the row of the context, a task that goes on for its own, an artifact lease for that
            # of the artifact. In the order in which the journal and the store write them, so that there is no deadlock.
            for table in (message_keys, tasks, contexts, artifacts):
                rows = select(table.c.context_id).where(table.c.context_id == context_id).order_by(*table.primary_key)
                await connection.execute(rows.with_for_update())
            if not await check(connection):
                return False
            counted = await counts_of_context(connection, context_id)
            of_it = select(tasks.c.task_id).where(tasks.c.context_id == context_id)
            await connection.execute(delete(task_contexts).where(task_contexts.c.task_id.in_(of_it)))
            for table in (message_keys, shares, *of_context()):
                await connection.execute(delete(table).where(table.c.context_id == context_id))
            if is_unique(public_id(context_id)):
                remembered = insert(connection, removed_contexts).values(key_hash=hash_of_removed(context_id))
                await connection.execute(remembered.on_conflict_do_nothing())
            await connection.run_sync(add_counts, {key: -number for key, number in counted.items()})
            return True


def of_context() -> list[Table]:
    """The tables whose keys begin with the context. The counts come last (`kept.py`, rule 2)."""
    found = [table for table in metadata.tables.values() if table.primary_key.columns.keys()[0] == "context_id"]
    return sorted(found, key=lambda table: table is kept_bytes)


def hash_of_removed(key: str) -> str:
    """What is stored of the key of a removed context: 128 bits, so that no second key has the same."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def leased() -> ColumnElement[bool]:
    """A living replica has the lease of the artifact."""
    return artifacts.c.holder.in_(select(replicas.c.replica_id))
