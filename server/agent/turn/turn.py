"""The turn: rounds of model calls and tool calls that answer one message, emitted through `Emit`.

Rule 1: text is reset only at the start of a round; only the last round's text is the reply.
Rule 2: a tool call acts when its block stops, in order; calls that end or pause the turn act last.
Rule 3: completed tool calls are in the transcript as soon as they complete. A broken stream loses the unfinished block
        and the text after the last completed call, nothing else; the model call is retried at most twice. A request
        that was too long is retried with less, as long as there is less.
Rule 4: a message that arrives during the last round keeps the turn from ending: the text that would have been the reply
        is emitted like that of any other round, and a question is not asked (it would get the wrong answer).
Rule 5: however a turn ends, drafts are closed, no message is lost, and the last event is a status.
Rule 6: these events are emitted in one event-loop step each (no `await` that suspends), so that a journal commits all
        or none of them: a call's change, its result and its transcript (`call.py`); and at the end the rest of the last
        round, the closing of the drafts and the status. Anything that may have to wait does so before. So the stored
        transcript of a working task never ends with its last answer or with a question, and a closed draft contains
        only what calls in the transcript have written.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.endings import (
    INTERNAL_ERROR,
    MAX_ATTEMPTS,
    Ending,
    ending_from_stop_reason,
    ending_from_tools,
    retry_delay,
    with_closing_text,
)
from a2a_canvas.server.agent.events import Emit, State, Transcript, UserMessage
from a2a_canvas.server.agent.listener import open_workspace
from a2a_canvas.server.agent.model import LLM, NOT_ASKED, ModelError, TooLong, ToolResult
from a2a_canvas.server.agent.turn.call import ModelCall, TurnOutput
from a2a_canvas.server.agent.turn.function_calls import FunctionCalls, find_no_tool
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.agent.turn.pending_calls import pending_calls
from a2a_canvas.server.agent.turn.sibling_changes import SiblingChanges
from a2a_canvas.server.agent.turn.turn_requests import TurnRequests
from a2a_canvas.server.agent.turn.window import WindowEstimates
from a2a_canvas.store.annotations.review import MakeReview
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.errors import LimitReached, Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.tools.functions.function_tool import AnyTool, FindTool, FunctionTool
from a2a_canvas.tools.functions.recorded_call import do_nothing
from a2a_canvas.tools.tool import Failed, Outcome, Workspace

logger = logging.getLogger(__name__)

ANSWERABLE = (State.COMPLETED, State.INPUT_REQUIRED, State.AUTH_REQUIRED)
"""The endings prevented by a message that arrived during the last round (rule 4)."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Limits that end a turn.

    Attributes:
        state_bytes: of what an agent's own loop keeps in the context (`loops/turn_values.py`).
    """

    rounds: int = 30
    tool_errors_in_a_row: int = 5
    state_bytes: int = 1024 * 1024


async def _no_reason() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn: a new one, or one that continues after a pause or a crash.

    After a crash it runs once `roll_back_drafts` has ended what was open, and continues from the transcript: completed
    calls are not repeated, the text after the last one is generated again.

    Attributes:
        earlier: the transcripts of the context's earlier tasks, oldest first.
        transcript: of this task, ending with the message to answer.
        progress: of the task so far.
        later: ids of the context's tasks that began after this one: the model does not know their changes.
        changed: ids of the artifacts that the task has changed so far.
        drafts: ids of the artifacts with an open draft of the task, after a crash; the turn continues them.
        new_messages: returns user messages since its last call. After one with `closing=True` that returns none, the
            turn accepts no more.
        caller: the sender of the message that the model has read last; empty if unknown.
        owner: of the context; empty if unknown.
        credentials: the answer to a question for authentication, which is not in the transcript; None without one.
        suggests: what the agent changes becomes suggestions (`suggesting_store.py`).
        stop: called before each round; returns why the turn must not continue, or an empty text.
    """

    task_id: str
    context_id: ContextKey
    earlier: tuple[Transcript, ...]
    transcript: Transcript
    new_messages: Callable[[bool], tuple[UserMessage, ...]]
    progress: Progress = field(default_factory=Progress)
    later: frozenset[str] = frozenset()
    changed: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()
    limits: TurnLimits = field(default_factory=TurnLimits)
    caller: Callable[[], str] = lambda: ""
    owner: str = ""
    credentials: str | None = field(default=None, repr=False)
    suggests: bool = False
    stop: Callable[[], Awaitable[str]] = _no_reason


