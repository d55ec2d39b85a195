"""Which replicas live. `takeover.py` is about the tasks of one that does not.

Rule 1: a replica has a row, renewed every second by the database's clock. Whoever finds one older than
        four removes it. By that its replica is dead and can never write again: each of its transactions begins
        with its row.
Rule 2: a replica that is removed while it lives (it was stopped, or cut off) finds out at its next beat or write,
        drops everything, and goes on as a new one.
Rule 3: nobody is removed by a replica that has not itself kept its beat for as long: when the database or this process
        has stood still, with an error or without, everybody first gets the time to say that they live. Others are
        judged as of this one's own last beat, because the database may stand still at any moment. But one that has
        just started, and has found the database there ever since, need not wait for whoever was silent since before:
        if the database itself has run since that one's last beat, it is dead.
Rule 4: the heartbeat waits for no turn: it has a connection of its own, and the dead are looked for elsewhere. Only a
        transaction of its own replica can hold its row, and nobody removes a replica whose row is held; when that
        transaction is committed, it has said that the replica lives.
Rule 5: alone (SQLite) there is nobody to beat for: the lock on the file is the lease.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, func, null, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.sql.journal.journal_reading import UNSETTLED
from a2a_canvas.server.tasks.sql.journal.journal_tables import replicas, tasks
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.commit import AlreadyCommitted, ContextWork, LeaseLost
from a2a_canvas.store.sql.database import Database, insert

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds from one beat to the next, and after which one without a beat is dead."""

    heartbeat: float = 1.0
    expiry: float = 4.0

    @property
    def late(self) -> float:
        """After how long without a beat of its own a replica does not judge others.

        They may have beaten up to a beat before it when everything stood still.
        """
        return self.expiry / 2


_NOW = func.extract("epoch", func.clock_timestamp())


class Lease:
    """This process's place among the replicas on a database.

    Args:
        clock: seconds; it goes on while the process is stopped.

    Attributes:
        registered: the others know of it.
    """

    def __init__(self, database: Database, timing: LeaseTiming, clock: Callable[[], float] = time.monotonic) -> None:
        self.id = str(uuid4())
        self.timing = timing
        self.exclusive = database.dialect == "sqlite"
        self._database = database
        self._commits = 0
        self._clock = clock
        self._beaten: float | None = None
        self._steady_since: float | None = None
        self._never_disconnected = True  # it has kept its beat ever since it started
        self.registered = False

    # ------------------------------------------------------------------------ writing

    def collect(self) -> _LeaseCheck:
        self._commits += 1
        return _LeaseCheck(self, self.id, self._commits)

    async def alive(self, connection: AsyncConnection, replica_id: str) -> bool:
        """Whether a replica holds its lease."""
        if self.exclusive:
            return replica_id == self.id
        found = select(replicas.c.replica_id).where(replicas.c.replica_id == replica_id)
        return await connection.scalar(found) is not None

    # ------------------------------------------------------------------------- living

    async def register(self) -> None:
        """Become a replica.

        Raises:
            Unavailable: the database cannot be used.
        """
        replica = self.id
        async with self._database.write() as connection:
            await self.enter(connection)
        if self.id == replica:  # else it has been renewed meanwhile
            self.registered, self._beaten = True, self._clock()

    async def enter(self, connection: AsyncConnection) -> None:
        """Add this replica's row, if it is not there."""
        if not self.exclusive:
            row = {"replica_id": self.id, "beat": _NOW, "commits": 0}
            await connection.execute(insert(connection, replicas).values(row).on_conflict_do_nothing())

    def renew(self) -> None:
        """Be a new replica from now on; the next beat or write says so to the others."""
        self.id, self.registered = str(uuid4()), False
        self._commits = 0
        self._unsteady()

    async def heartbeat(self) -> bool:
        """Say that this replica lives; whether it does.

        Raises:
            Unavailable: nobody could be told.
        """
        if not self.registered:
            await self.register()
        if self.exclusive:
            return True
        replica = self.id
        try:
            async with self._database.heartbeat() as connection:
                ours = update(replicas).where(replicas.c.replica_id == replica).values(beat=_NOW)
                alive = (await connection.execute(ours)).rowcount == 1
        except Unavailable:
            self._unsteady()
            raise
        if self.id != replica:
            return True  # it has found out already, and been renewed
        now = self._clock()
        if self._beaten is not None and now - self._beaten > self.timing.late:
            self._unsteady()
        self._beaten = now
        self._steady_since = (self._steady_since or now) if alive else None
        return alive

    def _unsteady(self) -> None:
        """Who has not kept its own beat does not know whether others could keep theirs (rule 3)."""
        self._steady_since, self._never_disconnected = None, False

    async def expire_dead(self) -> None:
        """Remove replicas that have not renewed their rows (rules 1 and 3).

        Raises:
            Unavailable: the database cannot be used.
        """
        steady = self._steady_since is not None and self._clock() - self._steady_since >= self.timing.expiry
        if self.exclusive or not (steady or self._never_disconnected):
            return
        own = replicas.alias()
        last = select(own.c.beat).where(own.c.replica_id == self.id).scalar_subquery()
        silent = select(replicas.c.replica_id).where(replicas.c.beat < last - self.timing.expiry)
        if not steady:
            silent = silent.where(replicas.c.beat > func.extract("epoch", func.pg_postmaster_start_time()))
        dead = delete(replicas).where(replicas.c.replica_id.in_(silent.with_for_update(skip_locked=True)))
        async with self._database.write() as connection:
            found = (await connection.scalars(dead.returning(replicas.c.replica_id))).all()
        if found:
            logger.warning("Replicas that no longer answer: %s. Their tasks are taken up.", ", ".join(found))

    async def resign(self, given_up: Callable[[AsyncConnection], Any]) -> None:
        """Stop being a replica: give up every task, so that others take them up at once.

        Args:
            given_up: tells the others, within the transaction.

        Raises:
            Unavailable: the database cannot be used; others find out by themselves.
        """
        async with self._database.write() as connection:
            ours = update(tasks).where(tasks.c.replica == self.id, tasks.c.state.in_(UNSETTLED))
            await connection.execute(ours.values(replica=null()))
            await connection.execute(delete(replicas).where(replicas.c.replica_id == self.id))
            await given_up(connection)


class _LeaseCheck:
    """What every transaction of a replica begins with: its row is there, and does not have this transaction yet."""

    def __init__(self, lease: Lease, replica: str, number: int) -> None:
        self._lease = lease
        self._replica = replica
        self._number = number

    async def write(self, connection: AsyncConnection) -> None:
        if self._lease.exclusive:
            return
        if self._lease.id == self._replica and not self._lease.registered:
            await self._lease.enter(connection)
        ours = replicas.c.replica_id == self._replica
        number = await connection.scalar(select(replicas.c.commits).where(ours).with_for_update())
        if number is None:
            raise LeaseLost("another replica has taken over")
        if number == self._number:
            raise AlreadyCommitted
        await connection.execute(update(replicas).where(ours).values(commits=self._number, beat=_NOW))

    def done(self) -> None:
        if self._lease.id == self._replica:
            self._lease.registered = True

    def by_context(self) -> Mapping[str, ContextWork]:
        return {}
