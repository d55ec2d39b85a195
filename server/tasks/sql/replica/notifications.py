"""Who wakes whom: on PostgreSQL a NOTIFY with each transaction, and a slow look at the tables as the net below it.

A notification is JSON: ids of the tasks and of the contexts that were written, of tasks with post, and whether tasks
were given up. One that would be too long says only that there is something.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.database import Database

logger = logging.getLogger(__name__)

CHANNEL = "a2a_canvas"
MAX_PAYLOAD_BYTES = 7900
"""Bytes of a notification; PostgreSQL takes less than 8000."""
POLL_INTERVAL = 1.0
RECONNECT_DELAY = 0.3
PING_INTERVAL = 5.0
"""Seconds between two questions whether the listening connection still stands."""


@dataclass(frozen=True, slots=True)
class Notification:
    """What a notification says. `everything`: look at all there is."""

    tasks: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    post: tuple[str, ...] = ()
    given_up: bool = False
    everything: bool = False

    def payload(self) -> str:
        said = {"t": self.tasks, "c": self.contexts, "p": self.post, "g": self.given_up}
        text = json.dumps({key: value for key, value in said.items() if value}, separators=(",", ":"))
        return text if len(text.encode()) <= MAX_PAYLOAD_BYTES else "{}"

    def __or__(self, other: Notification) -> Notification:
        """Both."""
        return Notification(
            _both(self.tasks, other.tasks),
            _both(self.contexts, other.contexts),
            _both(self.post, other.post),
            given_up=self.given_up or other.given_up,
            everything=self.everything or other.everything,
        )

    @staticmethod
    def of(payload: str) -> Notification:
        try:
            said = json.loads(payload)
            tasks, contexts, post = (tuple(said.get(key, ())) for key in "tcp")
            return Notification(tasks, contexts, post, given_up=bool(said.get("g")), everything=not said)
        except (ValueError, AttributeError, TypeError):
            return Notification(everything=True)  # somebody else speaks on our channel


def _both(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*some, *others)))


async def notify(connection: AsyncConnection, news: Notification) -> None:
    """Notify the other replicas when the transaction is committed."""
    if connection.dialect.name == "postgresql":
        await connection.execute(select(func.pg_notify(CHANNEL, news.payload())))


class NotificationListener:
    """Listens and polls.

    Args:
        on_notification: called with each notification, and every so often with `everything`.
    """

    def __init__(self, database: Database, on_notification: Callable[[Notification], Awaitable[None]]) -> None:
        self._database = database
        self._on_notification = on_notification
        self._news: asyncio.Queue[Notification] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loops: Iterable[Any] = [self._work(), self._poll()]
        if self._database.dialect == "postgresql":
            loops = [*loops, self._listen()]
        self._tasks = [asyncio.create_task(loop, name=loop.__name__) for loop in loops]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _work(self) -> None:
        while True:
            news = await self._news.get()
            while not self._news.empty():  # the slower they are taken in, the more of them at once
                news |= self._news.get_nowait()
            try:
                await self._on_notification(news)
            except Unavailable:
                continue  # the next look at the tables finds what was missed
            except Exception:
                logger.exception("Notification of other replicas could not be taken in")

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL)
            self._news.put_nowait(Notification(everything=True))

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except Exception as error:  # the driver's own errors are many
                logger.debug("Listening for news broke off: %s", error)
            await asyncio.sleep(RECONNECT_DELAY)

    async def _listen_once(self) -> None:
        ended = asyncio.Event()
        async with self._database.listener() as driver:
            driver.add_termination_listener(lambda _: ended.set())
            await driver.add_listener(CHANNEL, self._notified)
            self._news.put_nowait(Notification(everything=True))  # whatever was said before we listened
            while not ended.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), PING_INTERVAL)
                await driver.execute("SELECT 1")

    def _notified(self, driver: object, pid: int, channel: str, payload: object) -> None:
        self._news.put_nowait(Notification.of(str(payload)))
