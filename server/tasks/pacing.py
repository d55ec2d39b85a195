"""A model that is listened to only as fast as what it says can be kept."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Literal

from server.agent.model import LLM, ModelEvent, ModelRequest
from server.agent.window import window_of


class PacedLLM:
    """An `LLM` around another one.

    It waits between two events, and not where a turn tells what it does: there, nothing may come in between.

    Args:
        room: waits while the database is far behind.
    """

    def __init__(self, llm: LLM, room: Callable[[], Awaitable[None]]) -> None:
        self._llm = llm
        self._room = room

    @property
    def name(self) -> str:
        return self._llm.name

    @property
    def thinking(self) -> Literal["delta", "accumulated"]:
        return self._llm.thinking

    @property
    def window(self) -> int | None:
        return window_of(self._llm)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        await self._room()
        async with aclosing(self._llm.stream(request)) as events:
            async for event in events:
                yield event
                await self._room()
