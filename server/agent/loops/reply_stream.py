"""The reply of an agent's own loop, as the blocks and rounds of a model's answer.

A round begins with the first text, thought or tool call after the last one ended. Its events are those of a model call
(`turn/call.py`), so clients see one kind of turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.model import (
    BlockStart,
    BlockStop,
    InputDelta,
    MessageStart,
    MessageStop,
    StopReason,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from a2a_canvas.server.agent.turn.call import ModelCall, TurnOutput
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall
from a2a_canvas.tools.tool import Workspace

BlockKind = Literal["text", "thinking"]


class ReplyStream:
    """Emits what the function says.

    Args:
        progress: of the turn so far.
        caller: for whom it works.

    Attributes:
        text: the visible text of the round so far.
    """

    def __init__(self, progress: Progress, workspace: Workspace, output: TurnOutput, caller: Callable[[], str]) -> None:
        self.progress = progress
        self._workspace = workspace
        self._output = output
        self._caller = caller
        self._call: ModelCall | None = None
        self._open: BlockKind | None = None
        self._blocks = 0
        self._usage = Usage()

    @property
    def text(self) -> str:
        return self._call.text if self._call else ""

    def use(self, usage: Usage) -> None:
        """Count tokens; they are reported with the end of the round."""
        self._usage += usage

    async def add(self, kind: BlockKind, delta: str) -> None:
        """Add to the open block of this kind, or to a new one."""
        call = await self._round()
        if self._open != kind:
            await self.end_block()
            await call.take(BlockStart(self._blocks, kind))
            self._open = kind
        await call.take((TextDelta if kind == "text" else ThinkingDelta)(self._blocks, delta))

    async def add_recorded(self, pieces: Iterable[str]) -> None:
        """Add text that was shown before; an empty piece ends a block."""
        for piece in pieces:
            if piece:
                await self.add("text", piece)
            else:
                await self.end_block()

    async def end_block(self) -> None:
        """End the open block: what follows is a paragraph of its own."""
        if self._call and self._open:
            self._open, number = None, self._blocks
            self._blocks += 1
            await self._call.take(BlockStop(number))

    async def call_tool(self, use_id: str, name: str, given: Mapping[str, Any]) -> FunctionCall:
        """Emit the call of a tool, which ends the round (`end_round`)."""
        await self.end_block()
        call = await self._round()
        number, self._blocks = self._blocks, self._blocks + 1
        await call.take(BlockStart(number, "tool_use", use_id, name))
        await call.take(InputDelta(number, json.dumps(given)))
        await call.take(BlockStop(number))
        [made] = call.take_functions()
        return made

    async def end_round(self, reason: StopReason = "end_turn") -> str:
        """End the round, and append its blocks to the transcript; returns its text."""
        await self.end_block()
        call, self._call = self._call, None
        if call is None:
            return ""
        usage, self._usage = self._usage, Usage()
        await call.take(MessageStop(reason, usage))
        self.progress, self._blocks = call.progress, 0
        await self._output.append_transcript(call.unsaved_blocks())
        return call.text

    async def abort(self) -> None:
        """End the round as one that was cut off."""
        self._open, call, self._call = None, self._call, None
        if call:
            await call.abort()
            self.progress = call.progress

    async def _round(self) -> ModelCall:
        if self._call is None:
            self._call = ModelCall(
                self.progress.next_round(), {}, self._workspace, self._output, "delta", self._caller, own_tools=True
            )
            await self._call.take(MessageStart())
        return self._call
