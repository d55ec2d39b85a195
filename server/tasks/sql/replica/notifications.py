"""Notifications between replicas: a NOTIFY with each transaction (PostgreSQL), and a slow poll of the tables.

The payload is JSON: ids of the tasks and of the contexts that were written, ids of the contexts whose activity has
changed, ids of the tasks with new inbox rows, ids of the tasks that the sender follows (with each heartbeat), and
whether tasks were given up. The poll makes up for lost notifications, but for those of activity, which is read anew
whenever the listening connection is. A payload that would be too long is sent empty, which means "anything may have
changed".
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, func, select

from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.database import Database, after_commit

logger = logging.getLogger(__name__)

CHANNEL = "a2a_canvas"
PRESENCE_CHANNEL = "a2a_canvas_presence"
MAX_PAYLOAD_BYTES = 7900
"""PostgreSQL takes less than 8000."""
MAX_PAYLOADS = 10
"""Payloads of one notification, about 2,000 ids; beyond that, one payload says that anything may have changed."""
POLL_INTERVAL = 1.0
RECONNECT_DELAY = 0.3
PING_INTERVAL = 5.0
"""Seconds between two checks of the listening connection."""

T = TypeVar("T", bound=str)


@dataclass(frozen=True, slots=True)
class Notification:
    """What a notification says.

    Attributes:
        tasks, contexts: ids and keys of those that were written.
        inboxes: ids of tasks with new inbox rows.
        followed: ids of tasks of other replicas that the sender has subscribers of.
        active: keys of contexts in which other tasks may work, or that others may watch.
        handed: ids of tasks that were handed over to another replica.
        given_up: tasks were given up, and can be taken over.
        everything: anything may have changed.
        missed: notifications were missed.
    """

    tasks: tuple[str, ...] = ()
    contexts: tuple[ContextKey, ...] = ()
    inboxes: tuple[str, ...] = ()
    followed: tuple[str, ...] = ()
    active: tuple[ContextKey, ...] = ()
    handed: tuple[str, ...] = ()
    given_up: bool = False
    everything: bool = False
    missed: bool = False

    def payloads(self) -> list[str]:
        """What PostgreSQL sends. Beyond `MAX_PAYLOADS` it is one that says that anything may have changed."""
        ids = {"t": self.tasks, "c": self.contexts, "p": self.inboxes, "f": self.followed, "a": self.active}
        ids["h"] = self.handed
        sets: list[dict[str, Any]] = [{"g": True} if self.given_up else {}]
        size = len(_json(sets[0]))
        for key, each in ((key, each) for key, some in ids.items() for each in some):
            more = len(_json({key: [each]}).encode())  # with a comma to spare
            if size + more > MAX_PAYLOAD_BYTES:
                sets.append({})
                size = len(_json({}))
            sets[-1].setdefault(key, []).append(each)
            size += more
        found = [_json(fields) for fields in sets]
        fits = len(found) <= MAX_PAYLOADS and all(len(text.encode()) <= MAX_PAYLOAD_BYTES for text in found)
        return found if fits else [_json({})]

    def __or__(self, other: Notification) -> Notification:
        """The union of both."""
        return Notification(
            _both(self.tasks, other.tasks),
            _both(self.contexts, other.contexts),
            _both(self.inboxes, other.inboxes),
            _both(self.followed, other.followed),
            _both(self.active, other.active),
            _both(self.handed, other.handed),
            given_up=self.given_up or other.given_up,
            everything=self.everything or other.everything,
            missed=self.missed or other.missed,
        )

    @staticmethod
    def parse(payload: str) -> Notification:
        try:
            fields = json.loads(payload)
            tasks, contexts, inboxes, followed, active, handed = (tuple(fields.get(key, ())) for key in "tcpfah")
            given_up, empty = bool(fields.get("g")), not fields
            return Notification(
                tasks, contexts, inboxes, followed, active, handed, given_up, everything=empty, missed=empty
            )
        except (ValueError, RecursionError, AttributeError, TypeError):
            return Notification(everything=True, missed=True)  # sent by another program on our channel


def _json(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"))


def _both(some: tuple[T, ...], others: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*some, *others)))


Notify = Callable[[Connection, Notification], None]
"""Notifies the other replicas when the transaction commits."""


def notify(connection: Connection, notification: Notification) -> None:
    """A `Notify` by PostgreSQL."""
    if connection.dialect.name == "postgresql":
        for payload in notification.payloads():
            connection.execute(select(func.pg_notify(CHANNEL, payload)))


def notify_by(publish: Callable[[str], None]) -> Notify:
    """A `Notify` by a broker, which is given each payload after the commit: a NOTIFY would be one lock for all."""

    def notify(connection: Connection, notification: Notification) -> None:
        for payload in notification.payloads():
            after_commit(connection, partial(publish, payload))

    return notify


class PresenceReceiver(Protocol):
    """Takes the notifications of `PRESENCE_CHANNEL`."""

    def receive(self, payload: str) -> None: ...

    def listen_again(self) -> None:
        """Some may have been missed."""
        ...


class NotificationListener:
    """Listens and polls.

    Args:
        on_notification: called with those that have arrived, and after each poll interval with `everything`.
        presence: takes those about presence, at once.
        brokered: with each poll, activity may have changed, too: no notification tells what a broker's servers do.
    """

    def __init__(
        self,
        database: Database,
        on_notification: Callable[[Notification], Awaitable[None]],
        presence: PresenceReceiver | None = None,
        brokered: Callable[[], bool] = lambda: False,
    ) -> None:
        self._brokered = brokered
        self._database = database
        self._on_notification = on_notification
        self._presence = presence
        self._queue: asyncio.Queue[Notification] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loops: Iterable[Any] = [self._dispatch(), self._poll()]
        if self._database.dialect == "postgresql":
            loops = [*loops, self._listen()]
        self._tasks = [asyncio.create_task(loop, name=loop.__name__) for loop in loops]

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _dispatch(self) -> None:
        while True:
            notification = await self._queue.get()
            while not self._queue.empty():  # under load, many are handled at once
                notification |= self._queue.get_nowait()
            try:
                await self._on_notification(notification)
            except Unavailable:
                continue  # the next poll finds what was missed
            except Exception:
                logger.exception("A notification of another replica could not be handled")

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL)
            self._queue.put_nowait(Notification(everything=True, missed=self._brokered()))

    def receive(self, notification: Notification) -> None:
        """One has come by a broker."""
        self._queue.put_nowait(notification)

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except Exception as error:  # the driver's own errors are many
                logger.debug("The listening connection broke: %s", error)
            await asyncio.sleep(RECONNECT_DELAY)

    async def _listen_once(self) -> None:
        ended = asyncio.Event()
        async with self._database.listener() as driver:
            driver.add_termination_listener(lambda _: ended.set())
            await driver.add_listener(CHANNEL, self._receive)
            if self._presence:
                await driver.add_listener(PRESENCE_CHANNEL, self._receive_presence)
                self._presence.listen_again()
            self._queue.put_nowait(Notification(everything=True, missed=True))  # what was written before we listened
            while not ended.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), PING_INTERVAL)
                await driver.execute("SELECT 1")

    def _receive(self, driver: object, pid: int, channel: str, payload: object) -> None:
        self._queue.put_nowait(Notification.parse(str(payload)))

    def _receive_presence(self, driver: object, pid: int, channel: str, payload: object) -> None:
        if self._presence:
            self._presence.receive(str(payload))
