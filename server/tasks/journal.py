"""The journal: one append-only list of entries per task. Subscribers are cursors, not queues.

Rule 1: whoever follows a task gets a snapshot and then exactly the entries after it, in order, to the terminal one.
Rule 2: a cursor costs nothing but the entries it has not read; nobody is ever dropped.
Rule 3: an entry is kept as long as a cursor has still to read it, and no longer.

In memory rule 3 needs no book-keeping: entries are linked forward only, and a cursor holds the link to the one it
reads next, so what every cursor has passed is unreachable, and so is everything once the last cursor has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from typing import Protocol

from server.agent.events import StatusChanged, TurnEvent
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

    async def context(self, context_id: str) -> tuple[TaskRecord, ...]:
        """The tasks of a context, oldest first."""
        ...

    async def all(self, owner: str) -> Iterable[TaskRecord]:
        """The tasks of an owner, in no particular order."""
        ...


class _Link:
    """The place of one entry: empty until it is written, then the entry and the place of the next."""

    __slots__ = ("filled",)

    def __init__(self) -> None:
        self.filled: tuple[Entry, _Link] | None = None


class _Log:
    """One task: its newest state and the place of its next entry."""

    def __init__(self, record: TaskRecord) -> None:
        self.record = record
        self.end = _Link()
        self._waiting: set[asyncio.Future[None]] = set()

    def append(self, event: TurnEvent, at: datetime) -> None:
        entry = Entry(self.record.epoch, self.record.generation + 1, at, event)
        self.record = fold(self.record, entry)
        filled, self.end = self.end, _Link()
        filled.filled = entry, self.end

    def wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def news(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)


class _Cursor:
    def __init__(self, log: _Log) -> None:
        self.snapshot = log.record
        self._log = log
        self._at = log.end
        self._ended = log.record.state.terminal

    @property
    def behind(self) -> bool:
        return self._at.filled is not None

    def __aiter__(self) -> AsyncIterator[Entry]:
        return self

    async def __anext__(self) -> Entry:
        if self._ended:
            raise StopAsyncIteration
        while (filled := self._at.filled) is None:
            await self._log.news()
        entry, self._at = filled
        self._ended = isinstance(entry.event, StatusChanged) and entry.event.state.terminal
        return entry


class InMemoryJournal:
    """A `Journal` in dictionaries.

    Args:
        now: the clock.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._logs: dict[str, _Log] = {}
        self._contexts: dict[str, list[str]] = {}
        self._owners: dict[str, list[str]] = {}

    async def create(self, record: TaskRecord) -> None:
        self._logs[record.task_id] = _Log(record)
        self._contexts.setdefault(record.context_id, []).append(record.task_id)
        self._owners.setdefault(record.owner, []).append(record.task_id)

    async def append(self, task_id: str, *events: TurnEvent) -> None:
        log = self._log(task_id)
        at = self._now()
        for event in events:
            log.append(event, at)
        log.wake()

    async def get(self, task_id: str) -> TaskRecord:
        return self._log(task_id).record

    async def follow(self, task_id: str) -> Following:
        return _Cursor(self._log(task_id))

    async def context(self, context_id: str) -> tuple[TaskRecord, ...]:
        return tuple(self._logs[task_id].record for task_id in self._contexts.get(context_id, ()))

    async def all(self, owner: str) -> Iterable[TaskRecord]:
        return [self._logs[task_id].record for task_id in self._owners.get(owner, ())]

    def _log(self, task_id: str) -> _Log:
        try:
            return self._logs[task_id]
        except KeyError:
            raise TaskNotFound(task_id) from None
