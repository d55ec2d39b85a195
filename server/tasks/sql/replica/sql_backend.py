"""Everything that a server keeps in a database, and its place among the other replicas: one `SqlBackend` per process.

The order of the participants in the group commit is that of the writes: first the lease, which proves that this
replica may write at all, then the tasks, then the artifacts.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial

from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.turn.resume import open_drafts
from a2a_canvas.server.tasks.errors import Unwritable
from a2a_canvas.server.tasks.ownership import TaskRunner
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal.sql_journal import SqlJournal
from a2a_canvas.server.tasks.sql.replica.inbox import Inbox
from a2a_canvas.server.tasks.sql.replica.lease import Lease, LeaseTiming
from a2a_canvas.server.tasks.sql.replica.notifications import Notification, NotificationListener, notify
from a2a_canvas.server.tasks.sql.replica.takeover import CLAIM_LIMIT, Claim, Takeover
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.models import Limits, Ref
from a2a_canvas.store.retrying import retry_while_unavailable
from a2a_canvas.store.sql.artifacts import SqlArtifactStore
from a2a_canvas.store.sql.commit import COMMIT_SPACING, RETRY_SECONDS, GroupCommit
from a2a_canvas.store.sql.database import Database

logger = logging.getLogger(__name__)

LEASE_TIMING = LeaseTiming()
SHUTDOWN_GRACE = 5.0
"""Seconds that a stop may take."""
PROBE_TIMEOUT = 1.5
"""Seconds that the database has to answer whether it can be used."""
MAX_WRITE_FAILURES = 2
"""How often something of a task may fail to be written; at the next failure the task is set aside."""


class SqlBackend:
    """The journal and the store of one replica. It is the `Ownership` of its runtime.

    Args:
        grace: seconds that a stop may take; a database that has not answered after a third of them is left alone.

    Attributes:
        journal, store: what tasks and artifacts are kept in.
    """

    def __init__(
        self,
        database: Database,
        now: Callable[[], datetime],
        limits: Limits,
        spacing: float = COMMIT_SPACING,
        timing: LeaseTiming = LEASE_TIMING,
        grace: float = SHUTDOWN_GRACE,
    ) -> None:
        self._database = database
        self.commits = GroupCommit(database, self._lost, self._unwritable, spacing=spacing)
        self._lease = Lease(database, timing)
        self.commits.join(self._lease)
        self.journal = SqlJournal(database, self.commits, self._lease, _notify, now)
        self.store = SqlArtifactStore(database, self.commits, self._lease, limits)
        self._inbox = Inbox(database, self.journal, _post_for, now)
        self._takeover = Takeover(database, self._lease, _notify, now)
        self._listener = NotificationListener(database, self._on_notification)
        self._grace = grace
        self._terminating: asyncio.TimerHandle | None = None
        self._probing: asyncio.Task[str | None] | None = None
        self._owner: TaskRunner | None = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._handing_over = False
        self._takeover_task: asyncio.Task[None] | None = None
        self._look = asyncio.Event()
        self._taking_over = asyncio.Lock()
        self._acquiring: Counter[tuple[str, str]] = Counter()
        self._unwritten: Counter[str] = Counter()  # by task, how often something of it could not be written
        self._failing: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------------- living

    async def start(self, owner: TaskRunner) -> None:
        """Join the replicas, and take up what was left lying.

        Raises:
            Unavailable: the database cannot be used.
        """
        self._owner = owner
        await self._lease.register()
        self.commits.start()
        self._heartbeat = asyncio.create_task(self._heartbeat_loop(), name="beat of the replica")
        await self._take_over()
        self._listener.start()
        self._takeover_task = asyncio.create_task(self._takeover_loop(), name="look for what nobody runs")

    async def stop(self) -> None:
        """Leave. Turns that still run are given up: another replica, or the next start, takes them up."""
        self._limit_stop()
        loops = [loop for loop in (self._heartbeat, self._takeover_task, self._probing, *self._failing) if loop]
        for loop in loops:
            loop.cancel()
        if loops:
            await asyncio.wait(loops)
        await self._listener.stop()
        await self.commits.stop(at_once=self._database.terminated)
        await self.journal.stop()
        await self._database.close()
        if self._terminating:
            self._terminating.cancel()

    def _limit_stop(self) -> None:
        """From here on a database that does not answer holds up the stop for a third of its grace, in sum."""
        if self._terminating is None:
            self._terminating = asyncio.get_running_loop().call_later(self._grace / 3, self._terminate)

    def _terminate(self) -> None:
        self._database.terminate()
        if self._database.terminated:
            self.commits.give_up("the database does not answer")

    async def ready(self) -> str | None:
        """Why this replica cannot serve just now; None if it can."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe(), name="probe")
        # It is left to itself: a cancel would wait for the database, too.
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
                if await self._lease.heartbeat():
                    self._look.set()
                elif not self._handing_over:
                    self._lost()
            except Unavailable:
                continue  # the group commit says so, if there is anything to write
            except Exception:
                logger.exception("The replica's beat failed")

    async def _takeover_loop(self) -> None:
        """Beside the beat, which must not wait for it."""
        while True:
            await self._look.wait()
            self._look.clear()
            try:
                await self._lease.expire_dead()
                await self._take_over()
            except Unavailable:
                continue  # the next beat looks again
            except Exception:
                logger.exception("What nobody runs could not be taken over")

    async def _take_over(self) -> None:
        # One at a time: what one has taken over and not yet begun would look to another as if nobody ran it.
        async with self._taking_over:
            while await self._some_taken_over():
                pass

    async def _some_taken_over(self) -> bool:
        """Whether there may be more."""
        if not self._owner or self._handing_over or self.commits.failing:
            return False
        claims = await self._takeover.claim((*self.journal.owned, *self._acquiring))
        for claim in claims:
            await self._take_up(claim, self._owner)
        return len(claims) >= CLAIM_LIMIT

    async def _take_up(self, claim: Claim, owner: TaskRunner, unwritable: int = 0) -> None:
        try:
            if orphan := await self._takeover.read_orphan(claim):
                await self._read_on((claim.task_id,))
                if self._runs(claim.replica):
                    owner.resume(replace(orphan, write_failures=unwritable))
                    self.journal.adopt(orphan.record)
            else:
                del self._unwritten[claim.task_id]  # it waits as before
        except Unavailable:
            raise  # it goes astray, and is looked for again
        except Exception as error:  # of this task alone
            try:
                await self._set_aside(claim, error)
            except Unavailable:
                raise
            except Exception:
                logger.exception("Task %s cannot be made to fail; it stays as it is.", claim.task_id)

    async def _set_aside(self, claim: Claim, reason: Exception) -> None:
        try:
            await self._close_drafts(claim.context_id, claim.task_id)
        except Unavailable:
            raise
        except Exception:
            logger.exception("Drafts of task %s stay open", claim.task_id)
        await self._takeover.fail_task(claim, reason)

    async def _close_drafts(self, context_id: str, task_id: str) -> None:
        """Nobody else may change an artifact while a task has a draft of it open."""
        for artifact_id in await open_drafts(self.store, context_id, task_id):
            draft = Ref(context_id, artifact_id, task_id)
            await self.store.prepare(draft)
            await self.store.discard(draft)
            await self.store.close(draft)

    def _runs(self, replica: str) -> bool:
        """Whether what was taken over by a replica is run here: its lease may have been lost meanwhile."""
        return self._lease.id == replica and not self._handing_over

    async def _read_on(self, task_ids: Iterable[str]) -> None:
        """Whoever follows a task here is to see it go on when it is this replica's."""
        with suppress(Unavailable):  # then they have to come back
            await self.journal.refresh(task_ids, ())

    def _lost(self) -> None:
        """Another replica has taken over: nothing that memory says counts any more."""
        if self._handing_over:
            self.commits.give_up()  # as was to be
            return
        logger.error("This replica's lease has run out; other replicas go on with its tasks.")
        self._lease.renew()
        self.journal.forget()
        self.store.forget()
        self.commits.give_up()
        self._inbox.forget()
        if self._owner:
            self._owner.detach()

    # --------------------------------------------------------------- what cannot be written

    def _unwritable(self, context_id: str, error: Exception) -> None:
        """What was staged in a context is given up, and of its tasks those fail that cannot be written.

        Its other tasks here may stand on what was given up: they are taken up again from their rows, as if astray.
        """
        logger.error("What was said in context %r cannot be written; it is given up.", context_id, exc_info=error)
        dropped = self.journal.drop(context_id)
        self.store.drop(context_id)
        self._inbox.forget(dropped)
        if self._owner:
            self._owner.detach(dropped)
        for task_id, unwritable in dropped.items():
            if unwritable:
                self._unwritten[task_id] += 1
                self._acquiring[context_id, task_id] += 1  # until it is adopted
                failing = asyncio.create_task(self._fail(context_id, task_id), name=f"end of task {task_id}")
                self._failing.add(failing)
                failing.add_done_callback(self._failing.discard)

    async def _fail(self, context_id: str, task_id: str) -> None:
        """End a task of which something could not be written; if that cannot be done either, it goes astray."""
        try:
            await retry_while_unavailable(
                partial(self._retake, context_id, task_id), partial(asyncio.sleep, RETRY_SECONDS)
            )
        except Exception:
            logger.exception("Task %s cannot be made to fail; it is tried again.", task_id)
        finally:
            self._acquiring -= Counter(((context_id, task_id),))

    async def _retake(self, context_id: str, task_id: str) -> None:
        claim = await self._takeover.reclaim(context_id, task_id)
        if claim is None:
            del self._unwritten[task_id]
            return
        unwritable = self._unwritten[task_id]
        if unwritable > 1:
            await self.store.remove_drafts(context_id, task_id)  # they cannot be closed
        if unwritable > MAX_WRITE_FAILURES:
            await self._set_aside(claim, Unwritable(task_id))
        elif self._owner:
            await self._take_up(claim, self._owner, unwritable)

    # -------------------------------------------------------------------------- news

    async def _on_notification(self, news: Notification) -> None:
        if news.everything:
            await self.journal.refresh_all()
        else:
            await self.journal.refresh(news.tasks, news.contexts)
        owned = {task_id for _, task_id in self.journal.owned}
        if self._owner and (news.everything or owned & set(news.post)):
            await self._inbox.collect(self._owner)
        if news.given_up:
            self._look.set()

    # ---------------------------------------------------------------------- ownership

    async def acquire(self, task_id: str) -> TaskRecord | None:
        record = await self.journal.get(task_id)
        if record.state.terminal:
            return record
        self.journal.check_open()
        pair, replica = (record.context_id, task_id), self._lease.id
        self._acquiring[pair] += 1
        try:
            acquired = await self._takeover.acquire(record)
            if acquired:
                await self._read_on((task_id,))
            if acquired is None or not self._runs(replica):
                return None
            self.journal.adopt(acquired)
            return acquired
        finally:
            self._acquiring -= Counter((pair,))

    async def post(self, task_id: str, message: UserMessage, key: str) -> bool:
        return await self._inbox.post(task_id, message, key)

    async def request_cancel(self, task_id: str) -> None:
        await self._inbox.request_cancel(task_id)

    async def resign(self) -> None:
        self._handing_over = True
        self._limit_stop()
        self.journal.give_up()
        if self._database.terminated:
            return
        try:
            await self.commits.flushed()
            await self._lease.resign(_given_up)
        except Unavailable as error:
            logger.warning(
                "The tasks cannot be handed over (%s). They are taken up when the lease has run out.", error.reason
            )


async def _notify(connection: AsyncConnection, tasks: tuple[str, ...], contexts: tuple[str, ...]) -> None:
    await notify(connection, Notification(tasks, contexts))


async def _post_for(connection: AsyncConnection, task_id: str) -> None:
    await notify(connection, Notification(post=(task_id,)))


async def _given_up(connection: AsyncConnection) -> None:
    await notify(connection, Notification(given_up=True))
