"""One model call of a turn: its stream in, turn events and transcript out.

Rule 1: blocks and thinking are those of any answer (`answer.py`); pure modules decide on visible text and phases.
Rule 2: completed blocks are appended to the transcript in order: the thinking and text before a tool call together with
        it, as soon as the call has acted; those after the last completed call are the `unsaved_blocks`. A block that is
        still open when a call acts is appended up to that point.
Rule 3: a call's change, its result and its transcript are emitted in one event-loop step: a journal commits all three
        or none, so no tool runs twice.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.agent.answer import Answer, AnswerBlock
from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.endings import to_tool_result, visible_outcome
from a2a_canvas.server.agent.model import BlockStart, ModelText, Thinking, ToolUse, Usage
from a2a_canvas.server.agent.phases import Signal, advance
from a2a_canvas.server.agent.text.visible import VisibleText
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall
from a2a_canvas.store.text.unicode import replace_surrogates, replace_unstorable
from a2a_canvas.tools.functions.function_tool import AnyTool, FunctionTool
from a2a_canvas.tools.tool import Failed, Outcome, Tool, ToolStream, Workspace, invalid_json_message

logger = logging.getLogger(__name__)

PARAGRAPH = "\n\n"
"""The separator of the texts of two blocks of one answer."""


@dataclass(slots=True)
class _Block(AnswerBlock):
    visible: VisibleText = field(default_factory=VisibleText)
    pieces: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    tool_use_id: str = ""
    name: str = ""
    input: Mapping[str, Any] | None = None
    final: bool = False
    tool: ToolStream | None = None
    acts_last: bool = False
    function: bool = False
    carried_out: bool = False


class TurnOutput:
    """Emits the events of a turn and keeps its transcript.

    Args:
        transcript: of the task so far; grows.
    """

    def __init__(self, emit: ev.Emit, new_id: Callable[[], str], transcript: ev.Transcript = ()) -> None:
        self.emit = emit
        self.transcript = transcript
        self._new_id = new_id
        self._label = ""

    async def label(self, label: str, *, of_tool: bool = False) -> None:
        """Emit what the turn or one of its tools is doing, unless it equals the last label."""
        if label and label != self._label:
            self._label = label
            await self._say(ev.AgentMessage(self._new_id(), replace_unstorable(label), label=True, of_tool=of_tool))

    async def text(self, text: str) -> None:
        """Emit the text of a round that is not the turn's last message."""
        if text:
            await self._say(ev.AgentMessage(self._new_id(), replace_unstorable(text)))
            self._label = ""

    async def append_transcript(self, items: ev.Transcript) -> None:
        """Record what later model requests must contain."""
        if items:
            self.transcript += items
            await self.emit(ev.TranscriptAppended(items))

    async def _say(self, message: ev.AgentMessage) -> None:
        await self.emit(ev.StatusChanged(ev.State.WORKING, message))


