"""The values of agents with a loop of their own, in a database. `server/tasks/context_values.py` has the rules.

The hold of a context's values is a row, which the transaction of the values deletes. It is void if its task does not
run on its replica, so none outlives either. On SQLite there is no other replica, and there are no such rows.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
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
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import ToolStep
from a2a_canvas.server.agent.loops.turn_values import STATE, SavedValues, StoredValue, digest_of, stored_value
from a2a_canvas.server.tasks.context_values import Holds
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit, StagedTask
from a2a_canvas.server.tasks.sql.projections.records import PAUSED, UNSETTLED, tasks
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.artifact_lease import LeaseHolder
from a2a_canvas.store.sql.compression import compress_bytes, decompress_bytes
from a2a_canvas.store.sql.database import Database, TextSize, insert_on
from a2a_canvas.store.sql.kept import add_kept
from a2a_canvas.store.sql.row_statement import RowStatement
from a2a_canvas.store.sql.tables import Text, metadata

POLL_SECONDS = 0.1
"""Seconds between two attempts to hold values that another replica's task holds."""

loop_values = Table(
    "loop_values",
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),  # empty: the state
    Column("value", LargeBinary, nullable=False),  # compressed where that makes it shorter
    Column("size", Integer, nullable=False),  # as it counts against the limit
    Column("digest", Text, nullable=False),
)

