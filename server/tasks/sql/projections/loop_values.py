"""The values of agents with a loop of their own, in a database. `server/tasks/context_values.py` has the rules.

`context_holders.py` has the holds of a context's values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Integer,
    LargeBinary,
    Table,
    and_,
    delete,
    exists,
    literal,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import ToolStep
from a2a_canvas.server.agent.loops.turn_values import STATE, SavedValues, StoredValue, digest_of, stored_value
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.projections.context_holders import SqlHolds, end_hold
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit, StagedTask
from a2a_canvas.server.tasks.sql.projections.records import PAUSED, UNSETTLED, tasks
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.artifact_lease import LeaseHolder
from a2a_canvas.store.sql.compression import compress_bytes, decompress_bytes
from a2a_canvas.store.sql.database import Database, TextSize
from a2a_canvas.store.sql.kept import add_kept
from a2a_canvas.store.sql.row_statement import RowStatement
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata

loop_values = Table(
    "loop_values",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("name", Text, primary_key=True),  # empty: the state
    Column("value", LargeBinary, nullable=False),  # compressed where that makes it shorter
    Column("size", Integer, nullable=False),  # as it counts against the limit
    Column("digest", Text, nullable=False),
)

states_before = Table(
    "states_before",  # what the state was before the run of a task first set it, until the task ends
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

VALUE_SIZE = TextSize(loop_values.c.value)
BEFORE_SIZE = TextSize(states_before.c.value)

_ADD = RowStatement(lambda _: loop_values.insert(), loop_values.c.keys(), ["value"])


class SqlContextValues:
    """`ContextValues` in a database.

    Args:
        stage: stages values with the entries of a task that runs here; else raises `TaskDetached`.
        flushed: waits until everything staged is committed, or given up.
    """

    def __init__(
        self,
        database: Database,
        replica: LeaseHolder,
        stage: Callable[[str, SavedValues], None],
        flushed: Callable[[], Awaitable[None]],
    ) -> None:
        self._database = database
        self._stage = stage
        self.holds: SqlHolds[SavedValues] = SqlHolds("values", database, replica, flushed)

    async def get(self, context_id: ContextKey, name: str) -> bytes | None:
        for saved in reversed(self.holds.list_staged(context_id)):
            if name in saved.values:
                return saved.values[name]
        return await self._read(select(loop_values.c.value).where(*_is(context_id, name)))

    async def get_before(self, context_id: ContextKey, task_id: str) -> bytes | None:
        ours = states_before.c.context_id == context_id, states_before.c.task_id == task_id
        return await self._read(select(states_before.c.value).where(*ours))

    async def digest(self, context_id: ContextKey) -> str:
        for saved in reversed(self.holds.list_staged(context_id)):
            if STATE in saved.values:
                return digest_of(saved.values[STATE])
        async with self._database.read() as connection:
            query = select(loop_values.c.digest).where(*_is(context_id, STATE))
            return await connection.scalar(query) or digest_of(None)

    async def list(self, context_id: ContextKey, prefix: str) -> Sequence[str]:
        async with self._database.read() as connection:
            found = await connection.scalars(select(loop_values.c.name).where(loop_values.c.context_id == context_id))
            names = {*found}
        for saved in self.holds.list_staged(context_id):
            for name, value in saved.values.items():
                (names.discard if value is None else names.add)(name)
        return sorted(name for name in names if name != STATE and name.startswith(prefix))

    async def hold(self, context_id: ContextKey, task_id: str) -> Mapping[str, StoredValue]:
        return await self.holds.take_and_read(context_id, task_id, _read_stored)

    def stage(self, context_id: ContextKey, task_id: str, saved: SavedValues) -> None:
        self._stage(task_id, saved)
        self.holds.stage(context_id, task_id, saved, ends=saved.ends)

    def abandon(self, context_id: ContextKey, task_id: str) -> None:
        self.holds.abandon(context_id, task_id)

    # --------------------------------------------------------------------------- reading

    async def _read(self, query: Any) -> bytes | None:
        async with self._database.read() as connection:
            value = await connection.scalar(query)
        return None if value is None else decompress_bytes(bytes(value))


async def _read_stored(connection: AsyncConnection, context_id: ContextKey) -> Mapping[str, StoredValue]:
    query = select(loop_values.c.name, loop_values.c.size, loop_values.c.digest)
    rows = await connection.execute(query.where(loop_values.c.context_id == context_id))
    return {name: StoredValue(size, digest) for name, size, digest in rows}


def _is(context_id: ContextKey, name: str) -> tuple[ColumnElement[bool], ...]:
    return loop_values.c.context_id == context_id, loop_values.c.name == name


# --------------------------------------------------------------------------------- writing


def write(connection: Connection, commit: JournalCommit) -> None:
    """Write the values that were staged with the entries, and remove what only running tasks need."""
    for each in commit.tasks:
        for saved in each.batch.values:
            if saved.first:
                commit.kept[each.context_id] += _keep_before(connection, each)
            _replace(connection, commit, each.context_id, saved.values)
            if saved.ends:
                end_hold(connection, each.context_id, "values", commit.replica, each.task_id)
        if each.batch.entries and has_set(each.batch.newest) and each.batch.newest.state.terminal:
            commit.kept[each.context_id] -= _remove_before(connection, each)


def has_set(record: TaskRecord) -> bool:
    """Whether a run of the task has set the state."""
    return any(isinstance(item, ToolStep) and item.kind == "set" for item in record.transcript)


def _replace(
    connection: Connection, commit: JournalCommit, context_id: ContextKey, values: Mapping[str, bytes | None]
) -> None:
    if not values:
        return
    ours = loop_values.c.context_id == context_id, loop_values.c.name.in_([*values])
    gone = connection.scalars(delete(loop_values).where(*ours).returning(VALUE_SIZE))
    commit.kept[context_id] -= sum(gone)
    rows = [_row(context_id, name, value) for name, value in values.items() if value is not None]
    commit.kept.update(_ADD.execute(connection, rows))


def _row(context_id: ContextKey, name: str, value: bytes) -> dict[str, Any]:
    counted = stored_value(name, value)._asdict()
    return {"context_id": context_id, "name": name, "value": compress_bytes(value), **counted}


def _keep_before(connection: Connection, task: StagedTask) -> int:
    """Store what the state is before it is set; the bytes by which that is more than what was stored for the task."""
    removed = _remove_before(connection, task)
    now = select(loop_values.c.context_id, literal(task.task_id, Text), loop_values.c.value)
    copy = states_before.insert().from_select(states_before.c.keys(), now.where(*_is(task.context_id, STATE)))
    return sum(connection.scalars(copy.returning(BEFORE_SIZE))) - removed


def _remove_before(connection: Connection, task: StagedTask) -> int:
    """Its bytes."""
    ours = states_before.c.context_id == task.context_id, states_before.c.task_id == task.task_id
    return sum(connection.scalars(delete(states_before).where(*ours).returning(BEFORE_SIZE)))


async def remove_ended(database: Database, now: datetime) -> None:
    """Remove what tasks that ended without a turn have left."""
    working = and_(
        tasks.c.context_id == states_before.c.context_id,
        tasks.c.task_id == states_before.c.task_id,
        tasks.c.state.in_([*UNSETTLED, *PAUSED]),
    )
    ended = ~exists().where(working)
    async with database.read() as connection:
        if await connection.scalar(select(states_before.c.context_id).where(ended).limit(1)) is None:
            return
    gone = delete(states_before).where(ended).returning(states_before.c.context_id, BEFORE_SIZE)
    freed: Counter[str] = Counter()
    async with database.write() as connection:
        for context_id, size in await connection.execute(gone):
            freed[context_id] -= size
        await connection.run_sync(add_kept, freed)
