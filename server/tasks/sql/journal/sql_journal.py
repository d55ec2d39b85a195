"""The journal in a database (`server/tasks/journal.py` has the rules; `logs.py`, how what is said becomes visible).

Rule 1: the tasks that this replica runs are in memory, ahead of the database; what is said of them is staged, and
        written by the group commit together with what the store has staged in the same breath.
Rule 2: every other task is what the database says. Whoever follows one reads on when there is news of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ScalarSelect, Select, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import Transcript, TurnEvent
from a2a_canvas.server.tasks.errors import StreamLost, Unwritable
from a2a_canvas.server.tasks.incoming import DEDUP_WINDOW
from a2a_canvas.server.tasks.journal.journal import ContextSubscription, TaskCursor, TaskSubscription
from a2a_canvas.server.tasks.listing import TaskPage, TaskQuery, count_fitting
from a2a_canvas.server.tasks.ownership import Detached, DuplicateMessage
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal.contexts import ContextTails
from a2a_canvas.server.tasks.sql.journal.journal_reading import (
    ALL_COLUMNS,
    HEAD_COLUMNS,
    UNSETTLED,
    decode_transcripts,
    fold_for_list,
    fold_readable,
    read_record,
    read_tasks,
    to_microseconds,
)
from a2a_canvas.server.tasks.sql.journal.journal_tables import messages, tasks
from a2a_canvas.server.tasks.sql.journal.journal_writing import JournalWork, Notify
from a2a_canvas.server.tasks.sql.journal.logs import TaskBatch, TaskLog
from a2a_canvas.server.tasks.sql.journal.tails import TaskTails
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.commit import COMMIT_TIMEOUT, GroupCommit
from a2a_canvas.store.sql.database import Database, text_size

SIZE_BATCH = 4
"""How many tasks are looked at together to find out how many may be read at once."""


class Replica(Protocol):
    """This process among those on the database."""

    @property
    def id(self) -> str: ...


class SqlJournal:
    """A `Journal`, and who stages what is said for the group commit.

    Args:
        now: the clock.
    """

    def __init__(
        self, database: Database, commits: GroupCommit, replica: Replica, notify: Notify, now: Callable[[], datetime]
    ) -> None:
        self._database = database
        self._commits = commits
        self._replica = replica
        self._notify = notify
        self._now = now
        self._owned: dict[str, TaskLog] = {}
        self._tails = TaskTails(database, self.owns)
        self._dirty: dict[str, TaskLog] = {}
        self._taken: dict[str, str] = {}  # by the keys of messages that the tasks in `_owned` have taken here
        self._contexts = ContextTails(database)
        self._closed = False
        commits.join(self)

    # ----------------------------------------------------------------------- saying

    async def create(self, record: TaskRecord, key: str = "") -> None:
        self.check_open()
        log = self._owned[record.task_id] = self._tails.add(TaskLog(record))
        log.begin()
        await self.remember_message(key, record.task_id)
        self._dirty[record.task_id] = log
        self._commits.flush_now()

    async def append(self, task_id: str, *events: TurnEvent) -> None:
        log = self._own(task_id)
        at = self._now()
        durable = [log.say(event, at) for event in events]
        log.show()
        self._dirty[task_id] = log
        if any(durable):
            self._commits.flush_now()
        else:
            self._commits.flush_soon()

    async def remember_message(self, key: str, task_id: str) -> None:
        self._own(task_id).remember(key)
        if key:
            self._taken[key] = task_id

    async def flushed(self, task_id: str) -> None:
        log = self._owned.get(task_id)
        try:
            await self._commits.flushed(COMMIT_TIMEOUT)
        except Unavailable:
            if log and log.untouched:
                self._dirty.pop(task_id, None)  # so that what is refused now is not carried out later
                self._drop(task_id)
            raise
        if log and log.repeated:
            self._drop(task_id)
            raise DuplicateMessage(log.repeated)
        if log and log.unwritable:
            raise Unwritable(task_id)
        if log and log.failure:
            raise Unavailable("what was said in the same context could not be written")

    async def wait_writable(self) -> None:
        await self._commits.healthy.wait()

    async def acknowledge(self, task_id: str, mail_id: str, key: str) -> None:
        """The message that was appended last came by post; or it had come before."""
        log = self._own(task_id)
        log.acknowledge(mail_id)
        await self.remember_message(key, task_id)
        self._dirty[task_id] = log
        self._commits.flush_now()

    def owns(self, task_id: str) -> bool:
        return task_id in self._owned

    @property
    def owned(self) -> tuple[tuple[str, str], ...]:
        """(context, task) of the tasks that this replica runs."""
        return tuple((log.newest.context_id, task_id) for task_id, log in self._owned.items())

    def check_owned(self, task_id: str) -> None:
        """Raises `Detached` if a task is not this replica's."""
        self._own(task_id)

    def check_open(self) -> None:
        """Raises `Unavailable` if what is said now may never be written, or not for long."""
        if self._closed:
            raise Unavailable("this server is stopping")
        if self._commits.failing:
            raise self._commits.failing  # rather than take what may have to wait for long

    def _own(self, task_id: str) -> TaskLog:
        log = self._owned.get(task_id)
        if log is None:
            raise Detached(task_id)
        return log

    # ---------------------------------------------------------------------- writing

    def collect(self) -> JournalWork | None:
        dirty, self._dirty = self._dirty, {}
        batches = [log.take() for log in dirty.values()]
        return JournalWork(batches, self._replica.id, self._now(), self._notify, self._committed) if batches else None

    def _committed(self, batches: Sequence[TaskBatch]) -> None:
        for batch in batches:
            batch.log.saved_to(batch.newest.generation)
            if batch.newest.state.settled and batch.log.saved and not batch.log.repeated:
                self._drop(batch.newest.task_id)
        self._contexts.changed({batch.newest.context_id for batch in batches})

    def _drop(self, task_id: str) -> None:
        if self._owned.pop(task_id, None):
            self._taken = {key: other for key, other in self._taken.items() if other != task_id}

    def adopt(self, record: TaskRecord) -> None:
        """A task is this replica's now."""
        log = self._tails.get(record.task_id)
        if log and log.record.generation != record.generation:
            log.fail(StreamLost())
        if log is None or log.failure:
            log = self._tails.add(TaskLog(record))
        log.adopt(record)
        self._owned[record.task_id] = log

    def give_up(self) -> None:
        """No task is this replica's any more: nothing that is said from now on is heard."""
        self._closed = True
        self._owned.clear()

    async def stop(self) -> None:
        """Read nothing more for those who follow."""
        await self._contexts.stop()

    def drop(self, context_id: str) -> dict[str, bool]:
        """What was said in a context and is not committed never will be: whoever follows one of its tasks comes back.

        Returns:
            The tasks there that this replica ran, and of each whether it is one that could not be written.
        """
        logs = {task_id: log for task_id, log in self._owned.items() if log.newest.context_id == context_id}
        for task_id, log in logs.items():
            log.fail(StreamLost())
            self._dirty.pop(task_id, None)
            self._drop(task_id)
        return {task_id: log.unwritable for task_id, log in logs.items()}

    def forget(self) -> None:
        """What memory says may not be true: whoever follows a task must come back."""
        for log in self._owned.values():
            log.fail(StreamLost())
        self._tails.fail(StreamLost())
        self._contexts.fail(StreamLost())
        self._owned, self._dirty, self._taken = {}, {}, {}

    # ------------------------------------------------------------------------- news

    async def refresh(self, task_ids: Iterable[str], context_ids: Iterable[str]) -> None:
        """Other replicas have written something of these.

        Raises:
            Unavailable: it cannot be read now.
        """
        await self._tails.refresh(task_ids)
        await self._contexts.refresh(context_ids)

    async def refresh_all(self) -> None:
        """Whatever is followed may have gone on: the net below the news.

        Raises:
            Unavailable: it cannot be read now.
        """
        await self._tails.refresh_all()
        await self._contexts.refresh_all()

    # ---------------------------------------------------------------------- reading

    async def find_duplicate(self, key: str) -> str:
        if not key:
            return ""
        since = to_microseconds(self._now() - DEDUP_WINDOW)
        query = select(messages.c.task_id).where(messages.c.key == key, messages.c.accepted_at >= since)
        async with self._database.read() as connection:
            found = await connection.scalar(query)
        return str(found or self._taken.get(key, ""))  # in this order: what leaves memory is in the rows

    async def get(self, task_id: str) -> TaskRecord:
        log = self._owned.get(task_id)
        if log and not log.unborn:
            return log.record
        return await read_record(self._database, task_id)

    async def follow(self, task_id: str) -> TaskSubscription:
        log = self._owned.get(task_id)
        return TaskCursor(log if log and not log.unborn else await self._tails.read(task_id))

    async def follow_context(self, context_id: str) -> ContextSubscription:
        return await self._contexts.follow(context_id)

    async def context(self, context_id: str) -> tuple[TaskRecord, ...]:
        query = select(*ALL_COLUMNS).where(tasks.c.context_id == context_id).order_by(tasks.c.number)
        async with self._database.read() as connection:
            found = await read_tasks(connection, query)
        return tuple(await fold_readable(found))

    async def has_context(self, context_id: str, owner: str) -> bool:
        query = select(tasks.c.task_id).where(tasks.c.context_id == context_id, tasks.c.owner == owner).limit(1)
        async with self._database.read() as connection:
            return await connection.scalar(query) is not None

    async def earlier_transcripts(self, record: TaskRecord) -> tuple[Transcript, ...]:
        query = (
            select(tasks.c.task_id, tasks.c.transcript)
            .where(tasks.c.context_id == record.context_id, tasks.c.owner == record.owner)
            .where(tasks.c.state.not_in(UNSETTLED), tasks.c.number < _number(record))
            .order_by(tasks.c.number)
        )
        async with self._database.read() as connection:
            found = {task_id: text for task_id, text in await connection.execute(query)}
        return decode_transcripts(found)

    async def later_tasks(self, record: TaskRecord) -> frozenset[str]:
        later = tasks.c.context_id == record.context_id, tasks.c.number > _number(record)
        async with self._database.read() as connection:
            return frozenset(await connection.scalars(select(tasks.c.task_id).where(*later)))

    async def list(self, query: TaskQuery) -> TaskPage:
        matching = [tasks.c.owner == query.owner]
        if query.context_id:
            matching.append(tasks.c.context_id == query.context_id)
        if query.state:
            matching.append(tasks.c.state == query.state.value)
        if query.since:
            matching.append(tasks.c.changed_at >= to_microseconds(query.since))
        page = select(*(ALL_COLUMNS if query.artifacts else HEAD_COLUMNS)).where(*matching)
        if query.after:
            place = tuple_(tasks.c.changed_at, tasks.c.task_id)
            page = page.where(place < tuple_(to_microseconds(query.after[0]), query.after[1]))
        page = page.order_by(tasks.c.changed_at.desc(), tasks.c.task_id.desc())
        async with self._database.read() as connection:
            total = await connection.scalar(select(func.count()).select_from(tasks).where(*matching))
            limit = await self._count_fitting(connection, page, query)
            found = await read_tasks(connection, page.limit(limit + 1))
        shown = [await fold_for_list(task) for task in found[:limit]]
        return TaskPage(tuple(shown), int(total or 0), len(found) > limit)

    async def _count_fitting(self, connection: AsyncConnection, page: Select[Any], query: TaskQuery) -> int:
        """How many tasks of a page there may be read at once."""
        if query.max_bytes is None:
            return query.limit
        shown = (tasks.c.artifacts, tasks.c.transcript) if query.artifacts else ()
        size = text_size(connection, tasks.c.head) + sum(text_size(connection, text) for text in shown)
        sizes: list[int] = []
        # A few at a time: SQLite reads a text for its length.
        found = await connection.stream_scalars(page.with_only_columns(size).limit(query.limit))
        async for several in found.partitions(SIZE_BATCH):
            sizes += several
            if sum(sizes) > query.max_bytes:
                break
        await found.close()
        return min(query.limit, count_fitting(sizes, query.max_bytes))


def _number(record: TaskRecord) -> ScalarSelect[int]:
    """A task's number in its context."""
    mine = tasks.c.context_id == record.context_id, tasks.c.task_id == record.task_id
    return select(tasks.c.number).where(*mine).scalar_subquery()
