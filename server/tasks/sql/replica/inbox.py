"""Inboxes: what a replica asks of the one that runs a task, namely to take a message, or to cancel the task.

Rule 1: a message waits in `inbox_messages` until the replica that runs its task has taken it; its row is deleted in the
        transaction that writes the message to the task. So it is taken exactly once. The row of a message that has
        reached the task in another way is deleted as well.
Rule 2: the sender waits for that. If the task settles first, the sender withdraws the message and sends it again.
Rule 3: a request to cancel is a flag on the task, which the next replica finds, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select, update

from a2a_canvas.server.agent.events import MessageReceived, StatusChanged, UserMessage
from a2a_canvas.server.log_output import about
from a2a_canvas.server.tasks.codec import FoundFiles, message_of_json, message_to_json, names_to_json
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.kept_files import NO_FILES, Files
from a2a_canvas.server.tasks.runtime.ownership import TaskRunner
from a2a_canvas.server.tasks.sql.journal.journal_reading import read_context_id, read_named_files, tasks_in
from a2a_canvas.server.tasks.sql.journal.sql_journal import SqlJournal
from a2a_canvas.server.tasks.sql.projections import inbox_messages
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.server.tasks.sql.replica.notifications import Notification, Notify, notify
from a2a_canvas.store.ids import new_id
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.times import to_microseconds

logger = logging.getLogger(__name__)

CHECK_INTERVAL = 1.0
"""Seconds after which a sender checks its message without a notification."""


class Inbox:
    """Sends to the inboxes of other replicas' tasks, and reads those of this replica's."""

    def __init__(
        self, database: Database, journal: SqlJournal, now: Callable[[], datetime], notify: Notify = notify
    ) -> None:
        self._notify = notify
        self._database = database
        self._journal = journal
        self._now = now
        self._seen: dict[str, str] = {}  # task by inbox row: taken, but the deletion may not be durable

    # ------------------------------------------------------------------------ sending

    async def post(self, task_id: str, message: UserMessage, key: str) -> bool:
        """Send a message to the replica that runs a task. False: the task settled before it took the message.

        Raises:
            Unavailable: the database cannot be used.
        """
        subscription = await self._journal.follow(task_id)
        row = {"context_id": subscription.snapshot.context_id, "task_id": task_id, "inbox_id": new_id()}
        files: FoundFiles = {}
        sent = {"message": message_to_json(message, files), "named": names_to_json((), files.values())}
        columns = {"sent_at": to_microseconds(self._now()), "key": key, **sent}
        async with self._database.write() as connection:
            await inbox_messages.add(connection, row | columns)
            await connection.run_sync(self._notify, Notification(inboxes=(task_id,)))
        settled = subscription.snapshot.state.settled
        while not settled:
            settled = await _wait_for_change(subscription)
            if not await self._is_pending(row):
                return True
        return not await self._withdraw(row)

    async def request_cancel(self, task_id: str) -> None:
        """Ask the replica that runs a task to cancel it.

        Raises:
            Unavailable: the database cannot be used.
        """
        async with self._database.write() as connection:
            context_id = await read_context_id(connection, task_id)
            ours = tasks.c.context_id == context_id, tasks.c.task_id == task_id
            await connection.execute(update(tasks).where(*ours).values(cancel_requested=True))
            await connection.run_sync(self._notify, Notification(inboxes=(task_id,)))

    async def _is_pending(self, row: Mapping[str, str]) -> bool:
        async with self._database.read() as connection:
            return await inbox_messages.is_pending(connection, row)

    async def _withdraw(self, row: Mapping[str, str]) -> bool:
        async with self._database.write() as connection:
            return await inbox_messages.withdraw(connection, row)

    # ----------------------------------------------------------------------- receiving

    def forget(self, task_ids: Collection[str] | None = None) -> None:
        """Read the inbox rows of these tasks, or of all, again: what was taken last may never become durable."""
        self._seen = {k: task for k, task in self._seen.items() if task_ids is not None and task not in task_ids}

    async def deliver_pending(self, runner: TaskRunner) -> None:
        """Deliver the messages and the requests to cancel that wait for tasks of this replica.

        Raises:
            Unavailable: the database cannot be used.
        """
        ours = self._journal.running
        if not ours:
            return
        cancelling = select(tasks.c.task_id).where(tasks_in(ours), tasks.c.cancel_requested)
        async with self._database.read() as connection:
            found = await inbox_messages.read_pending(connection, ours)
            new = [row for row in found if row.inbox_id not in self._seen]
            files = await read_named_files(connection, new)
            cancelled = (await connection.scalars(cancelling)).all()
        for task_id in cancelled:
            runner.cancel_turn(task_id)
        for row in new:
            await self._deliver(runner, row, files.get(row.context_id, NO_FILES))
        waiting = {row.inbox_id for row in found}
        self._seen = {each: task for each, task in self._seen.items() if each in waiting}

    async def _deliver(self, runner: TaskRunner, row: Row[Any], files: Files) -> None:
        known = await self._journal.find_duplicate(row.key)
        if not self._journal.runs_here(row.task_id):
            return
        if known or (message := _message(row, files)) is None:
            await self._acknowledge(row, "")
        elif await runner.deliver(row.task_id, message):
            await self._acknowledge(row, row.key)

    async def _acknowledge(self, row: Row[Any], key: str) -> None:
        await self._journal.acknowledge(row.task_id, row.inbox_id, key)
        self._seen[row.inbox_id] = row.task_id


def _message(row: Row[Any], files: Files) -> UserMessage | None:
    try:
        return message_of_json(row.message, files)
    except Exception:  # a decoder's errors are many
        logger.exception(
            "A message to the task cannot be decoded, and is removed", extra=about(row.task_id, row.context_id)
        )
        return None


async def _wait_for_change(subscription: TaskSubscription) -> bool:
    """Wait until the task has taken a message, or settled, or for `CHECK_INTERVAL`; whether it has settled."""
    entries = aiter(subscription)
    try:
        async with asyncio.timeout(CHECK_INTERVAL):
            while True:
                event = (await anext(entries)).event
                if isinstance(event, MessageReceived):
                    return False
                if isinstance(event, StatusChanged) and event.state.settled:
                    return True
    except TimeoutError:
        return False
    except StopAsyncIteration:
        return True
