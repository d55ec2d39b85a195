"""Locks by name: one holder at a time for each task, message or account."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class NamedLocks:
    """A lock per name, as long as it is held or waited for; the empty name locks nothing."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        async with self._locks.setdefault(name, asyncio.Lock()) if name else asyncio.Lock():
            yield
