"""Databases with many tasks, made by SQL alone: copies of one context that a server has written."""

from __future__ import annotations

from sqlalchemy import Table, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

import a2a_canvas.server.backend.durable_backend  # noqa: F401  (it enters all tables)
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.server.tasks.sql.projections.task_counts import task_counts
from a2a_canvas.store.ids import public_id
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.tables import with_shard

OWN_IDS = ("task_id", "key")
"""The columns that a copy has values of its own in, beside `context_id`."""
PER_COPY = 1_000_000
"""Microseconds by which each copy is newer than the one before."""


async def multiply_context(url: str, context_id: str, copies: int) -> None:
    """Copy a context with its tasks and artifacts. Copy 7 of context `c` is `c-7`, that of its task `t` is `t-7`.

    Args:
        context_id: its key.
    """
    database = Database(url)
    try:
        async with database.write() as connection:
            await _name_copies(connection, context_id, copies)
            for table in tasks.metadata.sorted_tables:
                if "context_id" in table.c and "name" not in {column.name for column in table.primary_key}:
                    await connection.execute(text(_copy(table)), {"context_id": with_shard(context_id)})
            await connection.execute(text("DROP TABLE copied"))
            counted = update(task_counts).values(tasks=task_counts.c.tasks * (copies + 1))
            await connection.execute(counted)
        if database.dialect == "postgresql":
            async with database.write() as connection:
                await connection.execute(text("ANALYZE"))
    finally:
        await database.close()


async def gather_tasks(url: str, context_id: str) -> None:
    """Put all tasks into one context.

    Args:
        context_id: its key.
    """
    database = Database(url)
    try:
        async with database.write() as connection:
            await connection.execute(update(tasks).values(context_id=context_id))
            if database.dialect == "postgresql":
                await connection.execute(text("ANALYZE"))
    finally:
        await database.close()


async def _name_copies(connection: AsyncConnection, context_id: str, copies: int) -> None:
    """The keys of the copies, in a temporary table: SQL cannot compute their shards."""
    name, after = public_id(context_id), context_id.removeprefix(public_id(context_id))
    rows = [{"i": number, "key": with_shard(f"{name}-{number}{after}")} for number in range(1, copies + 1)]
    await connection.execute(text("CREATE TEMPORARY TABLE copied (i BIGINT, key TEXT)"))
    await connection.execute(text("INSERT INTO copied VALUES (:i, :key)"), rows)


def _copy(table: Table) -> str:
    columns = [column.name for column in table.columns]
    own = {name: f"{table.name}.{name} || '-' || i" for name in OWN_IDS} | {
        "context_id": "copied.key",
        "changed_at": f"changed_at + i * {PER_COPY}",
    }
    return (
        f"INSERT INTO {table.name} ({', '.join(columns)}) "
        f"SELECT {', '.join(own.get(name, f'{table.name}.{name}') for name in columns)} "
        f"FROM {table.name}, copied WHERE context_id = :context_id"
    )
