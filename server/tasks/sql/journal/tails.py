"""The tasks that are followed here. Those of other replicas are read from the database after a notification."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from weakref import WeakValueDictionary

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.errors import StreamLost, Unreadable
from a2a_canvas.server.tasks.journal.task_log import TaskLog
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal.journal_reading import entries_after, read_record, tasks_in
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.version_contents import VersionContents


class TaskTails:
    """The logs of tasks, each as long as it is referenced. Reads raise `Unavailable` if they fail.

    Args:
        runs_here: whether this replica runs a task: then its log is ahead of the database, and is not read.
    """

    def __init__(self, database: Database, versions: VersionContents, runs_here: Callable[[str], bool]) -> None:
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
                    return self.add(fresh)
            await self._read_on(log)
            if not log.failure:
                return log

    async def refresh(self, task_ids: Iterable[str]) -> None:
        """Read the new entries of these tasks; one that has ended here has none, though its last commit is notified."""
        for task_id in task_ids:
            log = self._logs.get(task_id)
            if log and not (log.failure or log.record.state.terminal or self._runs_here(task_id)):
                await self._read_on(log)

    async def refresh_all(self) -> None:
        """Read the new entries of all tasks that have any."""
        known = {task_id: record for task_id, record in self.elsewhere.items() if not record.state.terminal}
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

    async def _read_on(self, log: TaskLog) -> None:
        async with log.reading:
            try:
                async with self._database.read() as connection:
                    first, entries = await entries_after(connection, log.record, self._versions)
                    first = first or 1 + await _generation(connection, log.record)
            except Unreadable:
                log.fail(StreamLost())  # a new subscription raises `Unreadable`
                return
            if self._runs_here(log.record.task_id) or not log.saved:
                return  # its own entries may be among them
            if first != log.record.generation + 1:
                log.fail(StreamLost())  # the next entries have been removed
            elif entries:
                log.read(entries)


async def _generation(connection: AsyncConnection, record: TaskRecord) -> int:
    query = select(tasks.c.generation).where(tasks_in([(record.context_id, record.task_id)]))
    return int(await connection.scalar(query) or record.generation)
