"""Runs the turn of an agent that is a function, from its start or from its record, to its end or its pause.

Rule 1: each run of the function is in the transcript before it begins.
Rule 2: a message that arrives before the function returns, and that it has not taken, keeps the task from ending: the
        text so far is a message, and the function is called again with the new one.
Rule 3: however a turn ends, drafts are closed, no message is lost, and the last event is a status, in one event-loop
        step (`turn.py`, rule 6).
Rule 4: a message that was sent before a question is not its answer. It stays unread until the function takes it
        (`Turn.messages`) or returns.
Rule 5: steps that run while another part of the function asks end first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from a2a_canvas.server.agent.agui_log import NO_LOG, AguiLog
from a2a_canvas.server.agent.endings import INTERNAL_ERROR, Ending, ending_from_tools
from a2a_canvas.server.agent.events import Emit, State, ToolStep, Transcript, UserMessage
from a2a_canvas.server.agent.listener import open_workspace
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.loops.agent_turn import Turn, TurnEnded, TurnServices
from a2a_canvas.server.agent.loops.agui_stream import AguiStream, AguiTask
from a2a_canvas.server.agent.loops.conversation import Said, to_history, to_message
from a2a_canvas.server.agent.loops.framed_reply import FramedReply
from a2a_canvas.server.agent.loops.reply_stream import ReplyStream
from a2a_canvas.server.agent.loops.run_record import RunRecord, run_record
from a2a_canvas.server.agent.loops.turn_values import StateConflict, ValueStore
from a2a_canvas.server.agent.model import UNANSWERED, ToolResult
from a2a_canvas.server.agent.turn.call import TurnOutput
from a2a_canvas.server.agent.turn.function_calls import FunctionCalls, Question, abandon, find_no_tool, paced_label
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.agent.turn.pending_calls import FUNCTION, pending_calls
from a2a_canvas.server.agent.turn.turn import TurnRequest
from a2a_canvas.store.annotations.review import MakeReview
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.errors import LimitReached, Unavailable
from a2a_canvas.store.models import JsonValue
from a2a_canvas.tools.functions.function_tool import AnyTool, FindTool, FunctionTool
from a2a_canvas.tools.functions.recorded_call import CallPaused, CallServices, StepKind
from a2a_canvas.tools.functions.results import EditError, ToolError
from a2a_canvas.tools.functions.running import HANDED_OVER, run_within
from a2a_canvas.tools.tool import Workspace

logger = logging.getLogger(__name__)

NOT_RESTARTABLE = "The server was restarted in the middle of this task, and this agent cannot continue. Send it again."
STATE_CONFLICT = "Another task of this conversation has changed what the agent remembers of it. Send the message again."


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A turn of an agent's function.

    Attributes:
        messages: of the user, as sent: those in the transcript.
        values: what is kept in the context.
        earlier: what was said in each of the earlier tasks, oldest first.
        spend: counts tokens, of input and output.
        tokens_left: that may still be spent today; None without a limit.
        agui: what earlier runs have sent to AG-UI clients.
        crashes: how often the task was taken over after a crash.
        frame: seconds within which pieces of the reply are joined; 0 joins nothing.
        thread: the one in which the first message asks the agent, quoted; None for a message of the conversation.
    """

    turn: TurnRequest
    messages: tuple[UserMessage, ...]
    values: ValueStore
    earlier: tuple[Said, ...] = ()
    spend: Callable[[int, int], None] = lambda tokens_in, tokens_out: None
    tokens_left: Callable[[], int | None] = lambda: None
    agui: AguiLog = NO_LOG
    crashes: int = 0
    frame: float = 0.0
    thread: JsonValue = None


async def run_function(
    request: AgentRequest,
    agent: AgentFunction,
    *,
    tools: Sequence[AnyTool],
    store: ArtifactStore,
    emit: Emit,
    new_id: Callable[[], str],
    flushed: Callable[[], Awaitable[None]],
    instructions: str = "",
    find_tool: FindTool = find_no_tool,
    make_review: MakeReview | None = None,
) -> None:
    """Run the turn to its end or its pause; the last event is its status. Arguments and errors as in `run_turn`."""
    agui = AguiTask(request.agui, emit)
    ids = request.turn.context_id, request.turn.task_id
    workspace = open_workspace(store, emit, *ids, make_review, request.turn.changed, suggests=request.turn.suggests)
    for artifact_id in request.turn.drafts:
        workspace.store.adopt_draft(workspace.ref(artifact_id))
    output = TurnOutput(agui.emit, new_id, request.turn.transcript)
    reply = FramedReply(request.turn.progress, workspace, output, request.turn.caller, request.frame)
    functions = {tool.name: tool for tool in tools if isinstance(tool, FunctionTool)}
    turn = request.turn
    calls = FunctionCalls(functions, workspace, output, flushed, turn.owner, find_tool, turn.earlier)
    runs = _Runs(request, agent, calls, workspace, output, reply, flushed, instructions, agui, list(request.messages))
    calls.on_question = runs.add_question
    try:
        ending = await runs.ending()
    finally:
        await runs.close()
    await emit(ending.status(new_id))


