"""The turn: what the agent does for one message. Rounds of model calls and tool calls, told through `Emit`.

Rule 1: text is reset at the top of a round and nowhere else; only the last round's text is the reply.
Rule 2: a call acts when its block stops, in order; those that end or pause the turn act last.
Rule 3: what a model call has completed is remembered when it completes. A broken stream loses the unfinished
        block and the text after the last completed call, nothing else; the model is asked again, at most twice. One
        for which the request was too long is asked with less, for as long as there is less.
Rule 4: a message that comes while the last round runs keeps the turn from ending: what would have been its reply is
        said like the text of any round that goes on, and a question is not asked (it would get the wrong answer).
Rule 5: whatever happens, the drafts are closed, no message is forgotten, and the last event is a status.
Rule 6: what belongs together is said without a wait: a call's change, its result and its being remembered (`call.py`);
        and at the end what is left of the last round, the closing of the drafts and the status. What may have to wait
        for it, does so before. So what is remembered of a task that works never ends with its last answer, nor with a
        question; and a draft that is closed holds nothing but what remembered calls have written.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing

from a2a_canvas.server.agent.blocks import BlockError
from a2a_canvas.server.agent.endings import (
    INTERNAL_ERROR,
    MAX_TRIES,
    Ending,
    ending_from_stop_reason,
    ending_from_tools,
    failure_reason,
    is_retryable,
    retry_delay,
    with_closing_text,
)
from a2a_canvas.server.agent.events import (
    AgentMessage,
    Emit,
    State,
    StatusChanged,
    Transcript,
    TranscriptAppended,
)
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.agent.model import LLM, ModelError, ModelRequest, TooLong, ToolResult, ToolSpec
from a2a_canvas.server.agent.models.claude_params import without_media
from a2a_canvas.server.agent.turn.call import ModelCall, TurnOutput
from a2a_canvas.server.agent.turn.history import to_messages, to_user_input
from a2a_canvas.server.agent.turn.request import TurnLimits, TurnRequest
from a2a_canvas.server.agent.turn.sibling_changes import SiblingChanges
from a2a_canvas.server.agent.turn.system_prompt import SYSTEM
from a2a_canvas.server.agent.turn.window import (
    WindowEstimate,
    WindowEstimates,
    fit_transcripts,
    prefix_tokens,
    read_limit,
    token_budget,
    tokens,
    window_of,
)
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.errors import LimitReached, Unavailable
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.tools.base import Failed, Outcome, Tool, Workspace

__all__ = ["ANSWERABLE", "NOT_ASKED", "TurnLimits", "TurnRequest", "run_turn"]

logger = logging.getLogger(__name__)

NOT_ASKED = "Not asked: the user wrote something meanwhile. Ask again if you still need to know."

ANSWERABLE = (State.COMPLETED, State.INPUT_REQUIRED)
"""A message that came during the last round keeps a turn from ending so: the model is given it first."""


async def run_turn(
    request: TurnRequest,
    *,
    llm: LLM,
    tools: Iterable[Tool],
    store: ArtifactStore,
    emit: Emit,
    new_id: Callable[[], str],
    window_estimates: WindowEstimates | None = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Run a turn to its end or its pause; the last event is its status.

    Args:
        window_estimates: what is known of how the model counts the context, and what it is kept in.
        sleep: waits before the model is asked again.

    Raises:
        asyncio.CancelledError: the turn was cancelled. Unfinished calls have been taken back and drafts closed; the
            status is for the caller to give, at once. Or `emit` and `store` raise it: the task is not this process's
            any more, and nothing was said or changed since (a store that does not raise it has drafts closed).
        Unavailable: `store` does not wait for its database (`RetryingStore` does); the turn is as a crash leaves it.
    """
    tools = tuple(tools)
    specs = tuple(ToolSpec(t.name, t.description, t.input_schema, t.eager) for t in tools)
    window_estimates = window_estimates or WindowEstimates()
    beginning = prefix_tokens(SYSTEM, specs)
    room = token_budget(window_of(llm), beginning, window_estimates.of(request.context_id))
    evented = EventedArtifactStore(store, listener(emit), request.changed)
    workspace = Workspace(evented, request.context_id, request.task_id, read_limit=read_limit(room))
    for artifact_id in request.drafts:
        evented.adopt_draft(workspace.ref(artifact_id))
    turn = _Turn(request, llm, tools, specs, beginning, workspace, emit, new_id, window_estimates, sleep)
    try:
        ending = await _ending(turn, request.task_id)
        await turn.leave()
    except asyncio.CancelledError:
        await turn.leave()
        raise
    await emit(with_closing_text(ending, turn.rounds, evented.saved.values()).status(new_id))


