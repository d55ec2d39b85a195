"""The leases of replicas. `takeover.py` is about the tasks of a replica whose lease has expired.

Rule 1: a replica has a row in `replicas`; its heartbeat renews it every second by the database's clock. A replica that
        finds a row older than four seconds deletes it. The replica of that row is then dead, and can never write again:
        every transaction begins by locking the row of its replica.
Rule 2: a replica whose row was deleted while it lives (it was stopped, or cut off) finds out at its next heartbeat or
        write. It discards its memory, and continues as a new replica with a new id.
Rule 3: a replica expires others only if it has itself kept its heartbeat for as long as a lease: when the database or
        this process has stalled, the others first get the time to renew. Their age is measured against this replica's
        own last heartbeat, because the database may stall at any moment. There is one exception: a replica that has
        just started, and has reached the database ever since, may expire rows at once whose last heartbeat is newer
        than the start of the database (`heartbeat_at > pg_postmaster_start_time()`).
Rule 4: the heartbeat waits for no turn: it has a connection of its own, and expiry runs in another task. A row can only
        be locked by a transaction of its own replica, and locked rows are not expired; the commit of that transaction
        renews the lease.
Rule 5: on SQLite there is no other replica (`exclusive`): the lock on the file is the lease.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, null, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.sql.projections.records import UNSETTLED, tasks
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.server.tasks.sql.projections.watchers import remove_watchers
from a2a_canvas.server.tasks.sql.replica.notifications import Notification, Notify, notify
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey, new_id
from a2a_canvas.store.sql.commit import AlreadyCommitted, ContextWork, LeaseLost
from a2a_canvas.store.sql.database import Database, insert

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds between two heartbeats, and after which a lease without one expires."""

    heartbeat: float = 1.0
    expiry: float = 4.0

    @property
    def late(self) -> float:
        """Seconds without a heartbeat of its own after which a replica does not expire others.

        If everything stalled, their last heartbeats may be up to one interval older than its own.
        """
        return self.expiry / 2


_NOW = func.extract("epoch", func.clock_timestamp())


