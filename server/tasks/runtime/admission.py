"""How many turns run at once. The others wait in a queue that is fair between contexts, and learn their position.

Rule 1: at most `max_turns` turns run.
Rule 2: a turn beyond `max_queued` is refused before anything of it is stored. A turn that was accepted once (by a
        replica that has died) is never refused: it waits.
Rule 3: a turn gets its position when it begins to wait, and again when the position has halved, or is one of the first
        `EXACT_POSITIONS`. So the end of a turn updates about `EXACT_POSITIONS` others, and a few more, however many
        wait. Updates are sent every `POSITION_INTERVAL`: a turn that waits for less gets none, and a burst of new turns
        does not delay those that run.
Rule 4: within a context: first come, first served.
Rule 5: between contexts: round robin. One turn of each context that waits, then the second of each, and so on; a
        context that has just been served, or is new, is the last.
Rule 6: turns that had begun before (their replica has died) are served before the others; among them, rules 4 and 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from a2a_canvas.server.tasks.errors import QueueFull

MAX_TURNS = 40
"""What one core can run."""
MAX_QUEUED = 1000

EXACT_POSITIONS = 10
"""Positions that are reported one by one."""
POSITION_INTERVAL = 0.5
"""Seconds between two updates of the positions."""


T = TypeVar("T", bound=Hashable)

_Ring = dict[str, dict[T, None]]
"""Waiting items by context; the contexts are in the order in which they are served."""


class FairQueue(Generic[T]):
    """Waiting items, each of a context (rules 4 to 6). Iterates them in the order in which they are served."""

    def __init__(self) -> None:
        self._begun: _Ring[T] = {}
        self._fresh: _Ring[T] = {}
        self._places: dict[T, tuple[_Ring[T], str]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, item: T) -> bool:
        return item in self._places

    def __iter__(self) -> Iterator[T]:
        yield from _in_order(self._begun)
        yield from _in_order(self._fresh)

    def add(self, item: T, context_id: str, *, begun: bool = False) -> None:
        """Add an item (rule 6: `begun`)."""
        ring = self._begun if begun else self._fresh
        ring.setdefault(context_id, {})[item] = None
        self._places[item] = ring, context_id

    def remove(self, item: T) -> None:
        """Remove an item, wherever it is. The order of the others stays."""
        ring, context_id = self._places.pop(item)
        del ring[context_id][item]
        if not ring[context_id]:
            del ring[context_id]

    def take(self) -> T:
        """Remove and return the first item; there must be one."""
        ring = self._begun or self._fresh
        context_id, items = next(iter(ring.items()))
        first = next(iter(items))
        self.remove(first)
        if context_id in ring:
            ring[context_id] = ring.pop(context_id)  # behind all others
        return first


def _in_order(ring: _Ring[T]) -> Iterator[T]:
    contexts = [iter(items) for items in ring.values()]
    while contexts:
        served = [(next(items, None), items) for items in contexts]
        contexts = [items for item, items in served if item is not None]
        yield from (item for item, _ in served if item is not None)


class Ticket:
    """A turn's place: in the queue, or among the turns that run."""

    def __init__(self) -> None:
        self._position = 0
        self._admitted = False
        self._changed = asyncio.Event()

    def admit(self) -> None:
        self._admitted = True
        self._changed.set()

    def move(self, position: int) -> None:
        """Report the position, if rule 3 says so."""
        near = position < self._position and position <= EXACT_POSITIONS
        if not self._position or near or position * 2 <= self._position:
            self._position = position
            self._changed.set()

    async def next_position(self) -> int:
        """Wait for the next update of the position in the queue; 0 when the turn may run."""
        await self._changed.wait()
        self._changed.clear()
        return 0 if self._admitted else self._position


class Admission:
    """The turns of this process that run, and those that wait."""

    def __init__(
        self, max_turns: int = MAX_TURNS, max_queued: int = MAX_QUEUED, interval: float = POSITION_INTERVAL
    ) -> None:
        self._max_turns = max_turns
        self._max_queued = max_queued
        self._interval = interval
        self._queue: FairQueue[Ticket] = FairQueue()
        self._running = 0
        self._reserved = 0
        self._update_due = False

    @property
    def waiting(self) -> int:
        """How many turns wait."""
        return len(self._queue)

    @contextmanager
    def reserve(self) -> Iterator[bool]:
        """Reserve a place for a turn that is about to be accepted; whether it will have to wait.

        Raises:
            QueueFull: there is no place (rule 2).
        """
        taken = self._running + len(self._queue) + self._reserved
        if taken >= self._max_turns + self._max_queued:
            raise QueueFull(self._max_queued)
        self._reserved += 1
        try:
            yield taken >= self._max_turns
        finally:
            self._reserved -= 1

    def enter(self, context_id: str, *, begun: bool = False) -> Ticket:
        """Let a turn run, or wait (`begun`: rule 6)."""
        ticket = Ticket()
        self._queue.add(ticket, context_id, begun=begun)
        self._admit()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Remove a turn that has ended, or does not wait any longer."""
        if ticket in self._queue:
            self._queue.remove(ticket)
        else:
            self._running -= 1
        self._admit()

    def _admit(self) -> None:
        while self._queue and self._running < self._max_turns:
            self._running += 1
            self._queue.take().admit()
        if self._queue and not self._update_due:
            self._update_due = True
            asyncio.get_running_loop().call_later(self._interval, self._update_positions)

    def _update_positions(self) -> None:
        self._update_due = False
        for position, ticket in enumerate(self._queue, 1):
            ticket.move(position)