async def _ending(turn: _Turn, task_id: str) -> Ending:
    try:
        return await turn.run()
    except LimitReached as error:
        return Ending(State.FAILED, str(error))
    except Unavailable:
        raise
    except Exception:
        logger.exception("Turn of task %s failed", task_id)
        return Ending(State.FAILED, INTERNAL_ERROR)


class _Turn:
    def __init__(
        self,
        request: TurnRequest,
        llm: LLM,
        tools: tuple[Tool, ...],
        specs: tuple[ToolSpec, ...],
        beginning: int,
        workspace: Workspace,
        emit: Emit,
        new_id: Callable[[], str],
        window_estimates: WindowEstimates,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._request = request
        self._llm = llm
        self._tools = {tool.name: tool for tool in tools}
        self._specs = specs
        self._beginning = beginning
        self._window_estimates = window_estimates
        self._sleep = sleep
        self._media = True
        self._sent: tuple[Transcript, ...] = ()
        self._workspace = workspace
        self._sibling_changes = SiblingChanges(workspace)
        self._emit = emit
        self._output = TurnOutput(emit, self._emit_label, self._append_transcript)
        self._new_id = new_id
        self._transcript = request.transcript
        self._progress = request.progress
        self._label = ""
        self._marked_final = ""
        self._errors_in_a_row = 0
        self._asked: tuple[str, ...] = ()

    @property
    def rounds(self) -> int:
        """How many rounds there have been."""
        return self._progress.round

    async def run(self) -> Ending:
        await self._emit_label("Working…")
        await self._sibling_changes.begin(self._request)
        while self._progress.round < self._request.limits.rounds:
            await self.read_inbox(closing=False)
            ending = await self._round()
            if ending and not await self._continues(ending):
                return ending
        return Ending(
            State.FAILED, f"Stopped after {self._progress.round} rounds without an end. Ask for less at a time."
        )

    async def read_inbox(self, closing: bool) -> bool:
        """Remember what the user has said since; whether it was anything."""
        messages = self._request.inbox(closing)
        await self._append_transcript(tuple(to_user_input(message) for message in messages))
        return bool(messages)

    async def leave(self) -> None:
        """Close the drafts and take no more messages, all in the caller's step once the drafts are at hand."""
        await self._workspace.store.prepare_all()
        await self._workspace.store.close_all()
        while await self.read_inbox(closing=True):
            pass

    async def _continues(self, ending: Ending) -> bool:
        """Whether the user has spoken meanwhile, so that the turn must not end so (rule 4)."""
        messages = self._request.inbox(True) if ending.state in ANSWERABLE else ()
        if not messages:
            return False
        if ending.state is State.COMPLETED:
            await self._emit_text(ending.text)
        unasked = (ToolResult(call, NOT_ASKED) for call in self._asked)
        await self._append_transcript((*unasked, *map(to_user_input, messages)))
        self._marked_final = ""
        return True

    async def _round(self) -> Ending | None:
        self._progress = self._progress.next_round()
        await self._append_transcript(await self._sibling_changes.notice())
        call = await self._ask_model()
        if isinstance(call, Ending):
            return call
        await self._workspace.store.prepare_all()  # the drafts may have to be closed with what is said now
        outcomes = [*call.outcomes, *await call.act_last()]
        await self._append_transcript(call.unsaved_blocks())
        self._marked_final = call.final_text or self._marked_final
        self._asked = tuple(call.asked)
        ended = ending_from_stop_reason(call.stop_reason) or ending_from_tools(outcomes)
        if ended or outcomes:
            await self._emit_text(call.text)
        if ended:
            return ended
        if not outcomes:
            return Ending(State.COMPLETED, self._marked_final or call.text)
        return self._too_many_errors(outcomes)

    async def _ask_model(self) -> ModelCall | Ending:
        """One whole answer of the model, asked for again if its stream breaks, and with less if that was too long."""
        tries_left = MAX_TRIES
        while True:
            call = ModelCall(self._progress, self._tools, self._workspace, self._output, self._llm.thinking)
            try:
                await self._stream_answer(call)
                return call
            except (ModelError, BlockError) as error:
                logger.warning("Model call of task %s failed: %s", self._request.task_id, error)
                failure = error
            except LimitReached:
                await call.abort()
                await self._workspace.store.prepare_all()
                await self._append_transcript(call.unsaved_blocks())
                await self._emit_text(call.text)
                raise
            finally:
                await call.abort()
                self._progress = call.progress
            tries_left -= not isinstance(failure, TooLong)
            if not await self._retries(failure, tries_left):
                return Ending(State.FAILED, failure_reason(failure))

    async def _retries(self, failure: ModelError | BlockError, tries_left: int) -> bool:
        if isinstance(failure, TooLong):
            return self._shrink_request(failure)
        if not tries_left or not is_retryable(failure):
            return False
        await self._sleep(retry_delay(tries_left, failure, random.random()))
        return True

    async def _stream_answer(self, call: ModelCall) -> None:
        self._sent = self._fitted()
        async with aclosing(self._llm.stream(self._model_request(self._sent))) as stream:
            async for event in stream:
                await call.take(event)
        call.check_ended()
        if counted := call.usage.sent:
            self._resize(self._window_estimate.counted(self._estimate(self._sent), counted))

    def _shrink_request(self, error: TooLong) -> bool:
        """Whether the next request is shorter than the one that was refused."""
        estimate = self._estimate(self._sent)
        self._resize(self._window_estimate.refused(estimate, error.tokens, window_of(self._llm)))
        if self._estimate(self._fitted()) < estimate:
            return True
        request = self._model_request(self._sent)
        self._media = False
        return self._model_request(self._sent) != request

    @property
    def _window_estimate(self) -> WindowEstimate:
        return self._window_estimates.of(self._request.context_id)

    def _resize(self, sizing: WindowEstimate) -> None:
        self._window_estimates.keep(self._request.context_id, sizing)

    def _fitted(self) -> tuple[Transcript, ...]:
        room = token_budget(window_of(self._llm), self._beginning, self._window_estimate)
        return fit_transcripts((*self._request.earlier, self._transcript), room)

    def _estimate(self, transcripts: Iterable[Transcript]) -> int:
        return self._beginning + sum(tokens(item) for transcript in transcripts for item in transcript)

    def _model_request(self, transcripts: Iterable[Transcript]) -> ModelRequest:
        request = ModelRequest(SYSTEM, to_messages(transcripts), self._specs)
        return request if self._media else without_media(request)

    async def _append_transcript(self, items: Transcript) -> None:
        if items:
            self._transcript += items
            await self._emit(TranscriptAppended(items))

    async def _emit_text(self, text: str) -> None:
        """The text of a round that is not the turn's last word."""
        if text:
            await self._emit(StatusChanged(State.WORKING, AgentMessage(self._new_id(), text)))
            self._label = ""

    async def _emit_label(self, label: str) -> None:
        if label and label != self._label:
            self._label = label
            await self._emit(StatusChanged(State.WORKING, AgentMessage(self._new_id(), label, label=True)))

    def _too_many_errors(self, outcomes: list[Outcome]) -> Ending | None:
        for outcome in outcomes:
            self._errors_in_a_row = self._errors_in_a_row + 1 if isinstance(outcome, Failed) else 0
        if self._errors_in_a_row < self._request.limits.tool_errors_in_a_row:
            return None
        last = next(outcome.content for outcome in reversed(outcomes) if isinstance(outcome, Failed))
        return Ending(State.FAILED, f"Stopped after {self._errors_in_a_row} tool errors in a row. The last one: {last}")
