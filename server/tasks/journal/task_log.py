"""One task in memory: what subscribers see of it, and what is still to be written.

Rule 1: an entry is published when every durable entry (`record.is_durable`) up to it is committed.
Rule 2: the log of a task that this replica runs is ahead of the database. That of any other task repeats the database.
Rule 3: the pieces of a call's input are seen and not stored. Its whole input is stored when its block ends, under the
        number of that end. So numbers are missing between stored entries; the pages of a task leave none out.
Rule 4: while a task works, its record is saved again when the entries since the last one have more characters than
        that saved record. So reading a task costs at most twice its size, and its saved records twice its entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from a2a_canvas.server.agent.events import BlockStopped, LlmCallCompleted, StatusChanged, ToolInputAdded, TurnEvent
from a2a_canvas.server.agent.loops.turn_values import SavedValues
from a2a_canvas.server.tasks.journal.journal import ReadableLog
from a2a_canvas.server.tasks.push_configs import PushConfig, is_notified
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold, is_durable

MIN_SAVED_CHARACTERS = 128 * 1024
"""Fewer characters of entries than this are not worth a saved record: about 280 deltas."""

NOT_RECEIVED = float("-inf")
NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """What is to be written of one task.

    Attributes:
        created: the first record of a new task.
        keys: deduplication keys of the messages among the entries, or of the one that began the task.
        first: the number after the last one that was written before `entries`.
        newest: the task after `entries`.
        acknowledged: ids of the inbox rows whose messages are among the entries.
        push_entries: those of the entries that push notifications tell of.
        push: the push config that a new task begins with.
        values: what the task has set with the entries (`context_values.py`).
    """

    log: TaskLog
    created: TaskRecord | None
    keys: tuple[str, ...]
    entries: tuple[Entry, ...]
    first: int
    newest: TaskRecord
    acknowledged: tuple[str, ...]
    push_entries: tuple[Entry, ...] = ()
    push: PushConfig | None = None
    values: tuple[SavedValues, ...] = ()

    @property
    def changes_activity(self) -> bool:
        """Whether the task may begin or stop to work by it."""
        statuses = (entry.event for entry in self.entries if isinstance(entry.event, StatusChanged))
        return self.created is not None or any(not (each.message and each.message.label) for each in statuses)


class TaskLog(ReadableLog):
    """A task.

    Attributes:
        newest: the record with all entries, published or not.
        duplicate_of: the task that another replica has created for the same message; this one does not exist.
        unsaved_new: it is new, and not durable yet, so it cannot be read.
        keys: deduplication keys of messages that are to be written.
        acknowledged: ids of the inbox rows of such messages.
        values: those that are to be written with the entries.
        unwritable: its last entries cannot be written.
        followed_until: another replica has subscribers of it, who wait for each commit.
        reading: held while new entries are read from the database.
        received_at: when another replica's last page was shown as it came, in monotonic seconds.
    """

    def __init__(self, record: TaskRecord, *, new: bool = False, push: PushConfig | None = None) -> None:
        super().__init__(record)
        self.newest = record
        self.duplicate_of = ""
        self.reading = asyncio.Lock()
        self.received_at = NOT_RECEIVED
        self._durable = record.generation
        self.unsaved_new = new
        self.unwritable = False
        self.followed_until = NEVER
        self.keys: list[str] = []
        self.acknowledged: list[str] = []
        self.values: list[SavedValues] = []
        self._created = record if new else None
        self._push = push
        self._push_entries: list[Entry] = []
        self._unpublished: list[tuple[Entry, TaskRecord, bool]] = []
        self._unsaved: list[Entry] = []
        self._stored = record  # after the last entry that is to be stored
        self._taken = record.generation
        self._inputs: dict[int, list[ToolInputAdded]] = {}  # of open blocks, by index
        self._page_characters = 0
        self._saved_characters = 0

    @property
    def unsaved(self) -> bool:
        """Whether there are entries to be written."""
        return bool(self._unsaved)

    @property
    def untouched(self) -> bool:
        """Whether the task is new, has no entries, and is not being written."""
        return self._created is not None and not self._unsaved

    @property
    def saved(self) -> bool:
        """Whether everything is written and published."""
        return not (self._created or self._unsaved or self._unpublished)

    def adopt(self, record: TaskRecord) -> None:
        """The task is this replica's now: `record` has its new epoch."""
        self.record = self.newest = self._stored = record
        self._durable = self._taken = record.generation
        self._inputs.clear()
        # Not those in the database: saved records of all tasks that were just taken over would be due at once.
        self._page_characters = self._saved_characters = 0

    def overdue(self, characters: int) -> int:
        """By how many characters the entries since the last saved record, `characters` included, exceed that record.

        A saved record is due if it is more than 0 (rule 4).
        """
        return self._page_characters + characters - max(self._saved_characters, MIN_SAVED_CHARACTERS)

    def count_written(self, characters: int, saved: int) -> None:
        """Count the characters of the entries and of the saved record (0: none) that were written."""
        self._page_characters = 0 if saved else self._page_characters + characters
        self._saved_characters = saved or self._saved_characters

    def add(self, event: TurnEvent, at: datetime) -> bool:
        """Add an entry of a task that runs here; whether it must be durable before it is seen."""
        entry = Entry(self.newest.epoch, self.newest.generation + 1, at, event)
        durable = is_durable(self.newest.state, event)
        if is_notified(self.newest, event):
            self._push_entries.append(entry)
        self.newest = fold(self.newest, entry)
        self._unpublished.append((entry, self.newest, durable))
        self._store(entry)
        return durable

    def _store(self, entry: Entry) -> None:
        """Stage it to be written, or its whole input when its block ends (rule 3)."""
        match entry.event:
            case ToolInputAdded() as piece:
                self._inputs.setdefault(piece.place.index, []).append(piece)
                return
            case BlockStopped(place=place) if pieces := self._inputs.pop(place.index, None):
                whole = replace(pieces[0], partial_json="".join(piece.partial_json for piece in pieces))
                self._unsaved.append(replace(entry, event=whole))
            case LlmCallCompleted():
                self._inputs.clear()
            case _:
                pass
        self._unsaved.append(entry)
        self._stored = self.newest

    def take_batch(self) -> TaskBatch:
        """Everything that is not written yet."""
        first, self._taken = self._taken + 1, self._stored.generation
        taken = self._created, tuple(self.keys), tuple(self._unsaved), first, self._stored, tuple(self.acknowledged)
        self._created, self.keys, self._unsaved, self.acknowledged = None, [], [], []
        push_entries, push, self._push_entries, self._push = tuple(self._push_entries), self._push, [], None
        values, self.values = tuple(self.values), []
        return TaskBatch(self, *taken, push_entries, push, values)

    def mark_durable(self, generation: int) -> None:
        """Entries up to this one are durable."""
        self._durable = generation
        self.unsaved_new = False
        self.publish()

    def publish(self) -> None:
        """Publish entries up to the first one that must be durable and is not."""
        shown = 0
        for entry, record, durable in self._unpublished:
            if durable and entry.generation > self._durable:
                break
            self.record = record
            self.append(entry)
            shown += 1
        if shown:
            del self._unpublished[:shown]
            self.wake()

    def read(self, entries: Iterable[Entry]) -> None:
        """Add entries that another replica has written."""
        for entry in entries:
            self.record = self.newest = self._stored = fold(self.record, entry)
            self.append(entry)
        self._durable = self._taken = self.record.generation
        self.wake()
