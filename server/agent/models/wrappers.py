"""Wrappers of models: `FramedLLM` joins deltas, `PacedLLM` waits while the database is down, `MeasuredLLM`
counts errors.

The rules of `FramedLLM`, which saves an event per token of a fast model:

Rule 1: a delta outside a frame is sent at once and begins one. The following deltas are buffered and joined; the end
        of the frame sends them and begins the next one, until a frame passes without a delta.
Rule 2: any other event flushes the buffered deltas, then is sent immediately: the order never changes.
Rule 3: only text and tool input are joined, and only within one block. Thinking is not: clients show only its newest
        piece (docs/turn.md).
Rule 4: the start of a tool's input, its first `UNJOINED_CHARACTERS`, is not joined: an artifact begins in it, and
        subscribers should see that immediately.
Rule 5: the deltas before an error are sent before the error.

It precedes the tool, the store and the journal, so that they process one change per frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from a2a_canvas.server.agent.model import (
    LLM,
    BlockStart,
    InputDelta,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    window_of,
)
from a2a_canvas.server.metrics import Metrics

UNJOINED_CHARACTERS = 512
"""Characters: longer than the input before the first text of an artifact, shorter than a typical artifact."""

_PREFIXES = ("openai", "ollama", "script", "rehearsal")
"""Prefixes of models that do not use the Messages API."""


def provider_of(name: str) -> str:
    """The kind of provider of a model with this name."""
    kind = name.partition(":")[0]
    return kind if kind in _PREFIXES else "messages-api"


class LLMWrapper:
    """Base of `LLM` wrappers: forwards `name`, `thinking` and `window`."""

    def __init__(self, llm: LLM) -> None:
        self.name, self.thinking = llm.name, llm.thinking
        self._llm = llm

    @property
    def window(self) -> int | None:
        return window_of(self._llm)


class PacedLLM(LLMWrapper):
    """Waits between two events of a model while the database is down.

    The wait is here and not in `Emit`, because a turn emits events that belong together without a wait.

    Args:
        wait_writable: waits while the database is down.
    """

    def __init__(self, llm: LLM, wait_writable: Callable[[], Awaitable[None]]) -> None:
        super().__init__(llm)
        self._wait_writable = wait_writable

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        await self._wait_writable()
        async with aclosing(self._llm.stream(request)) as events:
            async for event in events:
                yield event
                await self._wait_writable()


class MeasuredLLM(LLMWrapper):
    """Counts the errors of the model. Calls and tokens are counted where all calls end (`LlmCallCompleted`)."""

    def __init__(self, llm: LLM, metrics: Metrics) -> None:
        super().__init__(llm)
        self._errors = metrics.model_errors
        self._provider = provider_of(llm.name)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        try:
            async with aclosing(self._llm.stream(request)) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            self._errors.labels(self._provider, error.kind).inc()
            raise


class FramedLLM(LLMWrapper):
    """Joins the deltas of one frame (rules 1 to 5).

    Args:
        frame: seconds; 0 joins nothing.
    """

    def __init__(self, llm: LLM, frame: float) -> None:
        super().__init__(llm)
        self._frame = frame

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        stream = self._llm.stream(request)
        return join_frames(stream, self._frame) if self._frame else stream


async def join_frames(stream: AsyncGenerator[ModelEvent, None], frame: float) -> AsyncGenerator[ModelEvent, None]:
    """The events of `stream`, joined by frames of `frame` seconds. Closing it closes `stream`."""
    frames = _Frames(frame)
    reading = asyncio.create_task(frames.read(stream))
    try:
        while events := await frames.next():
            for event in events:
                yield event
        await reading  # raises what broke the stream
    finally:
        frames.stop()
        reading.cancel()
        await asyncio.wait([reading])


class _Frames:
    """The events not yet sent: `_ready` are sent now, `_held` at the end of its frame."""

    def __init__(self, frame: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._frame = frame
        self._ready: list[ModelEvent] = []
        self._held: TextDelta | InputDelta | None = None
        self._pieces: list[str] = []
        self._opening = 0
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False
        self._ready_or_ended = asyncio.Event()

    async def read(self, stream: AsyncGenerator[ModelEvent, None]) -> None:
        try:
            async with aclosing(stream):
                async for event in stream:
                    self._take(event)
        finally:
            self._release()
            self._ended = True
            self._ready_or_ended.set()

    async def next(self) -> list[ModelEvent]:
        """The events to send now; none when the stream has ended."""
        await self._ready_or_ended.wait()
        events, self._ready = self._ready, []
        if not self._ended:
            self._ready_or_ended.clear()
        return events

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _take(self, event: ModelEvent) -> None:
        match event:
            case InputDelta(partial_json=piece) if self._opening > 0:
                self._opening -= len(piece)
                self._pass(event)
            case TextDelta(text=piece) | InputDelta(partial_json=piece):
                self._take_delta(event, piece)
            case BlockStart():
                self._opening = UNJOINED_CHARACTERS if event.kind == "tool_use" else 0
                self._pass(event)
            case _:
                self._pass(event)

    def _pass(self, event: ModelEvent) -> None:
        self._release()
        self._send(event)

    def _take_delta(self, event: TextDelta | InputDelta, piece: str) -> None:
        if self._timer is None:
            self._send(event)
            self._timer = self._loop.call_later(self._frame, self._end_frame)
            return
        if self._held and (type(self._held) is not type(event) or self._held.llm_index != event.llm_index):
            self._release()
        self._held = event
        self._pieces.append(piece)

    def _end_frame(self) -> None:
        self._timer = self._loop.call_later(self._frame, self._end_frame) if self._held else None
        self._release()

    def _release(self) -> None:
        if self._held:
            joined = type(self._held)(self._held.llm_index, "".join(self._pieces))
            self._held, self._pieces = None, []
            self._send(joined)

    def _send(self, event: ModelEvent) -> None:
        self._ready.append(event)
        self._ready_or_ended.set()
