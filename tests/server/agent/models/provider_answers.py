"""A request to a model, answers of a provider to it, and what the model makes of them: the same for all providers."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import httpx

from a2a_canvas.server.agent.model import LLM, ModelEvent, ModelMessage, ModelRequest, ModelText

REQUEST = ModelRequest("Be brief.", (ModelMessage("user", (ModelText("Write."),)),))


async def pieces(content: bytes, cuts: list[int] | None = None, then: Exception | None = None) -> AsyncIterator[bytes]:
    """A body in pieces, whole by default, that may end in an error of the transport."""
    for start, end in itertools.pairwise([0, *sorted(cuts or []), len(content)]):
        yield content[start:end]
    if then is not None:
        raise then


def streamed(content: bytes, cuts: list[int] | None = None, then: Exception | None = None) -> httpx.Response:
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    return httpx.Response(200, headers=headers, content=pieces(content, cuts, then))


async def said(llm: LLM, request: ModelRequest = REQUEST) -> list[ModelEvent]:
    return [event async for event in llm.stream(request)]