async def run_turn(
    request: TurnRequest,
    *,
    llm: LLM,
    tools: Iterable[AnyTool],
    store: ArtifactStore,
    emit: Emit,
    new_id: Callable[[], str],
    window_estimates: WindowEstimates | None = None,
    instructions: str = "",
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    flushed: Callable[[], Awaitable[None]] = do_nothing,
    find_tool: FindTool = find_no_tool,
    make_review: MakeReview | None = None,
) -> None:
    """Run a turn to its end or its pause; the last event is its status.

    Args:
        window_estimates: estimates of the model's token counts per context; updated.
        instructions: precede our own rules in the system prompt.
        flushed: waits until all emitted events are durable.
        find_tool: waits for a tool missing from `tools`, for a call made before a restart.
        make_review: see `open_workspace`.

    Raises:
        asyncio.CancelledError: the turn was cancelled. Unfinished calls have been undone and drafts closed; the caller
            must emit the status at once. Or `emit` and `store` raise it: this process has lost the task, and nothing
            was emitted or changed since. If `emit` alone raises it, drafts may be open, as after a crash
            (`roll_back_drafts`).
        Unavailable: `store` does not retry (`RetryingStore` does); the turn is in the state after a crash.
    """
    tools = tuple(tools)
    requests = TurnRequests(llm, tools, request.context_id, window_estimates or WindowEstimates(), instructions)
    ids = request.context_id, request.task_id
    workspace = open_workspace(store, emit, *ids, make_review, request.changed, suggests=request.suggests)
    workspace, evented = replace(workspace, read_limit=requests.read_limit), workspace.store
    for artifact_id in request.drafts:
        evented.adopt_draft(workspace.ref(artifact_id))
    output = TurnOutput(emit, new_id, request.transcript)
    by_name = {tool.name: tool for tool in tools}
    siblings = SiblingChanges(workspace)
    functions = {tool.name: tool for tool in tools if isinstance(tool, FunctionTool)}
    calls = FunctionCalls(functions, workspace, output, flushed, request.owner, find_tool, request.earlier)
    turn = _Turn(request, llm, requests, by_name, workspace, siblings, output, calls, sleep, request.progress)
    try:
        ending = await _ending(turn)
        await turn.close()
    except asyncio.CancelledError:
        await turn.close()
        raise
    await emit(with_closing_text(ending, turn.progress.round, evented.saved.values()).status(new_id))


async def _ending(turn: _Turn) -> Ending:
    try:
        return await turn.run()
    except LimitReached as error:
        return Ending(State.FAILED, str(error))
    except Unavailable:
        raise
    except Exception:
        logger.exception("The turn failed")
        return Ending(State.FAILED, INTERNAL_ERROR)


