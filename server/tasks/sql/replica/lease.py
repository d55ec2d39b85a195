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
        than the start of the database (`heartbeat_at > pg_postmaster_start_time()`), and than everything that it has
        got from another primary.
Rule 4: the heartbeat waits for no turn: it has a connection of its own, and expiry runs in another task. A row can only
        be locked by a transaction of its own replica, and locked rows are not expired; the commit of that transaction
        renews the lease.
Rule 5: after a failover the database has another clock. A replica for which it has jumped by `late` seconds waits as
        after a stall, so that the others renew their rows by the new clock; it judges by no clock that it has not seen
        in a heartbeat. Rows from the future are then those of replicas that have not renewed them.
Rule 6: the row counts the transactions of its replica. If it has fewer than were committed, a standby that was behind
        has become the primary: the replica discards its memory as by rule 2.
Rule 7: on SQLite there is no other replica (`exclusive`): the lock on the file is the lease.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, and_, bindparam, delete, func, null, or_, select, update
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
        """Seconds without a heartbeat of its own, or that the clock of the database has jumped, after which a replica
        does not expire others.

        If everything stalled, their last heartbeats may be up to one interval older than its own.
        """
        return self.expiry / 2


_NOW = func.extract("epoch", func.clock_timestamp())
_KNOWN_SINCE = func.extract(
    "epoch", func.greatest(func.pg_postmaster_start_time(), func.pg_last_xact_replay_timestamp())
)
"""What is newer was written since the database has run, and as the primary."""

_BEFORE = select(replicas).where(replicas.c.replica_id == bindparam("replica")).with_for_update().cte()
_COUNT = (
    update(replicas)
    .where(replicas.c.replica_id == _BEFORE.c.replica_id)
    .values(commits=bindparam("number"), heartbeat_at=_NOW)
    .returning(_BEFORE.c.commits)
)
"""Locks the row of a replica, sets the number of its transactions, and returns the one before."""


class Lease:
    """The lease of this process. What reads or writes raises `Unavailable` while the database cannot be used.

    Args:
        clock: seconds, also counted while the process is stopped.

    Attributes:
        id: of this replica.
        exclusive: there are no other replicas.
        registered: the row of this replica has been committed.
        committed: the number of its last transaction that was committed.
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
        self._commits = self.committed = 0
        self._clock = clock
        self._last_heartbeat: float | None = None
        self._last_beat: float | None = None  # by the clock of the database
        self._steady_since: float | None = None
        self._never_disconnected = True  # since the start of the process
        self.registered = False

    def collect(self, contexts: Collection[ContextKey] | None = None) -> _LeaseCheck:
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
        self._commits = self.committed = 0
        self._last_beat = None
        self._mark_unsteady()

    async def heartbeat(self, followed: tuple[str, ...] = (), room: int = 0) -> bool:
        """Renew the lease; whether it was still held.

        Args:
            followed: tasks of other replicas that are followed here; their replicas are notified.
            room: how many more turns this replica could run.
        """
        if not self.registered:
            await self.register()
        if self.exclusive:
            return True
        replica = self.id
        try:
            async with self._database.heartbeat() as connection:
                ours = update(replicas).where(replicas.c.replica_id == replica)
                ours = ours.values(heartbeat_at=_NOW, room=room, room_at=_NOW)
                beat: float | None = await connection.scalar(ours.returning(replicas.c.heartbeat_at))
                if followed:
                    await connection.run_sync(self._notify, Notification(followed=followed))
        except Unavailable:
            self._mark_unsteady()
            raise
        if self.id != replica:
            return True  # a write has found out first, and the lease was renewed
        self._judge_steadiness(self._clock(), beat)
        return beat is not None

    def _judge_steadiness(self, now: float, beat: float | None) -> None:
        """Note a heartbeat: `beat` is its time by the clock of the database, None if the lease was lost (rule 3)."""
        elapsed = 0.0 if self._last_heartbeat is None else now - self._last_heartbeat
        elapsed_there = elapsed if beat is None or self._last_beat is None else beat - self._last_beat
        if elapsed > self.timing.late or abs(elapsed_there - elapsed) > self.timing.late:
            self._mark_unsteady()
        self._last_heartbeat, self._last_beat = now, beat
        self._steady_since = None if beat is None else self._steady_since or now

    def _mark_unsteady(self) -> None:
        """Expire nobody for the time of a lease (rule 3)."""
        self._steady_since, self._never_disconnected = None, False

    async def expire_dead(self) -> None:
        """Delete the rows of replicas whose leases have expired (rules 1 and 3)."""
        steady = self._steady_since is not None and self._clock() - self._steady_since >= self.timing.expiry
        if self.exclusive or self._last_beat is None or not (steady or self._never_disconnected):
            return
        own = replicas.alias()
        last = select(own.c.heartbeat_at).where(own.c.replica_id == self.id).scalar_subquery()
        # Older than both: a write may have renewed the own row by another clock since the last heartbeat.
        old = and_(*(replicas.c.heartbeat_at < beat - self.timing.expiry for beat in (last, self._last_beat)))
        future = and_(replicas.c.heartbeat_at > _NOW + self.timing.expiry, self._last_beat <= _NOW)
        known = or_(old, future) if steady else and_(old, replicas.c.heartbeat_at > _KNOWN_SINCE)
        silent = select(replicas.c.replica_id).where(known)
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
        number = connection.scalar(_COUNT, {"replica": self._replica, "number": self._number})
        if number is None:
            raise LeaseLost("another replica has taken over")
        if number < self._lease.committed and self._lease.id == self._replica:
            raise LeaseLost("the database has lost transactions that it had committed")
        if number == self._number:
            raise AlreadyCommitted

    def done(self) -> None:
        if self._lease.id == self._replica:
            self._lease.registered = True
            self._lease.committed = self._number

    def by_context(self) -> Mapping[ContextKey, ContextWork]:
        return {}
