"""A model's answer while it streams in: its blocks, and the events common to the answers of turns and edits.

Rule 1: an `Answer` numbers the blocks and emits its start, the start and end of text and thinking blocks, the thinking,
        and exactly once the end of the call.
Rule 2: subclasses handle text and tool input; the base ignores them.
Rule 3: a delta must belong to an open block of its own kind; anything else is an error.
Rule 4: blocks that the provider leaves open end with the answer, except those of a broken stream.
Rule 5: thinking is emitted as deltas, whatever the adapter sends (docs/turn.md). An `accumulated` adapter sends
        all of the block so far: a text that begins with the previous one loses that prefix (A, AB, ABC -> A, B, C);
        any other is emitted whole. The previous text is forgotten when a block begins.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar, assert_never

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.agent import model as m
from a2a_canvas.server.agent.blocks import BlockError, Progress
from a2a_canvas.store.text.unicode import replace_surrogates

BlockKind = Literal["text", "thinking", "tool_use"]


@dataclass(slots=True)
class AnswerBlock:
    """A block of an answer. `signature` and `redacted` sign a thinking block; if it is `altered`, surrogates in its
    text were replaced and the signature no longer matches."""

    place: ev.BlockPosition
    kind: BlockKind
    signature: str = ""
    redacted: str = ""
    altered: bool = False


class ThinkingDeltas:
    """The newest pieces of thinking (rule 5). `mode` is `LLM.thinking`."""

    __slots__ = ("_mode", "_previous")

    def __init__(self, mode: Literal["delta", "accumulated"]) -> None:
        self._mode = mode
        self._previous = ""

    def begin_block(self) -> None:
        """Forget the previous block."""
        self._previous = ""

    def feed(self, content: str) -> str:
        """The newest piece in `content`; empty if there is nothing to emit."""
        if self._mode == "delta" or not content:
            # As the previous text, an empty one would repeat everything that follows.
            return content
        piece = content.removeprefix(self._previous)
        self._previous = content
        return piece


B = TypeVar("B", bound=AnswerBlock)


class Answer(Generic[B]):
    """Processes the events of one model call in order.

    Args:
        progress: that of the turn before the call.
        thinking: `LLM.thinking`.
        new_block: makes a block.

    Attributes:
        progress: that of the turn, with this call.
        stop_reason: why the model stopped.
        usage: the tokens of a completed call.
        ended: whether the end of the call was emitted.
    """

    def __init__(
        self,
        progress: Progress,
        emit: ev.Emit,
        thinking: Literal["delta", "accumulated"],
        new_block: Callable[[ev.BlockPosition, BlockKind], B],
    ) -> None:
        self.stop_reason: m.StopReason = "error"
        self.usage = m.Usage()
        self.ended = False
        self.progress = progress.next_call()
        self._emit = emit
        self._thinking = ThinkingDeltas(thinking)
        self._new_block = new_block
        self._open: dict[int, B] = {}

    async def read(self, stream: AsyncGenerator[m.ModelEvent, None]) -> None:
        """Handle all events of a call.

        Raises:
            ModelError: the stream failed, or is not a complete answer.
        """
        async with aclosing(stream) as events:
            async for event in events:
                await self.take(event)
        self.check_ended()

    async def take(self, event: m.ModelEvent) -> None:
        """Handle the next event.

        Raises:
            BlockError: it is for a block that is not open, or of another kind.
        """
        match event:
            case m.TextDelta():
                await self._text(self._block(event.llm_index, "text"), replace_surrogates(event.text))
            case m.InputDelta():
                await self._input(self._block(event.llm_index, "tool_use"), replace_surrogates(event.partial_json))
            case m.ThinkingDelta():
                block = self._block(event.llm_index, "thinking")
                text = replace_surrogates(event.text)
                block.altered |= text is not event.text
                await self._think(block, self._thinking.feed(text))
            case m.SignatureDelta():
                block = self._block(event.llm_index, "thinking")
                block.signature += event.signature
                block.redacted += event.redacted
            case m.BlockStart():
                await self._start(event)
            case m.BlockStop():
                await self._stop(event.llm_index)
            case m.MessageStart():
                await self._emit(ev.MessageStarted(self.progress.round))
            case m.StopReasonDelta():
                await self._emit(ev.MessageDelta(self.progress.round))
            case m.MessageStop():
                await self._finish(event)
            case _:
                assert_never(event)

    async def end(self, reason: m.StopReason, usage: m.Usage) -> None:
        """Emit the end of the call, once."""
        if not self.ended:
            self.ended = True
            await self._emit(ev.LlmCallCompleted(self.progress.round, reason, usage))

    def check_ended(self) -> None:
        """Raises `ModelError` if the stream ended without `MessageStop`."""
        if not self.ended:
            raise m.ModelError(
                "The connection to the model ended in the middle of its answer.", retryable=True, kind="broken"
            )

    async def _text(self, block: B, delta: str) -> None:
        """Text was added to a block."""

    async def _input(self, block: B, fragment: str) -> None:
        """Input was added to a tool call."""

    async def _think(self, block: B, piece: str) -> None:
        """Thinking was added to a block: the newest piece, empty if nothing is new."""
        if piece:
            await self._emit(ev.ThinkingAdded(block.place, piece))

    async def _begin_block(self, block: B, event: m.BlockStart) -> None:
        """A block has begun. Nothing is emitted for a tool call."""
        if event.kind != "tool_use":
            self._thinking.begin_block()
            await self._emit(ev.TextBlockStarted(block.place, event.kind))

    async def _end_block(self, block: B) -> None:
        """A block has ended. Nothing is emitted for a tool call."""
        if block.kind != "tool_use":
            await self._emit(ev.BlockStopped(block.place))

    def _block(self, llm_index: int, kind: BlockKind) -> B:
        block = self._open[self.progress.blocks.index_of(llm_index)]
        if block.kind != kind:
            raise BlockError(llm_index, f"is a {block.kind} block and was sent a piece of a {kind} block")
        return block

    async def _start(self, event: m.BlockStart) -> None:
        blocks, index = self.progress.blocks.start(event.llm_index)
        self.progress = replace(self.progress, blocks=blocks)
        block = self._new_block(ev.BlockPosition(index, self.progress.round, event.llm_index), event.kind)
        self._open[index] = block
        await self._begin_block(block, event)

    async def _stop(self, llm_index: int) -> None:
        blocks, index = self.progress.blocks.stop(llm_index)
        self.progress = replace(self.progress, blocks=blocks)
        await self._end_block(self._open.pop(index))

    async def _finish(self, event: m.MessageStop) -> None:
        self.stop_reason, self.usage = event.stop_reason, event.usage
        for index in tuple(self._open):
            await self._end_block(self._open.pop(index))
        await self.end(event.stop_reason, event.usage)
