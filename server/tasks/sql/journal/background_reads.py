"""Reads that nobody waits for: what they show is shown to subscribers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Generic, TypeVar

from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=str)

STOP_SECONDS = 0.5
"""Seconds that a read has left when the server stops."""


class BackgroundReads(Generic[T]):
    """Starts reads, one at a time: what is due meanwhile is left to the next. Otherwise a broker that is connected
    again would have everything read at once. One that fails because of the database is left to the next poll.
    """

    def __init__(self, read: Callable[[Iterable[T]], Awaitable[None]]) -> None:
        self._read = read
        self._reading: asyncio.Task[None] | None = None  # as long as anything is due
        self._due: set[T] = set()

    def start(self, ids: Iterable[T]) -> None:
        """Read what is new of these, unless that is about to begin."""
        self._due.update(ids)
        if self._due and self._reading is None:
            self._reading = asyncio.create_task(self._run(), name="read for followers")

    async def _run(self) -> None:
        try:
            while self._due:
                ids, self._due = self._due, set()
                await self._try(ids)
        finally:
            self._reading = None

    async def _try(self, ids: set[T]) -> None:
        try:
            await self._read(ids)
        except Unavailable:
            pass
        except Exception:
            logger.exception("What is new could not be read for followers")

    async def stop(self) -> None:
        """Stop reading."""
        if self._reading:
            await end_reads({self._reading})


async def end_reads(reads: Collection[asyncio.Task[Any]]) -> None:
    """A read that is cancelled while it connects leaves its connection open: it may end first."""
    if reads:
        _, late = await asyncio.wait(reads, timeout=STOP_SECONDS)
        for each in late:
            each.cancel()
            await asyncio.wait((each,))
