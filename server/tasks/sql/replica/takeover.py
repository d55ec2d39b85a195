"""How a task whose replica is dead becomes this replica's.

Rule 1: tasks that work and whose replica has no row in `replicas` are claimed, a few at a time, so that replicas share
        them. A claim changes columns only, raises the epoch, and is committed before any record is read: the rows are
        locked for a moment only, however long the tasks are.
Rule 2: then the tasks are read, one after the other (`journal_reading.py`). The record says whether there is anything
        to resume: a task that was acquired for an answer that was never written waits as before.
Rule 3: a task that cannot be resumed at all has failed: a last entry says so, and it is not claimed again.
Rule 4: resumptions count crashes. These do not count: a task that was given up (`replica` is null), one that this
        replica itself had claimed without result, and one that had not begun (`submitted`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement, and_, case, func, literal_column, or_, select, true, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import AgentMessage, State, StatusChanged
from a2a_canvas.server.log_output import about
from a2a_canvas.server.tasks.errors import Unreadable
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.server.tasks.runtime.ownership import Orphan
from a2a_canvas.server.tasks.runtime.turn_report import log_status
from a2a_canvas.server.tasks.sql.journal.journal_reading import ALL_COLUMNS, fold_task, read_tasks, tasks_in
from a2a_canvas.server.tasks.sql.journal.journal_writing import OutboxWriter
from a2a_canvas.server.tasks.sql.projections import owned_rows, pages
from a2a_canvas.server.tasks.sql.projections.records import UNSETTLED, tasks
from a2a_canvas.server.tasks.sql.projections.replicas import replicas
from a2a_canvas.server.tasks.sql.projections.task_counts import add_counts, count_transition
from a2a_canvas.server.tasks.sql.replica.lease import Lease
from a2a_canvas.server.tasks.sql.replica.notifications import Notification, Notify, notify
from a2a_canvas.store.ids import ContextKey, new_id
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.kept import add_kept
from a2a_canvas.store.sql.times import to_microseconds
from a2a_canvas.store.sql.version_contents import VersionContents

logger = logging.getLogger(__name__)

CLAIM_LIMIT = 20
"""Tasks that a replica claims in one transaction."""

CANNOT_RESUME = "The server broke down in the middle of this task, and the task cannot be resumed. Send it again."


_CLAIM = (tasks.c.context_id, tasks.c.task_id, tasks.c.replica, tasks.c.epoch, tasks.c.resumptions)


@dataclass(frozen=True, slots=True)
class Claim:
    """A task that was claimed.

    Attributes:
        replica: the id of this replica at that moment: if it has lost its lease since, it has another one.
        epoch: the new epoch of the task.
        resumptions: see `Orphan`.
    """

    context_id: ContextKey
    task_id: str
    replica: str
    epoch: int
    resumptions: int


class Takeover:
    """Takes over tasks for the replica of a lease. Every method raises `Unavailable` while the database cannot be used.

    Args:
        versions: the contents of versions.
    """

    def __init__(
        self,
        database: Database,
        lease: Lease,
        versions: VersionContents,
        outbox: OutboxWriter,
        now: Callable[[], datetime],
        notify: Notify = notify,
    ) -> None:
        self._notify = notify
        self._database = database
        self._lease = lease
        self._versions = versions
        self._outbox = outbox
        self._now = now
        self._maybe_not_running: set[tuple[str, str]] = set()
        self._handed: set[str] = set()

    def expect(self, task_ids: Iterable[str]) -> None:
        """These tasks were handed over to some replica. If it is this one, no request can be acquiring them."""
        self._handed |= set(task_ids)

    async def claim(self, running: Iterable[tuple[str, str]]) -> tuple[Claim, ...]:
        """Claim some tasks that work, and whose replica is dead.

        Args:
            running: (context, task) of those that this replica runs or is about to.
        """
        replica = self._lease.id
        if not self._lease.registered:
            return ()  # other replicas would claim them again
        async with self._database.read() as connection:
            found = await self._find_orphans(connection, replica, set(running))
        if not found:
            return ()
        free = select(tasks.c.context_id, tasks.c.task_id)
        free = free.where(tasks_in(found), tasks.c.state.in_(UNSETTLED), self._has_no_owner(replica))
        submitted = tasks.c.state == State.SUBMITTED.value
        no_crash = or_(tasks.c.replica.is_(None), tasks.c.replica == replica, submitted)
        claimed = (
            update(tasks)
            .where(tuple_(tasks.c.context_id, tasks.c.task_id).in_(free.with_for_update(skip_locked=True)))
            .values(
                replica=replica,
                epoch=tasks.c.epoch + 1,
                resumptions=tasks.c.resumptions + case((no_crash, 0), else_=1),
            )
            .returning(*_CLAIM)
        )
        order = {pair: number for number, pair in enumerate(found)}
        async with self._database.write() as connection:
            claims = [Claim(*row) for row in await connection.execute(claimed)]
        return tuple(sorted(claims, key=lambda claim: order[claim.context_id, claim.task_id]))

    async def claim_again(self, context_id: ContextKey, task_id: str) -> Claim | None:
        """Claim a task of this replica again; None if another replica has it, or it is settled."""
        ours = tasks.c.context_id == context_id, tasks.c.task_id == task_id, tasks.c.replica == self._lease.id
        claimed = update(tasks).where(*ours, tasks.c.state.in_(UNSETTLED)).values(epoch=tasks.c.epoch + 1)
        async with self._database.write() as connection:
            row = (await connection.execute(claimed.returning(*_CLAIM))).one_or_none()
        return Claim(*row) if row else None

    async def _find_orphans(
        self, connection: AsyncConnection, replica: str, running: set[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Tasks to claim: some of dead replicas, and tasks of this replica that nothing runs."""
        handed, self._handed = self._handed, set()
        pair = select(tasks.c.context_id, tasks.c.task_id).where(tasks.c.state.in_(UNSETTLED))
        ours = await connection.execute(pair.where(tasks.c.replica == replica))
        # Seen in two scans: in the first, a request may just be about to acquire it.
        not_running = {(context_id, task_id) for context_id, task_id in ours} - running
        lost = {each for each in not_running if each in self._maybe_not_running or each[1] in handed}
        self._maybe_not_running = not_running
        others = await connection.execute(
            # Tasks that had begun come first; then in random order, so that replicas that scan at the same time choose
            # different ones. On SQLite in the order of creation, which is the order of the queue.
            pair.where(self._has_no_owner(replica), tasks.c.replica.is_distinct_from(replica))
            .order_by(
                tasks.c.state == State.SUBMITTED.value,
                literal_column("tasks.rowid") if self._lease.exclusive else func.random(),
            )
            .limit(CLAIM_LIMIT)
        )
        return [*lost, *((context_id, task_id) for context_id, task_id in others)]

    def _has_no_owner(self, replica: str) -> ColumnElement[bool]:
        if self._lease.exclusive:
            return true()
        dead = tasks.c.replica.not_in(select(replicas.c.replica_id))
        return or_(tasks.c.replica == replica, tasks.c.replica.is_(None), dead)

    async def read_orphan(self, claim: Claim) -> Orphan | None:
        """A claimed task, to be resumed; None if it waits as before (rule 2), or was claimed by another replica.

        Raises:
            Unreadable: its rows cannot be decoded.
        """
        async with self._database.read() as connection:
            claimed = select(*ALL_COLUMNS, tasks.c.cancel_requested).where(_still(claim))
            found = await read_tasks(connection, claimed, self._versions)
        if not found:
            return None
        record = replace(await fold_task(found[0]), epoch=claim.epoch)
        cancel_requested = bool(found[0].row.cancel_requested)
        if record.state.settled and not cancel_requested:
            async with self._database.write() as connection:
                waits = {"state": record.state.value, "resumptions": 0}
                released = update(tasks).where(_still(claim)).values(waits).returning(tasks.c.task_id)
                if await connection.scalar(released):
                    change = count_transition(record.owner, found[0].row.state, record.state.value)
                    await connection.run_sync(add_counts, change, claim.replica)
                await connection.run_sync(self._notify, Notification(active=(claim.context_id,)))
            return None
        return Orphan(record, claim.resumptions, cancel_requested)

    async def fail_task(self, claim: Claim, reason: Exception) -> None:
        """Write that the task has failed, because it cannot be resumed (rule 3)."""
        unexpected = None if isinstance(reason, Unreadable) else reason
        cause = reason.__cause__ or reason
        ids = claim.task_id, claim.context_id
        logger.error("The task cannot be resumed, and has failed: %r", cause, exc_info=unexpected, extra=about(*ids))
        at = self._now()
        failed = StatusChanged(State.FAILED, AgentMessage(new_id(), CANNOT_RESUME))
        last = pages.last_generation(claim.context_id, claim.task_id)
        newest = case((tasks.c.generation > last, tasks.c.generation), else_=last)
        ended = {"state": State.FAILED.value, "changed_at": to_microseconds(at), "generation": newest + 1}
        async with self._database.write() as connection:
            before = await connection.scalar(select(tasks.c.state).where(_still(claim)).with_for_update())
            failing = update(tasks).where(_still(claim)).values(**ended, cancel_requested=False)
            told_of = tasks.c.generation, tasks.c.owner, tasks.c.push
            row = (await connection.execute(failing.returning(*told_of))).one_or_none()
            if row is None:
                return  # claimed by another replica
            generation, owner, push = row
            entry = Entry(claim.epoch, generation, at, failed)
            size = await pages.add(connection, (claim.context_id, claim.task_id), entry)
            if push:
                told = {(claim.context_id, claim.task_id): [entry]}
                await connection.run_sync(self._outbox.put, told, at)
            await owned_rows.touch(connection, claim.context_id, owner, at)
            await connection.run_sync(self._notify, Notification((claim.task_id,), active=(claim.context_id,)))
            await connection.run_sync(add_kept, {claim.context_id: size})
            await connection.run_sync(
                add_counts, count_transition(owner, before or "", State.FAILED.value), claim.replica
            )
        log_status(failed, ids=ids)

    async def acquire(self, record: TaskRecord) -> TaskRecord | None:
        """Acquire a task that waits for input; None if it has changed since it was read, or a replica runs it."""
        if not self._lease.registered:
            await self._lease.register()
        waits = tasks.c.state == record.state.value, tasks.c.generation == record.generation
        ours = tasks.c.context_id == record.context_id, tasks.c.task_id == record.task_id
        # From now on it is `working`, so that no other replica acquires it, too.
        columns = {"replica": self._lease.id, "epoch": tasks.c.epoch + 1, "state": State.WORKING.value}
        acquired = update(tasks).where(*ours, *waits, tasks.c.state.not_in(UNSETTLED)).values(columns)
        async with self._database.write() as connection:
            epoch = await connection.scalar(acquired.returning(tasks.c.epoch))
            if epoch is not None:
                change = count_transition(record.owner, record.state.value, State.WORKING.value)
                await connection.run_sync(add_counts, change, self._lease.id)
        return None if epoch is None else replace(record, epoch=epoch)


def _still(claim: Claim) -> ColumnElement[bool]:
    """The task, unless it was claimed again."""
    return and_(
        tasks_in([(claim.context_id, claim.task_id)]),
        tasks.c.replica == claim.replica,
        tasks.c.epoch == claim.epoch,
    )
