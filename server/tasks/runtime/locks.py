"""A lock per name, kept while somebody holds it or waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class NamedLocks:
    """NamedLocks by name; the empty name locks nothing."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        lock = (self._locks.get(name) if name else None) or asyncio.Lock()
        if name:
            self._locks[name] = lock
        async with lock:
            yield
