"""The journal: one append-only log of entries per task. Subscribers are cursors, not queues.

Rule 1: whoever follows a task gets a snapshot and then exactly the entries after it, in order, to the terminal one.
Rule 2: a cursor costs nothing but the entries it has not read; nobody is ever dropped.
Rule 3: an entry is kept as long as a cursor has still to read it, and no longer.
Rule 4: the artifact changes of all tasks of a context are one more log, which is read in the same way. Any context
        can be followed: one that nobody has used yet begins empty, and is forgotten if its follower leaves before
        its first task.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from typing import Protocol
from weakref import WeakValueDictionary

from server.agent.events import ArtifactChanged, StatusChanged, TurnEvent
from server.tasks.context_log import ContextCursor, ContextEntry, ContextLog, ContextSnapshot
from server.tasks.cursors import Cursor, Log
from server.tasks.errors import TaskNotFound
from server.tasks.record import Entry, TaskRecord, fold


class Following(Protocol):
    """A subscriber's place in a journal: async-iterates the entries after `snapshot`, and ends with the task."""

    @property
    def snapshot(self) -> TaskRecord: ...

    @property
    def behind(self) -> bool:
        """Whether the next entry is there already."""
        ...

    def __aiter__(self) -> AsyncIterator[Entry]: ...


class FollowingContext(Protocol):
    """A subscriber's place in a context: async-iterates the artifact changes after `snapshot`, and never ends.

    The iterator does not keep the snapshot: who reads on for long need not hold what the context once was.
    """

    @property
    def snapshot(self) -> ContextSnapshot: ...

    def __aiter__(self) -> AsyncIterator[ContextEntry]: ...


class Journal(Protocol):
    """Keeps the tasks."""

    async def create(self, record: TaskRecord) -> None:
        """Begin a task's journal with its first state, generation 1."""
        ...

    async def append(self, task_id: str, *events: TurnEvent) -> None:
        """Add entries; they are visible together."""
        ...

    async def get(self, task_id: str) -> TaskRecord:
        """The task as it stands.

        Raises:
            TaskNotFound: there is none.
        """
        ...

    async def follow(self, task_id: str) -> Following:
        """A snapshot and what comes after it.

        Raises:
            TaskNotFound: there is none.
        """
        ...

    async def follow_context(self, context_id: str) -> FollowingContext:
        """The artifacts of a context, and what any of its tasks changes after that."""
        ...

    async def context(self, context_id: str) -> tuple[TaskRecord, ...]:
        """The tasks of a context, oldest first."""
        ...

    async def all(self, owner: str) -> Iterable[TaskRecord]:
        """The tasks of an owner, in no particular order."""
        ...


class _TaskLog(Log[Entry]):
    """One task: its newest state and its log."""

    def __init__(self, record: TaskRecord, context: ContextLog) -> None:
        super().__init__()
        self.record = record
        self._context = context

    def add(self, event: TurnEvent, at: datetime) -> None:
        entry = Entry(self.record.epoch, self.record.generation + 1, at, event)
        self.record = fold(self.record, entry)
        self.append(entry)
        if isinstance(event, ArtifactChanged):
            self._context.add(self.record, entry, event)


class _TaskCursor:
    def __init__(self, log: _TaskLog) -> None:
        self.snapshot = log.record
        self._cursor = Cursor(log)
        self._ended = log.record.state.terminal

    @property
    def behind(self) -> bool:
        return self._cursor.behind

    def __aiter__(self) -> AsyncIterator[Entry]:
        return self

    async def __anext__(self) -> Entry:
        if self._ended:
            raise StopAsyncIteration
        entry = await anext(self._cursor)
        self._ended = isinstance(entry.event, StatusChanged) and entry.event.state.terminal
        return entry


class InMemoryJournal:
    """A `Journal` in dictionaries.

    Args:
        now: the clock.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._logs: dict[str, _TaskLog] = {}
        self._contexts: dict[str, list[str]] = {}
        # Kept by the tasks of the context and by its followers.
        self._context_logs: WeakValueDictionary[str, ContextLog] = WeakValueDictionary()
        self._owners: dict[str, list[str]] = {}

    async def create(self, record: TaskRecord) -> None:
        self._logs[record.task_id] = _TaskLog(record, self._context_log(record.context_id))
        self._contexts.setdefault(record.context_id, []).append(record.task_id)
        self._owners.setdefault(record.owner, []).append(record.task_id)

    async def append(self, task_id: str, *events: TurnEvent) -> None:
        log = self._log(task_id)
        at = self._now()
        for event in events:
            log.add(event, at)
        log.wake()

    async def get(self, task_id: str) -> TaskRecord:
        return self._log(task_id).record

    async def follow(self, task_id: str) -> Following:
        return _TaskCursor(self._log(task_id))

    async def follow_context(self, context_id: str) -> FollowingContext:
        return ContextCursor(self._context_log(context_id))

    async def context(self, context_id: str) -> tuple[TaskRecord, ...]:
        return tuple(self._logs[task_id].record for task_id in self._contexts.get(context_id, ()))

    async def all(self, owner: str) -> Iterable[TaskRecord]:
        return [self._logs[task_id].record for task_id in self._owners.get(owner, ())]

    def _log(self, task_id: str) -> _TaskLog:
        try:
            return self._logs[task_id]
        except KeyError:
            raise TaskNotFound(task_id) from None

    def _context_log(self, context_id: str) -> ContextLog:
        log = self._context_logs.get(context_id)
        if log is None:
            log = self._context_logs[context_id] = ContextLog()
        return log