@dataclass(slots=True)
class _Turn:
    request: TurnRequest
    llm: LLM
    requests: TurnRequests
    tools: Mapping[str, AnyTool]
    workspace: Workspace
    sibling_changes: SiblingChanges
    output: TurnOutput
    functions: FunctionCalls
    sleep: Callable[[float], Awaitable[object]]
    progress: Progress
    marked_final: str = ""
    errors_in_a_row: int = 0
    asked: tuple[str, ...] = ()

    async def run(self) -> Ending:
        await self.output.label("Working…")
        await self.sibling_changes.begin(self.request.later)
        ending = await self._run_pending()
        if ending and not await self._continues(ending):
            return ending
        while self.progress.round < self.request.limits.rounds:
            await self.read_new_messages(closing=False)
            if reason := await self.request.stop():
                return Ending(State.FAILED, reason)
            ending = await self._round()
            if ending and not await self._continues(ending):
                return ending
        return Ending(
            State.FAILED, f"Stopped after {self.progress.round} rounds without an end. Ask for less at a time."
        )

    async def _run_pending(self) -> Ending | None:
        """Run the calls that waited for an answer, or that a crash interrupted."""
        waiting = pending_calls(self.output.transcript)
        outcomes = await self.functions.run([call.with_credentials(self.request.credentials) for call in waiting])
        self.asked = tuple(self.functions.asked)
        return ending_from_tools(outcomes)

    async def read_new_messages(self, closing: bool) -> bool:
        """Append the user's new messages to the transcript; whether there were any."""
        messages = self.request.new_messages(closing)
        await self.output.append_transcript(tuple(to_user_input(message) for message in messages))
        return bool(messages)

    async def close(self) -> None:
        """Close the drafts and stop taking messages, in one event-loop step once the drafts are loaded (rule 6)."""
        await self.workspace.store.prepare_all()
        await self.workspace.store.close_all()
        while await self.read_new_messages(closing=True):
            pass

    async def _continues(self, ending: Ending) -> bool:
        """Whether new messages of the user keep the turn from ending (rule 4)."""
        messages = self.request.new_messages(True) if ending.state in ANSWERABLE else ()
        if not messages:
            return False
        if ending.state is State.COMPLETED:
            await self.output.text(ending.text)
        unasked = (ToolResult(call, NOT_ASKED) for call in self.asked)
        await self.output.append_transcript((*unasked, *map(to_user_input, messages)))
        self.marked_final = ""
        return True

    async def _round(self) -> Ending | None:
        self.progress = self.progress.next_round()
        await self.output.append_transcript(await self.sibling_changes.note())
        call = await self._ask_model()
        if isinstance(call, Ending):
            return call
        cut_off = ending_from_stop_reason(call.stop_reason)
        outcomes = call.outcomes
        if not cut_off:
            outcomes = [*outcomes, *await self.functions.run(await call.function_calls())]
        await self.workspace.store.prepare_all()  # so that closing the drafts need not wait (rule 6)
        outcomes = [*outcomes, *await call.act_last()]
        await self.output.append_transcript(call.unsaved_blocks())
        self.marked_final = call.final_text or self.marked_final
        self.asked = (*self.functions.asked, *call.asked)
        ended = cut_off or ending_from_tools(outcomes)
        if ended or outcomes:
            await self.output.text(call.text)
        if ended:
            return ended
        if not outcomes:
            return Ending(State.COMPLETED, self.marked_final or call.text)
        return self._too_many_errors(outcomes)

    async def _ask_model(self) -> ModelCall | Ending:
        """A complete model call, or the turn's ending if its retries are used up (rule 3)."""
        attempts_left = MAX_ATTEMPTS
        while True:
            call = ModelCall(
                self.progress, self.tools, self.workspace, self.output, self.llm.thinking, self.request.caller
            )
            try:
                await call.read(self.llm.stream(self.requests.next(self._transcripts)))
                self.requests.record_token_count(call.usage.total_input)
                return call
            except ModelError as error:
                logger.warning("The model call failed: %s", error)
                failure = error
            except LimitReached:
                await call.abort()
                await self.workspace.store.prepare_all()
                await self.output.append_transcript(call.unsaved_blocks())
                await self.output.text(call.text)
                raise
            finally:
                await call.abort()
                self.progress = call.progress
            attempts_left -= not isinstance(failure, TooLong)
            if not await self._retries(failure, attempts_left):
                return Ending(State.FAILED, failure.reason)

    async def _retries(self, failure: ModelError, attempts_left: int) -> bool:
        if isinstance(failure, TooLong):
            return self.requests.shrink(failure, self._transcripts)
        if not attempts_left or not failure.retryable:
            return False
        await self.sleep(retry_delay(attempts_left, failure, random.random()))
        return True

    @property
    def _transcripts(self) -> tuple[Transcript, ...]:
        return (*self.request.earlier, self.output.transcript)

    def _too_many_errors(self, outcomes: list[Outcome]) -> Ending | None:
        for outcome in outcomes:
            self.errors_in_a_row = self.errors_in_a_row + 1 if isinstance(outcome, Failed) else 0
        if self.errors_in_a_row < self.request.limits.tool_errors_in_a_row:
            return None
        last = next(outcome.content for outcome in reversed(outcomes) if isinstance(outcome, Failed))
        return Ending(State.FAILED, f"Stopped after {self.errors_in_a_row} tool errors in a row. The last one: {last}")
