"""A model whose tokens are counted: those of every call that has begun, however it ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from a2a_canvas.server.agent.model import (
    LLM,
    InputDelta,
    MessageStop,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from a2a_canvas.server.agent.models.wrappers import LLMWrapper
from a2a_canvas.server.agent.turn.window import request_tokens

CHARACTERS_PER_TOKEN = 4


class MeteredLLM(LLMWrapper):
    """Counts the tokens of each call; they are estimated where the provider has not reported them, for example because
    the call was cancelled.

    Args:
        spend: is told the tokens of the request and of the answer.
    """

    def __init__(self, llm: LLM, spend: Callable[[int, int], None]) -> None:
        super().__init__(llm)
        self._spend = spend

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        usage, begun, characters = Usage(), False, 0
        try:
            async with aclosing(self._llm.stream(request)) as events:
                async for event in events:
                    begun = True
                    match event:
                        case TextDelta(text=text) | ThinkingDelta(text=text) | InputDelta(partial_json=text):
                            characters += len(text)
                        case MessageStop():
                            usage = event.usage
                    yield event
        except (asyncio.CancelledError, GeneratorExit):
            begun = True  # also before the first event: the provider has the request
            raise
        finally:
            if begun:  # a provider that refuses a call counts none
                sent = usage.total_input or request_tokens(request)
                self._spend(sent, usage.output_tokens or -(-characters // CHARACTERS_PER_TOKEN))
