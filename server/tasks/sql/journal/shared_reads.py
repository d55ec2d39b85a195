"""Reads that several callers ask for at once.

Rule: a read is shared by those who asked before it began. Who asks while one is in progress shares the next one, and so
      sees all that was committed before it asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from a2a_canvas.server.tasks.sql.journal.background_reads import end_reads
from a2a_canvas.store.errors import Unavailable

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_STOPPING = "this server is stopping"


class SharedReads(Generic[K, V]):
    """Reads by key, of each at most one at a time.

    Args:
        read: reads what has a key. It continues if its callers are cancelled.
    """

    def __init__(self, read: Callable[[K], Awaitable[V]]) -> None:
        self._read = read
        self._stopped = False
        self._running: dict[K, asyncio.Task[V]] = {}
        self._next: dict[K, asyncio.Task[V]] = {}  # not begun yet

    async def get(self, key: K) -> V:
        """What a read finds that begins now or later. Raises what the read raises; `Unavailable` after `stop`."""
        if self._stopped:
            raise Unavailable(_STOPPING)
        reading = self._next.get(key)
        if reading is None:
            reading = asyncio.create_task(self._run(key, self._running.get(key)), name="shared read")
            reading.add_done_callback(_mark_seen)
            self._next[key] = reading
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            if waiting and waiting.cancelling():
                raise
            raise Unavailable(_STOPPING) from None

    async def _run(self, key: K, before: asyncio.Task[V] | None) -> V:
        if before:
            await asyncio.wait((before,))
        self._running[key] = self._next.pop(key)
        try:
            return await self._read(key)
        finally:
            del self._running[key]

    async def stop(self) -> None:
        """Stop reading."""
        self._stopped = True
        await end_reads({*self._running.values(), *self._next.values()})


def _mark_seen(reading: asyncio.Task[V]) -> None:
    """Retrieve the error: if all callers were cancelled, asyncio would log it as never retrieved."""
    if not reading.cancelled():
        reading.exception()
