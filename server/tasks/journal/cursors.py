"""An append-only log that is read by cursors: what is linked forward only is kept by whoever has still to read it.

Rule 1: a cursor gets every item that was appended after it was made, once and in order.
Rule 2: a cursor costs nothing but the items it has not read; appending costs the same however many there are.
Rule 3: a log may break off: whoever has read all there was is told so.
Rule 4: an item is kept as long as a cursor has still to read it, and no longer. No book-keeping is needed for this:
        a cursor holds the link to the item it reads next, so what every cursor has passed is unreachable.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class _Link(Generic[T]):
    """The place of one item: empty until it is written, then the item and the place of the next."""

    __slots__ = ("filled",)

    def __init__(self) -> None:
        self.filled: tuple[T, _Link[T]] | None = None


class Log(Generic[T]):
    """Knows the place of its next item, and nothing of those before."""

    def __init__(self) -> None:
        self.end: _Link[T] = _Link()
        self.failure: Exception | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    def append(self, item: T) -> None:
        """Add an item; who waits for it is told by `wake`."""
        filled, self.end = self.end, _Link()
        filled.filled = item, self.end

    def fail(self, error: Exception) -> None:
        """Nothing will follow; readers get `error` when they have read everything."""
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
    """A place in a log, at first its end. It async-iterates the items from there on, and never ends."""

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
