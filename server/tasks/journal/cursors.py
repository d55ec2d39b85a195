"""An append-only log that is read by cursors. It is linked forward only, so the cursors hold what they have not read.

Rule 1: a cursor gets every item that was appended after it was made, once and in order.
Rule 2: a cursor costs nothing but the items it has not read; appending costs the same however many there are.
Rule 3: a log may fail: a cursor that has read all items gets the error.
Rule 4: a guarded cursor asks every CHECK_SECONDS whether it may read on, also while there is nothing to read, and at
        once after `check_again`. It may be guarded by several checks.
Rule 5: an item stays in memory while a cursor has still to read it, and no longer. This needs no bookkeeping:
        a cursor holds the link to the item it reads next, so what every cursor has passed is unreachable.
Rule 6: cursors take turns (round_robin.py): one that is behind lets the others read, and everything else run.
Rule 7: the more cursors a log has, the longer they wait for the next item after one (`spacing`). So a log wakes
        4,000 cursors a second at most, each for all that was appended meanwhile, and its readers leave the server time
        for others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from time import perf_counter
from typing import Final, Generic, TypeVar
from weakref import WeakSet

from a2a_canvas.server.tasks.journal.round_robin import Place, round_robin

T = TypeVar("T")

CHECK_SECONDS = 0.8
"""Together with the age of what is believed of shares, less than 2 seconds."""

SPACED_FROM: Final = 40
"""Fewer cursors are woken for each item."""
SPACING_SECONDS: Final = 1 / 4000
"""For each cursor."""
MAX_SPACING_SECONDS: Final = 0.25

MOST_READY: Final = 50
"""The most items that are sent together: a reader that is far behind does not delay the others."""

Check = Callable[[], Awaitable[None]]
"""Raises what ends an iteration that may not go on."""


def spacing(cursors: int) -> float:
    """The least time in seconds between two moments at which so many cursors of a log are woken (rule 7)."""
    return min(cursors * SPACING_SECONDS, MAX_SPACING_SECONDS) if cursors >= SPACED_FROM else 0.0


class _Link(Generic[T]):
    """The link to one item: empty until it is appended, then the item and the link to the next."""

    __slots__ = ("filled",)

    def __init__(self) -> None:
        self.filled: tuple[T, _Link[T]] | None = None


class Log(Generic[T]):
    """References the link to its next item, and nothing before it."""

    def __init__(self) -> None:
        self.end: _Link[T] = _Link()
        self.failure: Exception | None = None
        self.checks_due = 0
        self.readers: WeakSet[Cursor[T]] = WeakSet()
        self._waiting: dict[Place, None] = {}
        self._woken_at = 0.0
        self._waking: asyncio.TimerHandle | None = None

    def append(self, item: T) -> None:
        """Add an item; `wake` wakes the cursors that wait for it."""
        filled, self.end = self.end, _Link()
        filled.filled = item, self.end

    def fail(self, error: Exception) -> None:
        """Append nothing more; cursors get `error` when they have read everything."""
        self.failure = error
        self.wake()

    def check_again(self) -> None:
        """Have guarded cursors ask at once whether they may read on."""
        self.checks_due += 1
        self.wake()

    def wake(self) -> None:
        """Wake the cursors that wait, now or in a moment (rule 7)."""
        if not self._waiting or self._waking:
            return
        loop = asyncio.get_running_loop()
        due = self._woken_at + spacing(len(self.readers))
        if due <= loop.time():
            self._wake()
        else:
            self._waking = loop.call_at(due, self._wake)

    def _wake(self) -> None:
        self._woken_at, self._waking = asyncio.get_running_loop().time(), None
        waiting, self._waiting = self._waiting, {}
        round_robin().wake(waiting)

    async def wait(self, until: float | None = None) -> float:
        """Wait until `wake` is called, or until a time of the event loop; returns when the reader's slice ends."""
        loop, readers = asyncio.get_running_loop(), round_robin()
        place: Place = loop.create_future()
        self._waiting[place] = None
        timer = None if until is None else loop.call_at(until, readers.wake, (place,))
        try:
            return await readers.wait_for_slice(place)
        finally:
            self._waiting.pop(place, None)
            if timer:
                timer.cancel()


class Cursor(Generic[T]):
    """A position in a log, at first its end. Async-iterates the items from there on, and never ends."""

    checks: tuple[Check, ...] = ()

    def __init__(self, log: Log[T]) -> None:
        log.readers.add(self)
        self._log = log
        self._at = log.end
        self._slice_end = 0.0
        self._clock = perf_counter

    async def check(self) -> None:
        """Raises what ends an iteration that may not go on."""
        for check in self.checks:
            await check()

    @property
    def has_next(self) -> bool:
        """Whether the next item is there already."""
        return self._at.filled is not None

    @property
    def may_continue(self) -> bool:
        """Whether the next item is there, and it is still this cursor's turn."""
        return self.has_next and self._clock() < self._slice_end

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        while not self.has_next:
            await self._wait()
        return await self._next()

    async def _wait(self, until: float | None = None) -> None:
        if self._log.failure:
            raise self._log.failure
        self._slice_end, self._clock = await self._log.wait(until), round_robin().clock

    async def _next(self) -> T:
        if not self.may_continue:
            self._slice_end, self._clock = await round_robin().next_slice(), round_robin().clock
        return self._take()

    def ready(self) -> Iterator[T]:
        """The next items, as long as they are there and it is still this cursor's turn; fewer than `MOST_READY`."""
        for _ in range(MOST_READY - 1):
            if not self.may_continue:
                return
            yield self._take()

    def _take(self) -> T:
        assert self._at.filled
        item, self._at = self._at.filled
        return item


class GuardedCursor(Cursor[T]):
    """One that goes on from where another one is, as long as `check` raises nothing (rule 4)."""

    def __init__(self, cursor: Cursor[T], check: Check) -> None:
        super().__init__(cursor._log)
        self._at = cursor._at
        self.checks = (*cursor.checks, check)
        self._due = asyncio.get_running_loop().time() + CHECK_SECONDS
        self._checked = self._log.checks_due

    async def __anext__(self) -> T:
        clock = asyncio.get_running_loop().time
        while True:
            if clock() >= self._due or self._checked != self._log.checks_due:
                self._checked = self._log.checks_due
                await self.check()
                self._due = clock() + CHECK_SECONDS
            if self.has_next:
                return await self._next()
            await self._wait(self._due)
