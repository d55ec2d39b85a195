"""The journal: one append-only log of entries per task. Subscribers are cursors, not queues.

Rule 1: a subscriber of a task gets a snapshot and then exactly the entries after it, in order, to the terminal one.
Rule 2: a cursor costs nothing but the entries it has not read; no subscriber is ever dropped.
Rule 3: an entry stays in memory as long as a cursor has still to read it, and no longer.
Rule 4: the changes of artifacts and annotations by all tasks of a context are one more log, which is read in the same
        way. Any context can be followed: one without tasks is empty, and is forgotten if its subscriber leaves before
        its first task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice, takewhile
from typing import Protocol
from weakref import WeakValueDictionary

from a2a_canvas.server.accounts.access import KnownContexts
from a2a_canvas.server.agent.events import (
    StatusChanged,
    Transcript,
    TurnEvent,
    UserMessage,
    changes_context,
)
from a2a_canvas.server.agent.loops.conversation import Said
from a2a_canvas.server.tasks.context_values import ContextValues, InMemoryContextValues
from a2a_canvas.server.tasks.errors import ChangesGone, StreamLost, TaskNotFound
from a2a_canvas.server.tasks.incoming import RecentMessages
from a2a_canvas.server.tasks.journal.activity import Activity, WatchedContexts
from a2a_canvas.server.tasks.journal.artifact_readings import After, ArtifactReading, Place, TaskEnd, changes_artifact
from a2a_canvas.server.tasks.journal.context_log import ContextEntry, ContextLog, ContextSubscription
from a2a_canvas.server.tasks.journal.cursors import Check, Cursor, GuardedCursor, Log
from a2a_canvas.server.tasks.journal.listing import TaskPage, TaskQuery, make_page
from a2a_canvas.server.tasks.push_configs import PushConfig, PushQueues, is_notified
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.store.annotations.annotation import AnnotationsChanged
from a2a_canvas.store.annotations.annotation_store import AnnotationStore, InMemoryAnnotations
from a2a_canvas.store.errors import ArtifactNotFound
from a2a_canvas.store.ids import ContextKey, is_unique, public_id


class ReadableLog(Log[Entry]):
    """One task: its current record, and its entries."""

    def __init__(self, record: TaskRecord) -> None:
        super().__init__()
        self.record = record


class TaskSubscription:
    """A subscriber's place in a journal: async-iterates the entries after `snapshot`, and ends with the task."""

    def __init__(self, log: ReadableLog) -> None:
        self.snapshot = log.record
        self._cursor: Cursor[Entry] = Cursor(log)
        self._ended = log.record.state.terminal

    def guard(self, check: Check) -> None:
        """Have it end with what `check` raises, which is asked now and again."""
        self._cursor = GuardedCursor(self._cursor, check)

    @property
    def has_next(self) -> bool:
        """Whether the next entry is there already."""
        return self._cursor.has_next

    def __aiter__(self) -> AsyncIterator[Entry]:
        return self

    async def __anext__(self) -> Entry:
        if self._ended:
            raise StopAsyncIteration
        return self._read(await anext(self._cursor))

    def ready(self) -> Iterator[Entry]:
        """The entries after the one just read that can be sent together with it (`Cursor.ready`)."""
        if not self._ended:
            for entry in self._cursor.ready():
                yield self._read(entry)
                if self._ended:
                    return

    def _read(self, entry: Entry) -> Entry:
        self._ended = isinstance(entry.event, StatusChanged) and entry.event.state.terminal
        return entry

    async def wait_until_settled(self) -> TaskRecord:
        """The task once it has ended, or waits for input; it reads the entries up to there."""
        record = self.snapshot
        while not record.state.settled:
            record = fold(record, await anext(self))
        return record


