"""The tasks that are followed here. Those of other replicas are read from the database after a notification.

Rule 1: with a broker, the pages of a task come as messages (`followed_pages.py`).
Rule 2: a page may come while the database is read: of what was read, only entries after the newest shown are added.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.codec import NO_CONTENTS
from a2a_canvas.server.tasks.errors import StreamLost, Unreadable
from a2a_canvas.server.tasks.journal.task_log import NOT_RECEIVED, TaskLog
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.server.tasks.sql.journal.background_reads import BackgroundReads
from a2a_canvas.server.tasks.sql.journal.followed_pages import FollowedPages, is_current
from a2a_canvas.server.tasks.sql.journal.journal_reading import (
    decode_entries,
    entries_after,
    place_of,
    read_record,
    tasks_in,
)
from a2a_canvas.server.tasks.sql.journal.page_messages import PageKey, PageMessage
from a2a_canvas.server.tasks.sql.projections.pages import read_behind
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.version_contents import VersionContents

TASKS_PER_READING = 20
"""Tasks whose pages are in memory together, before they are shown."""


class TaskTails:
    """The logs of tasks, each as long as it is referenced. Reads raise `Unavailable` if they fail.

    Args:
        runs_here: whether this replica runs a task: then its log is ahead of the database, and is not read.

    Attributes:
        pages: those of other replicas that come by a broker.
        pages_read, pages_received: from the database, and as messages in order.
    """

    def __init__(self, database: Database, versions: VersionContents, runs_here: Callable[[str], bool]) -> None:
        self.pages_read = self.pages_received = 0
        self._refreshing = BackgroundReads(self.refresh)
        self.pages: FollowedPages[str] = FollowedPages(self._receive, self._refresh_one)
        self._database = database
        self._versions = versions
        self._runs_here = runs_here
        self._logs: WeakValueDictionary[str, TaskLog] = WeakValueDictionary()

    def get(self, task_id: str) -> TaskLog | None:
        return self._logs.get(task_id)

    @property
    def elsewhere(self) -> dict[str, TaskRecord]:
        """The tasks that this replica does not run."""
        logs = tuple(self._logs.items())
        return {task_id: log.record for task_id, log in logs if not self._runs_here(task_id)}

    def add(self, log: TaskLog) -> TaskLog:
        self._logs[log.record.task_id] = log
        return log

    def check_again(self) -> None:
        """Have the guards of all subscriptions ask again."""
        for log in tuple(self._logs.values()):
            log.check_again()

    def fail(self, error: Exception) -> None:
        """End the subscriptions of every task with `error`."""
        for log in tuple(self._logs.values()):
            log.fail(error)
        self._logs.clear()

    async def read(self, task_id: str) -> TaskLog:
        """The current log of a task that runs elsewhere, or has ended.

        Raises:
            TaskNotFound: there is none.
            Unreadable: its rows cannot be decoded.
        """
        while True:
            log = self._logs.get(task_id)
            if log is None or log.failure:
                fresh = TaskLog(await read_record(self._database, task_id, self._versions))
                # Another request may have made one meanwhile.
                log = self._logs.get(task_id)
                if log is None or log.failure:
                    if not fresh.record.state.terminal:
                        self.pages.follow(task_id, _page_key(fresh.record))
                    return self.add(fresh)
            if is_current(log.received_at):
                return log
            await self._read_on(log)
            if not log.failure:
                return log

    async def refresh(self, task_ids: Iterable[str]) -> None:
        """Read the new entries of these tasks; one that has ended here has none, though its last commit is notified."""
        known = {}
        for task_id in task_ids:
            log = self._logs.get(task_id)
            if log and not (log.failure or log.record.state.terminal or self._runs_here(task_id)):
                known[log] = log.record
        for first in range(0, len(known), TASKS_PER_READING):
            some = [*known.items()][first : first + TASKS_PER_READING]
            async with self._database.read_at_once() as connection:
                behind = await read_behind(connection, [place_of(record) for _, record in some])
            for log, record in some:
                if not self._take(log, record, behind[record.task_id]):
                    await self._read_on(log)
                await asyncio.sleep(0)

    async def refresh_all(self) -> None:
        """Read the new entries of all tasks that have any, and have brought no page for a moment."""
        known = {task_id: record for task_id, record in self.elsewhere.items() if not record.state.terminal}
        self.pages.follow_only({task_id: _page_key(record) for task_id, record in known.items()})
        known = {task_id: record for task_id, record in known.items() if not self._is_current(task_id)}
        if known:
            query = select(tasks.c.task_id, tasks.c.generation)
            query = query.where(tasks_in((record.context_id, task_id) for task_id, record in known.items()))
            async with self._database.read() as connection:
                found = {row.task_id: row.generation for row in await connection.execute(query)}
            for task_id in known.keys() - found.keys():  # removed with their contexts
                log = self._logs.get(task_id)
                if log is not None and not self._runs_here(task_id) and log.saved:
                    log.fail(StreamLost())
            await self.refresh(task_id for task_id, last in found.items() if last > known[task_id].generation)

    # ------------------------------------------------------------------------- messages

    def _is_current(self, task_id: str) -> bool:
        log = self._logs.get(task_id)
        return log is not None and is_current(log.received_at)

    def _refresh_one(self, task_id: str) -> None:
        self._refreshing.start([task_id])

    def _receive(self, task_id: str, page: PageMessage | None) -> None:
        log = self._logs.get(task_id)
        if log is None or log.failure or log.record.state.terminal or self._runs_here(task_id) or not log.saved:
            return
        if page is None:
            log.received_at = NOT_RECEIVED
        elif page.last > log.record.generation and not self._show(log, page):
            log.received_at = NOT_RECEIVED
            self._refresh_one(task_id)

    def _show(self, log: TaskLog, page: PageMessage) -> bool:
        """Show a page if it is in order."""
        in_order = page.epoch == log.record.epoch and page.first == log.record.generation + 1
        if not in_order or page.entries is None:
            return False
        try:
            entries = decode_entries(page, NO_CONTENTS)
        except Unreadable:
            return False
        log.read(entries)
        log.received_at = time.monotonic()
        self.pages_received += 1
        return True

    async def stop(self) -> None:
        await self._refreshing.stop()

    def _take(self, log: TaskLog, known: TaskRecord, pages: Sequence[Row[Any]]) -> bool:
        """Show pages that were read after a record, if they are the next ones and name nothing that has to be read."""
        if not pages or pages[0].first != known.generation + 1 or any(page.named for page in pages):
            return False
        try:
            entries = [entry for page in pages for entry in decode_entries(page, NO_CONTENTS)]
        except Unreadable:
            return False
        self._append(log, entries)
        return True

    def _append(self, log: TaskLog, entries: Iterable[Entry]) -> None:
        """Show what was read (rule 2), unless this replica runs the task meanwhile: its own may be among them."""
        if log.saved and not log.failure and not self._runs_here(log.record.task_id):
            self.pages_read += 1
            log.read([entry for entry in entries if entry.generation > log.record.generation])

    async def _read_on(self, log: TaskLog) -> None:
        async with log.reading:
            known = log.record
            try:
                async with self._database.read() as connection:
                    first, entries = await entries_after(connection, known, self._versions)
                    first = first or 1 + await _generation(connection, known)
            except Unreadable:
                log.fail(StreamLost())  # a new subscription raises `Unreadable`
                return
            if self._runs_here(log.record.task_id) or not log.saved:
                return  # its own entries may be among them
            if first != known.generation + 1:
                log.fail(StreamLost())  # the next entries have been removed
            elif entries:
                self._append(log, entries)


def _page_key(record: TaskRecord) -> PageKey:
    return record.context_id, record.task_id


async def _generation(connection: AsyncConnection, record: TaskRecord) -> int:
    query = select(tasks.c.generation).where(tasks_in([(record.context_id, record.task_id)]))
    return int(await connection.scalar(query) or record.generation)
