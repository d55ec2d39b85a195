"""The journal and the store of one replica in a database, and the loops that keep its lease and take over tasks.

Rule 1: the order of the participants in the group commit is the order of the writes: first the lease, which proves that
        this replica may write, then the tasks, then the artifacts.
Rule 2: takeovers run beside the heartbeat, one at a time: a task that was claimed and is not adopted yet would look
        to another takeover like one that nothing runs.
Rule 3: if a transaction cannot be written for a reason that concerns one context, the tasks in it fail, and no others.
        Its tasks that could be written are taken over again from their rows.
Rule 4: tasks that wait here for a place among the turns are handed over to replicas that have room. This takes turns
        with takeovers (rule 2): a task that is being handed over looks like one that nothing runs.
Rule 5: this backend calls the runtime (`TaskRunner`); the runtime knows the journal, the store and the ownership, and
        not the backend.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from a2a_canvas.server.accounts.server_secrets import ServerSecrets
from a2a_canvas.server.accounts.sql.access_reads import AccessReads
from a2a_canvas.server.accounts.sql.sql_secrets import SqlSecrets
from a2a_canvas.server.accounts.sql.sql_shares import SqlShares
from a2a_canvas.server.agent.turn.resume import open_drafts
from a2a_canvas.server.backend.broker_use import BrokerUse
from a2a_canvas.server.backend.spaced_call import SpacedCall
from a2a_canvas.server.broker.broker import Broker
from a2a_canvas.server.log_output import about
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.push.sql.outbox_rows import SqlOutboxWriter
from a2a_canvas.server.push.sql.sql_push import SqlPush
from a2a_canvas.server.tasks.errors import Unwritable
from a2a_canvas.server.tasks.presence.present_people import PresentPeople
from a2a_canvas.server.tasks.runtime.ownership import TaskRunner
from a2a_canvas.server.tasks.sql.journal.sql_contexts import SqlContexts
from a2a_canvas.server.tasks.sql.journal.sql_journal import SqlJournal
from a2a_canvas.server.tasks.sql.projections.context_rows import lock_to_share
from a2a_canvas.server.tasks.sql.replica.broker_exchange import BrokerExchange
from a2a_canvas.server.tasks.sql.replica.hand_over import HandOver, divide
from a2a_canvas.server.tasks.sql.replica.inbox import Inbox
from a2a_canvas.server.tasks.sql.replica.lease import Lease, LeaseTiming
from a2a_canvas.server.tasks.sql.replica.notifications import Notification, NotificationListener
from a2a_canvas.server.tasks.sql.replica.presence_exchange import PresenceExchange
from a2a_canvas.server.tasks.sql.replica.sql_ownership import ShutdownLimit, SqlOwnership
from a2a_canvas.server.tasks.sql.replica.takeover import CLAIM_LIMIT, Claim, Takeover
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Limits, Ref
from a2a_canvas.store.retrying import retry_while_unavailable
from a2a_canvas.store.sql.commit import COMMIT_SPACING, RETRY_SECONDS, GroupCommit
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.sql_artifact_store import SqlArtifactStore

logger = logging.getLogger(__name__)

LEASE_TIMING = LeaseTiming()
SHUTDOWN_GRACE = 5.0
"""Seconds that a shutdown may take."""
HAND_OVER_INTERVAL = 0.25
"""Seconds between two looks for replicas that have room, while turns wait for a place."""
PROBE_TIMEOUT = 1.5
"""Seconds that the database has to answer a readiness probe."""
MAX_WRITE_FAILURES = 2
"""How often something of a task may fail to be written; at the next failure its row alone is set to failed."""
REVOCATION_INTERVAL = 0.2
"""Seconds between two checks of all streams because a share or a credential has changed: however many changes a user
makes, the others are served."""


class SqlBackend:
    """The journal, the store and the ownership of one replica.

    Args:
        grace: seconds that a shutdown may take; a database that does not answer is closed after a third of them.
        metrics: count what is written, and the lease.
        broker: addresses of the broker; empty for none.
        takes_over: whether this replica takes tasks over.
    """

    def __init__(
        self,
        database: Database,
        now: Callable[[], datetime],
        limits: Limits,
        spacing: float = COMMIT_SPACING,
        timing: LeaseTiming = LEASE_TIMING,
        grace: float = SHUTDOWN_GRACE,
        metrics: Metrics | None = None,
        broker: Sequence[str] = (),
        takes_over: bool = True,
    ) -> None:
        self._takes_over = takes_over
        self._database = database
        self._metrics = metrics or Metrics(now)
        self._metrics.refreshers.append(self._report_writes)
        self._reported = (0, 0)  # failures of commits, and bytes
        self._pages = (0, 0)  # read and received for subscribers
        self.commits = GroupCommit(
            database, self._on_lease_lost, self._on_unwritable, spacing=spacing, committed=self._metrics.commits.observe
        )
        self.secrets: ServerSecrets = SqlSecrets(database, now)
        self.broker = BrokerUse(database, broker, self.secrets, self._metrics)
        notify = self.broker.notify
        self._lease = Lease(database, timing, notify=notify)
        self.store = SqlArtifactStore(database, self.commits, self._lease, limits)
        versions = self.store.version_contents
        self.push = SqlPush(database, now)
        outbox = SqlOutboxWriter()
        self.journal = SqlJournal(
            database, self.commits, self._lease, versions, self._notify_writes, outbox, now, self.push.wake.set
        )
        self.contexts = SqlContexts(database, self.store.frozen, self._notify_all, self.journal.refresh_all)
        self._access_reads = AccessReads(database)
        self._revoke = SpacedCall(self._tell_revoked, REVOCATION_INTERVAL)
        self._on_revoked = SpacedCall(self._hear_revoked, REVOCATION_INTERVAL)
        self.shares = SqlShares(database, lock_to_share, now, reads=self._access_reads, revoked=self._revoke)
        for participant in (self._lease, self.journal, self.store):
            self.commits.join(participant)
        self._inbox = Inbox(database, self.journal, now, notify)
        self._takeover = Takeover(database, self._lease, versions, outbox, now, notify)
        self._hand_over = HandOver(database, self._lease, notify)
        self._limit = ShutdownLimit(database, self.commits, grace)
        self.ownership = SqlOwnership(
            database, self.commits, self.journal, self._lease, self._takeover, self._inbox, self._limit
        )
        self.presence = PresentPeople()
        self._exchange = PresenceExchange(database, self.presence)
        self._listener = NotificationListener(
            database, self._on_notification, self._exchange, lambda: self.broker.concerns
        )
        self._runner: TaskRunner | None = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._takeover_task: asyncio.Task[None] | None = None
        self._hand_over_task: asyncio.Task[None] | None = None
        self._probing: asyncio.Task[str | None] | None = None
        self._takeover_due = asyncio.Event()
        self._taking_over = asyncio.Lock()
        self._write_failures: Counter[str] = Counter()  # by task
        self._failing: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------------- living

    async def start(self, runner: TaskRunner) -> None:
        """Register as a replica, and take over tasks that no replica runs.

        Raises:
            Unavailable: the database cannot be used.
        """
        self._runner = runner
        await self._lease.register()
        await self.broker.start(self._make_exchange)
        await self.push.recover()
        self.commits.start()
        self._start_heartbeat()
        await self._take_over()
        self._start_takeovers()

    def _make_exchange(self, broker: Broker, key: bytes) -> BrokerExchange:
        exchange = BrokerExchange(broker, key, self._exchange, self._listener.receive, self._on_revoked)
        self.journal.connect(exchange)
        return exchange

    def _start_heartbeat(self) -> None:
        self._heartbeat = asyncio.create_task(self._heartbeat_loop(), name="heartbeat")

    def _start_takeovers(self) -> None:
        self._listener.start()
        if self._database.dialect == "postgresql":
            self._exchange.start()
            self._hand_over_task = asyncio.create_task(self._hand_over_loop(), name="hand-overs")
        self._takeover_task = asyncio.create_task(self._takeover_loop(), name="takeovers")

    async def stop(self) -> None:
        """Leave the database. Turns that still run are taken over by another replica, or by the next start."""
        self._limit.start()
        started = self._heartbeat, self._takeover_task, self._hand_over_task, self._probing, *self._failing
        loops = [loop for loop in started if loop]
        for loop in loops:
            loop.cancel()
        if loops:
            await asyncio.wait(loops)
        await self._listener.stop()
        await self._exchange.stop()
        await self.broker.stop()
        await self.commits.stop(at_once=self._database.terminated)
        await self.journal.stop()
        await self._database.close()
        self._limit.stop()

    async def ready(self) -> str | None:
        """Why this replica cannot serve requests now; None if it can."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe(), name="probe")
        # Not cancelled at the timeout: a cancel would wait for the database, too.
        await asyncio.wait([self._probing], timeout=PROBE_TIMEOUT)
        reason = self._probing.result() if self._probing.done() else "it does not answer"
        return reason or (self.commits.failing.reason if self.commits.failing else None)

    async def _probe(self) -> str | None:
        try:
            async with self._database.read() as connection:
                await connection.exec_driver_sql("SELECT 1")
        except Unavailable as error:
            return error.reason
        return None

    async def _heartbeat_loop(self) -> None:
        while True:
            await asyncio.sleep(self._lease.timing.heartbeat)
            try:
                held = await self._lease.heartbeat(self.journal.followed_tasks, self._room)
                self._count_renewal("renewed" if held else "lost")
                if held:
                    self._takeover_due.set()
                elif not self.ownership.resigned:
                    self._on_lease_lost()
            except Unavailable:
                self._count_renewal("unavailable")
                continue  # the group commit logs it, if there is anything to write
            except Exception:
                logger.exception("The heartbeat failed")

    @property
    def _room(self) -> int:
        """For tasks of other replicas; none while some are on their way."""
        busy = self.commits.failing or self._taking_over.locked() or self._takeover_due.is_set()
        return self._runner.room if self._runner and not busy else 0

    def _count_renewal(self, outcome: str) -> None:
        if not self._lease.exclusive:
            self._metrics.lease_renewals.labels(outcome).inc()

    async def _report_writes(self) -> None:
        (failures, written), self._reported = self._reported, (self.commits.failures, self._database.written_bytes)
        self._metrics.commit_failures.inc(self.commits.failures - failures)
        self._metrics.written_bytes.inc(self._database.written_bytes - written)
        (read, received), self._pages = self._pages, self.journal.pages
        self._metrics.followed_pages.labels("database").inc(self._pages[0] - read)
        self._metrics.followed_pages.labels("broker").inc(self._pages[1] - received)

    def _on_lease_lost(self) -> None:
        """Another replica has taken over: memory is invalid, and this process becomes a new replica."""
        if self.ownership.resigned:
            self.commits.give_up()  # it gave up its tasks itself
            return
        logger.error("This replica's lease has expired; other replicas take over its tasks.")
        self._lease.renew()
        self.journal.forget()
        self.store.forget()
        self.commits.give_up()
        self._inbox.forget()
        if self._runner:
            self._runner.detach()

    # ---------------------------------------------------------------------- takeovers

    async def _takeover_loop(self) -> None:
        while True:
            await self._takeover_due.wait()
            self._takeover_due.clear()
            try:
                await self._lease.expire_dead()
                await self._take_over()
            except Unavailable:
                continue  # tried again after the next heartbeat
            except Exception:
                logger.exception("Tasks without an owner could not be taken over")

    async def _take_over(self) -> None:
        async with self._taking_over:
            while await self._take_over_some():
                pass

    async def _take_over_some(self) -> bool:
        """Whether there may be more."""
        if not (self._runner and self._takes_over) or self.ownership.resigned or self.commits.failing:
            return False
        claims = await self._takeover.claim((*self.journal.running, *self.ownership.acquiring))
        for claim in claims:
            await self._resume(claim, self._runner)
        return len(claims) >= CLAIM_LIMIT

    async def _resume(self, claim: Claim, runner: TaskRunner, write_failures: int = 0) -> None:
        try:
            if orphan := await self._takeover.read_orphan(claim):
                await self.ownership.refresh(claim.task_id)
                if self.ownership.holds(claim.replica):
                    runner.resume(replace(orphan, write_failures=write_failures))
                    self.journal.adopt(orphan.record)
            else:
                del self._write_failures[claim.task_id]  # it waits as before
                self.journal.activity_changed((claim.context_id,))
        except Unavailable:
            raise  # it is found again: nothing runs it
        except Exception as error:  # of this task only
            try:
                await self._fail_tasks(claim, error)
            except Unavailable:
                raise
            except Exception:
                logger.exception(
                    "The task cannot be made to fail; it stays as it is.", extra=about(claim.task_id, claim.context_id)
                )

    async def _fail_tasks(self, claim: Claim, reason: Exception) -> None:
        try:
            await self._close_drafts(claim.context_id, claim.task_id)
        except Unavailable:
            raise
        except Exception:
            logger.exception("Drafts of the task stay open", extra=about(claim.task_id, claim.context_id))
        await self._takeover.fail_task(claim, reason)
        self.journal.activity_changed((claim.context_id,))

    async def _close_drafts(self, context_id: ContextKey, task_id: str) -> None:
        """Close them, because no other task may change an artifact with an open draft."""
        for artifact_id in await open_drafts(self.store, context_id, task_id):
            draft = Ref(context_id, artifact_id, task_id)
            await self.store.prepare(draft)
            await self.store.discard(draft)
            await self.store.close(draft)

    # --------------------------------------------------------------------- hand-overs

    async def _hand_over_loop(self) -> None:
        while True:
            assert self._runner
            await self._runner.wait_until_full()
            try:
                await self._hand_over_waiting(self._runner)
            except Unavailable:
                pass  # what was stopped is taken over again
            except Exception:
                logger.exception("Waiting tasks could not be handed over")
            await asyncio.sleep(HAND_OVER_INTERVAL)

    async def _hand_over_waiting(self, runner: TaskRunner) -> None:
        async with self._taking_over:
            if self.ownership.resigned or self.commits.failing:
                return
            if not (room := await self._hand_over.room()):
                return
            for replica, task_ids in divide(runner.waiting_tasks(), room).items():
                await self._give(runner, task_ids, replica)

    async def _give(self, runner: TaskRunner, waiting: Sequence[str], replica: str) -> None:
        still = set(runner.waiting_tasks())  # some may have got a place while others were given
        if not (task_ids := [task_id for task_id in waiting if task_id in still]):
            return
        runner.detach(task_ids)
        await retry_while_unavailable(self.commits.flushed, partial(asyncio.sleep, RETRY_SECONDS))
        records = [record for task_id in task_ids if (record := self.journal.hand_over(task_id))]
        if records and not self.ownership.resigned:
            await self._hand_over.give(records, replica)
            for each in records:
                logger.info("The task waits, and is handed over", extra=about(each.task_id, each.context_id))

    # ----------------------------------------------------------------- write failures

    def _on_unwritable(self, context_id: ContextKey, error: Exception) -> None:
        """Discard what was staged in a context, and let those of its tasks fail that could not be written (rule 3)."""
        logger.error(
            "Staged writes of a context cannot be written and are discarded.",
            extra=about("", context_id),
            exc_info=error,
        )
        dropped = self.journal.drop(context_id)
        self.store.drop(context_id)
        self._inbox.forget(dropped)
        if self._runner:
            self._runner.detach(dropped)
        for task_id, unwritable in dropped.items():
            if unwritable:
                self._write_failures[task_id] += 1
                self.ownership.acquiring[context_id, task_id] += 1  # until it is adopted
                failing = asyncio.create_task(self._fail(context_id, task_id), name=f"end of task {task_id}")
                self._failing.add(failing)
                failing.add_done_callback(self._failing.discard)

    async def _fail(self, context_id: ContextKey, task_id: str) -> None:
        """End a task that could not be written. If this fails too, it is found again: nothing runs it."""
        pause = partial(asyncio.sleep, RETRY_SECONDS)
        try:
            await retry_while_unavailable(partial(self._fail_unwritable, context_id, task_id), pause)
        except Exception:
            logger.exception("The task cannot be made to fail; it is tried again.", extra=about(task_id, context_id))
        finally:
            self.ownership.acquiring -= Counter(((context_id, task_id),))

    async def _fail_unwritable(self, context_id: ContextKey, task_id: str) -> None:
        claim = await self._takeover.claim_again(context_id, task_id)
        if claim is None:
            del self._write_failures[task_id]
            return
        failures = self._write_failures[task_id]
        if failures > 1:
            await self.store.remove_drafts(context_id, task_id)  # they cannot be closed
        if failures > MAX_WRITE_FAILURES:
            await self._fail_tasks(claim, Unwritable(task_id))
        elif self._runner:
            await self._resume(claim, self._runner, failures)

    # ------------------------------------------------------------------ notifications

    async def _on_notification(self, notification: Notification) -> None:
        self.journal.activity_changed(notification.active, anywhere=notification.missed)
        if notification.everything:
            await self.journal.refresh_all()
        else:
            await self.journal.refresh(notification.tasks, notification.contexts)
        self.journal.mark_followed(notification.followed)
        running = {task_id for _, task_id in self.journal.running}
        if self._runner and (notification.everything or running & set(notification.inboxes)):
            await self._inbox.deliver_pending(self._runner)
        if self._takes_over:  # otherwise nothing claims them, and they would be kept for ever
            self._takeover.expect(notification.handed)
        if notification.given_up or notification.handed:
            self._takeover_due.set()

    def _notify_all(self, connection: Connection) -> None:
        self.broker.notify(connection, Notification())

    def _notify_writes(
        self,
        connection: Connection,
        tasks: tuple[str, ...],
        contexts: tuple[ContextKey, ...],
        active: tuple[ContextKey, ...],
    ) -> None:
        if self.broker.broker is None:
            self.broker.notify(connection, Notification(tasks, contexts, active=active))
        elif active:  # their pages announce tasks and contexts
            self.broker.notify(connection, Notification(active=active))

    def _tell_revoked(self) -> None:
        """A share or a credential has ended here."""
        self.journal.check_again()
        self.broker.revoke()

    def _hear_revoked(self) -> None:
        """A share or a credential may have ended, by another server's word."""
        self.shares.forget()
        self.journal.check_again()
