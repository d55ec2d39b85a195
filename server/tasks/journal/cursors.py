"""An append-only log that is read by cursors. It is linked forward only, so the cursors hold what they have not read.

Rule 1: a cursor gets every item that was appended after it was made, once and in order.
Rule 2: a cursor costs nothing but the items it has not read; appending costs the same however many there are.
Rule 3: a log may fail: a cursor that has read all items gets the error.
Rule 4: a guarded cursor asks every CHECK_SECONDS whether it may read on, also while there is nothing to read. It may be
        guarded by several checks.
Rule 5: an item stays in memory while a cursor has still to read it, and no longer. This needs no bookkeeping:
        a cursor holds the link to the item it reads next, so what every cursor has passed is unreachable.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")

CHECK_SECONDS = 0.8
"""Together with the age of what is believed of shares, less than 2 seconds."""

Check = Callable[[], Awaitable[None]]
"""Raises what ends an iteration that may not go on."""


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
        self._waiting: set[asyncio.Future[None]] = set()

    def append(self, item: T) -> None:
        """Add an item; `wake` wakes the cursors that wait for it."""
        filled, self.end = self.end, _Link()
        filled.filled = item, self.end

    def fail(self, error: Exception) -> None:
        """Append nothing more; cursors get `error` when they have read everything."""
        self.failure = error
        self.wake()

    def wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self) -> None:
        """Wait until `wake` is called."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)


class Cursor(Generic[T]):
    """A position in a log, at first its end. Async-iterates the items from there on, and never ends."""

    checks: tuple[Check, ...] = ()

    def __init__(self, log: Log[T]) -> None:
        self._log = log
        self._at = log.end

    @property
    def has_next(self) -> bool:
        """Whether the next item is there already."""
        return self._at.filled is not None

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        while (filled := self._at.filled) is None:
            if self._log.failure:
                raise self._log.failure
            await self._log.wait()
        item, self._at = filled
        return item


class GuardedCursor(Cursor[T]):
    """One that goes on from where another one is, as long as `check` raises nothing (rule 4)."""

    def __init__(self, cursor: Cursor[T], check: Check) -> None:
        super().__init__(cursor._log)
        self._at = cursor._at
        self.checks = (*cursor.checks, check)
        self._due = asyncio.get_running_loop().time() + CHECK_SECONDS

    async def __anext__(self) -> T:
        clock = asyncio.get_running_loop().time
        while True:
            if clock() >= self._due:
                for check in self.checks:
                    await check()
                self._due = clock() + CHECK_SECONDS
            if self.has_next:
                return await super().__anext__()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._due):
                    return await super().__anext__()
