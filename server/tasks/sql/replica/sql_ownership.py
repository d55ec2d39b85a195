"""Which replica runs a task, in a database: tasks are acquired here, asked for elsewhere, and given up at the end."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal.sql_journal import SqlJournal
from a2a_canvas.server.tasks.sql.replica.inbox import Inbox
from a2a_canvas.server.tasks.sql.replica.lease import Lease
from a2a_canvas.server.tasks.sql.replica.takeover import Takeover
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.commit import GroupCommit
from a2a_canvas.store.sql.database import Database

logger = logging.getLogger(__name__)


class ShutdownLimit:
    """Lets a database that does not answer delay the shutdown by a third of its grace, in sum.

    Args:
        grace: seconds that the shutdown may take.
    """

    def __init__(self, database: Database, commits: GroupCommit, grace: float) -> None:
        self._database = database
        self._commits = commits
        self._grace = grace
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._grace / 3, self._terminate)

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _terminate(self) -> None:
        self._database.terminate()
        if self._database.terminated:
            self._commits.give_up("the database does not answer")


class SqlOwnership:
    """The `Ownership` of one replica.

    Attributes:
        acquiring: (context, task) of tasks that are this replica's in the database, but not yet in its journal.
        resigned: this replica has given up its tasks.
    """

    def __init__(
        self,
        database: Database,
        commits: GroupCommit,
        journal: SqlJournal,
        lease: Lease,
        takeover: Takeover,
        inbox: Inbox,
        limit: ShutdownLimit,
    ) -> None:
        self.acquiring: Counter[tuple[str, str]] = Counter()
        self.resigned = False
        self._database = database
        self._commits = commits
        self._journal = journal
        self._lease = lease
        self._takeover = takeover
        self._inbox = inbox
        self._limit = limit

    async def acquire(self, task_id: str, generation: int | None = None) -> TaskRecord | None:
        record = await self._journal.get(task_id)
        if record.state.terminal:
            return record
        if generation not in (None, record.generation):
            return None
        self._journal.check_open()
        pair, replica = (record.context_id, task_id), self._lease.id
        self.acquiring[pair] += 1
        try:
            acquired = await self._takeover.acquire(record)
            if acquired:
                await self.refresh(task_id)
            if acquired is None or not self.holds(replica):
                return None
            self._journal.adopt(acquired)
            return acquired
        finally:
            self.acquiring -= Counter((pair,))

    def holds(self, replica: str) -> bool:
        """Whether this process is still the replica that acquired something: it may have lost its lease meanwhile."""
        return self._lease.id == replica and not self.resigned

    async def refresh(self, task_id: str) -> None:
        """Let the subscribers of a task see what its last owner has written, before this replica writes more."""
        with suppress(Unavailable):  # they have to subscribe again
            await self._journal.refresh((task_id,), ())

    async def post(self, task_id: str, message: UserMessage, key: str) -> bool:
        return await self._inbox.post(task_id, message, key)

    async def request_cancel(self, task_id: str) -> None:
        await self._inbox.request_cancel(task_id)

    async def resign(self) -> None:
        self.resigned = True
        self._limit.start()
        self._journal.give_up()
        if self._database.terminated:
            return
        try:
            await self._commits.flushed()
            await self._lease.resign()
        except Unavailable as error:
            logger.warning(
                "The tasks cannot be handed over (%s). They are taken over when the lease has expired.", error.reason
            )
