"""How replicas tell each other who is present: notifications of PostgreSQL on a channel of their own, or of a broker.

Rule 1: what has changed is collected, and sent once in `SEND_INTERVAL` seconds, in one transaction: only the newest of
        a window or a task, `MAX_CHANGES` at most, and of no context more than its share.
Rule 2: a replica that hears of no other one sends only a greeting, every `GREETING_INTERVAL` seconds, and is heard of
        itself in this way. A replica that has not been heard of for `PEER_SECONDS` is forgotten.
Rule 3: notifications may be lost while the listening connection is broken. A replica that listens again forgets what
        the others have said, and asks.
Rule 4: none of this waits for the journal, and the journal does not wait for it.
Rule 5: with a broker, it takes the place of PostgreSQL's notifications, which are sent, too, while it is not
        connected, and as long as a replica is heard by them: one without a broker, or that has lost it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, func, select

from a2a_canvas.server.tasks.presence.presence_changes import (
    AgentMoved,
    CursorMoved,
    PersonCame,
    PersonLeft,
    PresenceChange,
    RosterAsked,
    change_from_json,
    change_to_json,
)
from a2a_canvas.server.tasks.presence.present_people import PresentPeople
from a2a_canvas.server.tasks.sql.replica.notifications import MAX_PAYLOAD_BYTES, PRESENCE_CHANNEL
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.sql.database import Database

logger = logging.getLogger(__name__)

SEND_INTERVAL = 1.0
GREETING_INTERVAL = 5.0
PEER_SECONDS = 20.0
MAX_CHANGES = 2_000
"""Changes sent at once; the others wait for the next time, where newer ones replace them."""

Key = tuple[str, ...]


STOP_SECONDS = 0.5
"""Seconds that a write has left when the server stops."""


class PresenceExchange:
    """A `PresenceWire` over PostgreSQL.

    Args:
        people: of this replica.

    Attributes:
        publish: sends a payload by the broker, and says whether it is connected; None without one.
    """

    def __init__(self, database: Database, people: PresentPeople, clock: Callable[[], float] = monotonic) -> None:
        self.replica = uuid4().hex
        self._database = database
        self._people = people
        self._clock = clock
        self._unsent: dict[Key, PresenceChange] = {}
        self._peers: dict[str, float] = {}
        self._greeting_due = 0.0
        self._sending: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self.publish: Callable[[str], bool] | None = None
        self._last_notified = float("-inf")

    def start(self) -> None:
        self._people.exchange = self
        self._sending = asyncio.create_task(self._send_regularly(), name="presence")

    async def stop(self) -> None:
        """Stop sending. A write that is cancelled while it connects leaves its connection open: it may end first."""
        self._stopping.set()
        if self._sending:
            _, late = await asyncio.wait((self._sending,), timeout=STOP_SECONDS)
            for sending in late:
                sending.cancel()
                await asyncio.wait((sending,))

    def tell(self, change: PresenceChange) -> None:
        self._unsent.pop(_subject(change), None)
        if self._peers or isinstance(change, RosterAsked):
            self._unsent[_subject(change)] = change

    # --------------------------------------------------------------------- receiving

    def receive(self, payload: str, *, by_broker: bool = False) -> None:
        """A notification has arrived."""
        try:
            fields = json.loads(payload)
            replica, items = str(fields["r"]), list(fields["i"])
        except (ValueError, RecursionError, LookupError, TypeError):
            return  # sent by another program on our channel
        if replica == self.replica:
            return
        if replica not in self._peers:
            self._greeting_due = 0.0
        self._peers[replica] = self._clock()
        if not by_broker:
            self._last_notified = self._clock()
        for item in items:
            if change := change_from_json(item):
                self._people.receive(replica, change)

    def listen_again(self) -> None:
        """Notifications may have been missed (rule 3)."""
        self._people.forget()
        self._people.ask_all()

    # ----------------------------------------------------------------------- sending

    async def _send_regularly(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), SEND_INTERVAL)
                return
            try:
                await self.send()
            except Unavailable:
                continue  # what changes meanwhile is sent when the database is there again
            except Exception:
                logger.exception("Presence could not be told to other replicas")

    async def send(self) -> None:
        """Send what has changed, and a greeting if one is due.

        Raises:
            Unavailable: the database cannot be used.
        """
        now = self._clock()
        for replica in [each for each, heard in self._peers.items() if now - heard > PEER_SECONDS]:
            del self._peers[replica]
            self._people.forget(replica)
        greets = now >= self._greeting_due
        if greets:
            self._greeting_due = now + GREETING_INTERVAL
        changes = self._take_unsent()
        if changes or greets:
            try:
                await self._send([*payloads(self.replica, changes)], now)
            except Unavailable:
                self._unsent = {_subject(change): change for change in changes} | self._unsent
                raise

    async def _send(self, sent: list[str], now: float) -> None:
        if self.publish:
            connected = all([self.publish(payload) for payload in sent])
            if connected and now - self._last_notified > PEER_SECONDS:
                return
        async with self._database.write(alone=True) as connection:  # a NOTIFY leaves nothing that a standby had to have
            await connection.run_sync(_notify_presence, sent)

    def _take_unsent(self) -> list[PresenceChange]:
        """The changes to send now, an equal share of each context."""
        if len(self._unsent) <= MAX_CHANGES:
            changes, self._unsent = [*self._unsent.values()], {}
            return changes
        by_context: defaultdict[str, list[Key]] = defaultdict(list)
        for subject, change in self._unsent.items():
            by_context[change.context].append(subject)
        share = max(1, MAX_CHANGES // len(by_context))
        chosen = [subject for subjects in by_context.values() for subject in subjects[:share]][:MAX_CHANGES]
        return [self._unsent.pop(subject) for subject in chosen]


def _subject(change: PresenceChange) -> Key:
    """What a newer change of the same subject replaces."""
    match change:
        case PersonCame() | PersonLeft():
            return "person", change.context, change.account
        case CursorMoved():
            return "cursor", change.context, change.account, change.window
        case AgentMoved():
            return "agent", change.context, change.task_id
        case RosterAsked():
            return "question", change.context


def payloads(replica: str, changes: Iterable[PresenceChange]) -> Iterator[str]:
    """What is sent: at least one payload, each with as many changes as PostgreSQL takes."""
    sent: list[list[Any]] = []
    size = empty = len(_payload(replica, []))
    for change in changes:
        item = change_to_json(change)
        more = len(_payload("", [item]).encode())
        if size + more > MAX_PAYLOAD_BYTES and sent:
            yield _payload(replica, sent)
            sent, size = [], empty
        sent.append(item)
        size += more
    yield _payload(replica, sent)


def _payload(replica: str, items: list[list[Any]]) -> str:
    return json.dumps({"r": replica, "i": items}, separators=(",", ":"), ensure_ascii=False)


def _notify_presence(connection: Connection, sent: list[str]) -> None:
    connection.execute(select(*(func.pg_notify(PRESENCE_CHANNEL, payload) for payload in sent)))
