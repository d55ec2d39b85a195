"""The watchers of contexts on all replicas, and the tasks that work in them, in a database.

Rule 1: a replica has a row for each context that is watched there. Rows of a replica without a lease do not count; who
        expires the lease deletes them and notifies the others. So watchers vanish with their replica.
Rule 2: on SQLite there is no other replica, and there are no rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Integer, Table, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.journal.activity import Activity
from a2a_canvas.server.tasks.sql.projections.context_rows import contexts
from a2a_canvas.server.tasks.sql.projections.owned_rows import owned_contexts
from a2a_canvas.server.tasks.sql.projections.records import UNSETTLED, tasks
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.artifact_lease import LeaseHolder
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata
from a2a_canvas.store.sql.times import from_microseconds

context_watchers = Table(
    "context_watchers",  # the event streams of a context that a replica has
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("replica_id", Text, primary_key=True),
    Column("streams", Integer, nullable=False),
)


class SqlActivity:
    """An `ActivitySource`.

    Args:
        notify: tells all replicas, within a transaction, of the contexts whose activity it changes.
    """

    def __init__(
        self, database: Database, replica: LeaseHolder, notify: Callable[[Connection, tuple[ContextKey, ...]], Any]
    ) -> None:
        self._database = database
        self._replica = replica
        self._notify = notify

    async def report(self, watchers: Mapping[ContextKey, int]) -> None:
        if self._replica.exclusive or not watchers:
            return
        me = self._replica.id
        rows = [{"context_id": each, "replica_id": me, "streams": count} for each, count in watchers.items() if count]
        before = context_watchers.c.replica_id == me, context_watchers.c.context_id.in_([*watchers])
        lease = select(replicas.c.replica_id).where(replicas.c.replica_id == me)
        async with self._database.write() as connection:
            if await connection.scalar(lease.with_for_update(read=True, key_share=True)) is None:
                raise Unavailable("this replica has no lease")
            await connection.execute(delete(context_watchers).where(*before))
            if rows:
                await connection.execute(insert(context_watchers), rows)
            await connection.run_sync(self._notify, tuple(watchers))

    async def read(self, context_ids: Collection[ContextKey]) -> Mapping[ContextKey, Activity]:
        if not context_ids:
            return {}
        async with self._database.read() as connection:
            watchers = {} if self._replica.exclusive else await self._others(connection, context_ids)
            # Before the working ones: a task that begins meanwhile is counted with its next change.
            changes = await _changes(connection, context_ids)
            working = await _working(connection, context_ids)
        return {
            each: Activity(watchers.get(each, 0), tuple(working[each]), *changes.get(each, (0, None)))
            for each in context_ids
        }

    async def _others(self, connection: AsyncConnection, context_ids: Collection[ContextKey]) -> dict[ContextKey, int]:
        alive = context_watchers.join(replicas, replicas.c.replica_id == context_watchers.c.replica_id)
        query = select(context_watchers.c.context_id, func.sum(context_watchers.c.streams)).select_from(alive)
        query = query.where(context_watchers.c.context_id.in_(context_ids), replicas.c.replica_id != self._replica.id)
        rows = await connection.execute(query.group_by(context_watchers.c.context_id))
        return {context_id: int(count) for context_id, count in rows}


async def _changes(
    connection: AsyncConnection, context_ids: Collection[ContextKey]
) -> Mapping[ContextKey, tuple[int, datetime | None]]:
    """How many tasks each context has ever had, and when the status of one of them last changed."""
    changed = select(func.max(owned_contexts.c.changed_at)).where(owned_contexts.c.context_id == contexts.c.context_id)
    query = select(contexts.c.context_id, contexts.c.tasks, changed.scalar_subquery())
    rows = await connection.execute(query.where(contexts.c.context_id.in_(context_ids)))
    return {context_id: (count, None if at is None else from_microseconds(at)) for context_id, count, at in rows}


async def _working(connection: AsyncConnection, context_ids: Collection[ContextKey]) -> Mapping[str, list[str]]:
    query = select(tasks.c.context_id, tasks.c.task_id).where(tasks.c.context_id.in_(context_ids))
    query = query.where(tasks.c.state.in_(UNSETTLED)).order_by(tasks.c.number)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for context_id, task_id in await connection.execute(query):
        found[context_id].append(task_id)
    return found


def remove_watchers(connection: Connection, gone: Iterable[str]) -> tuple[ContextKey, ...]:
    """Delete the watchers of these replicas; the contexts that they watched."""
    theirs: ColumnElement[bool] = context_watchers.c.replica_id.in_([*gone])
    deleted = connection.scalars(delete(context_watchers).where(theirs).returning(context_watchers.c.context_id))
    return tuple(dict.fromkeys(deleted))