class Lease:
    """The lease of this process. What reads or writes raises `Unavailable` while the database cannot be used.

    Args:
        clock: seconds, also counted while the process is stopped.

    Attributes:
        id: of this replica.
        exclusive: there are no other replicas.
        registered: the row of this replica has been committed.
    """

    def __init__(
        self,
        database: Database,
        timing: LeaseTiming,
        clock: Callable[[], float] = time.monotonic,
        notify: Notify = notify,
    ) -> None:
        self._notify = notify
        self.id = new_id()
        self.timing = timing
        self.exclusive = database.dialect == "sqlite"
        self._database = database
        self._commits = 0
        self._clock = clock
        self._last_heartbeat: float | None = None
        self._steady_since: float | None = None
        self._never_disconnected = True  # since the start of the process
        self.registered = False

    def collect(self) -> _LeaseCheck:
        self._commits += 1
        return _LeaseCheck(self, self.id, self._commits)

    async def alive(self, connection: AsyncConnection, replica_id: str) -> bool:
        """Whether a replica holds its lease."""
        if self.exclusive:
            return replica_id == self.id
        found = select(replicas.c.replica_id).where(replicas.c.replica_id == replica_id)
        return await connection.scalar(found) is not None

    async def register(self) -> None:
        """Insert the row of this replica."""
        replica = self.id
        await self._database.transact(self.insert_row)
        if self.id == replica:  # otherwise it was renewed meanwhile
            self.registered, self._last_heartbeat = True, self._clock()

    def insert_row(self, connection: Connection) -> None:
        """Insert the row of this replica, if it is not there."""
        if not self.exclusive:
            row = {"replica_id": self.id, "heartbeat_at": _NOW, "commits": 0}
            connection.execute(insert(connection, replicas).values(row).on_conflict_do_nothing())

    def renew(self) -> None:
        """Become a new replica; its row is inserted by the next heartbeat or write."""
        self.id, self.registered = new_id(), False
        self._commits = 0
        self._mark_unsteady()

    async def heartbeat(self, followed: tuple[str, ...] = ()) -> bool:
        """Renew the lease; whether it was still held.

        Args:
            followed: tasks of other replicas that are followed here; their replicas are notified.
        """
        if not self.registered:
            await self.register()
        if self.exclusive:
            return True
        replica = self.id
        try:
            async with self._database.heartbeat() as connection:
                ours = update(replicas).where(replicas.c.replica_id == replica).values(heartbeat_at=_NOW)
                alive = (await connection.execute(ours)).rowcount == 1
                if followed:
                    await connection.run_sync(self._notify, Notification(followed=followed))
        except Unavailable:
            self._mark_unsteady()
            raise
        if self.id != replica:
            return True  # a write has found out first, and the lease was renewed
        now = self._clock()
        if self._last_heartbeat is not None and now - self._last_heartbeat > self.timing.late:
            self._mark_unsteady()
        self._last_heartbeat = now
        self._steady_since = (self._steady_since or now) if alive else None
        return alive

    def _mark_unsteady(self) -> None:
        """Expire nobody for the time of a lease (rule 3)."""
        self._steady_since, self._never_disconnected = None, False

    async def expire_dead(self) -> None:
        """Delete the rows of replicas whose leases have expired (rules 1 and 3)."""
        steady = self._steady_since is not None and self._clock() - self._steady_since >= self.timing.expiry
        if self.exclusive or not (steady or self._never_disconnected):
            return
        own = replicas.alias()
        last = select(own.c.heartbeat_at).where(own.c.replica_id == self.id).scalar_subquery()
        silent = select(replicas.c.replica_id).where(replicas.c.heartbeat_at < last - self.timing.expiry)
        if not steady:
            silent = silent.where(replicas.c.heartbeat_at > func.extract("epoch", func.pg_postmaster_start_time()))
        dead = delete(replicas).where(replicas.c.replica_id.in_(silent.with_for_update(skip_locked=True)))
        async with self._database.write() as connection:
            found = (await connection.scalars(dead.returning(replicas.c.replica_id))).all()
            if found:
                watched = await connection.run_sync(remove_watchers, found)
                await connection.run_sync(self._notify, Notification(active=watched))
        if found:
            logger.warning(
                "The leases of these replicas have expired: %s. Their tasks are taken over.", ", ".join(found)
            )

    async def resign(self) -> None:
        """Give up the lease and every task, so that others take the tasks over at once.

        Raises:
            Unavailable: the database cannot be used; the lease expires.
        """
        async with self._database.write() as connection:
            ours = update(tasks).where(tasks.c.replica == self.id, tasks.c.state.in_(UNSETTLED))
            await connection.execute(ours.values(replica=null()))
            await connection.execute(delete(replicas).where(replicas.c.replica_id == self.id))
            watched = await connection.run_sync(remove_watchers, (self.id,))
            await connection.run_sync(self._notify, Notification(active=watched, given_up=True))


class _LeaseCheck:
    """The beginning of every transaction: the replica's row is there, and does not count this transaction yet."""

    def __init__(self, lease: Lease, replica: str, number: int) -> None:
        self._lease = lease
        self._replica = replica
        self._number = number

    def write(self, connection: Connection) -> None:
        if self._lease.exclusive:
            return
        if self._lease.id == self._replica and not self._lease.registered:
            self._lease.insert_row(connection)
        ours = replicas.c.replica_id == self._replica
        number = connection.scalar(select(replicas.c.commits).where(ours).with_for_update())
        if number is None:
            raise LeaseLost("another replica has taken over")
        if number == self._number:
            raise AlreadyCommitted
        connection.execute(update(replicas).where(ours).values(commits=self._number, heartbeat_at=_NOW))

    def done(self) -> None:
        if self._lease.id == self._replica:
            self._lease.registered = True

    def by_context(self) -> Mapping[ContextKey, ContextWork]:
        return {}