states_before = Table(
    "states_before",  # what the state was before the run of a task first set it, until the task ends
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

value_holders = Table(
    "value_holders",  # the task that is about to set values of a context
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("replica_id", Text, nullable=False),
    Column("task_id", Text, nullable=False),
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
        self._replica = replica
        self._stage = stage
        self._flushed = flushed
        self._holds = Holds()
        self._staged: defaultdict[ContextKey, list[SavedValues]] = defaultdict(list)

    async def get(self, context_id: ContextKey, name: str) -> bytes | None:
        for saved in reversed(self._staged.get(context_id, ())):
            if name in saved.values:
                return saved.values[name]
        return await self._read(select(loop_values.c.value).where(*_is(context_id, name)))

    async def get_before(self, context_id: ContextKey, task_id: str) -> bytes | None:
        ours = states_before.c.context_id == context_id, states_before.c.task_id == task_id
        return await self._read(select(states_before.c.value).where(*ours))

    async def digest(self, context_id: ContextKey) -> str:
        for saved in reversed(self._staged.get(context_id, ())):
            if STATE in saved.values:
                return digest_of(saved.values[STATE])
        async with self._database.read() as connection:
            query = select(loop_values.c.digest).where(*_is(context_id, STATE))
            return await connection.scalar(query) or digest_of(None)

    async def list(self, context_id: ContextKey, prefix: str) -> Sequence[str]:
        async with self._database.read() as connection:
            found = await connection.scalars(select(loop_values.c.name).where(loop_values.c.context_id == context_id))
            names = {*found}
        for saved in self._staged.get(context_id, ()):
            for name, value in saved.values.items():
                (names.discard if value is None else names.add)(name)
        return sorted(name for name in names if name != STATE and name.startswith(prefix))

    async def hold(self, context_id: ContextKey, task_id: str) -> Mapping[str, StoredValue]:
        await self._holds.take(context_id, task_id)
        try:
            while staged := tuple(self._staged.get(context_id, ())):
                await self._flushed()
                self.clear_staged(context_id, staged)  # committed or given up
            while True:
                if (found := await self._hold(context_id, task_id)) is not None:
                    return found
                await asyncio.sleep(POLL_SECONDS)
        except BaseException:
            self.abandon(context_id, task_id)
            raise

    def stage(self, context_id: ContextKey, task_id: str, saved: SavedValues) -> None:
        self._stage(task_id, saved)
        self._staged[context_id].append(saved)
        if saved.ends:
            self.abandon(context_id, task_id)

    def abandon(self, context_id: ContextKey, task_id: str) -> None:
        self._holds.release(context_id, task_id)

    # ------------------------------------------------------------------- for the journal

    def clear_staged(self, context_id: ContextKey, saved: Iterable[SavedValues]) -> None:
        """These are in the rows now, or were given up."""
        gone = {*saved}
        if left := [each for each in self._staged.pop(context_id, ()) if each not in gone]:
            self._staged[context_id] = left

    def drop(self, context_id: ContextKey) -> None:
        """What is staged in a context is not written."""
        self._staged.pop(context_id, None)

    def forget(self) -> None:
        """Nothing that is staged is written."""
        self._staged.clear()

    # --------------------------------------------------------------------------- reading

    async def _read(self, query: Any) -> bytes | None:
        async with self._database.read() as connection:
            value = await connection.scalar(query)
        return None if value is None else decompress_bytes(bytes(value))

    async def _hold(self, context_id: ContextKey, task_id: str) -> Mapping[str, StoredValue] | None:
        """What there is; None if a task of another replica holds it."""
        if self._replica.exclusive:
            async with self._database.read() as connection:
                return await _read_stored(connection, context_id)
        async with self._database.write() as connection:
            me = {"replica_id": self._replica.id, "task_id": task_id}
            return await _read_stored(connection, context_id) if await _take(connection, context_id, me) else None


async def _take(connection: AsyncConnection, context_id: ContextKey, me: Mapping[str, str]) -> bool:
    """Whether this task holds the values of the context now.

    In two statements: the second one knows every task whose hold the first one may have waited for and found.
    """
    new = insert_on("postgresql", value_holders).values(context_id=context_id, **me)
    locked = new.on_conflict_do_update(index_elements=[value_holders.c.context_id], set_={"context_id": context_id})
    row = (await connection.execute(locked.returning(value_holders))).one()
    if (row.replica_id, row.task_id) == (me["replica_id"], me["task_id"]):
        return True
    void = or_(value_holders.c.task_id == me["task_id"], _void(tasks.c.context_id == context_id))
    taken = update(value_holders).where(value_holders.c.context_id == context_id, void).values(me)
    return (await connection.execute(taken)).rowcount == 1


async def _read_stored(connection: AsyncConnection, context_id: ContextKey) -> Mapping[str, StoredValue]:
    query = select(loop_values.c.name, loop_values.c.size, loop_values.c.digest)
    rows = await connection.execute(query.where(loop_values.c.context_id == context_id))
    return {name: StoredValue(size, digest) for name, size, digest in rows}


def _void(*some: ColumnElement[bool]) -> ColumnElement[bool]:
    """The task of a hold does not run on its replica, or the replica is dead.

    Args:
        some: which tasks may be those of the holds; all by default.
    """
    running = select(tasks.c.context_id, tasks.c.task_id, tasks.c.replica).where(tasks.c.state.in_(UNSETTLED), *some)
    alive = running.join(replicas, replicas.c.replica_id == tasks.c.replica)
    return tuple_(value_holders.c.context_id, value_holders.c.task_id, value_holders.c.replica_id).not_in(alive)


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
            if saved.ends and connection.dialect.name != "sqlite":
                ours = value_holders.c.replica_id == commit.replica, value_holders.c.task_id == each.task_id
                connection.execute(delete(value_holders).where(value_holders.c.context_id == each.context_id, *ours))
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
        left = select(states_before.c.context_id).where(ended).union_all(select(value_holders.c.context_id))
        if await connection.scalar(left.limit(1)) is None:
            return
    gone = delete(states_before).where(ended).returning(states_before.c.context_id, BEFORE_SIZE)
    freed: Counter[str] = Counter()
    async with database.write() as connection:
        for context_id, size in await connection.execute(gone):
            freed[context_id] -= size
        await connection.execute(delete(value_holders).where(_void()))
        await connection.run_sync(add_kept, freed)