class ModelCall(Answer[_Block]):
    """Handles the events of one model call: visible text is emitted, tool calls act.

    `take` raises `LimitReached` if a tool reached a limit; the turn must end.

    Args:
        own_tools: every tool is a function, and the caller runs it (`take_functions`).

    Attributes:
        outcomes: of the calls that have acted, in order.
        asked: ids of the calls that wait for the user's answer.
        text: the visible text so far.
        final_text: the text that the adapter marked as the final message, if any.
    """

    def __init__(
        self,
        progress: Progress,
        tools: Mapping[str, AnyTool],
        workspace: Workspace,
        output: TurnOutput,
        thinking: Literal["delta", "accumulated"],
        caller: Callable[[], str] = lambda: "",
        *,
        own_tools: bool = False,
    ) -> None:
        super().__init__(progress, output.emit, thinking, _Block)
        self.outcomes: list[Outcome] = []
        self.asked: list[str] = []
        self.final_text = ""
        self._tools = tools
        self._workspace = workspace
        self._output = output
        self._caller = caller
        self._own_tools = own_tools
        self._functions: list[_Block] = []
        self._deferred: list[_Block] = []
        self._pending: list[tuple[int, ModelText | Thinking | ToolUse]] = []
        self._use_ids: set[str] = set()
        self._shown: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._shown).strip()

    def mark_carried_out(self, llm_index: int) -> None:
        """Another agent carries out this call of a function: its result counts, even if the input was not valid."""
        self._open[self.progress.blocks.index_of(llm_index)].carried_out = True

    def unsaved_blocks(self) -> ev.Transcript:
        """The completed blocks after the last tool call (rule 2)."""
        blocks, self._pending = tuple(content for _, content in self._pending), []
        return (ev.AssistantOutput(self.progress.call, blocks),) if blocks else ()

    async def abort(self) -> None:
        """End the call if it is running: undo its unfinished tool calls, and emit its end."""
        try:
            for block in self._open.values():
                if block.tool:
                    await block.tool.abort()
            self._open.clear()
        finally:
            await self.end("error", Usage())

    async def function_calls(self) -> tuple[FunctionCall, ...]:
        """Append the calls of function tools to the transcript, and return them: they can run now."""
        calls = self.take_functions()
        called = (ev.ToolStep(call.id, "called", str(call.index), call.caller) for call in calls)
        if calls:
            await self._output.append_transcript((*self.unsaved_blocks(), *called))
        return calls

    def take_functions(self) -> tuple[FunctionCall, ...]:
        """The calls of function tools since the last time; their blocks are complete."""
        blocks, self._functions = self._functions, []
        for block in blocks:
            self._add(block, ToolUse(block.tool_use_id, block.name, block.input or {}))
        caller = self._caller()
        return tuple(
            FunctionCall(each.tool_use_id, each.place.index, each.name, each.input or {}, caller) for each in blocks
        )

    async def act_last(self) -> list[Outcome]:
        """Run the tool calls that end or pause the turn."""
        outcomes = [await self._act(block) for block in self._deferred]
        self._deferred.clear()
        return outcomes

    async def _begin_block(self, block: _Block, event: BlockStart) -> None:
        block.name, block.final = event.name, event.final
        if event.kind == "tool_use":
            block.tool_use_id = self._use_id(event.tool_use_id, block)
            tool = self._tools.get(event.name)
            if isinstance(tool, Tool):
                block.tool, block.acts_last = tool.open(self._workspace), tool.acts_last
            block.function = self._own_tools or isinstance(tool, FunctionTool)
            await self._emit(ev.ToolUseStarted(block.place, block.tool_use_id, event.name))
        else:
            await super()._begin_block(block, event)

    def _use_id(self, given: str, block: _Block) -> str:
        """The id of a tool call, made unique in the answer."""
        use_id = given if given and given not in self._use_ids else f"{given or 'call'}_{block.place.index}"
        self._use_ids.add(use_id)
        return use_id

    async def _text(self, block: _Block, delta: str) -> None:
        block.pieces.append(delta)
        await self._show(block, block.visible.feed(delta))

    async def _show(self, block: _Block, text: str) -> None:
        if not block.shown:
            text = text.lstrip()  # blank lines alone are not visible text
        if not text:
            return
        await self._begin_text()
        if self._shown and not block.shown:
            text = PARAGRAPH + text
        self._shown.append(text)
        block.shown.append(text)
        await self._emit(ev.TextAdded(block.place, text))

    async def _begin_text(self) -> None:
        final_message_starts = self._advance(Signal.TEXT)
        await self._output.label("Writing reply…")
        if final_message_starts:
            await self._emit(ev.FinalMessageStarted())

    def _advance(self, signal: Signal) -> bool:
        phase, final_message_starts = advance(self.progress.phase, signal)
        if phase is not self.progress.phase:
            self.progress = replace(self.progress, phase=phase)
        return final_message_starts

    async def _think(self, block: _Block, piece: str) -> None:
        if piece:
            block.pieces.append(piece)
            self._advance(Signal.THINKING)
            await super()._think(block, piece)

    async def _input(self, block: _Block, fragment: str) -> None:
        if not fragment:
            return
        block.pieces.append(fragment)
        await self._emit(ev.ToolInputAdded(block.place, block.tool_use_id, fragment))
        if block.tool:
            await block.tool.feed(fragment)
            await self._output.label(block.tool.label, of_tool=True)

    async def _end_block(self, block: _Block) -> None:
        await self._show(block, block.visible.finish())
        await self._emit(ev.BlockStopped(block.place))
        if block.kind == "tool_use":
            await self._stop_tool_call(block)
            return
        self._complete(block)
        if block.kind == "text" and block.final:
            self.final_text = "".join(block.shown).strip()

    def _complete(self, block: _Block) -> None:
        """Keep the text of a block for the transcript, in the order in which blocks began."""
        text, block.pieces = "".join(block.pieces), []
        content: ModelText | Thinking = ModelText(text)
        if block.kind == "thinking":
            content = Thinking(text, "" if block.altered else block.signature, block.redacted)
            block.signature = block.redacted = ""
        if content not in (ModelText(""), Thinking("")):
            self._add(block, content)

    def _add(self, block: _Block, content: ModelText | Thinking | ToolUse) -> None:
        index = block.place.index
        at = next((n for n, (other, _) in enumerate(self._pending) if other > index), len(self._pending))
        self._pending.insert(at, (index, content))

    async def _stop_tool_call(self, block: _Block) -> None:
        block.input = _parse_input(block.pieces)
        if block.input is None and block.carried_out:
            block.input = {}
        if block.input is not None:
            await self._emit(ev.ToolInputCompleted(block.place.index, block.tool_use_id, block.input))
        if block.function and block.input is not None:
            self._functions.append(block)
        elif block.acts_last:
            self._deferred.append(block)
        else:
            self.outcomes.append(await self._act(block))

    async def _act(self, block: _Block) -> Outcome:
        if block.tool:
            outcome = visible_outcome(await block.tool.finish())
        elif block.function:
            outcome = Failed(invalid_json_message(block.name))
        else:
            outcome = Failed(f"There is no tool {block.name!r}. The tools are: {', '.join(self._tools)}.")
        for other in self._open.values():
            if other.kind != "tool_use":
                self._complete(other)
        self._add(block, ToolUse(block.tool_use_id, block.name, block.input or {}))
        log_failure(block.name, outcome)
        result, event = to_tool_result(block.place.index, block.tool_use_id, outcome)
        if not result:
            self.asked.append(block.tool_use_id)
        await self._emit(event)
        await self._output.append_transcript((*self.unsaved_blocks(), result) if result else self.unsaved_blocks())
        return outcome


def log_failure(tool: str, outcome: Outcome) -> None:
    """Log that a call has failed, without the text for the model, which may contain user data."""
    if isinstance(outcome, Failed):
        logger.info("A call of %s failed", tool[:100])


def _parse_input(pieces: list[str]) -> Mapping[str, Any] | None:
    text = "".join(pieces) or "{}"
    try:
        whole = json.loads(text, parse_constant=_reject_constant, parse_float=_parse_finite)
        if "\\u" in text:  # an escape may encode half a character, which the next request could not carry
            whole = json.loads(replace_surrogates(json.dumps(whole, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None
    return whole if isinstance(whole, dict) else None


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _parse_finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _reject_constant(digits)
