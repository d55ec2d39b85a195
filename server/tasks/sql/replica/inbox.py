"""What one replica asks of another that runs a task: to take a message, or to cancel it.

Rule 1: a message lies in `mail` until its task's owner has taken it; the row goes in the transaction that brings the
        message into the task. So it is taken once, or not at all.
        A row whose message has come another way as well goes without being taken again.
Rule 2: whoever sent it waits for that. If the task settles first, the sender takes the message back and sends it anew.
Rule 3: a wish to cancel is a mark on the task, which a new owner finds, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, Row, delete, func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import MessageReceived, StatusChanged, UserMessage
from a2a_canvas.server.tasks.codec import message_of_json, message_to_json
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.ownership import TaskRunner
from a2a_canvas.server.tasks.sql.journal.journal_reading import read_context_id, tasks_in, to_microseconds
from a2a_canvas.server.tasks.sql.journal.journal_tables import mail, tasks
from a2a_canvas.server.tasks.sql.journal.sql_journal import SqlJournal
from a2a_canvas.store.sql.database import Database

logger = logging.getLogger(__name__)

CHECK_INTERVAL = 1.0
"""Seconds after which a sender looks whether its message was taken, if nothing has told it."""


class Inbox:
    """The post of one replica.

    Args:
        notify: tells the other replicas, within the transaction, that there is post for a task.
    """

    def __init__(
        self,
        database: Database,
        journal: SqlJournal,
        notify: Callable[[AsyncConnection, str], Awaitable[None]],
        now: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._journal = journal
        self._notify = notify
        self._now = now
        self._taken: dict[str, str] = {}  # by the id of a message, its task

    # ------------------------------------------------------------------------ sending

    async def post(self, task_id: str, message: UserMessage, key: str) -> bool:
        """Give a message to a task's owner. False: the task settled before it acknowledge it.

        Raises:
            Unavailable: the database cannot be used.
        """
        following = await self._journal.follow(task_id)
        row = {"context_id": following.snapshot.context_id, "task_id": task_id, "mail_id": str(uuid4())}
        said = {"sent_at": to_microseconds(self._now()), "key": key, "message": message_to_json(message)}
        async with self._database.write() as connection:
            await connection.execute(mail.insert().values(row | said))
            await self._notify(connection, task_id)
        settled = following.snapshot.state.settled
        while not settled:
            settled = await _news(following)
            if not await self._is_pending(row):
                return True
        return not await self._take_back(row)

    async def request_cancel(self, task_id: str) -> None:
        """Mark a task to be cancelled.

        Raises:
            Unavailable: the database cannot be used.
        """
        async with self._database.write() as connection:
            context_id = await read_context_id(connection, task_id)
            ours = tasks.c.context_id == context_id, tasks.c.task_id == task_id
            await connection.execute(update(tasks).where(*ours).values(cancelled=True))
            await self._notify(connection, task_id)

    async def _is_pending(self, row: Mapping[str, str]) -> bool:
        async with self._database.read() as connection:
            found = select(func.count()).select_from(mail).where(*_is(row))
            return bool(await connection.scalar(found))

    async def _take_back(self, row: Mapping[str, str]) -> bool:
        async with self._database.write() as connection:
            return (await connection.execute(delete(mail).where(*_is(row)))).rowcount == 1

    # ----------------------------------------------------------------------- receiving

    def forget(self, task_ids: Collection[str] | None = None) -> None:
        """What these tasks, or all, have taken last may not be durable, and never be."""
        kept = {} if task_ids is None else {k: task for k, task in self._taken.items() if task not in task_ids}
        self._taken = kept

    async def collect(self, owner: TaskRunner) -> None:
        """Bring what has come for the tasks of this replica to where they run.

        Raises:
            Unavailable: the database cannot be used.
        """
        ours = self._journal.owned
        if not ours:
            return
        async with self._database.read() as connection:
            pending = select(mail).where(tuple_(mail.c.context_id, mail.c.task_id).in_(ours))
            found = (await connection.execute(pending.order_by(mail.c.sent_at, mail.c.mail_id))).all()
            cancelled = (
                await connection.scalars(select(tasks.c.task_id).where(tasks_in(ours), tasks.c.cancelled))
            ).all()
        for task_id in cancelled:
            owner.interrupt(task_id)
        for row in found:
            if row.mail_id not in self._taken:
                await self._deliver(owner, row)
        lying = {row.mail_id for row in found}
        self._taken = {each: task for each, task in self._taken.items() if each in lying}

    async def _deliver(self, owner: TaskRunner, row: Row[Any]) -> None:
        known = await self._journal.find_duplicate(row.key)
        if not self._journal.owns(row.task_id):
            return
        if known or (message := _message(row)) is None:
            await self._take(row, "")
        elif await owner.deliver(row.task_id, message):
            await self._take(row, row.key)

    async def _take(self, row: Row[Any], key: str) -> None:
        await self._journal.acknowledge(row.task_id, row.mail_id, key)
        self._taken[row.mail_id] = row.task_id


def _message(row: Row[Any]) -> UserMessage | None:
    try:
        return message_of_json(row.message)
    except Exception:  # a decoder's errors are many
        logger.exception("A message to task %s cannot be decoded, and is removed", row.task_id)
        return None


def _is(row: Mapping[str, str]) -> tuple[ColumnElement[bool], ...]:
    return tuple(mail.c[name] == value for name, value in row.items())


async def _news(following: TaskSubscription) -> bool:
    """Wait until the task has taken a message or settled, or a while; whether it has settled."""
    entries = aiter(following)
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
