"""Runs an agent's function for edits, as the model of one edit: everything else is that of a model's (`agent/edit`).

Rule 1: the text that the function shows is the answer; it is shown while it arrives.
Rule 2: the passage is the edit's only change: what would change an artifact, or ask, is an error.
Rule 3: nothing is recorded. An edit that a crash cut off has changed nothing and runs again from its start, and an
        answer that is no passage is asked for again: the steps of such a run are not skipped.
Rule 4: text that was taken back, or came before a tool call, is not part of the passage. It has been shown, so what
        follows is the answer to the next call (`TextReplaced`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.endings import Ending
from a2a_canvas.server.agent.events import Emit, State, ToolFailed, ToolSucceeded, TranscriptAppended, TurnEvent
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.loops.agent_turn import Turn, TurnEnded, TurnServices
from a2a_canvas.server.agent.loops.agui_stream import AguiStream, AguiTask
from a2a_canvas.server.agent.loops.conversation import to_history, to_message
from a2a_canvas.server.agent.loops.passage_edit import to_edit
from a2a_canvas.server.agent.loops.reply_stream import ReplyStream, Show, show_nothing
from a2a_canvas.server.agent.loops.run_function import AgentRequest
from a2a_canvas.server.agent.loops.run_record import RunRecord
from a2a_canvas.server.agent.model import (
    EditPrompt,
    EditRefusal,
    MessageStart,
    MessageStop,
    ModelError,
    ModelEvent,
    ModelRequest,
    StopReason,
    TextDelta,
    TextReplaced,
)
from a2a_canvas.server.agent.turn.call import TurnOutput
from a2a_canvas.server.agent.turn.function_calls import FunctionCalls, Question
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall
from a2a_canvas.store.artifact_store import ArtifactStore, StoreWrapper
from a2a_canvas.store.changes import Change
from a2a_canvas.store.errors import LimitReached, StoreError
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.models import AppliedChange, Ref
from a2a_canvas.tools.functions.function_tool import AnyTool, FunctionTool
from a2a_canvas.tools.functions.recorded_call import CallServices, StepKind, do_nothing
from a2a_canvas.tools.functions.results import ToolError
from a2a_canvas.tools.functions.running import HANDED_OVER, run_within
from a2a_canvas.tools.tool import Workspace

logger = logging.getLogger(__name__)

Take = Callable[[ModelEvent], Awaitable[None]]

NOT_IN_EDITS = (
    "The agent would have to ask you or change more than this passage, which it cannot do in an edit of a passage. "
    "Ask for the change in a message."
)
"""What clients see of an edit whose function does what an edit cannot."""


class EditTurn(Turn):
    """A turn whose text is the new text of a passage (rule 2)."""

    async def ask(self, question: str, *, authentication: bool = False) -> str:
        _refuse("ask", "An edit of a selection asks nothing: decline it with a reason instead.")

    def check_set(self, name: str) -> None:
        what = f"turn.values of {name!r}" if name else "turn.state"
        _refuse(f"A change of {what}", "An edit of a selection changes the passage only: yield it.")

    async def change(self, artifact_id: str, content: Iterator[bytes], make: Callable[[Ref], Awaitable[None]]) -> None:
        _refuse(f"A change of artifact {artifact_id!r}", "An edit of a selection changes the passage only: yield it.")


class _UnchangedArtifacts(StoreWrapper):
    """The artifacts, for whatever reaches them past the turn: tools, and previews of calls (rule 2)."""

    async def apply(self, ref: Ref, change: Change) -> AppliedChange:
        raise StoreError("An edit of a selection changes its passage only. Write its new text instead.")


async def _ignore(notified: object) -> None:
    pass


class NotInEdits(RuntimeError):
    """The function did what an edit of a passage cannot (rule 2); `str()` is for its author."""


def _refuse(what: str, reason: str) -> NoReturn:
    raise NotInEdits(f"{what} is not allowed while turn.edit is set. {reason}")


async def _refuse_question(question: Question) -> None:
    _refuse("A tool that asks the user", "Call tools that need no answer.")


class _Passage(ReplyStream):
    """The text of the passage, as the events of a model's answer. Calls of tools are not part of it.

    Attributes:
        shown: the events of the passage so far.
        taken_back: text of it was (rule 4); no more events are passed on.
    """

    def __init__(self, workspace: Workspace, output: TurnOutput, take: Take) -> None:
        super().__init__(Progress(), workspace, output, lambda: "")
        self.shown: list[ModelEvent] = []
        self.taken_back = False
        self._pass_on = take

    async def abort(self) -> None:
        await self.end_block()
        self.taken_back = self.taken_back or any(isinstance(event, TextDelta) for event in self.shown)
        self.shown.clear()

    async def begin_call(self, call_id: str, name: str, *, carried_out: bool = False) -> None:
        pass

    async def add_input(self, call_id: str, piece: str, then: Show = show_nothing) -> None:
        pass

    async def end_call(self, call_id: str) -> FunctionCall:
        return FunctionCall(call_id, 0, "", {})

    async def end_round(self, reason: StopReason = "end_turn") -> str:
        if reason == "tool_use":
            await self.abort()
        return ""

    async def end(self) -> None:
        """The passage is complete."""
        await self.end_block()
        await self._take(MessageStop("end_turn", self._usage))

    async def _take(self, event: ModelEvent) -> None:
        self.shown.append(event)
        if not self.taken_back:
            await self._pass_on(event)


@dataclass(frozen=True, slots=True)
class EditFunction:
    """The function, as an `LLM` for one edit.

    Attributes:
        request: the task; its message asks for the edit.
        artifact_id: of the document.
        handed_over: whether another server continues the task.
        resumed: a crash has cut the edit off.
        again: the answer to the next call (rule 4).
    """

    request: AgentRequest
    agent: AgentFunction
    artifact_id: str
    tools: Sequence[AnyTool]
    store: ArtifactStore
    emit: Emit
    new_id: Callable[[], str]
    instructions: str
    handed_over: Callable[[], bool]
    resumed: bool = False
    thinking: Literal["delta"] = "delta"
    again: list[ModelEvent] = field(default_factory=list)
    _agui: AguiTask = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_agui", AguiTask(self.request.agui, self.emit))

    @property
    def name(self) -> str:
        return self.agent.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `LLM.stream`."""
        assert request.edit
        if self.again:
            for known in self._take_again():
                yield known
            return
        events: asyncio.Queue[ModelEvent | None] = asyncio.Queue()

        async def show(event: ModelEvent) -> None:
            events.put_nowait(event)
            await events.join()

        running = asyncio.create_task(self._run(request, request.edit, show))
        running.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while event := await events.get():
                yield event
                events.task_done()
            await running  # raises what ended the function
        finally:
            running.cancel(*((HANDED_OVER,) if self.handed_over() else ()))
            await asyncio.wait((running,))

    def _take_again(self) -> tuple[ModelEvent, ...]:
        events = tuple(self.again)
        self.again.clear()
        return events

    async def _run(self, request: ModelRequest, prompt: EditPrompt, take: Take) -> None:
        turn, passage = self._make_turn(request, prompt, take)
        assert self.agent.editor
        await take(MessageStart())
        try:
            await run_within(
                f"The agent {self.agent.name}", self.agent.editor(turn), None, before_cancel=turn.mark_cancelled
            )
        except TurnEnded:
            pass
        except NotInEdits as error:
            logger.exception("The agent %s cannot answer the edit", self.agent.name)
            raise ModelError(NOT_IN_EDITS, retryable=False) from error
        except (ToolError, LimitReached) as error:
            raise ModelError(str(error), retryable=False) from error
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) and current.cancelling():
                raise
            raise ModelError("The agent cancelled itself.", retryable=False) from None
        finally:
            turn.release()
        if turn.ending:
            raise _error_of(turn.ending)
        await passage.end()
        if passage.taken_back:
            self.again.extend((MessageStart(), *passage.shown))
            raise TextReplaced

    def _make_turn(self, request: ModelRequest, prompt: EditPrompt, take: Take) -> tuple[EditTurn, _Passage]:
        asked = self.request.turn

        async def emit(event: TurnEvent) -> None:
            if not isinstance(event, ToolSucceeded | ToolFailed | TranscriptAppended):
                await self.emit(event)

        async def forget(kind: StepKind, name: str, value: str) -> None:
            if kind == "kept":
                await turn.record_shown(name)

        async def label(text: str) -> None:
            await output.label(text, of_tool=True)

        async def no_messages(call: int) -> tuple[()]:
            return ()

        output = TurnOutput(emit, self.new_id)
        workspace = Workspace(
            EventedArtifactStore(_UnchangedArtifacts(self.store), _ignore), asked.context_id, asked.task_id
        )
        passage = _Passage(workspace, output, take)
        functions = {tool.name: tool for tool in self.tools if isinstance(tool, FunctionTool)}
        calls = FunctionCalls(functions, workspace, output, do_nothing, asked.owner, on_question=_refuse_question)
        turn = EditTurn(
            workspace,
            CallServices(forget, do_nothing, label, asked.caller(), {}, lambda names: ()),
            TurnServices(
                asked.stop,
                self.request.spend,
                no_messages,
                self.request.values,
                asked.limits.state_bytes,
                self.request.tokens_left,
            ),
            RunRecord(),
            passage,
            output,
            AguiStream(self._agui),
            to_message(self.request.messages[0]),
            calls,
            history=to_history(self.request.earlier, asked.earlier, (), ()),
            instructions=self.instructions,
            resumed=self.resumed,
        )
        turn.edit = to_edit(request, prompt, turn.artifact(self.artifact_id))
        return turn, passage


def _error_of(ending: Ending) -> Exception:
    return EditRefusal(ending.text) if ending.state is State.REJECTED else ModelError(ending.text, retryable=False)
