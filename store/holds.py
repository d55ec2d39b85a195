"""Which task of this process may change what a context has besides its artifacts: one at a time."""

from __future__ import annotations

import asyncio

from a2a_canvas.store.ids import ContextKey


class Holds:
    """Which task holds each context. A task that holds one takes it again at once."""

    def __init__(self) -> None:
        self._holders: dict[ContextKey, str] = {}
        self._ended: dict[ContextKey, asyncio.Event] = {}

    async def take(self, context_id: ContextKey, task_id: str) -> None:
        """Wait until no other task holds the context, and hold it."""
        while self._holders.setdefault(context_id, task_id) != task_id:
            await self._ended.setdefault(context_id, asyncio.Event()).wait()

    def has(self, context_id: ContextKey, task_id: str) -> bool:
        """Whether this task holds the context."""
        return self._holders.get(context_id) == task_id

    def release(self, context_id: ContextKey, task_id: str) -> None:
        """End the hold of this task, if it has one."""
        if self.has(context_id, task_id):
            del self._holders[context_id]
            if ended := self._ended.pop(context_id, None):
                ended.set()
