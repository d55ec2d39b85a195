"""Removes a context with all its rows, in one transaction, unless something uses it.

A table whose key, or an index, begins with the context loses its rows there. What else a table has of a context, the
file of the table removes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

from sqlalchemy import Table, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.sql.projections.context_rows import contexts, remember_removed
from a2a_canvas.server.tasks.sql.projections.message_keys import message_keys
from a2a_canvas.server.tasks.sql.projections.records import remove_from_directory, tasks
from a2a_canvas.server.tasks.sql.projections.task_counts import add_counts, counts_of_context
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.kept import kept_bytes
from a2a_canvas.store.sql.tables import artifacts, metadata

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
            await remove_from_directory(connection, context_id)
            for table in of_context():
                await connection.execute(delete(table).where(table.c.context_id == context_id))
            await remember_removed(connection, context_id)
            await connection.run_sync(add_counts, {key: -number for key, number in counted.items()})
            return True


def of_context() -> list[Table]:
    """The tables that find their rows by the context. The counts come last (`kept.py`, rule 2)."""
    found = [table for table in metadata.tables.values() if "context_id" in _beginnings(table)]
    return sorted(found, key=lambda table: table is kept_bytes)


def _beginnings(table: Table) -> set[str]:
    """The columns that the key and the indexes begin with."""
    return {table.primary_key.columns.keys()[0], *(index.columns.keys()[0] for index in table.indexes)}
