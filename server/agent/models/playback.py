"""Streams ready-made blocks as the events of a model: for the offline models.

Rule 1: blocks are numbered 0, 1, 2… in each answer; every block starts, has deltas, and stops.
Rule 2: a tool call's input is its JSON, keys in the order given, cut anywhere.
Rule 3: an answer with a call stops for `tool_use`, any other for `end_turn`.
Rule 4: the cost is proportional to the text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from time import monotonic
from typing import assert_never

from a2a_canvas.server.agent import model as m

AssistantBlock = m.Thinking | m.ModelText | m.ToolUse
NewId = Callable[[], str]
Sleep = Callable[[float], Awaitable[object]]

CHARACTERS_PER_TOKEN = 4


def fresh_tool_id() -> str:
    """An id for a tool call, in the form that Claude uses: `toolu_` and 24 hexadecimal digits."""
    return f"toolu_{secrets.token_hex(12)}"


def answer(request: m.ModelRequest, blocks: Iterable[AssistantBlock], sizes: Iterator[int]) -> Iterator[m.ModelEvent]:
    """One whole answer to `request`.

    Args:
        request: only its length is used, to estimate its tokens.
        blocks: in order; read one at a time.
        sizes: the lengths of the deltas, in characters, each at least 1; never runs out.
    """
    yield m.MessageStart()
    stop: m.StopReason = "end_turn"
    written = 0
    for index, block in enumerate(blocks):
        stop = "tool_use" if isinstance(block, m.ToolUse) else stop
        for event in _block(index, block, sizes):
            written += delta_length(event)
            yield event
    yield m.StopReasonDelta(stop)
    read = len(request.system) + sum(_length(item) for message in request.messages for item in message.content)
    yield m.MessageStop(stop, m.Usage(read // CHARACTERS_PER_TOKEN, written // CHARACTERS_PER_TOKEN))


MAX_SLICE_SECONDS = 0.001
"""Seconds for which a model without delays may run before it yields to other asyncio tasks."""


async def pace(events: Iterable[m.ModelEvent], delay: float, sleep: Sleep) -> AsyncGenerator[m.ModelEvent, None]:
    """The same events, with `delay` seconds between two deltas; at 0 other asyncio tasks still run."""
    slice_began = monotonic()
    begun = False
    for event in events:
        if delta_length(event):
            if begun and (delay or monotonic() - slice_began >= MAX_SLICE_SECONDS):
                await sleep(delay)
                slice_began = monotonic()
            begun = True
        yield event


def delta_length(event: m.ModelEvent) -> int:
    """The number of characters of text, thinking or input in the event; 0 for any other event."""
    match event:
        case m.TextDelta(text=text) | m.ThinkingDelta(text=text) | m.InputDelta(partial_json=text):
            return len(text)
        case _:
            return 0


def _block(index: int, block: AssistantBlock, sizes: Iterator[int]) -> Iterator[m.ModelEvent]:
    match block:
        case m.Thinking():
            yield m.BlockStart(index, "thinking")
            yield from (m.ThinkingDelta(index, piece) for piece in _pieces(block.text, sizes))
            yield m.SignatureDelta(index, block.signature)
        case m.ModelText():
            yield m.BlockStart(index, "text")
            yield from (m.TextDelta(index, piece) for piece in _pieces(block.text, sizes))
        case m.ToolUse():
            yield m.BlockStart(index, "tool_use", block.id, block.name)
            written = json.dumps(block.input, ensure_ascii=False)
            yield from (m.InputDelta(index, piece) for piece in _pieces(written, sizes))
        case _:
            assert_never(block)
    yield m.BlockStop(index)


def _pieces(text: str, sizes: Iterator[int]) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = at + next(sizes)
        yield text[at:end]
        at = end


def _length(item: m.ModelContent) -> int:
    match item:
        case m.ModelText(text=text) | m.Thinking(text=text) | m.ToolResult(content=text):
            return len(text)
        case m.ToolUse():
            return len(str(item.input))
        case m.Attachment():
            return 0
        case _:
            assert_never(item)