class Journal(Protocol):
    """Stores the tasks.

    `create` and `append` never wait: what is appended in one step of the event loop is stored together or not at all.
    Rule 5: an entry is visible when every durable entry (`record.is_durable`) up to it is committed.
    """

    @property
    def values(self) -> ContextValues:
        """What agents with a loop of their own keep in contexts; it is committed with the entries."""
        ...

    @property
    def annotations(self) -> AnnotationStore:
        """The comments and suggestions on artifacts; an `AnnotationsChanged` is committed with what it changes."""
        ...

    async def find_duplicate(self, key: str) -> str:
        """The id of the task that a message with this key went to, within 24 hours; empty if it is the first."""
        ...

    async def keep_files(self, context_id: ContextKey, message: UserMessage) -> None:
        """Store the large files of a message that is about to be accepted in a context (`kept_files.py`).

        Raises:
            Unavailable: they cannot be stored now.
        """
        ...

    async def create(self, record: TaskRecord, key: str = "", push: PushConfig | None = None) -> None:
        """Create a task: its journal begins with its first state, generation 1.

        Args:
            key: deduplication key of the message that began it; empty for none.
            push: its first push config.

        Raises:
            Unavailable: the server is stopping.
        """
        ...

    async def append(self, task_id: str, *events: TurnEvent) -> None:
        """Append entries; they are stored together.

        Raises:
            TaskDetached: the task belongs to another replica.
        """
        ...

    def check_runs_here(self, task_id: str) -> None:
        """Raises `TaskDetached` if the task belongs to another replica."""
        ...

    async def remember_message(self, key: str, task_id: str) -> None:
        """Store that the message with this key went to an existing task."""
        ...

    async def flushed(self, task_id: str) -> None:
        """Wait until everything appended so far is durable, and so visible.

        Raises:
            DuplicateMessage: another replica has accepted the message that began the task; this task does not exist.
            Unavailable: it takes too long.
        """
        ...

    async def wait_writable(self) -> None:
        """Wait while the database cannot be written, so that writers do not fill the memory."""
        ...

    async def get(self, task_id: str) -> TaskRecord:
        """The current record of a task.

        Raises:
            TaskNotFound: there is none.
        """
        ...

    async def find_context_and_owner(self, task_id: str) -> tuple[ContextKey, str]:
        """The key of a task's context, and its owner; nothing else of the task is read.

        Raises:
            TaskNotFound: there is none.
        """
        ...

    async def follow(self, task_id: str) -> TaskSubscription:
        """A snapshot and what comes after it.

        Raises:
            TaskNotFound: there is none.
        """
        ...

    async def follow_context(self, context_id: ContextKey) -> ContextSubscription:
        """The artifacts of a context, and every change by any of its tasks after that."""
        ...

    async def read_artifact(self, context_id: ContextKey, artifact_id: str, after: After) -> ArtifactReading:
        """An artifact, or its changes after a reader's place, as far as they are committed.

        Raises:
            ArtifactNotFound: there is no such artifact yet.
            ChangesGone: the changes after the place are no longer stored.
        """
        ...

    async def task_end(self, context_id: ContextKey, task_id: str) -> TaskEnd | None:
        """The end of a task of a context; None while it has not ended.

        Raises:
            TaskNotFound: the context has no such task.
        """
        ...

    def watch(self, context_id: ContextKey) -> AsyncGenerator[Activity, None]:
        """The activity of a context, whenever it changes; it never ends. Whoever iterates is a watcher meanwhile."""
        ...

    async def context(self, context_id: ContextKey) -> tuple[TaskRecord, ...]:
        """The tasks of a context, oldest first."""
        ...

    async def has_context(self, context_id: ContextKey, owner: str) -> bool:
        """Whether an owner has a task in a context."""
        ...

    async def find_known_contexts(self, keys: Collection[str]) -> KnownContexts:
        """Which of these contexts there are, or were."""
        ...

    async def waiting_tasks(self, context_id: ContextKey, owner: str) -> tuple[str, ...]:
        """The ids of an owner's tasks in a context that wait for input; two of them if there are more."""
        ...

    async def first_messages(
        self, context_id: ContextKey, owner: str, task_ids: Iterable[str]
    ) -> Mapping[str, UserMessage]:
        """The messages that began these tasks of a context, by task; only those of the owner's that can be read."""
        ...

    async def earlier_transcripts(self, record: TaskRecord) -> tuple[Transcript, ...]:
        """The transcripts of earlier tasks of the context that the model is shown."""
        ...

    async def earlier_messages(self, record: TaskRecord) -> tuple[Said, ...]:
        """What was said in each of these tasks."""
        ...

    async def later_tasks(self, record: TaskRecord) -> frozenset[str]:
        """The ids of the context's tasks that began after a task."""
        ...

    async def list(self, query: TaskQuery) -> TaskPage:
        """An owner's tasks, the newest status first."""
        ...


class _TaskLog(ReadableLog):
    def __init__(self, record: TaskRecord, context: ContextLog) -> None:
        super().__init__(record)
        self.created_at = record.changed_at
        self._context = context

    def add(self, event: TurnEvent, at: datetime) -> Entry:
        entry = Entry(self.record.epoch, self.record.generation + 1, at, event)
        self.record = fold(self.record, entry)
        self.append(entry)
        if changes_context(event):
            self._context.add(self.record, entry, event)
        return entry


