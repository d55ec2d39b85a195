"""Which replicas live, and who takes up the tasks of one that does not.

Rule 1: a replica has a row, renewed every second by the database's clock. Whoever finds one older than
        four removes it. By that its replica is dead and can never write again: each of its transactions begins
        with its row.
Rule 2: a replica that is removed while it lives (it was stopped, or cut off) finds out at its next beat or write,
        drops everything, and goes on as a new one.
Rule 3: nobody is removed by a replica that has not itself kept its beat for as long: when the database comes
        back after it was away, everybody first gets the time to say that they live. But one that has just started, and
        has found the database there ever since, need not wait for whoever was silent since before: if the database
        itself has run since that one's last beat, it is dead.
Rule 4: tasks that work and whose replica has no row are taken over, a few at a time, so that replicas share them. A
        takeover raises the epoch. One that was given up (`replica` is null) was handed over; any other is a resumption.
        One that was acquired to be answered, and was not, waits as before.
Rule 5: alone (SQLite) there is nobody to beat for: the lock on the file is the lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, delete, func, null, or_, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from server.agent.events import State
from server.tasks.ownership import Orphan
from server.tasks.record import TaskRecord
from server.tasks.sql.reading import GOING, WHOLE, context_of, one_record, records, these
from server.tasks.sql.tables import replicas, tasks
from store.errors import Unavailable
from store.sql.commit import Fenced, Part, Written
from store.sql.database import Database, insert

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds from one beat to the next, and after which one without a beat is dead."""

    beat: float = 1.0
    expired: float = 4.0


AT_ONCE = 20
"""Tasks that a replica takes over in one step."""

_NOW = func.extract("epoch", func.clock_timestamp())


