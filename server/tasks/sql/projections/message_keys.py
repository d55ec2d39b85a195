"""Which task each message went to, so that a message that is sent again joins it (`incoming.py`).

Rule 1: a key counts for `DEDUP_WINDOW`. Then it is pruned, or a new message with it replaces it.
Rule 2: the keys of a context are removed with it.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Column, Connection, Index, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.incoming import DEDUP_WINDOW
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit, StagedTask
from a2a_canvas.store.sql.database import Database, insert
from a2a_canvas.store.sql.kept import delete_expired
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata
from a2a_canvas.store.sql.times import to_microseconds

message_keys = Table(
    "message_keys",
    metadata,
    Column("key", Text, primary_key=True),
    Column("task_id", Text, nullable=False),
    Column("context_id", ContextKeyText, nullable=False),
    Column("accepted_at", BigInteger, nullable=False),
    Index("message_keys_by_time", "accepted_at"),  # `prune`
    Index("message_keys_by_context", "context_id"),  # the removal of a context
)


def write(connection: Connection, commit: JournalCommit) -> None:
    """Store which task each message went to; the task of a message that was accepted before is not created."""
    for each in commit.tasks:
        for key in each.batch.keys:
            before = _remember(connection, key, each, commit.at)
            each.batch.log.duplicate_of = before if each.batch.created else ""
    commit.tasks = [each for each in commit.tasks if not each.batch.log.duplicate_of]


def _remember(connection: Connection, key: str, task: StagedTask, at: datetime) -> str:
    """Store which task a message went to; the id of the task if it was accepted before."""
    row = {"key": key, **task.columns, "accepted_at": to_microseconds(at)}
    upsert = insert(connection, message_keys).values(row)
    taken = connection.scalar(
        upsert.on_conflict_do_update(
            index_elements=[message_keys.c.key],
            set_=row,
            where=message_keys.c.accepted_at < to_microseconds(at - DEDUP_WINDOW),
        ).returning(message_keys.c.task_id)
    )
    if taken is not None:
        return ""
    task_id = str(connection.scalar(select(message_keys.c.task_id).where(message_keys.c.key == key)))
    return "" if task_id == task.task_id else task_id


async def find(connection: AsyncConnection, key: str, now: datetime) -> str | None:
    """The task that a message went to."""
    since = to_microseconds(now - DEDUP_WINDOW)
    query = select(message_keys.c.task_id).where(message_keys.c.key == key, message_keys.c.accepted_at >= since)
    return await connection.scalar(query)


async def prune(database: Database, now: datetime) -> None:
    await delete_expired(database, message_keys.c.key, message_keys.c.accepted_at < to_microseconds(now - DEDUP_WINDOW))