def earlier_tasks(tasks: Iterable[TaskRecord], record: TaskRecord) -> tuple[TaskRecord, ...]:
    """The same owner's settled tasks before `record`, oldest first.

    Args:
        tasks: those of the context, oldest first.
    """
    before = takewhile(lambda other: other.task_id != record.task_id, tasks)
    return tuple(other for other in before if other.owner == record.owner and other.state.settled)


class InMemoryJournal:
    """A `Journal` in dictionaries.

    Args:
        push: gets the entries that notifications report; None for none.
    """

    def __init__(self, now: Callable[[], datetime], push: PushQueues | None = None) -> None:
        self._now = now
        self._logs: dict[str, _TaskLog] = {}
        self._contexts: dict[ContextKey, list[str]] = {}
        self._removed: set[str] = set()  # contexts whose ids can be shared with users
        # Referenced by the tasks of the context and by its subscribers.
        self._context_logs: WeakValueDictionary[str, ContextLog] = WeakValueDictionary()
        self._owners: dict[str, list[str]] = {}
        self._recent = RecentMessages(now)
        self._push = push
        self._watched = WatchedContexts(_InMemoryActivity(self))
        self.values = InMemoryContextValues()
        self.annotations = InMemoryAnnotations()

    async def find_duplicate(self, key: str) -> str:
        return self._recent.task_of(key)

    async def keep_files(self, context_id: ContextKey, message: UserMessage) -> None:
        pass

    async def create(self, record: TaskRecord, key: str = "", push: PushConfig | None = None) -> None:
        if push and self._push:
            self._push.register(push)
        self._logs[record.task_id] = _TaskLog(record, self._context_log(record.context_id))
        self._contexts.setdefault(record.context_id, []).append(record.task_id)
        self._owners.setdefault(record.owner, []).append(record.task_id)
        self._recent.remember(key, record.task_id)
        self._watched.mark_changed((record.context_id,))

    async def append(self, task_id: str, *events: TurnEvent) -> None:
        log = self._log(task_id)
        at = self._now()
        for event in events:
            notified = is_notified(log.record, event)
            entry = log.add(event, at)
            if isinstance(event, AnnotationsChanged):
                self.annotations.write(log.record.context_id, task_id, event)
            if notified and self._push:
                self._push.put(log.record, entry)
        log.wake()
        if any(isinstance(event, StatusChanged) for event in events):
            self._watched.mark_changed((log.record.context_id,))
        if log.record.state.terminal:
            self.values.end(log.record.context_id, task_id)

    def check_runs_here(self, task_id: str) -> None:
        pass  # there is no other replica

    async def remember_message(self, key: str, task_id: str) -> None:
        self._recent.remember(key, task_id)

    async def flushed(self, task_id: str) -> None:
        pass

    async def wait_writable(self) -> None:
        pass

    async def get(self, task_id: str) -> TaskRecord:
        return self._log(task_id).record

    async def find_context_and_owner(self, task_id: str) -> tuple[ContextKey, str]:
        record = self._log(task_id).record
        return record.context_id, record.owner

    async def follow(self, task_id: str) -> TaskSubscription:
        return TaskSubscription(self._log(task_id))

    async def follow_context(self, context_id: ContextKey) -> ContextSubscription:
        log = self._context_log(context_id)
        return ContextSubscription(log.snapshot, Cursor(log))

    async def read_artifact(self, context_id: ContextKey, artifact_id: str, after: After) -> ArtifactReading:
        log = self._context_log(context_id)
        following = ContextSubscription(log.snapshot, Cursor(log))
        whole = following.snapshot.artifacts.get(artifact_id)
        if whole is None:
            raise ArtifactNotFound(artifact_id)
        kept, incarnation, position = log.keep_changes(), log.incarnation, following.snapshot.position
        changes: tuple[ContextEntry, ...] = ()
        if isinstance(after, Place):
            if after.incarnation != incarnation or after.position > position:
                raise ChangesGone
            if whole.position > after.position:
                changes = tuple(each for each in kept.after(after.position) if changes_artifact(each, artifact_id))
        first = whole if after == "beginning" else None
        return ArtifactReading(first, changes, Place(incarnation, position), complete=True, following=following)

    async def task_end(self, context_id: ContextKey, task_id: str) -> TaskEnd | None:
        record = self._log(task_id).record
        if record.context_id != context_id:
            raise TaskNotFound(task_id)
        return TaskEnd(self._context_log(context_id).last_change(task_id)) if record.state.terminal else None

    def watch(self, context_id: ContextKey) -> AsyncGenerator[Activity, None]:
        return self._watched.watch(context_id)

    async def context(self, context_id: ContextKey) -> tuple[TaskRecord, ...]:
        return tuple(self._logs[task_id].record for task_id in self._contexts.get(context_id, ()))

    async def has_context(self, context_id: ContextKey, owner: str) -> bool:
        return any(task.owner == owner for task in await self.context(context_id))

    async def find_known_contexts(self, keys: Collection[str]) -> KnownContexts:
        return KnownContexts(self._contexts.keys() & keys, self._removed & {*keys})

    async def waiting_tasks(self, context_id: ContextKey, owner: str) -> tuple[str, ...]:
        tasks = await self.context(context_id)
        waiting = (task.task_id for task in tasks if task.owner == owner and task.state.paused)
        return tuple(islice(waiting, 2))

    async def first_messages(
        self, context_id: ContextKey, owner: str, task_ids: Iterable[str]
    ) -> Mapping[str, UserMessage]:
        wanted = {*task_ids}
        tasks = (task for task in await self.context(context_id) if task.owner == owner and task.task_id in wanted)
        return {task.task_id: task.first_message for task in tasks if task.history}

    async def earlier_transcripts(self, record: TaskRecord) -> tuple[Transcript, ...]:
        return tuple(each.transcript for each in earlier_tasks(await self.context(record.context_id), record))

    async def earlier_messages(self, record: TaskRecord) -> tuple[Said, ...]:
        return tuple(each.history for each in earlier_tasks(await self.context(record.context_id), record))

    async def later_tasks(self, record: TaskRecord) -> frozenset[str]:
        ids = self._contexts[record.context_id]
        return frozenset(ids[ids.index(record.task_id) + 1 :])

    async def list(self, query: TaskQuery) -> TaskPage:
        return make_page(
            (self._logs[task_id].record for owner in query.owners for task_id in self._owners.get(owner, ())), query
        )

    def contexts_of(self, owner: str) -> Iterable[Sequence[TaskRecord]]:
        """The tasks of an owner, by context, each oldest first."""
        found: defaultdict[str, list[TaskRecord]] = defaultdict(list)
        for task_id in self._owners.get(owner, ()):
            record = self._logs[task_id].record
            found[record.context_id].append(record)
        return found.values()

    def remove(self, context_id: ContextKey) -> None:
        """Remove a context with its tasks; their subscribers get `StreamLost`."""
        if is_unique(public_id(context_id)):
            self._removed.add(context_id)
        self.values.remove(context_id)
        self.annotations.remove(context_id)
        removed = {task_id: self._logs.pop(task_id) for task_id in self._contexts.pop(context_id, ())}
        for owner in {log.record.owner for log in removed.values()}:
            self._owners[owner] = [task_id for task_id in self._owners[owner] if task_id not in removed]
        self._recent.forget(removed)
        if self._push:
            for task_id in removed:
                self._push.forget(context_id, task_id)
        for log in (*removed.values(), self._context_logs.pop(context_id, None)):
            if log is not None:
                log.fail(StreamLost())

    def created_at(self, task_id: str) -> datetime:
        return self._logs[task_id].created_at

    def artifact_names(self, context_id: ContextKey) -> Mapping[str, str]:
        """The names of a context's artifacts by id, the last changed last."""
        changed = self._context_log(context_id).snapshot.artifacts
        return {artifact_id: each.artifact.content.name for artifact_id, each in changed.items()}

    def _log(self, task_id: str) -> _TaskLog:
        try:
            return self._logs[task_id]
        except KeyError:
            raise TaskNotFound(task_id) from None

    def _context_log(self, context_id: ContextKey) -> ContextLog:
        log = self._context_logs.get(context_id)
        if log is None:
            log = self._context_logs[context_id] = ContextLog()
        return log


class _InMemoryActivity:
    """An `ActivitySource`: there is no other replica."""

    def __init__(self, journal: InMemoryJournal) -> None:
        self._journal = journal

    async def report(self, watchers: Mapping[ContextKey, int]) -> None:
        pass

    async def read(self, context_ids: Collection[ContextKey]) -> Mapping[ContextKey, Activity]:
        return {each: await self._activity_of(each) for each in context_ids}

    async def _activity_of(self, context_id: ContextKey) -> Activity:
        tasks = await self._journal.context(context_id)
        working = tuple(task.task_id for task in tasks if not task.state.settled)
        return Activity(0, working, len(tasks), max((task.changed_at for task in tasks), default=None))
