"""The journal in a database. `journal/journal.py` has the rules; `task_log.py` says when an entry becomes visible.

Rule 1: the tasks that this replica runs are in memory, ahead of the database. Their entries are staged, and the group
        commit writes them together with the artifact changes that were staged in the same event-loop step.
Rule 2: every other task is read from the database: when it is asked for, and, for subscribers, after a notification
        or as messages bring it (`tails.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, Select, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.access import KnownContexts
from a2a_canvas.server.agent.events import State, Transcript, TurnEvent, UserMessage
from a2a_canvas.server.agent.loops.conversation import Said
from a2a_canvas.server.agent.loops.turn_values import SavedValues
from a2a_canvas.server.tasks.codec import files_of_json, names_of_json
from a2a_canvas.server.tasks.errors import DuplicateMessage, StreamLost, TaskDetached, Unwritable
from a2a_canvas.server.tasks.journal.activity import Activity, WatchedContexts
from a2a_canvas.server.tasks.journal.artifact_readings import After, ArtifactReading, TaskEnd
from a2a_canvas.server.tasks.journal.context_log import ContextSubscription
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.journal.listing import MAX_COUNTED, TaskPage, TaskQuery, count_fitting
from a2a_canvas.server.tasks.journal.task_log import TaskBatch, TaskLog
from a2a_canvas.server.tasks.kept_files import NO_FILES, Files
from a2a_canvas.server.tasks.push_configs import PushConfig
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal.context_changes import read_task_end
from a2a_canvas.server.tasks.sql.journal.context_tails import ContextTails
from a2a_canvas.server.tasks.sql.journal.journal_reading import (
    ALL_COLUMNS,
    HEAD_COLUMNS,
    decode_first_messages,
    decode_histories,
    decode_transcripts,
    fold_for_list,
    fold_readable,
    of_owner,
    read_heads,
    read_named_files,
    read_owner,
    read_record,
    read_tasks,
)
from a2a_canvas.server.tasks.sql.journal.journal_writing import JournalWork, Notify, OutboxWriter, projections_of
from a2a_canvas.server.tasks.sql.journal.page_messages import PageWire, page_message
from a2a_canvas.server.tasks.sql.journal.tails import TaskTails
from a2a_canvas.server.tasks.sql.projections import message_keys, owned_rows
from a2a_canvas.server.tasks.sql.projections.annotation_rows import SqlAnnotations, annotation_changes
from a2a_canvas.server.tasks.sql.projections.context_rows import read_known
from a2a_canvas.server.tasks.sql.projections.journal_commit import StagedTask
from a2a_canvas.server.tasks.sql.projections.loop_values import SqlContextValues
from a2a_canvas.server.tasks.sql.projections.message_files import MessageFiles
from a2a_canvas.server.tasks.sql.projections.named_versions import staged_contents
from a2a_canvas.server.tasks.sql.projections.records import PAUSED, UNSETTLED, tasks
from a2a_canvas.server.tasks.sql.projections.task_counts import count_of_owners
from a2a_canvas.server.tasks.sql.projections.watchers import SqlActivity
from a2a_canvas.store.annotations.annotation import AnnotationsChanged
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.artifact_lease import LeaseHolder
from a2a_canvas.store.sql.commit import COMMIT_TIMEOUT, GroupCommit
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.times import to_microseconds
from a2a_canvas.store.sql.version_contents import VersionContents
from a2a_canvas.store.text.unicode import replace_unstorable

SIZE_BATCH = 4
"""Tasks whose sizes are read together to find out how many fit into an answer."""

FOLLOWED_FOR = timedelta(seconds=3)
"""How long a task counts as followed on another replica, which says so every second."""


class SqlJournal:
    """A `Journal`, and a participant of the group commit. Reads raise `Unavailable` if they fail.

    Args:
        outbox: writes what is to be delivered.
        wake_push: called when there may be push notifications to deliver.
    """

    def __init__(
        self,
        database: Database,
        commits: GroupCommit,
        replica: LeaseHolder,
        versions: VersionContents,
        notify: Notify,
        outbox: OutboxWriter,
        now: Callable[[], datetime],
        wake_push: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._commits = commits
        self._replica = replica
        self._versions = versions
        self._projections = projections_of(outbox, notify)
        self._now = now
        self._wake_push = wake_push
        self._running: dict[str, TaskLog] = {}
        self._tails = TaskTails(database, versions, self.runs_here)
        self._dirty: dict[str, TaskLog] = {}
        self._taken: dict[str, str] = {}  # task by deduplication key, of the tasks in `_running`
        self._contexts = ContextTails(database, versions)
        self._watched = WatchedContexts(
            SqlActivity(database, replica, lambda connection, ids: notify(connection, (), (), ids))
        )
        self._files = MessageFiles(database, now, self.check_open)
        flushed = partial(commits.flushed, COMMIT_TIMEOUT)
        self.values = SqlContextValues(database, replica, self._stage_values, flushed)
        self.annotations = SqlAnnotations(database, replica, flushed)
        self._wire: PageWire | None = None
        self._closed = False

    # ----------------------------------------------------------------------- appending

    async def keep_files(self, context_id: ContextKey, message: UserMessage) -> None:
        await self._files.keep(context_id, message)

    async def create(self, record: TaskRecord, key: str = "", push: PushConfig | None = None) -> None:
        self.check_open()
        log = self._running[record.task_id] = self._tails.add(TaskLog(record, new=True, push=push))
        await self.remember_message(key, record.task_id)
        self._dirty[record.task_id] = log
        self._commits.flush_now()

    async def append(self, task_id: str, *events: TurnEvent) -> None:
        log = self._require_running_here(task_id)
        at = self._now()
        durable = [log.add(event, at) for event in events]
        for event in events:
            if isinstance(event, AnnotationsChanged):
                self.annotations.holds.stage(log.newest.context_id, task_id, event)
        log.publish()
        if not log.unsaved:
            return
        self._dirty[task_id] = log
        if any(durable):
            self._commits.flush_now()
        else:
            # Subscribers of the context, here or elsewhere, and those of the task elsewhere see only what is committed.
            context_id = replace_unstorable(log.newest.context_id)
            awaited = log.followed_until > at or self._contexts.follows(context_id)
            self._commits.flush_soon(followed=context_id if awaited else None)

    def _stage_values(self, task_id: str, saved: SavedValues) -> None:
        log = self._require_running_here(task_id)
        log.values.append(saved)
        self._dirty[task_id] = log
        self._commits.flush_now()

    async def remember_message(self, key: str, task_id: str) -> None:
        log = self._require_running_here(task_id)
        if key:
            log.keys.append(key)
            self._taken[key] = task_id

    async def flushed(self, task_id: str) -> None:
        log = self._running.get(task_id)
        try:
            await self._commits.flushed(COMMIT_TIMEOUT)
        except Unavailable:
            if log and log.untouched:
                self._dirty.pop(task_id, None)  # it is refused now, and must not be carried out later
                self._drop(task_id)
            raise
        if log and log.duplicate_of:
            self._drop(task_id)
            raise DuplicateMessage(log.duplicate_of)
        if log and log.unwritable:
            raise Unwritable(task_id)
        if log and log.failure:
            raise Unavailable("a write in the same context failed")

    async def wait_writable(self) -> None:
        await self._commits.healthy.wait()

    async def acknowledge(self, task_id: str, inbox_id: str, key: str) -> None:
        """Delete an inbox row: its message was just appended, or had been before."""
        log = self._require_running_here(task_id)
        log.acknowledged.append(inbox_id)
        await self.remember_message(key, task_id)
        self._dirty[task_id] = log
        self._commits.flush_now()

    def runs_here(self, task_id: str) -> bool:
        return task_id in self._running

    @property
    def running(self) -> tuple[tuple[str, str], ...]:
        """(context, task) of the tasks that this replica runs."""
        return tuple((log.newest.context_id, task_id) for task_id, log in self._running.items())

    def check_runs_here(self, task_id: str) -> None:
        """Raises `TaskDetached` if a task is not this replica's."""
        self._require_running_here(task_id)

    def check_open(self) -> None:
        """Raises `Unavailable` if new entries may not be written soon, or never."""
        if self._closed:
            raise Unavailable("this server is stopping")
        if self._commits.failing:
            raise self._commits.failing  # refused at once, in place of a long wait

    def _require_running_here(self, task_id: str) -> TaskLog:
        log = self._running.get(task_id)
        if log is None:
            raise TaskDetached(task_id)
        return log

    # ---------------------------------------------------------------------- writing

    def collect(self, contexts: Collection[ContextKey] | None = None) -> JournalWork | None:
        dirty, self._dirty = self._dirty, {}
        if contexts is not None:
            self._dirty = {
                task_id: log
                for task_id, log in dirty.items()
                if replace_unstorable(log.newest.context_id) not in contexts
            }
        batches = [log.take_batch() for task_id, log in dirty.items() if task_id not in self._dirty]
        if not batches:
            return None
        staged = staged_contents(batches, self._versions)
        return JournalWork(self._projections, batches, self._replica.id, self._now(), staged, self._on_committed)

    def connect(self, wire: PageWire) -> None:
        """Send the pages of this replica to others, and show theirs as they come."""
        self._wire = self._tails.pages.wire = self._contexts.pages.wire = wire

    def check_again(self) -> None:
        """A share or a credential may have ended: have the guards of all subscriptions ask again, at once."""
        self._tails.check_again()
        self._contexts.check_again()

    @property
    def pages(self) -> tuple[int, int]:
        """Pages of other replicas for subscribers: how many were read from the database, and how many were received."""
        both = self._tails, self._contexts
        return sum(each.pages_read for each in both), sum(each.pages_received for each in both)

    def _on_committed(self, batches: Sequence[TaskBatch], written: Sequence[StagedTask]) -> None:
        if self._wire:
            for task in written:
                if page := page_message(task):
                    self._wire.publish(page)
        for batch in batches:
            batch.log.mark_durable(batch.newest.generation)
            self.values.holds.clear(batch.newest.context_id, batch.values)
            self.annotations.holds.clear(batch.newest.context_id, annotation_changes(batch))
            if batch.newest.state.settled and batch.log.saved and not batch.log.duplicate_of:
                self._drop(batch.newest.task_id)
        if any(batch.push_entries for batch in batches):
            self._wake_push()
        self._contexts.schedule_refresh({batch.newest.context_id for batch in batches})
        self._watched.mark_changed({batch.newest.context_id for batch in batches if batch.changes_activity})

    def _drop(self, task_id: str) -> None:
        if self._running.pop(task_id, None):
            self._taken = {key: other for key, other in self._taken.items() if other != task_id}

    def adopt(self, record: TaskRecord) -> None:
        """Run a task that this replica has acquired."""
        log = self._tails.get(record.task_id)
        if log and log.record.generation != record.generation:
            log.fail(StreamLost())
        if log is None or log.failure:
            log = self._tails.add(TaskLog(record))
        log.adopt(record)
        self._running[record.task_id] = log

    def hand_over(self, task_id: str) -> TaskRecord | None:
        """Run a task no more, which another replica will run: from now on its subscribers see what that one writes.

        Returns:
            The task; None if it does not run here, or something of it is not written. Then its subscribers get
            `StreamLost`.
        """
        log = self._running.get(task_id)
        if log is None:
            return None
        self._dirty.pop(task_id, None)
        self._drop(task_id)
        if log.saved:
            return log.newest
        log.fail(StreamLost())
        return None

    def give_up(self) -> None:
        """Run no task any more: every further `append` raises `TaskDetached`."""
        self._closed = True
        self._running.clear()

    async def stop(self) -> None:
        """Stop reading for subscribers."""
        await self._tails.stop()
        await self._contexts.stop()
        await self._watched.stop()

    def drop(self, context_id: ContextKey) -> dict[str, bool]:
        """Drop the staged entries of a context; the subscribers of its tasks get `StreamLost`.

        Returns:
            The tasks there that this replica ran, and of each whether it could not be written.
        """
        logs = {task_id: log for task_id, log in self._running.items() if log.newest.context_id == context_id}
        for task_id, log in logs.items():
            log.fail(StreamLost())
            self._dirty.pop(task_id, None)
            self._drop(task_id)
        self.values.holds.drop(context_id)
        self.annotations.holds.drop(context_id)
        return {task_id: log.unwritable for task_id, log in logs.items()}

    def forget(self) -> None:
        """Drop everything in memory, which may be wrong; all subscribers get `StreamLost`."""
        for log in self._running.values():
            log.fail(StreamLost())
        self._tails.fail(StreamLost())
        self._contexts.fail(StreamLost())
        self._running, self._dirty, self._taken = {}, {}, {}
        self.values.holds.forget()
        self.annotations.holds.forget()
        self._watched.report_again()

    # ------------------------------------------------------------------------- refreshing

    async def refresh(self, task_ids: Iterable[str], context_ids: Iterable[ContextKey]) -> None:
        """Read what other replicas have written of these tasks and contexts."""
        await self._tails.refresh(task_ids)
        await self._contexts.refresh(context_ids)

    async def refresh_all(self) -> None:
        """Read what is new of everything that is followed, in case notifications were lost."""
        await self._tails.refresh_all()
        await self._contexts.refresh_all()

    def activity_changed(self, context_ids: Iterable[ContextKey], *, anywhere: bool = False) -> None:
        """Other replicas have changed the activity of these contexts, or of any; what failed before is tried again."""
        self._watched.mark_changed(context_ids)
        if anywhere:
            self._watched.mark_all_changed()

    @property
    def followed_tasks(self) -> tuple[str, ...]:
        """The tasks that other replicas run and this one follows. What waits for its turn writes nothing."""
        return tuple(task_id for task_id, record in self._tails.elsewhere.items() if record.state is State.WORKING)

    def mark_followed(self, task_ids: Iterable[str]) -> None:
        """Other replicas follow these tasks: those that run here are committed sooner."""
        until = self._now() + FOLLOWED_FOR
        for task_id in task_ids:
            if log := self._running.get(task_id):
                log.followed_until = until

    # ---------------------------------------------------------------------- reading

    async def find_duplicate(self, key: str) -> str:
        if not key:
            return ""
        async with self._database.read() as connection:
            found = await message_keys.find(connection, key, self._now())
        return str(found or self._taken.get(key, ""))  # in this order: what has left memory is in the rows

    async def get(self, task_id: str) -> TaskRecord:
        log = self._running.get(task_id)
        if log and not log.unsaved_new:
            return log.record
        return await read_record(self._database, task_id, self._versions)

    async def find_context_and_owner(self, task_id: str) -> tuple[ContextKey, str]:
        log = self._running.get(task_id)
        if log and not log.unsaved_new:
            return log.record.context_id, log.record.owner
        async with self._database.read() as connection:
            return await read_owner(connection, task_id)

    async def follow(self, task_id: str) -> TaskSubscription:
        log = self._running.get(task_id)
        return TaskSubscription(log if log and not log.unsaved_new else await self._tails.read(task_id))

    async def follow_context(self, context_id: ContextKey) -> ContextSubscription:
        return await self._contexts.follow(context_id)

    async def read_artifact(self, context_id: ContextKey, artifact_id: str, after: After) -> ArtifactReading:
        return await self._contexts.read_artifact(context_id, artifact_id, after)

    async def task_end(self, context_id: ContextKey, task_id: str) -> TaskEnd | None:
        return await read_task_end(self._database, context_id, task_id)

    def watch(self, context_id: ContextKey) -> AsyncGenerator[Activity, None]:
        return self._watched.watch(replace_unstorable(context_id))

    async def context(self, context_id: ContextKey) -> tuple[TaskRecord, ...]:
        query = select(*ALL_COLUMNS).where(tasks.c.context_id == context_id).order_by(tasks.c.number)
        async with self._database.read() as connection:
            found = await read_tasks(connection, query, self._versions)
        return tuple(await fold_readable(found))

    async def has_context(self, context_id: ContextKey, owner: str) -> bool:
        async with self._database.read() as connection:
            return await owned_rows.exists(connection, context_id, owner)

    async def find_known_contexts(self, keys: Collection[str]) -> KnownContexts:
        async with self._database.read() as connection:
            return await read_known(connection, keys)

    async def waiting_tasks(self, context_id: ContextKey, owner: str) -> tuple[str, ...]:
        ours = tasks.c.context_id == context_id, of_owner([owner])
        waiting = select(tasks.c.task_id).where(*ours, tasks.c.state.in_(PAUSED)).limit(2)
        async with self._database.read() as connection:
            return tuple(await connection.scalars(waiting))

    async def first_messages(
        self, context_id: ContextKey, owner: str, task_ids: Iterable[str]
    ) -> Mapping[str, UserMessage]:
        async with self._database.read() as connection:
            heads = await read_heads(connection, context_id, owner, task_ids)
        return await decode_first_messages(heads)

    async def earlier_transcripts(self, record: TaskRecord) -> tuple[Transcript, ...]:
        return decode_transcripts(*await self._read_earlier(record, tasks.c.transcript))

    async def earlier_messages(self, record: TaskRecord) -> tuple[Said, ...]:
        return decode_histories(*await self._read_earlier(record, tasks.c.head))

    async def _read_earlier(self, record: TaskRecord, column: ColumnElement[str]) -> tuple[Sequence[Any], Files]:
        """A column of the rows of earlier tasks, and the files that they name."""
        query = (
            select(tasks.c.context_id, tasks.c.task_id, column, tasks.c.named)
            .where(tasks.c.context_id == record.context_id, of_owner([record.owner]))
            .where(tasks.c.state.not_in(UNSETTLED), tasks.c.number < _number(record))
            .order_by(tasks.c.number)
        )
        async with self._database.read() as connection:
            found = (await connection.execute(query)).all()
            files = await read_named_files(connection, found)
        return found, files.get(record.context_id, NO_FILES)

    async def later_tasks(self, record: TaskRecord) -> frozenset[str]:
        later = tasks.c.context_id == record.context_id, tasks.c.number > _number(record)
        async with self._database.read() as connection:
            return frozenset(await connection.scalars(select(tasks.c.task_id).where(*later)))

    async def list(self, query: TaskQuery) -> TaskPage:
        matching: list[ColumnElement[bool]] = [tasks.c.owner.in_(query.owners)]
        if query.context_id:
            # PostgreSQL has statistics of columns, and of no expression: it would expect few matches and sort them.
            mine = of_owner(query.owners) if self._database.dialect == "sqlite" else matching[0]
            matching = [tasks.c.context_id == query.context_id, mine]
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
            total = await _total(connection, query, matching)
            limit = await self._count_fitting(connection, page, query)
            found = await read_tasks(connection, page.limit(limit + 1), self._versions)
        shown = [await fold_for_list(task) for task in found[:limit]]
        return TaskPage(tuple(shown), total, len(found) > limit)

    async def _count_fitting(self, connection: AsyncConnection, page: Select[Any], query: TaskQuery) -> int:
        """How many tasks of the page fit into `max_bytes`."""
        if query.max_bytes is None:
            return query.limit
        shown = (tasks.c.head, tasks.c.artifacts, tasks.c.transcript) if query.artifacts else (tasks.c.head,)
        sizes: list[int] = []
        # A few at a time: a text is decompressed for its size.
        found = await connection.stream(page.with_only_columns(tasks.c.named, *shown).limit(query.limit))
        async for several in found.partitions(SIZE_BATCH):
            sizes += [_size(names, texts, query.artifacts) for names, *texts in several]
            if sum(sizes) > query.max_bytes:
                break
        await found.close()
        return min(query.limit, count_fitting(sizes, query.max_bytes))


async def _total(connection: AsyncConnection, query: TaskQuery, matching: Sequence[ColumnElement[bool]]) -> int:
    """How many tasks match, on all pages. Those of an owner, or of one in a state, are counted when they change."""
    if query.counted:
        some = select(tasks.c.task_id).where(*matching).limit(MAX_COUNTED).subquery()
        return await connection.scalar(select(func.count()).select_from(some)) or 0
    return await count_of_owners(connection, query.owners, query.state)


def _size(names: str | None, texts: Iterable[str], artifacts: bool) -> int:
    """Bytes of a task: its texts, and what they name; files are Base64 where they are shown."""
    versions = sum(each.size for each in names_of_json(names)) if artifacts else 0
    files = sum(each.size * 4 // 3 for each in files_of_json(names))
    return sum(len(text.encode()) for text in texts) + versions + files


def _number(record: TaskRecord) -> ScalarSelect[int]:
    """A task's number in its context."""
    mine = tasks.c.context_id == record.context_id, tasks.c.task_id == record.task_id
    return select(tasks.c.number).where(*mine).scalar_subquery()
