"""How many turns run at once. The others wait in a queue, and are told their place in it.

Rule 1: at most `max_turns` turns run; which one is next is `fair_queue.py`'s.
Rule 2: what is beyond `max_queued` is refused before anything of it is kept. What has been accepted once (by a server
        that is gone) is never refused: it waits, too.
Rule 3: a turn is told its place when it has begun to wait, and then when it has become half of what was told, or one of
        the first `EXACT_POSITIONS`. So a turn that ends concerns about `EXACT_POSITIONS` of those that wait, and
        a few more, however many there are. All this is told every `NOTIFY_INTERVAL`: who waits for less than that is
        told nothing, and when many come at once, those that run do not wait for all the others to be told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from a2a_canvas.server.tasks.errors import QueueFull
from a2a_canvas.server.tasks.runtime.fair_queue import FairQueue

MAX_TURNS = 40
"""What one core carries."""
MAX_QUEUED = 1000

EXACT_POSITIONS = 10
"""Places that are told one by one."""
NOTIFY_INTERVAL = 0.5
"""Seconds from one telling to the next."""


class Ticket:
    """A turn's place: in the queue, or among those that run."""

    def __init__(self) -> None:
        self._place = 0
        self._admitted = False
        self._news = asyncio.Event()

    def admit(self) -> None:
        self._admitted = True
        self._news.set()

    def move(self, place: int) -> None:
        """Tell the place, if it is to be told (rule 3)."""
        near = place < self._place and place <= EXACT_POSITIONS
        if not self._place or near or place * 2 <= self._place:
            self._place = place
            self._news.set()

    async def place(self) -> int:
        """Wait until there is something to tell: the new place in the queue, or 0 when the turn may run."""
        await self._news.wait()
        self._news.clear()
        return 0 if self._admitted else self._place


class Admission:
    """The turns of this process, those that run and those that wait."""

    def __init__(
        self, max_turns: int = MAX_TURNS, max_queued: int = MAX_QUEUED, interval: float = NOTIFY_INTERVAL
    ) -> None:
        self._max_turns = max_turns
        self._max_queued = max_queued
        self._interval = interval
        self._queue: FairQueue[Ticket] = FairQueue()
        self._running = 0
        self._expected = 0
        self._telling = False

    @contextmanager
    def reserve(self) -> Iterator[bool]:
        """A turn is about to be accepted; whether it will have to wait, as things stand.

        Raises:
            QueueFull: it cannot be (rule 2).
        """
        taken = self._running + len(self._queue) + self._expected
        if taken >= self._max_turns + self._max_queued:
            raise QueueFull(self._max_queued)
        self._expected += 1
        try:
            yield taken >= self._max_turns
        finally:
            self._expected -= 1

    def enter(self, context_id: str, *, begun: bool = False) -> Ticket:
        """Let a turn run, or wait; `begun` as in `FairQueue`."""
        ticket = Ticket()
        self._queue.add(ticket, context_id, begun=begun)
        self._admit()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """A turn has ended, or does not wait any longer."""
        if ticket in self._queue:
            self._queue.remove(ticket)
        else:
            self._running -= 1
        self._admit()

    def _admit(self) -> None:
        while self._queue and self._running < self._max_turns:
            self._running += 1
            self._queue.take().admit()
        if self._queue and not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_later(self._interval, self._tell)

    def _tell(self) -> None:
        self._telling = False
        for place, ticket in enumerate(self._queue, 1):
            ticket.move(place)