class Lease:
    """This process's place among the replicas on a database."""

    def __init__(self, database: Database, timing: Timing) -> None:
        self.id = str(uuid4())
        self.timing = timing
        self.alone = database.dialect == "sqlite"
        self._database = database
        self._commits = 0
        self._kept_since: float | None = None
        self._fresh = True  # it has not been without the database yet
        self.begun = False
        self._astray: set[tuple[str, str]] = set()

    # ------------------------------------------------------------------------ writing

    def collect(self) -> _Beginning:
        self._commits += 1
        return _Beginning(self, self.id, self._commits)

    async def alive(self, connection: AsyncConnection, replica_id: str) -> bool:
        """Whether a replica holds its lease."""
        if self.alone:
            return replica_id == self.id
        found = select(replicas.c.replica_id).where(replicas.c.replica_id == replica_id)
        return await connection.scalar(found) is not None

    # ------------------------------------------------------------------------- living

    async def begin(self) -> None:
        """Become a replica.

        Raises:
            Unavailable: the database cannot be used.
        """
        async with self._database.write() as connection:
            await self.enter(connection)
        self.begun = True

    async def enter(self, connection: AsyncConnection) -> None:
        """Add this replica's row, if it is not there."""
        if not self.alone:
            row = {"replica_id": self.id, "beat": _NOW, "commits": 0}
            await connection.execute(insert(connection, replicas).values(row).on_conflict_do_nothing())

    def renew(self) -> None:
        """Be a new replica from now on; the next beat or write says so to the others."""
        self.id, self.begun = str(uuid4()), False
        self._commits, self._kept_since = 0, None

    async def beat(self) -> bool:
        """Say that this replica lives; whether it does.

        Raises:
            Unavailable: nobody could be told.
        """
        if not self.begun:
            await self.begin()
        if self.alone:
            return True
        replica = self.id
        try:
            async with self._database.write() as connection:
                ours = update(replicas).where(replicas.c.replica_id == replica).values(beat=_NOW)
                alive = (await connection.execute(ours)).rowcount == 1
        except Unavailable:
            self._kept_since, self._fresh = None, False
            raise
        if self.id != replica:
            return True  # it has found out already, and been renewed
        now = asyncio.get_running_loop().time()
        self._kept_since = (self._kept_since or now) if alive else None
        return alive

    async def bury(self) -> None:
        """Remove replicas that have not renewed their rows (rules 1 and 3).

        Raises:
            Unavailable: the database cannot be used.
        """
        now = asyncio.get_running_loop().time()
        steady = self._kept_since is not None and now - self._kept_since >= self.timing.expired
        if self.alone or not (steady or self._fresh):
            return
        async with self._database.write() as connection:
            dead = delete(replicas).where(
                replicas.c.beat < _NOW - self.timing.expired, replicas.c.replica_id != self.id
            )
            if not steady:
                dead = dead.where(replicas.c.beat > func.extract("epoch", func.pg_postmaster_start_time()))
            found = (await connection.scalars(dead.returning(replicas.c.replica_id))).all()
        if found:
            logger.warning("Replicas that no longer answer: %s. Their tasks are taken up.", ", ".join(found))

    async def leave(self, given_up: Callable[[AsyncConnection], Any]) -> None:
        """Stop being a replica: give up every task, so that others take them up at once.

        Args:
            given_up: tells the others, within the transaction.

        Raises:
            Unavailable: the database cannot be used; others find out by themselves.
        """
        async with self._database.write() as connection:
            ours = update(tasks).where(tasks.c.replica == self.id, tasks.c.state.in_(GOING))
            await connection.execute(ours.values(replica=null()))
            await connection.execute(delete(replicas).where(replicas.c.replica_id == self.id))
            await given_up(connection)

    # ------------------------------------------------------------------------ takeover

    async def take_over(self, running: Iterable[tuple[str, str]]) -> tuple[Orphan, ...]:
        """Make some tasks that work, and whose replica is dead, this one's.

        Args:
            running: (context, task) of those that this replica runs.

        Raises:
            Unavailable: the database cannot be used.
        """
        async with self._database.read() as connection:
            found = await self._lying(connection, set(running))
        if not found:
            return ()
        chosen = select(*WHOLE, tasks.c.epoch, tasks.c.replica, tasks.c.resumptions, tasks.c.cancelled)
        chosen = chosen.where(these(found), tasks.c.state.in_(GOING), self._abandoned()).with_for_update(
            skip_locked=True
        )
        async with self._database.write() as connection:
            rows = (await connection.execute(chosen)).all()
            if not rows:
                return ()
            entries = {record.task_id: record for record in await records(connection, _these(rows))}
            taken = [await self._take(connection, row, entries[row.task_id]) for row in rows]
            return tuple(orphan for orphan in taken if orphan)

    async def _lying(self, connection: AsyncConnection, running: set[tuple[str, str]]) -> list[tuple[str, str]]:
        """Tasks that nobody runs, although they should: some of those of dead replicas, and what this one has lost."""
        pair = select(tasks.c.context_id, tasks.c.task_id).where(tasks.c.state.in_(GOING))
        ours = await connection.execute(pair.where(tasks.c.replica == self.id))
        # Twice: it may just be on its way to whoever asked for it.
        astray = {(context_id, task_id) for context_id, task_id in ours} - running
        lost, self._astray = astray & self._astray, astray
        others = await connection.execute(
            # In any order, so that replicas that look at the same time do not all go for the same ones.
            pair.where(self._abandoned(), tasks.c.replica.is_distinct_from(self.id))
            .order_by(func.random())
            .limit(AT_ONCE)
        )
        return [*lost, *((context_id, task_id) for context_id, task_id in others)]

    def _abandoned(self) -> ColumnElement[bool]:
        ours = tasks.c.replica == self.id
        if self.alone:
            return true()
        return or_(ours, tasks.c.replica.is_(None), tasks.c.replica.not_in(select(replicas.c.replica_id)))

    async def _take(self, connection: AsyncConnection, row: Any, record: TaskRecord) -> Orphan | None:
        resumptions = row.resumptions + (row.replica is not None)
        record = replace(record, epoch=row.epoch + 1)
        if record.state.settled and not row.cancelled:
            await self._own(connection, record, state=record.state.value)
            return None
        await self._own(connection, record, resumptions=resumptions)
        return Orphan(record, resumptions, row.cancelled)

    async def acquire(self, task_id: str) -> TaskRecord | None:
        """Make a task that nobody runs this replica's; None if somebody runs it. One that has ended stays as it is.

        Raises:
            TaskNotFound: there is none.
            Unavailable: the database cannot be used.
        """
        async with self._database.write() as connection:
            context_id = await context_of(connection, task_id)
            ours = tasks.c.context_id == context_id, tasks.c.task_id == task_id
            stands = select(tasks.c.state, tasks.c.epoch).where(*ours).with_for_update()
            state, epoch = (await connection.execute(stands)).one()
            if state in GOING:
                return None
            record = await one_record(connection, task_id)
            if record.state.terminal:
                return record
            record = replace(record, epoch=epoch + 1)
            # From now on it counts as one that works, so that no other replica acquires it, too.
            await self._own(connection, record, state=State.WORKING.value)
            return record

    async def retake(self, context_id: str, task_id: str, unwritable: int) -> Orphan | None:
        """Begin a new epoch of a task of this replica, from its rows. None: there is none, or it waits as before.

        Args:
            unwritable: as in `Orphan`.

        Raises:
            Unavailable: the database cannot be used.
        """
        ours = select(tasks.c.epoch, tasks.c.resumptions, tasks.c.cancelled)
        ours = ours.where(these([(context_id, task_id)]), tasks.c.replica == self.id, tasks.c.state.in_(GOING))
        async with self._database.write() as connection:
            row = (await connection.execute(ours.with_for_update())).one_or_none()
            if row is None:
                return None
            record = replace(await one_record(connection, task_id), epoch=row.epoch + 1)
            await self._own(connection, record, state=record.state.value)
        return None if record.state.settled else Orphan(record, row.resumptions, row.cancelled, unwritable)

    async def _own(self, connection: AsyncConnection, record: TaskRecord, **values: Any) -> None:
        ours = tasks.c.context_id == record.context_id, tasks.c.task_id == record.task_id
        await connection.execute(update(tasks).where(*ours).values(replica=self.id, epoch=record.epoch, **values))


def _these(rows: Sequence[Any]) -> Any:
    return select(*WHOLE).where(these((row.context_id, row.task_id) for row in rows))


class _Beginning:
    """What every transaction of a replica begins with: its row is there, and does not have this transaction yet."""

    def __init__(self, lease: Lease, replica: str, number: int) -> None:
        self._lease = lease
        self._replica = replica
        self._number = number

    async def write(self, connection: AsyncConnection) -> None:
        if self._lease.alone:
            return
        if self._lease.id == self._replica and not self._lease.begun:
            await self._lease.enter(connection)
        ours = replicas.c.replica_id == self._replica
        number = await connection.scalar(select(replicas.c.commits).where(ours).with_for_update())
        if number is None:
            raise Fenced("another replica has taken over")
        if number == self._number:
            raise Written
        await connection.execute(update(replicas).where(ours).values(commits=self._number))

    def done(self) -> None:
        if self._lease.id == self._replica:
            self._lease.begun = True

    def divided(self) -> Mapping[str, Part]:
        return {}
