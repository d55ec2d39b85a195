"""The changes of artifacts and annotations by all tasks of a context: one log, numbered by `position`, and folded.

Rule 1: an artifact of the context is that of the record of the task that changed it last. This holds because a task
        emits all parts in its first change of an artifact and in its first after another task's (`store/mutation.py`),
        so its own fold is right after each of its changes, and nothing is folded twice.
Rule 2: positions have no gaps: every change of an artifact or of annotations takes the next one, and nothing else does.
        An artifact that a task sends again, after an edit that was aborted, is no change: another task may be writing
        it, and its next delta extends what the followers of the context have.
Rule 3: it is read by cursors, as a task is (`cursors.py`). It never ends: a context can always have one more task.
Rule 4: a context that was removed, and is used again, starts at position 1 again; its `incarnation` tells the positions
        apart.
Rule 5: its changes are kept (`KeptChanges`) from the time when the first reader came who may come back with a position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from a2a_canvas.server.agent.events import ArtifactChanged, ContextChange
from a2a_canvas.server.tasks.errors import ChangesGone
from a2a_canvas.server.tasks.journal.cursors import Check, Cursor, GuardedCursor, Log
from a2a_canvas.server.tasks.record import Entry, TaskArtifact, TaskRecord
from a2a_canvas.store.models import Content, new_incarnation

KEPT_BYTES = 4 * 1024 * 1024
"""Bytes of changes that one context keeps in memory where there is no database."""


class ContextEntry(NamedTuple):
    """One change: `entry.event` is a `ContextChange`, and `entry` is that of its task's journal."""

    position: int
    task_id: str
    entry: Entry
    incarnation: int


@dataclass(frozen=True, slots=True)
class ContextArtifact:
    """The current content of an artifact of a context.

    Attributes:
        task_id, position: of its last change.
        closed: that change has made a version.
    """

    artifact: TaskArtifact
    task_id: str
    position: int
    closed: bool


@dataclass(frozen=True, slots=True)
class ContextSnapshot:
    """A context's artifacts at one position, by their ids, the last changed last. `position` is 0 before any change.

    Attributes:
        incarnation: None if the context has not begun.
    """

    position: int
    artifacts: Mapping[str, ContextArtifact]
    incarnation: int | None


class KeptChanges:
    """The last changes of a context, in memory. Those before it began, and beyond `KEPT_BYTES`, are gone."""

    def __init__(self, position: int) -> None:
        self._begin = position
        self._kept: deque[tuple[ContextEntry, int]] = deque()
        self._bytes = 0

    def add(self, entry: ContextEntry) -> None:
        event = entry.entry.event
        size = Content(parts=event.parts).size if isinstance(event, ArtifactChanged) else 0
        self._kept.append((entry, size))
        self._bytes += size
        while self._bytes > KEPT_BYTES:
            gone, size = self._kept.popleft()
            self._begin = gone.position
            self._bytes -= size

    def after(self, position: int) -> tuple[ContextEntry, ...]:
        """Those after a position.

        Raises:
            ChangesGone: some of them are not there.
        """
        if position < self._begin:
            raise ChangesGone
        return tuple(entry for entry, _ in self._kept if entry.position > position)


class ContextLog(Log[ContextEntry]):
    """One context."""

    def __init__(self) -> None:
        super().__init__()
        self.incarnation = new_incarnation()
        self._position = 0
        self._artifacts: dict[str, ContextArtifact] = {}
        self._kept: KeptChanges | None = None
        self._last: dict[str, int] = {}

    def keep_changes(self) -> KeptChanges:
        """Its changes from the first call on."""
        self._kept = self._kept or KeptChanges(self._position)
        return self._kept

    def last_change(self, task_id: str) -> int:
        """The position of the last change by a task; 0 for none."""
        return self._last.get(task_id, 0)

    @property
    def snapshot(self) -> ContextSnapshot:
        return ContextSnapshot(self._position, dict(self._artifacts), self.incarnation)

    def add(self, record: TaskRecord, entry: Entry, event: ContextChange) -> None:
        """Add the change `event` of `entry`; `record` is its task with `entry` folded in."""
        self._position += 1
        if isinstance(event, ArtifactChanged):
            artifact = record.artifacts[event.artifact_id]
            self._artifacts.pop(event.artifact_id, None)
            changed = ContextArtifact(artifact, record.task_id, self._position, event.last_chunk)
            self._artifacts[event.artifact_id] = changed
        self._last[record.task_id] = self._position
        change = ContextEntry(self._position, record.task_id, entry, self.incarnation)
        if self._kept:
            self._kept.add(change)
        self.append(change)
        self.wake()


class ContextSubscription:
    """A subscriber's place in a context: async-iterates the changes after `snapshot`, and never ends.

    The iterator does not reference the snapshot, so that a long subscription does not keep it in memory.
    """

    def __init__(self, snapshot: ContextSnapshot, cursor: Cursor[ContextEntry]) -> None:
        self.snapshot = snapshot
        self._cursor = cursor

    def guard(self, check: Check) -> None:
        """Have it end with what `check` raises, which is asked now and again."""
        self._cursor = GuardedCursor(self._cursor, check)

    async def check(self) -> None:
        """Raises what ends it, if it may not go on: for who subscribes again and again, and seldom waits for long."""
        await self._cursor.check()

    def __aiter__(self) -> ContextChanges:
        return ContextChanges(self._cursor, self.snapshot.position)


class ContextChanges:
    """The changes after a position. Not a generator, which would keep the last one in memory."""

    def __init__(self, cursor: Cursor[ContextEntry], position: int) -> None:
        self._cursor = cursor
        self._position = position

    def __aiter__(self) -> AsyncIterator[ContextEntry]:
        return self

    async def __anext__(self) -> ContextEntry:
        while (change := await anext(self._cursor)).position <= self._position:
            pass
        return change

    def ready(self) -> Iterator[ContextEntry]:
        """The changes after the one just read that can be sent together with it (`Cursor.ready`)."""
        return self._cursor.ready()
