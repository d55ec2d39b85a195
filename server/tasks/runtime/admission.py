"""How many turns run at once. The others wait in a queue that is fair between users, and learn their position.

Rule 1: at most `max_turns` turns run, and of each user as many as its quota allows.
Rule 2: a turn beyond `max_queued` is refused before anything of it is stored, and so is one of a user with a name that
        has half of the queue already: the rest is for others. A turn that was accepted once (by a replica that has
        died) is never refused: it waits.
Rule 3: a turn gets its position when it begins to wait, and again when the position has halved, or is one of the first
        `EXACT_POSITIONS`. So the end of a turn updates about `EXACT_POSITIONS` others, and a few more, however many
        wait. Updates are sent every `POSITION_INTERVAL`: a turn that waits for less gets none, and a burst of new turns
        does not delay those that run.
Rule 4: within a context: first come, first served.
Rule 5: between users: round robin. One turn of each user that waits, then the second of each, and so on; a user that
        has just been served, or is new, is the last. The same between the contexts of a user. A user that may not run
        more is passed over, and keeps its place.
Rule 6: turns that had begun before (their replica has died) are served before the others; among them, rules 4 and 5.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Generic, TypeVar

from a2a_canvas.server.accounts.quotas import Meter
from a2a_canvas.server.tasks.errors import QueueFull, RunsNoTurns
from a2a_canvas.store.ids import ContextKey

MAX_TURNS = 40
"""What one core can run."""
MAX_QUEUED = 1000

EXACT_POSITIONS = 10
"""Positions that are reported one by one."""
POSITION_INTERVAL = 0.5
"""Seconds between two updates of the positions."""


T = TypeVar("T", bound=Hashable)

_Contexts = dict[str, dict[T, None]]
"""Waiting items by context; the contexts are in the order in which they are served."""
_Ring = dict[str, _Contexts[T]]
"""The same by user, in the order in which they are served."""


class FairQueue(Generic[T]):
    """Waiting items, each of a user and a context (rules 4 to 6). Iterates them in the order in which they are served,
    if all users may run."""

    def __init__(self) -> None:
        self._begun: _Ring[T] = {}
        self._fresh: _Ring[T] = {}
        self._places: dict[T, tuple[_Ring[T], str, str]] = {}
        self._waiting: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, item: T) -> bool:
        return item in self._places

    def __iter__(self) -> Iterator[T]:
        yield from _in_order(self._begun)
        yield from _in_order(self._fresh)

    def of_user(self, user: str) -> int:
        """How many items of a user wait."""
        return self._waiting[user]

    def add(self, item: T, context_id: ContextKey, user: str = "", *, begun: bool = False) -> None:
        """Add an item (rule 6: `begun`)."""
        ring = self._begun if begun else self._fresh
        ring.setdefault(user, {}).setdefault(context_id, {})[item] = None
        self._places[item] = ring, user, context_id
        self._waiting[user] += 1

    def remove(self, item: T) -> None:
        """Remove an item, wherever it is. The order of the others stays."""
        ring, user, context_id = self._places.pop(item)
        contexts = ring[user]
        del contexts[context_id][item]
        if not contexts[context_id]:
            del contexts[context_id]
        if not contexts:
            del ring[user]
        self._waiting -= Counter((user,))

    def take(self, may_run: Callable[[str], bool] = lambda user: True) -> T | None:
        """Remove and return the first item of a user that may run; None if there is none."""
        for ring in (self._begun, self._fresh):
            if (user := next(filter(may_run, ring), None)) is not None:
                return self._take(ring, user)
        return None

    def _take(self, ring: _Ring[T], user: str) -> T:
        contexts = ring[user]
        context_id, items = next(iter(contexts.items()))
        first = next(iter(items))
        self.remove(first)
        if context_id in contexts:
            contexts[context_id] = contexts.pop(context_id)  # behind all others
        if user in ring:
            ring[user] = ring.pop(user)
        return first


def _in_order(ring: _Ring[T]) -> Iterator[T]:
    return _round_robin([_round_robin([iter(items) for items in contexts.values()]) for contexts in ring.values()])


def _round_robin(sources: list[Iterator[T]]) -> Iterator[T]:
    while sources:
        served = [(next(items, None), items) for items in sources]
        sources = [items for item, items in served if item is not None]
        yield from (item for item, _ in served if item is not None)


class Ticket:
    """A turn's place: in the queue, or among the turns that run.

    Attributes:
        user: whose quota it is for.
        counted: that it is counted among the running turns.
    """

    def __init__(self, user: str = "") -> None:
        self.user = user
        self.counted = ExitStack()
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
    """The turns of this process that run, and those that wait.

    Args:
        meter: counts what users use, and knows how much they may; without one, any amount.

    Attributes:
        full: turns wait for a place here; another replica may have room.
    """

    def __init__(
        self,
        max_turns: int = MAX_TURNS,
        max_queued: int = MAX_QUEUED,
        interval: float = POSITION_INTERVAL,
        meter: Meter | None = None,
    ) -> None:
        self.meter = meter or Meter()
        self.full = asyncio.Event()
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

    @property
    def room(self) -> int:
        """How many more turns could run at once."""
        return max(0, self._max_turns - self._running - self._reserved)

    def waiting_for_place(self) -> Iterator[Ticket]:
        """The turns that wait, and may run as far as their users' quotas are concerned, in the order of the queue."""
        return (ticket for ticket in self._queue if self.meter.may_run(ticket.user))

    @contextmanager
    def reserve(self, user: str = "") -> Iterator[bool]:
        """Reserve a place for a turn of a user that is about to be accepted; whether it will have to wait.

        Raises:
            RunsNoTurns: none runs here.
            QueueFull: there is no place (rule 2).
        """
        if not self._max_turns:
            raise RunsNoTurns
        taken = self._running + len(self._queue) + self._reserved
        if taken >= self._max_turns + self._max_queued:
            raise QueueFull(self._max_queued)
        waits = taken >= self._max_turns or not self.meter.may_run(user)
        if waits and user and self._queue.of_user(user) >= max(1, self._max_queued // 2):
            raise QueueFull(self._queue.of_user(user), of_user=True)
        self._reserved += 1
        try:
            yield waits
        finally:
            self._reserved -= 1

    def enter(self, context_id: ContextKey, user: str = "", *, begun: bool = False) -> Ticket:
        """Let a turn of a user run, or wait (`begun`: rule 6)."""
        ticket = Ticket(user)
        self._queue.add(ticket, context_id, user, begun=begun)
        self.admit()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Remove a turn that has ended, or does not wait any longer."""
        if ticket in self._queue:
            self._queue.remove(ticket)
        else:
            self._running -= 1
            ticket.counted.close()
        self.admit()

    def admit(self) -> None:
        """Let those run that may: turns have ended here, or on another replica."""
        while self._running < self._max_turns and (ticket := self._queue.take(self.meter.may_run)):
            self._running += 1
            ticket.counted.enter_context(self.meter.turn(ticket.user))
            ticket.admit()
        if self._queue and self._running >= self._max_turns:
            self.full.set()
        else:
            self.full.clear()
        if self._queue and not self._update_due:
            self._update_due = True
            asyncio.get_running_loop().call_later(self._interval, self._update_positions)

    def _update_positions(self) -> None:
        self._update_due = False
        for position, ticket in enumerate(self._queue, 1):
            ticket.move(position)
