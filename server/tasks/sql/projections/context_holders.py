"""Which tasks are about to change what a context has besides its artifacts: one at a time, on every replica.

Rule 1: a hold is a row, which the transaction of the change deletes. It is void if its task does not run on its
        replica, so none outlives either. On SQLite there is no other replica, and there are no such rows.
Rule 2: a hold that begins has waited for what was staged under the one before it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Generic, Literal, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, delete, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.sql.projections.records import UNSETTLED, tasks
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.holds import Holds
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.artifact_lease import LeaseHolder
from a2a_canvas.store.sql.database import Database, insert_on
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata

T = TypeVar("T")
V = TypeVar("V")
Subject = Literal["values", "annotations"]

POLL_SECONDS = 0.1
"""Seconds between two attempts to hold what another replica's task holds."""

context_holders = Table(
    "context_holders",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("subject", Text, primary_key=True),  # what of the context is held
    Column("replica_id", Text, nullable=False),
    Column("task_id", Text, nullable=False),
)


class SqlHolds(Generic[V]):
    """The holds of one subject by the tasks of this replica, and what is staged under them.

    Args:
        flushed: waits until everything staged is committed, or given up.
    """

    def __init__(
        self, subject: Subject, database: Database, replica: LeaseHolder, flushed: Callable[[], Awaitable[None]]
    ) -> None:
        self._subject: Subject = subject
        self._database = database
        self._replica = replica
        self._flushed = flushed
        self._holds = Holds()
        self._staged: defaultdict[ContextKey, list[V]] = defaultdict(list)

    async def take(self, context_id: ContextKey, task_id: str) -> None:
        """Wait until no other task holds the context, and hold it."""
        await self._holds.take(context_id, task_id)
        async with self._abandon_on_error(context_id, task_id):
            await self.wait_committed(context_id)
            while not self._replica.exclusive:
                if await self._take(context_id, task_id):
                    break
                await asyncio.sleep(POLL_SECONDS)

    async def take_and_read(
        self, context_id: ContextKey, task_id: str, read: Callable[[AsyncConnection, ContextKey], Awaitable[T]]
    ) -> T:
        """Take the hold, and read what there is."""
        await self.take(context_id, task_id)
        async with self._abandon_on_error(context_id, task_id), self._database.read() as connection:
            return await read(connection, context_id)

    @asynccontextmanager
    async def _abandon_on_error(self, context_id: ContextKey, task_id: str) -> AsyncGenerator[None, None]:
        """End the hold if this fails."""
        try:
            yield
        except BaseException:
            if self._holds.has(context_id, task_id) and not self._replica.exclusive:
                await asyncio.shield(self._remove(context_id, task_id))
            self.abandon(context_id, task_id)
            raise

    async def _remove(self, context_id: ContextKey, task_id: str) -> None:
        with suppress(Unavailable):  # the row is void with its task
            async with self._database.write() as connection:
                await connection.run_sync(_end, context_id, self._subject, self._replica.id, task_id)

    async def wait_committed(self, context_id: ContextKey) -> None:
        """Wait until nothing is staged in the context."""
        while staged := self.list_staged(context_id):
            await self._flushed()
            self.clear(context_id, staged)  # committed or given up

    def list_staged(self, context_id: ContextKey) -> Sequence[V]:
        """What is staged in a context, and not in the rows yet."""
        return tuple(self._staged.get(context_id, ()))

    def stage(self, context_id: ContextKey, task_id: str, staged: V, *, ends: bool = True) -> None:
        """A change was staged.

        Args:
            ends: its transaction ends the hold.
        """
        self._staged[context_id].append(staged)
        if ends:
            self.abandon(context_id, task_id)

    def abandon(self, context_id: ContextKey, task_id: str) -> None:
        """The task no longer holds the context here. Its row is void when the task has ended (rule 1)."""
        self._holds.release(context_id, task_id)

    async def release(self, context_id: ContextKey, task_id: str) -> None:
        """End the hold of a task that staged nothing under it and still runs."""
        try:
            if self._holds.has(context_id, task_id) and not self._replica.exclusive:
                await self._remove(context_id, task_id)
        finally:
            self.abandon(context_id, task_id)

    def clear(self, context_id: ContextKey, staged: Iterable[V]) -> None:
        """These are in the rows now, or were given up."""
        gone = {id(each) for each in staged}
        if left := [each for each in self._staged.pop(context_id, ()) if id(each) not in gone]:
            self._staged[context_id] = left

    def drop(self, context_id: ContextKey) -> None:
        """What is staged in a context is not written."""
        self._staged.pop(context_id, None)

    def forget(self) -> None:
        """Nothing that is staged is written."""
        self._staged.clear()

    async def _take(self, context_id: ContextKey, task_id: str) -> bool:
        """Whether this task holds the context now.

        In two statements: the second one knows every task whose hold the first one may have waited for and found.
        """
        me = {"replica_id": self._replica.id, "task_id": task_id}
        new = insert_on("postgresql", context_holders).values(context_id=context_id, subject=self._subject, **me)
        locked = new.on_conflict_do_update(
            index_elements=[*context_holders.primary_key], set_={"context_id": context_id}
        )
        async with self._database.write() as connection:
            row = (await connection.execute(locked.returning(context_holders))).one()
            if (row.replica_id, row.task_id) == (me["replica_id"], me["task_id"]):
                return True
            void = or_(context_holders.c.task_id == task_id, _void(tasks.c.context_id == context_id))
            taken = update(context_holders).where(*_is(context_id, self._subject), void).values(me)
            return (await connection.execute(taken)).rowcount == 1


