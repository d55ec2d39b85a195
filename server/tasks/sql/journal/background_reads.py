"""Reads that nobody waits for: what they show is shown to subscribers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

from a2a_canvas.store.errors import Unavailable

T = TypeVar("T", bound=str)

STOP_SECONDS = 0.5
"""Seconds that a read has left when the server stops."""


class BackgroundReads(Generic[T]):
    """Starts reads. One that fails because of the database is left to the next poll."""

    def __init__(self, read: Callable[[Iterable[T]], Awaitable[None]]) -> None:
        self._read = read
        self._reading: set[asyncio.Task[None]] = set()
        self._due: set[T] = set()

    def start(self, ids: Iterable[T]) -> None:
        """Read what is new of these, unless that is about to begin."""
        new = {*ids} - self._due
        if new:
            self._due |= new
            reading = asyncio.create_task(self._run(new), name="read for followers")
            self._reading.add(reading)
            reading.add_done_callback(self._reading.discard)

    async def _run(self, ids: set[T]) -> None:
        self._due -= ids
        with suppress(Unavailable):
            await self._read(ids)

    async def stop(self) -> None:
        """Stop reading. A read that is cancelled while it connects leaves its connection open: it may end first."""
        if self._reading:
            _, late = await asyncio.wait(self._reading, timeout=STOP_SECONDS)
            for reading in late:
                reading.cancel()
            if late:
                await asyncio.wait(late)
