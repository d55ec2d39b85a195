"""Messages for tasks that another replica runs. `replica/inbox.py` has the rules.

A row is deleted in the transaction that writes its message to the task, or when its sender withdraws it. One that no
replica has taken is pruned after `DEDUP_WINDOW`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, ColumnElement, Connection, Row, Table, delete, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.incoming import DEDUP_WINDOW
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.kept import delete_expired
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata
from a2a_canvas.store.sql.times import to_microseconds

inbox_messages = Table(
    "inbox_messages",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("inbox_id", Text, primary_key=True),
    Column("sent_at", BigInteger, nullable=False),
    Column("key", Text, nullable=False),  # as in `message_keys`; empty for none
    Column("message", Text, nullable=False),
    Column("named", Text),  # the files that the message names; null for none
)


def write(connection: Connection, commit: JournalCommit) -> None:
    """Delete the rows of the messages that are among the entries."""
    for each in commit.tasks:
        if ids := each.batch.acknowledged:
            connection.execute(delete(inbox_messages).where(*_is(each.columns), inbox_messages.c.inbox_id.in_(ids)))


async def add(connection: AsyncConnection, row: Mapping[str, Any]) -> None:
    await connection.execute(inbox_messages.insert().values(row))


async def is_pending(connection: AsyncConnection, key: Mapping[str, str]) -> bool:
    return bool(await connection.scalar(select(func.count()).select_from(inbox_messages).where(*_is(key))))


async def withdraw(connection: AsyncConnection, key: Mapping[str, str]) -> bool:
    """Whether it had not been taken."""
    return (await connection.execute(delete(inbox_messages).where(*_is(key)))).rowcount == 1


async def read_pending(connection: AsyncConnection, tasks: Collection[tuple[str, str]]) -> Sequence[Row[Any]]:
    """The rows of these tasks, in the order in which they were sent."""
    pending = select(inbox_messages).order_by(inbox_messages.c.sent_at, inbox_messages.c.inbox_id)
    of_task = tuple_(inbox_messages.c.context_id, inbox_messages.c.task_id)
    return (await connection.execute(pending.where(of_task.in_(tasks)))).all()


async def prune(database: Database, now: datetime) -> None:
    old = inbox_messages.c.sent_at < to_microseconds(now - DEDUP_WINDOW)
    await delete_expired(database, inbox_messages.c.inbox_id, old)


def _is(key: Mapping[str, str]) -> tuple[ColumnElement[bool], ...]:
    return tuple(inbox_messages.c[name] == value for name, value in key.items())