def end_hold(connection: Connection, context_id: ContextKey, subject: Subject, replica: str, task_id: str) -> None:
    """End a hold, in the transaction of what was changed under it."""
    if connection.dialect.name != "sqlite":
        _end(connection, context_id, subject, replica, task_id)


@asynccontextmanager
async def hold_annotations(connection: AsyncConnection, context_id: ContextKey) -> AsyncGenerator[bool, None]:
    """Hold the annotations of a context in this transaction, before it locks anything else; False if a task does.

    On SQLite no other transaction writes meanwhile.
    """
    if connection.dialect.name == "sqlite":
        yield True
        return
    row = {"context_id": context_id, "subject": "annotations", "replica_id": "", "task_id": ""}
    new = insert_on("postgresql", context_holders).values(row).on_conflict_do_nothing()
    held = await connection.scalar(new.returning(context_holders.c.context_id)) is not None
    yield held
    if held:
        await connection.run_sync(_end, context_id, "annotations", "", "")


async def remove_void(database: Database, now: datetime) -> None:
    """Remove the holds of tasks that no longer run."""
    async with database.read() as connection:
        if await connection.scalar(select(context_holders.c.context_id).limit(1)) is None:
            return
    async with database.write() as connection:
        await connection.execute(delete(context_holders).where(_void()))


def _end(connection: Connection, context_id: ContextKey, subject: Subject, replica: str, task_id: str) -> None:
    ours = context_holders.c.replica_id == replica, context_holders.c.task_id == task_id
    connection.execute(delete(context_holders).where(*_is(context_id, subject), *ours))


def _is(context_id: ContextKey, subject: Subject) -> tuple[ColumnElement[bool], ...]:
    return context_holders.c.context_id == context_id, context_holders.c.subject == subject


def _void(*some: ColumnElement[bool]) -> ColumnElement[bool]:
    """The task of a hold does not run on its replica, or the replica is dead.

    Args:
        some: which tasks may be those of the holds; all by default.
    """
    running = select(tasks.c.context_id, tasks.c.task_id, tasks.c.replica).where(
        and_(tasks.c.state.in_(UNSETTLED), *some)
    )
    alive = running.join(replicas, replicas.c.replica_id == tasks.c.replica)
    return tuple_(context_holders.c.context_id, context_holders.c.task_id, context_holders.c.replica_id).not_in(alive)
