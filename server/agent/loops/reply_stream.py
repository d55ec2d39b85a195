"""The reply of an agent's own loop, as the blocks and rounds of a model's answer.

A round begins with the first text, thought or tool call after the last one ended. Its events are those of a model call
(`turn/call.py`), so clients see one kind of turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.model import (
    BlockStart,
    BlockStop,
    InputDelta,
    MessageStart,
    MessageStop,
    ModelEvent,
    StopReason,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from a2a_canvas.server.agent.turn.call import ModelCall, TurnOutput
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall
from a2a_canvas.store.text.unicode import replace_unstorable
from a2a_canvas.tools.tool import Workspace

BlockKind = Literal["text", "thinking"]
Show = Callable[[str], Awaitable[None]]


async def show_nothing(text: str) -> None:
    pass


class ReplyStream:
    """Emits what the function says.

    Args:
        progress: of the turn so far.
        caller: for whom it works.

    Attributes:
        text: the visible text of the round so far.
        has_calls: the round contains calls of tools.
    """

    def __init__(self, progress: Progress, workspace: Workspace, output: TurnOutput, caller: Callable[[], str]) -> None:
        self.progress = progress
        self._workspace = workspace
        self._output = output
        self._caller = caller
        self._call: ModelCall | None = None
        self._open: BlockKind | None = None
        self._blocks = 0
        self._calls: dict[str, int] = {}
        self._usage = Usage()
        self.has_calls = False

    @property
    def text(self) -> str:
        return self._call.text if self._call else ""

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The ids of the calls whose input is incomplete."""
        return tuple(self._calls)

    def use(self, usage: Usage) -> None:
        """Count tokens; they are reported with the end of the round."""
        self._usage += usage

    async def add(self, kind: BlockKind, delta: str) -> None:
        """Add to the open block of this kind, or to a new one."""
        if self._open != kind:
            await self._end_block()
            await self._take(BlockStart(self._blocks, kind))
            self._open = kind
        await self._take((TextDelta if kind == "text" else ThinkingDelta)(self._blocks, delta))

    async def end_block(self) -> None:
        """End the open block: what follows is a paragraph of its own."""
        await self._end_block()

    async def _end_block(self) -> None:
        if self._open:
            self._open, number = None, self._blocks
            self._blocks += 1
            await self._take(BlockStop(number))

    async def begin_call(self, call_id: str, name: str, *, carried_out: bool = False) -> None:
        """A call of a tool begins; several may be open at once.

        Args:
            carried_out: another agent carries it out, so it counts even if its input is not valid JSON.
        """
        await self._end_block()
        call = await self._round()
        number, self._blocks = self._blocks, self._blocks + 1
        self._calls[call_id], self.has_calls = number, True
        await call.take(BlockStart(number, "tool_use", replace_unstorable(call_id), replace_unstorable(name)))
        if carried_out:
            call.mark_carried_out(number)

    async def add_input(self, call_id: str, piece: str, then: Show = show_nothing) -> None:
        """Add a piece of JSON to the input of an open call; `then` gets what clients have seen of it."""
        assert self._call
        await self._call.take(InputDelta(self._calls[call_id], piece))
        await then(piece)

    async def end_call(self, call_id: str) -> FunctionCall | None:
        """The input of a call is complete. None if it is not valid JSON, which is the call's result then."""
        assert self._call
        await self._call.take(BlockStop(self._calls.pop(call_id)))
        made = self._call.take_functions()
        return made[0] if made else None

    async def end_round(self, reason: StopReason = "end_turn") -> str:
        """End the round, and append its blocks to the transcript; returns its text."""
        await self._end_block()
        usage, self._usage = self._usage, Usage()
        call, self._call = await self._round() if usage != Usage() else self._call, None
        if call is None:
            return ""
        await call.take(MessageStop(reason, usage))
        self.progress, self._blocks = call.progress, 0
        self._calls.clear()
        await self._output.append_transcript(call.unsaved_blocks())
        return call.text

    async def abort(self) -> None:
        """End the round as one that was cut off."""
        self._open, call, self._call = None, self._call, None
        self._calls.clear()
        if call:
            await call.abort()
            self.progress = call.progress

    async def _take(self, event: ModelEvent) -> None:
        await (await self._round()).take(event)

    async def _round(self) -> ModelCall:
        if self._call is None:
            self.has_calls = False
            self._call = ModelCall(
                self.progress.next_round(), {}, self._workspace, self._output, "delta", self._caller, own_tools=True
            )
            await self._call.take(MessageStart())
        return self._call