async def abandon_run(agent: AgentFunction, transcript: Transcript) -> None:
    """End what the newest run has started elsewhere: the function does not run again."""
    record = run_record(transcript)
    if record.message and agent.abandon:
        try:
            await agent.abandon(record.call)
        except Exception:
            logger.exception("A run of the agent could not be abandoned")


@dataclass(slots=True)
class _Runs:
    request: AgentRequest
    agent: AgentFunction
    calls: FunctionCalls
    workspace: Workspace
    output: TurnOutput
    reply: ReplyStream
    flushed: Callable[[], Awaitable[None]]
    instructions: str
    agui: AguiTask
    messages: list[UserMessage]
    turn: Turn | None = None
    unread: tuple[int, ...] = ()

    async def ending(self) -> Ending:
        await self.output.label("Working…")
        while True:
            try:
                ending = await self._run()
            except LimitReached as error:
                ending = Ending(State.FAILED, str(error))
            except Unavailable:
                raise
            except Exception:
                logger.exception("The turn failed")
                ending = Ending(State.FAILED, INTERNAL_ERROR)
            if ending.state.terminal:
                await self._abandon_calls()
            await self.workspace.store.prepare_all()  # nothing waits from here (rule 3)
            if self.turn and ending.state.paused:
                await self._record_questions(self.turn)
            text = await self.reply.end_round("end_turn" if ending.state is State.COMPLETED else "error")
            if ending.state is State.COMPLETED:
                ending = Ending(State.COMPLETED, text)
                if not self.unread and not await self.take_messages(closing=True):
                    return ending
                await self.output.text(text)
                await self._record_call()
                continue
            await self.output.text(text)
            return ending

    async def close(self) -> None:
        """Close the drafts and stop taking messages, in one event-loop step once the drafts are loaded (rule 3)."""
        if self.turn:
            await self.turn.calls.cancel((HANDED_OVER,) if self.turn.handed_over else ())
            await self.turn.undo()
            if not self.turn.handed_over:
                await self._abandon_calls()
        await self.reply.abort()
        await self.workspace.store.prepare_all()
        await self.workspace.store.close_all()
        while await self.take_messages(closing=True):
            pass

    async def take_messages(self, closing: bool = False) -> tuple[UserMessage, ...]:
        """Append the user's new messages to the transcript."""
        messages = self.request.turn.new_messages(closing)
        self.messages += messages
        self.unread = (*self.unread, *range(len(self.messages) - len(messages) + 1, len(self.messages) + 1))
        await self.output.append_transcript(tuple(to_user_input(message) for message in messages))
        return messages

    async def _take_unread(self, call: int) -> list[UserMessage]:
        await self.take_messages()
        numbers, self.unread = self.unread, ()
        if numbers:
            await self._step("took", str(len(numbers)), str(call))
        return [self.messages[number - 1] for number in numbers]

    async def _run(self) -> Ending:
        record = run_record(self.output.transcript, self.request.turn.credentials)
        self.unread = record.unread
        if not record.message:
            await self._record_call()
            record = run_record(self.output.transcript)
            self.unread = record.unread
        if reason := await self._reason_to_give_up(record):
            await abandon_run(self.agent, self.output.transcript)
            return Ending(State.FAILED, reason)
        await self._step("began", str(self.request.crashes))
        if not self.agent.restartable:
            await self.flushed()
        await self.calls.find(record.tool_names)
        self.turn = turn = self._make_turn(record)
        await turn.state.begin()
        await turn.begin(record.shown)
        ending = await self._carry_out(turn)
        if turn.asked and ending.state is State.COMPLETED:
            return await self._pause(turn)
        await turn.calls.cancel()
        if ending.state is State.COMPLETED:
            await turn.save()
            await turn.save_sets()
            turn.release()
        else:
            await turn.undo()
        self.turn = None
        return ending

    async def _reason_to_give_up(self, record: RunRecord) -> str:
        if record.interrupted and not self.agent.restartable:
            return NOT_RESTARTABLE
        return await self.request.turn.stop()

    async def _carry_out(self, turn: Turn) -> Ending:
        name = f"The agent {self.agent.name}"
        try:
            await run_within(name, self.agent.run(turn), None, before_cancel=turn.mark_cancelled)
            if not turn.asked:
                await turn.finish()
        except (LimitReached, Unavailable):
            raise
        except (Exception, BaseExceptionGroup, CallPaused, TurnEnded, asyncio.CancelledError) as error:
            current = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and current and current.cancelling():
                raise
            if not turn.ending and not turn.asked:  # else a framework has wrapped what ends the function
                return Ending(State.FAILED, self._failure(error))
        return turn.ending or Ending(State.COMPLETED)

    def _failure(self, error: BaseException) -> str:
        """Why the task fails, for its user."""
        match error:
            case EditError():  # its text is for models
                trace = None if self.request.turn.credentials else error
                logger.error("The agent failed to edit %r", error.artifact_id, exc_info=trace)
                return f"The agent could not edit the artifact {error.artifact_id!r}."
            case ToolError():
                return str(error)
            case asyncio.CancelledError():
                return "The agent cancelled itself."
            case StateConflict():
                logger.error("The agent failed", exc_info=error)
                return STATE_CONFLICT
            case _ if self.request.turn.credentials:  # they may be in the trace
                logger.error("The agent failed with %s", type(error).__name__)
            case _:
                logger.error("The agent failed", exc_info=error)
        return INTERNAL_ERROR

    async def _pause(self, turn: Turn) -> Ending:
        await turn.calls.wait()
        await turn.wait_for_steps()
        await turn.save()
        ending = ending_from_tools([question.ask for question in turn.asked])
        assert ending
        return ending

    async def _record_questions(self, turn: Turn) -> None:
        await turn.settle()
        while await self.take_messages(closing=True):
            pass
        await turn.save_sets()
        for question in turn.asked:
            if question.call_id == FUNCTION:
                await self.output.append_transcript((question.step,))
            else:
                await self.calls.record_question(question)
        await self._step("paused")
        turn.release()
        self.turn = None

    def _make_turn(self, record: RunRecord) -> Turn:
        async def record_step(kind: StepKind, name: str, value: str) -> None:
            if kind == "kept":
                await turn.record_shown(name)
            await self._step(kind, value, name)

        message = to_message(self.messages[record.message - 1])
        if record.message == 1 and self.request.thread is not None:
            message = replace(message, data=(*message.data, self.request.thread))
        services = CallServices(
            record_step,
            self.flushed,
            paced_label(self.output),
            message.caller,
            self.calls.writers,
            lambda names: (),
        )
        request = self.request
        turn_services = TurnServices(
            request.turn.stop,
            request.spend,
            self._take_unread,
            request.values,
            request.turn.limits.state_bytes,
            request.tokens_left,
        )
        turn = Turn(
            self.workspace,
            services,
            turn_services,
            record,
            self.reply,
            self.output,
            AguiStream(self.agui),
            message,
            self.calls,
            messages=self.messages,
            history=to_history(request.earlier, request.turn.earlier, self.output.transcript, self.messages),
            instructions=self.instructions,
            resumed=record.interrupted,
        )
        return turn

    async def add_question(self, question: Question) -> None:
        """A call of a tool asks the user: recorded when the function pauses, after the messages sent before that."""
        assert self.turn
        self.turn.asked.append(question)

    async def _abandon_calls(self) -> None:
        """The calls without a result are not run again."""
        pending = pending_calls(self.output.transcript)
        await abandon(pending, self.calls.tools)
        await self.output.append_transcript(tuple(ToolResult(each.id, UNANSWERED, is_error=True) for each in pending))

    async def _record_call(self) -> None:
        """Record a run that answers the oldest unread message."""
        number = self.unread[0]
        await self._step("called", str(number), self.messages[number - 1].sender)

    async def _step(self, kind: StepKind, value: str = "", name: str = "") -> None:
        await self.output.append_transcript((ToolStep(FUNCTION, kind, value, name),))
