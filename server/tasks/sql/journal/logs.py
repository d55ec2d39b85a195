"""One task in memory: what can be seen of it, and what has still to be written.

Rule 1: an entry that durable (`durability.py`) is seen when it is durable, and so is every entry behind it.
Rule 2: the log of a task that this replica runs is ahead of the database. That of any other task repeats the database.
Rule 3: while a task works, a new snapshot of it is due whenever what was said since the last one weighs more than that.
        So to read a task costs twice what it weighs, at most, and its snapshots twice what is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from a2a_canvas.server.agent.events import TurnEvent
from a2a_canvas.server.tasks.journal.durability import is_durable
from a2a_canvas.server.tasks.journal.journal import ReadableLog
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold

MIN_SNAPSHOT_CHARACTERS = 128 * 1024
"""Characters of entries that are not worth a snapshot, however light the task is: about 280 deltas."""


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """What is to be written of one task.

    Attributes:
        created: the task as it began, if it is new.
        keys: of the messages that are among the entries, or that began it.
        newest: the task after `entries`.
        mail: ids of the messages by post that are among the entries.
    """

    log: TaskLog
    created: TaskRecord | None
    keys: tuple[str, ...]
    entries: tuple[Entry, ...]
    newest: TaskRecord
    mail: tuple[str, ...]


class TaskLog(ReadableLog):
    """A task.

    Attributes:
        newest: as its owner knows it.
        repeated: the task that another replica has made of the same message; this one does not exist.
        unborn: it is new, and not durable yet: nobody may see it.
        unwritable: what was said last cannot be written.
        reading: held by who reads on from the database.
    """

    def __init__(self, record: TaskRecord) -> None:
        super().__init__(record)
        self.newest = record
        self.repeated = ""
        self.reading = asyncio.Lock()
        self._durable = record.generation
        self.unborn = False
        self.unwritable = False
        self._created: TaskRecord | None = None
        self._keys: list[str] = []
        self._unseen: list[tuple[Entry, TaskRecord, bool]] = []
        self._unsaved: list[Entry] = []
        self._mail: list[str] = []
        self._behind = 0
        self._snapshot = 0

    @property
    def untouched(self) -> bool:
        """Whether the task is new, nothing has been said of it yet, and nobody has begun to write it."""
        return self._created is not None and not self._unsaved

    @property
    def saved(self) -> bool:
        """Whether nothing has still to be written."""
        return not (self._created or self._unsaved or self._unseen)

    def begin(self) -> None:
        """The task is new."""
        self.unborn = True
        self._created = self.record

    def adopt(self, record: TaskRecord) -> None:
        """The task is this replica's now: `record` has its new epoch."""
        self.record = self.newest = record
        self._durable = record.generation
        self._behind = self._snapshot = 0  # not counted: snapshots of all that was just taken over would be due at once

    def overdue(self, said: int) -> int:
        """How many characters more than the snapshot weigh the entries behind it, with `said` that are to be written.

        A snapshot is due when it is more than none (rule 3).
        """
        return self._behind + said - max(self._snapshot, MIN_SNAPSHOT_CHARACTERS)

    def weighed(self, said: int, snapshot: int) -> None:
        """So many characters of entries were written, and a snapshot of so many behind them; 0: none."""
        self._behind = 0 if snapshot else self._behind + said
        self._snapshot = snapshot or self._snapshot

    def say(self, event: TurnEvent, at: datetime) -> bool:
        """Add an entry by the owner; whether it durable."""
        entry = Entry(self.newest.epoch, self.newest.generation + 1, at, event)
        durable = is_durable(self.newest.state, event)
        self.newest = fold(self.newest, entry)
        self._unsaved.append(entry)
        self._unseen.append((entry, self.newest, durable))
        return durable

    def remember(self, key: str) -> None:
        """The newest message has this key."""
        if key:
            self._keys.append(key)

    def acknowledge(self, mail_id: str) -> None:
        """The newest message came by post."""
        self._mail.append(mail_id)

    def take(self) -> TaskBatch:
        """What is to be written."""
        taken = self._created, tuple(self._keys), tuple(self._unsaved), self.newest, tuple(self._mail)
        self._created, self._keys, self._unsaved, self._mail = None, [], [], []
        return TaskBatch(self, *taken)

    def saved_to(self, generation: int) -> None:
        """What was said up to there is durable."""
        self._durable = generation
        self.unborn = False
        self.show()

    def show(self) -> None:
        """Let entries be seen: the durable ones, and behind them those that need not be."""
        shown = 0
        for entry, record, durable in self._unseen:
            if durable and entry.generation > self._durable:
                break
            self.record = record
            self.append(entry)
            shown += 1
        if shown:
            del self._unseen[:shown]
            self.wake()

    def read(self, entries: Iterable[Entry]) -> None:
        """Add entries of another replica, which are durable."""
        for entry in entries:
            self.record = self.newest = fold(self.record, entry)
            self.append(entry)
        self._durable = self.record.generation
        self.wake()
