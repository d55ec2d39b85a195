"""What one replica asks of another that runs a task: to take a message, or to cancel it.

Rule 1: a message lies in `mail` until its task's owner has taken it; the row goes in the transaction that brings the
        message into the task. So it is taken once, or not at all.
        A letter whose message has come another way as well goes without being taken again.
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
from a2a_canvas.server.tasks.journal.journal import Following
from a2a_canvas.server.tasks.ownership import Owner
from a2a_canvas.server.tasks.sql.journal.journal_reading import context_of, these, ticks
from a2a_canvas.server.tasks.sql.journal.journal_tables import mail, tasks
from a2a_canvas.server.tasks.sql.journal.sql_journal import SqlJournal
from a2a_canvas.store.sql.database import Database

logger = logging.getLogger(__name__)

CHECK = 1.0
"""Seconds after which a sender looks whether its message was taken, if nothing has told it."""


class Post:
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
        """Give a message to a task's owner. False: the task settled before it took it.

        Raises:
            Unavailable: the database cannot be used.
        """
        following = await self._journal.follow(task_id)
        letter = {"context_id": following.snapshot.context_id, "task_id": task_id, "mail_id": str(uuid4())}
        said = {"sent_at": ticks(self._now()), "key": key, "message": message_to_json(message)}
        async with self._database.write() as connection:
            await connection.execute(mail.insert().values(letter | said))
            await self._notify(connection, task_id)
        settled = following.snapshot.state.settled
        while not settled:
            settled = await _news(following)
            if not await self._lies(letter):
                return True
        return not await self._take_back(letter)

    async def ask_to_cancel(self, task_id: str) -> None:
        """Mark a task to be cancelled.

        Raises:
            Unavailable: the database cannot be used.
        """
        async with self._database.write() as connection:
            context_id = await context_of(connection, task_id)
            ours = tasks.c.context_id == context_id, tasks.c.task_id == task_id
            await connection.execute(update(tasks).where(*ours).values(cancelled=True))
            await self._notify(connection, task_id)

    async def _lies(self, letter: Mapping[str, str]) -> bool:
        async with self._database.read() as connection:
            found = select(func.count()).select_from(mail).where(*_is(letter))
            return bool(await connection.scalar(found))

    async def _take_back(self, letter: Mapping[str, str]) -> bool:
        async with self._database.write() as connection:
            return (await connection.execute(delete(mail).where(*_is(letter)))).rowcount == 1

    # ----------------------------------------------------------------------- receiving

    def forget(self, task_ids: Collection[str] | None = None) -> None:
        """What these tasks, or all, have taken last may not be durable, and never be."""
        kept = {} if task_ids is None else {k: task for k, task in self._taken.items() if task not in task_ids}
        self._taken = kept

    async def collect(self, owner: Owner) -> None:
        """Bring what has come for the tasks of this replica to where they run.

        Raises:
            Unavailable: the database cannot be used.
        """
        ours = self._journal.owned
        if not ours:
            return
        async with self._database.read() as connection:
            letters = select(mail).where(tuple_(mail.c.context_id, mail.c.task_id).in_(ours))
            found = (await connection.execute(letters.order_by(mail.c.sent_at, mail.c.mail_id))).all()
            cancelled = (await connection.scalars(select(tasks.c.task_id).where(these(ours), tasks.c.cancelled))).all()
        for task_id in cancelled:
            owner.interrupt(task_id)
        for letter in found:
            if letter.mail_id not in self._taken:
                await self._deliver(owner, letter)
        lying = {letter.mail_id for letter in found}
        self._taken = {each: task for each, task in self._taken.items() if each in lying}

    async def _deliver(self, owner: Owner, letter: Row[Any]) -> None:
        known = await self._journal.accepted(letter.key)
        if not self._journal.owns(letter.task_id):
            return
        if known or (message := _message(letter)) is None:
            await self._take(letter, "")
        elif await owner.deliver(letter.task_id, message):
            await self._take(letter, letter.key)

    async def _take(self, letter: Row[Any], key: str) -> None:
        await self._journal.took(letter.task_id, letter.mail_id, key)
        self._taken[letter.mail_id] = letter.task_id


def _message(letter: Row[Any]) -> UserMessage | None:
    try:
        return message_of_json(letter.message)
    except Exception:  # a decoder's errors are many
        logger.exception("A message to task %s cannot be decoded, and is removed", letter.task_id)
        return None


def _is(letter: Mapping[str, str]) -> tuple[ColumnElement[bool], ...]:
    return tuple(mail.c[name] == value for name, value in letter.items())


async def _news(following: Following) -> bool:
    """Wait until the task has taken a message or settled, or a while; whether it has settled."""
    entries = aiter(following)
    try:
        async with asyncio.timeout(CHECK):
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
