"""What an owner of tasks in a context sees of it: its name, its first request, and when it last changed.

The rows of a context are removed with it, and none before.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, ColumnElement, Connection, Index, Table, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import StatusChanged
from a2a_canvas.server.tasks.journal.owned_contexts import request_of
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.row_statement import RowStatement, upsert
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata
from a2a_canvas.store.sql.times import to_microseconds

owned_contexts = Table(
    "owned_contexts",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("owner", Text, primary_key=True),
    Column("name", Text),  # given by the owner; null for none
    Column("agents_suggest", Boolean, nullable=False),  # what they change in artifacts becomes suggestions
    Column("request", Text, nullable=False),  # the beginning of its first message
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),  # when the status of one of its tasks last changed
    Index("owned_contexts_by_owner", "owner", "changed_at", "context_id"),  # the list of an owner
)

_TOUCH = RowStatement(upsert(owned_contexts, ["changed_at"]), owned_contexts.c.keys())


def write(connection: Connection, commit: JournalCommit) -> None:
    """Store when the status of an owner's tasks last changed, and with the first of them what it asked for."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for batch in (each.batch for each in commit.tasks):
        if batch.created or any(isinstance(entry.event, StatusChanged) for entry in batch.entries):
            row = _owned_row(batch.created, batch.newest)
            before = rows.setdefault((row["context_id"], row["owner"]), row)
            before["changed_at"] = max(before["changed_at"], row["changed_at"])
    _TOUCH.execute(connection, [rows[key] for key in sorted(rows)])


def _owned_row(created: TaskRecord | None, newest: TaskRecord) -> dict[str, Any]:
    return {
        "context_id": newest.context_id,
        "owner": newest.owner,
        "name": None,
        "agents_suggest": False,
        # The rest is that of the first task; a row that is there keeps its own.
        "request": request_of(created.history) if created else "",
        "created_at": to_microseconds((created or newest).changed_at),
        "changed_at": to_microseconds(newest.changed_at),
    }


def is_owned(context_id: ContextKey, owner: str) -> tuple[ColumnElement[bool], ...]:
    """The row of an owner in a context."""
    return owned_contexts.c.context_id == context_id, owned_contexts.c.owner == owner


async def exists(connection: AsyncConnection, context_id: ContextKey, owner: str) -> bool:
    query = select(owned_contexts.c.context_id).where(*is_owned(context_id, owner))
    return await connection.scalar(query) is not None


async def rename(connection: AsyncConnection, context_id: ContextKey, owner: str, name: str | None) -> None:
    await connection.execute(update(owned_contexts).where(*is_owned(context_id, owner)).values(name=name))


async def let_agents_suggest(connection: AsyncConnection, context_id: ContextKey, owner: str, on: bool) -> None:
    await connection.execute(update(owned_contexts).where(*is_owned(context_id, owner)).values(agents_suggest=on))


async def agents_suggest(connection: AsyncConnection, context_id: ContextKey, owner: str) -> bool:
    query = select(owned_contexts.c.agents_suggest).where(*is_owned(context_id, owner))
    return bool(await connection.scalar(query))


async def touch(connection: AsyncConnection, context_id: ContextKey, owner: str, at: datetime) -> None:
    """The status of one of its tasks has changed."""
    changed = update(owned_contexts).where(*is_owned(context_id, owner))
    await connection.execute(changed.values(changed_at=to_microseconds(at)))
