"""A model that is listened to only as fast as what it says can be kept."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from a2a_canvas.server.agent.model import LLM, ModelEvent, ModelRequest
from a2a_canvas.server.agent.models.wrappers import LLMWrapper


class PacedLLM(LLMWrapper):
    """An `LLM` around another one.

    It waits between two events, and not where a turn tells what it does: there, nothing may come in between.

    Args:
        room: waits while the database is far behind.
    """

    def __init__(self, llm: LLM, room: Callable[[], Awaitable[None]]) -> None:
        super().__init__(llm)
        self._room = room

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        await self._room()
        async with aclosing(self._llm.stream(request)) as events:
            async for event in events:
                yield event
                await self._room()
