"""Everything that a server keeps in a database, and its place among the other replicas: one `House` per process.

The order of the participants in the group commit is that of the writes: first the lease, which proves that this
replica may write at all, then the tasks, then the artifacts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection
from store.sql.artifacts import SqlArtifactStore

from server.agent.events import UserMessage
from server.tasks.ownership import Owner
from server.tasks.record import TaskRecord
from server.tasks.sql.journal import SqlJournal
from server.tasks.sql.lease import Lease, Timing
from server.tasks.sql.logs import Batch
from server.tasks.sql.post import Post
from server.tasks.sql.wakeups import News, Wakeups, tell
from server.tasks.sql.writing import changes_of
from store.errors import Unavailable
from store.models import Limits
from store.sql.commit import SPACING, Fenced, GroupCommit
from store.sql.database import Database

logger = logging.getLogger(__name__)

TIMING = Timing()


class House:
    """The journal and the store of one replica. It is the `Ownership` of its runtime.

    Attributes:
        journal, store: what tasks and artifacts are kept in.
    """

    def __init__(
        self,
        database: Database,
        now: Callable[[], datetime],
        limits: Limits,
        spacing: float = SPACING,
        timing: Timing = TIMING,
    ) -> None:
        self._database = database
        self.commits = GroupCommit(database, self._lost, spacing=spacing)
        self._lease = Lease(database, timing)
        self.commits.join(self._lease)
        self.journal = SqlJournal(database, self.commits, self._lease, _notify, now)
        self.store = SqlArtifactStore(database, self.commits, self._lease, limits)
        self._post = Post(database, self.journal, _post_for, now)
        self._wakeups = Wakeups(database, self._heard)
        self._owner: Owner | None = None
        self._beating: asyncio.Task[None] | None = None
        self._handing_over = False

    # ------------------------------------------------------------------------- living

    async def start(self, owner: Owner) -> None:
        """Join the replicas, and take up what was left lying.

        Raises:
            Unavailable: the database cannot be used.
        """
        self._owner = owner
        await self._lease.begin()
        self.commits.start()
        await self._take_over()
        self._wakeups.start()
        self._beating = asyncio.create_task(self._beat(), name="beat of the replica")

    async def stop(self) -> None:
        """Leave. Turns that still run are given up: another replica, or the next start, takes them up."""
        if self._beating:
            self._beating.cancel()
            await asyncio.wait([self._beating])
        await self._wakeups.stop()
        await self.commits.stop()
        await self._database.close()

    async def ready(self) -> str | None:
        """Why this replica cannot serve just now; None if it can."""
        try:
            async with self._database.read() as connection:
                await connection.exec_driver_sql("SELECT 1")
        except Unavailable as error:
            return error.reason
        return self.commits.failing.reason if self.commits.failing else None

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease.timing.beat)
            if self._handing_over:
                return
            try:
                if await self._lease.beat():
                    await self._lease.bury()
                    await self._take_over()
                elif not self._handing_over:
                    self._lost()
            except Unavailable:
                continue  # the group commit says so, if there is anything to write
            except Exception:
                logger.exception("The replica's beat failed")

    async def _take_over(self) -> None:
        if self._owner and not self._handing_over:
            orphans = await self._lease.take_over(self.journal.owned)
            for orphan in orphans:
                self.journal.adopt(orphan.record)
            self._owner.resume(orphans)

    def _lost(self) -> None:
        """Another replica has taken over: nothing that memory says counts any more."""
        logger.error("This replica's lease has run out; other replicas go on with its tasks.")
        self._lease.renew()
        self.journal.forget()
        self.store.forget()
        self.commits.give_up()
        if self._owner:
            self._owner.abandon()

    # -------------------------------------------------------------------------- news

    async def _heard(self, news: News) -> None:
        if news.everything:
            await self.journal.catch_up()
        else:
            await self.journal.news(news.tasks, news.contexts)
        owned = {task_id for _, task_id in self.journal.owned}
        if self._owner and (news.everything or owned & set(news.post)):
            await self._post.collect(self._owner)
        if news.given_up:
            await self._take_over()

    # ---------------------------------------------------------------------- ownership

    async def acquire(self, task_id: str) -> TaskRecord | None:
        record = await self._lease.acquire(task_id)
        if record and not record.state.terminal:
            self.journal.adopt(record)
        return record

    async def release(self, record: TaskRecord) -> None:
        await self._lease.release(record)
        self.journal.disown(record.task_id)

    async def post(self, task_id: str, message: UserMessage, key: str) -> bool:
        return await self._post.post(task_id, message, key)

    async def ask_to_cancel(self, task_id: str) -> None:
        await self._post.ask_to_cancel(task_id)

    async def hand_over(self) -> None:
        self._handing_over = True
        self.journal.give_up()
        try:
            await self.commits.settled()
            await self._lease.leave(_given_up)
        except (Fenced, Unavailable) as error:
            logger.warning(
                "The tasks could not be handed over: %s They are taken up when the lease has run out.", error
            )


async def _notify(connection: AsyncConnection, batches: Sequence[Batch]) -> None:
    tasks = tuple(batch.newest.task_id for batch in batches)
    contexts = tuple({batch.newest.context_id for batch in batches if changes_of(batch).count})
    await tell(connection, News(tasks, contexts))


async def _post_for(connection: AsyncConnection, task_id: str) -> None:
    await tell(connection, News(post=(task_id,)))


async def _given_up(connection: AsyncConnection) -> None:
    await tell(connection, News(given_up=True))
