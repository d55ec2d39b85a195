"""Which tokens of a model call count: those that the provider reports, estimates where it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Literal

import pytest

from a2a_canvas.server.agent.model import (
    BlockStart,
    InputDelta,
    MessageStart,
    MessageStop,
    ModelError,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelText,
    TextDelta,
    Usage,
)
from a2a_canvas.server.agent.turn.window import request_tokens
from a2a_canvas.server.tasks.runtime.metered_llm import MeteredLLM

REQUEST = ModelRequest("Be brief.", (ModelMessage("user", (ModelText("Hello " * 100),)),))
SENT = request_tokens(REQUEST)
WRITTEN: list[ModelEvent] = [
    MessageStart(),
    BlockStart(0, "text"),
    TextDelta(0, "Hello, you."),
    InputDelta(1, '{"a": 1}'),
]
"""19 characters."""


class Model:
    name = "model"
    thinking: Literal["delta", "accumulated"] = "delta"

    def __init__(self, *events: ModelEvent | Exception) -> None:
        self._events = events

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        for event in self._events:
            if isinstance(event, Exception):
                raise event
            yield event


class Silent(Model):
    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        await asyncio.Event().wait()
        yield MessageStart()


BROKEN = ModelError("It broke.", retryable=True, kind="broken")


@pytest.mark.parametrize(
    ("events", "spent"),
    [
        ([*WRITTEN, MessageStop("end_turn", Usage(7, 3, cache_read_tokens=2))], [(9, 3)]),
        ([*WRITTEN, MessageStop("end_turn")], [(SENT, 5)]),
        ([*WRITTEN, MessageStop("end_turn", Usage(output_tokens=3))], [(SENT, 3)]),
        ([*WRITTEN, BROKEN], [(SENT, 5)]),
        ([BROKEN], []),
    ],
    ids=["reported", "not reported", "reported in part", "broken off", "refused"],
)
async def test_tokens_are_those_reported_or_else_estimated(
    events: list[ModelEvent | Exception], spent: list[tuple[int, int]]
) -> None:
    found: list[tuple[int, int]] = []
    metered = MeteredLLM(Model(*events), lambda tokens_in, tokens_out: found.append((tokens_in, tokens_out)))
    try:
        assert [event async for event in metered.stream(REQUEST)] == events
    except ModelError:
        assert BROKEN in events
    assert found == spent


async def test_a_call_that_is_cancelled_counts_as_far_as_it_came() -> None:
    found: list[tuple[int, int]] = []
    metered = MeteredLLM(Model(*WRITTEN), lambda tokens_in, tokens_out: found.append((tokens_in, tokens_out)))
    async with aclosing(metered.stream(REQUEST)) as stream:
        while not isinstance(await anext(stream), TextDelta):
            pass
    assert found == [(SENT, 3)]


async def test_a_call_that_is_cancelled_before_its_first_event_counts_its_request() -> None:
    """Otherwise whoever cancels early enough sends as much as it likes: the provider has read it."""
    found: list[tuple[int, int]] = []
    metered = MeteredLLM(Silent(), lambda tokens_in, tokens_out: found.append((tokens_in, tokens_out)))
    async with aclosing(metered.stream(REQUEST)) as stream:
        reading = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert found == [(SENT, 0)]
