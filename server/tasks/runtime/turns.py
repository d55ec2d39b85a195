"""The turns that run in this process, each from its start, or from where another process left it, to its last entry.

Rule 1: no task stays `working` with nobody working on it: the last entry of a turn is its status, whatever ends it.
Rule 2: a turn that is detached from its task (the lease was lost) emits nothing more, not even that.
Rule 3: a turn that was interrupted by a crash is first rolled back to the last completed call
        (`agent/turn/resume.py`). It is resumed `MAX_RESUMPTIONS` times at most, because a task that crashes its server
        must end; a function, so many times after each record that it makes.
Rule 4: only so many turns run at once (`admission.py`). The others wait as `submitted`, or, if they are resumed, in the
        state they had. Operations without a model (undo, redo, restore, put) do not wait.
Rule 5: a turn that waits can be cancelled, sent messages, handed over and taken over like one that runs.
Rule 6: a turn works for the sender of the message that its model read last: it uses that user's tokens. A call runs for
        the user for whom the turn worked when the model made it, not for the one that approves it or answers its
        questions. So a guest who writes to the owner's working task does not have tools act for the owner.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from a2a_canvas.server.accounts.access import Access, Caller
from a2a_canvas.server.accounts.errors import QuotaReached, StorageFull
from a2a_canvas.server.accounts.quotas import GUEST, payer
from a2a_canvas.server.agent.edit.run import OperationRequest, run_operation
from a2a_canvas.server.agent.edit.thread_question import quoted_thread
from a2a_canvas.server.agent.endings import INTERNAL_ERROR
from a2a_canvas.server.agent.events import (
    AgentMessage,
    Emit,
    LlmCallCompleted,
    State,
    StatusChanged,
    Transcript,
    TranscriptAppended,
    TurnEvent,
    UserInput,
    UserMessage,
)
from a2a_canvas.server.agent.intent import Operation, SelectionEdit
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.loops.edit_function import EditFunction
from a2a_canvas.server.agent.loops.run_function import AgentRequest, abandon_run, run_function
from a2a_canvas.server.agent.loops.run_record import run_record
from a2a_canvas.server.agent.model import LLM, NO_MODEL, is_ready_made
from a2a_canvas.server.agent.models.wrappers import MeasuredLLM, PacedLLM
from a2a_canvas.server.agent.turn.function_calls import abandon, find_no_tool
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.agent.turn.pending_calls import pending_calls
from a2a_canvas.server.agent.turn.resume import InterruptedTurn, open_drafts, roll_back_drafts
from a2a_canvas.server.agent.turn.turn import TurnLimits, TurnRequest, run_turn
from a2a_canvas.server.agent.turn.window import WindowEstimates
from a2a_canvas.server.log_output import set_task
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.tasks.context_values import Held, Hold, TaskValues
from a2a_canvas.server.tasks.errors import TaskDetached
from a2a_canvas.server.tasks.journal.journal import Journal
from a2a_canvas.server.tasks.presence.agent_places import AgentPlaces
from a2a_canvas.server.tasks.presence.present_people import PresentPeople
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.admission import Admission, Ticket
from a2a_canvas.server.tasks.runtime.metered_llm import MeteredLLM
from a2a_canvas.server.tasks.runtime.ownership import Orphan
from a2a_canvas.server.tasks.runtime.turn_metrics import TurnMetrics
from a2a_canvas.server.tasks.runtime.turn_report import TurnReport, log_call, log_status
from a2a_canvas.server.tasks.runtime.turn_review import AgentsSuggest, TurnReview
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.models import Ref
from a2a_canvas.store.retrying import RetryingStore, retry_while_unavailable
from a2a_canvas.tools.ask_user import ask_user
from a2a_canvas.tools.functions.function_tool import AnyTool, FindTool, FunctionTool
from a2a_canvas.tools.functions.running import HANDED_OVER

logger = logging.getLogger(__name__)

MAX_RESUMPTIONS = 2
RETRY_DELAY = 0.2
"""Seconds between two attempts of a turn to reach the database."""
GIVE_WAY = 0.1
"""Seconds that a turn keeps its place while it waits for what another task of its context holds."""
TOO_MANY_RESUMPTIONS = (
    f"The server broke down in the middle of this task {MAX_RESUMPTIONS + 1} times, "
    "so it has been given up. Send it again."
)

NOT_STORED = (
    "The output of this task could not be stored, so it failed; the server log has the reason. Send the message again."
)

Run = Callable[[Emit], Awaitable[None]]


def needs_model(record: TaskRecord) -> bool:
    """Whether a task calls the model, and so has to wait for admission (rule 4)."""
    return record.is_conversation or isinstance(record.operation, SelectionEdit)


def unread_messages(record: TaskRecord) -> tuple[UserMessage, ...]:
    """The users' messages that the model has not been shown."""
    return _messages(record)[_read(record) :]


def sender_of(record: TaskRecord) -> str:
    """Who sent the newest message that the model has been shown (rule 6); empty if anonymous."""
    read = _messages(record)[: _read(record)]
    return read[-1].sender if read else record.sender


def _messages(record: TaskRecord) -> tuple[UserMessage, ...]:
    return tuple(message for message in record.history if isinstance(message, UserMessage))


def _read(record: TaskRecord) -> int:
    return sum(isinstance(item, UserInput) and bool(item.message_id) for item in record.transcript)


async def _pause() -> None:
    await asyncio.sleep(RETRY_DELAY)


@dataclass(slots=True)
class TurnHandle:
    """One run of a turn: its `asyncio.Task`, and how it is stopped.

    Attributes:
        ticket: its place among the turns; None if it needs no admission.
        new_messages: messages for the next round.
        sender: for whom it works (rule 6).
        credentials: what the user has answered and nothing records.
        closed: it takes no more messages.
        detached: the task does not belong to this process any more, or not to this run.
        begun: it had begun in a process that crashed.
        waits: it waits for admission.
        lasts: it runs a function that no server can continue where it is.
        ending: what the task becomes if it is stopped.
        began, report: when the run began, and what it has done so far, for the log.
        places: the passages that it works on.
    """

    began: datetime
    metrics: TurnMetrics
    sender: str
    credentials: str | None = field(default=None, repr=False)
    operation: Operation | None = None
    ticket: Ticket | None = None
    task: asyncio.Task[None] | None = None
    started: bool = False
    new_messages: list[UserMessage] = field(default_factory=list)
    closed: bool = False
    stopping: bool = False
    detached: bool = False
    begun: bool = False
    waits: bool = False
    lasts: bool = False
    ending: StatusChanged = field(default_factory=lambda: StatusChanged(State.CANCELED))
    report: TurnReport = field(default_factory=TurnReport)
    places: AgentPlaces = field(default_factory=AgentPlaces)

    async def stop(self) -> None:
        """Cancel the turn, once, and wait until its task has its status."""
        self.cancel()
        await self.wait()

    def cancel(self, ending: StatusChanged | None = None) -> None:
        """Cancel the turn, once."""
        if not self.stopping:
            self.stopping, self.ending = True, ending or self.ending
            self._cancel()

    def detach(self) -> None:
        """Cancel the turn, even if it is being cancelled already, and ignore all that it still emits."""
        self.stopping, self.closed, self.detached = True, True, True
        self._cancel(HANDED_OVER)

    def _cancel(self, *reason: str) -> None:
        if self.task and self.started:
            self.task.cancel(*reason)

    def mark_started(self) -> None:
        """The turn's first step. An `asyncio.Task` that is cancelled before it never runs, so it could not end."""
        self.started = True
        if self.stopping:
            raise asyncio.CancelledError

    async def wait(self) -> None:
        """Wait until the turn has ended."""
        if self.task:
            await asyncio.wait([self.task])

    def take_new_messages(self, closing: bool) -> tuple[UserMessage, ...]:
        messages, self.new_messages = tuple(self.new_messages), []
        self.sender = messages[-1].sender if messages else self.sender
        self.closed = closing and not messages
        return messages


@dataclass(kw_only=True, eq=False)
class Turns:
    """The turns that run, by task."""

    journal: Journal
    access: Access
    store: ArtifactStore
    llm: LLM
    tools: Callable[[], Sequence[AnyTool]]
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    limits: TurnLimits
    sleep: Callable[[float], Awaitable[object]]
    admission: Admission
    instructions: str = ""
    metrics: Metrics = field(default_factory=Metrics)
    find_tool: FindTool = find_no_tool
    agents_suggest: AgentsSuggest
    agent: AgentFunction | None = None
    frame: float = 0.0
    presence: PresentPeople = field(default_factory=PresentPeople)

    def __post_init__(self) -> None:
        self.llm = MeasuredLLM(PacedLLM(self.llm, self.journal.wait_writable), self.metrics)
        self.metrics.refreshers.append(self._report_running)
        self._window_estimates = WindowEstimates()
        self._handles: dict[str, TurnHandle] = {}

    def get(self, task_id: str) -> TurnHandle | None:
        """The turn that runs for a task."""
        return self._handles.get(task_id)

    # ---------------------------------------------------------------------- starting

    def reserve(self, record: TaskRecord, sender: str) -> AbstractContextManager[bool]:
        """Reserve a place for a turn that is about to be accepted; whether it will have to wait.

        Args:
            sender: of the message that it answers.

        Raises:
            QueueFull: there is no place.
            QuotaReached: the tokens of today are used up.
        """
        if not needs_model(record):
            return nullcontext(False)
        self.check_tokens(record, sender)
        return self.admission.reserve(payer(record.owner, sender))

    def check_tokens(self, record: TaskRecord, sender: str) -> None:
        """Raises `QuotaReached` if the tokens of today are used up, of whoever pays for a message to a task."""
        self.admission.meter.check_tokens(payer(record.owner, sender))

    def start(self, record: TaskRecord, credentials: str | None = None) -> None:
        """Run a task's turn: from its beginning, or on from the answer to a question.

        Args:
            credentials: that answer, if it is not in the record.
        """
        handle = self._handle(record)
        handle.credentials = credentials
        self._spawn(record, handle, partial(self._run_started, record, handle))

    def resume(self, orphan: Orphan) -> None:
        """Run the turn of a task that another process has left."""
        record = orphan.record
        handle = self._handle(record)
        handle.new_messages = list(unread_messages(record))
        handle.begun = record.state is State.WORKING
        self._spawn(record, handle, partial(self._run_resumed, orphan, handle))

    def _handle(self, record: TaskRecord) -> TurnHandle:
        began = self.now()
        metrics = TurnMetrics(
            self.metrics,
            lambda: {tool.name for tool in self.tools()},
            lambda: self.now() - began,
            conversation=record.is_conversation,
        )
        return TurnHandle(began, metrics, sender_of(record), operation=record.operation)

    def _spawn(self, record: TaskRecord, handle: TurnHandle, run: Run) -> None:
        self._handles[record.task_id] = handle
        if needs_model(record):
            user = payer(record.owner, handle.sender)
            handle.ticket = self.admission.enter(record.context_id, user, begun=handle.begun)
        handle.task = asyncio.create_task(self._run(record, handle, run), name=f"turn of task {record.task_id}")

    def waiting_tasks(self) -> Sequence[str]:
        """The tasks whose turns wait only for a place, in the order in which they are served. Not those that have
        something of which there is no record, or that had begun: this replica holds their open drafts."""
        by_ticket = {handle.ticket: task_id for task_id, handle in self._handles.items() if _can_move(handle)}
        return [by_ticket[ticket] for ticket in self.admission.waiting_for_place() if ticket in by_ticket]

    async def _report_running(self) -> None:
        waiting = self.admission.waiting
        self.metrics.turns_waiting.set(waiting)
        self.metrics.turns_running.set(len(self._handles) - waiting)

    # ---------------------------------------------------------------------- stopping

    async def stop_all(self, reason: str) -> None:
        """Stop every turn; each task fails for this reason."""
        while self._handles:
            stopping = tuple(self._handles.values())
            for handle in stopping:  # all before any: none is to begin because another has ended
                handle.cancel(self._failed(reason))
            for handle in stopping:
                await handle.wait()

    def detach(self, task_ids: Iterable[str] | None = None) -> None:
        """Stop the turns of these tasks, or every turn (None), and ignore what they still emit."""
        for task_id in self._handles if task_ids is None else task_ids:
            if handle := self._handles.get(task_id):
                handle.detach()

    async def finish(self, seconds: float) -> None:
        """Detach every turn but those that no server can continue, and wait for these."""
        last = {task_id: handle for task_id, handle in self._handles.items() if handle.lasts}
        self.detach(self._handles.keys() - last)
        if tasks := [handle.task for handle in last.values() if handle.task]:
            await asyncio.wait(tasks, timeout=seconds)
        self.detach()

    async def wait(self) -> None:
        """Wait until nothing runs."""
        while self._handles:
            await next(iter(self._handles.values())).wait()

    # ----------------------------------------------------------------------- running

    async def _run(self, record: TaskRecord, handle: TurnHandle, run: Run) -> None:
        set_task(record.task_id, record.context_id)
        try:
            await self._run_to_status(record, handle, run, partial(self._emit, record, handle))
        except TaskDetached:
            logger.info("The task is not run here any more")
        finally:
            self.presence.show_agent(record.context_id, record.task_id, None)
            if handle.ticket:
                self.admission.leave(handle.ticket)
            # A detached task may run here again already.
            if self._handles.get(record.task_id) is handle:
                self.journal.values.abandon(record.context_id, record.task_id)
                self.journal.annotations.abandon(record.context_id, record.task_id)
                del self._handles[record.task_id]

    async def _emit(self, record: TaskRecord, handle: TurnHandle, event: TurnEvent) -> None:
        if handle.detached:  # the task may have come back, but not to this run
            raise TaskDetached(record.task_id)
        await self.journal.append(record.task_id, event)
        handle.report = handle.report.after(event)
        handle.metrics.count(event)
        if handle.places.take(event):
            self.presence.show_agent(record.context_id, record.task_id, handle.places.place)
        match event:
            case StatusChanged():
                log_status(event, handle.report, self.now() - handle.began)
            case LlmCallCompleted():
                log_call(event)

    async def _run_to_status(self, record: TaskRecord, handle: TurnHandle, run: Run, emit: Emit) -> None:
        try:
            handle.mark_started()
            await run(emit)
        except TaskDetached:
            raise
        except asyncio.CancelledError:
            if late := handle.take_new_messages(closing=True):
                await emit(TranscriptAppended(tuple(to_user_input(message) for message in late)))
            await emit(handle.ending)
        except BaseException:  # a function may raise any
            logger.exception("The turn failed")
            await emit(self._failed(INTERNAL_ERROR))

    async def _run_started(self, record: TaskRecord, handle: TurnHandle, emit: Emit) -> None:
        asked = await self._ask(record, handle, emit)
        if asked is None:
            return
        await self._wait_for_admission(record.task_id, handle, emit, State.SUBMITTED)
        if handle.operation and not record.is_conversation:
            await self._run_operation(record, handle, emit)
        else:
            await self._run_conversation(asked, handle, emit, await self._earlier(record))

    async def _run_resumed(self, orphan: Orphan, handle: TurnHandle, emit: Emit) -> None:
        record = orphan.record
        store = self.store_of(record.task_id, handle)
        if orphan.write_failures > 1:  # its drafts cannot be closed either
            await emit(self._failed(NOT_STORED))
            return
        ending = self._ending(orphan, handle)
        try:
            drafts = await open_drafts(store, record.context_id, record.task_id)
            await roll_back_drafts(_to_interrupted_turn(record, drafts), store, emit, record.artifacts)
            asked = record if ending else await self._ask(record, handle, emit)
            if asked is None:
                return
            if ending is None:
                await self._wait_for_admission(record.task_id, handle, emit, record.state, resumed=True)
            earlier = await self._earlier(record)
        except BaseException:  # the drafts that the crash left open would stay open
            await self._close_drafts(record, handle, emit)
            raise
        if ending:
            await self.abandon(record)
            await self._close_drafts(record, handle, emit)
            await emit(ending)
        elif handle.operation and not record.is_conversation:
            await self._run_operation(record, handle, emit)
        else:
            await self._run_conversation(asked, handle, emit, earlier, drafts, orphan.resumptions)

    async def abandon(self, record: TaskRecord) -> None:
        """A task is about to end without a turn: its calls that wait, or were interrupted, are not run again."""
        tools = {tool.name: tool for tool in self.tools() if isinstance(tool, FunctionTool)}
        await abandon(pending_calls(record.transcript), tools)
        if self.agent:
            await abandon_run(self.agent, record.transcript)

    def _ending(self, orphan: Orphan, handle: TurnHandle) -> StatusChanged | None:
        """The status of a task that is resumed only to end."""
        if orphan.cancel_requested:
            return handle.ending
        if orphan.write_failures:
            return self._failed(NOT_STORED)
        is_function = self.agent is not None and orphan.record.is_conversation
        crashes = orphan.resumptions - (run_record(orphan.record.transcript).crashes if is_function else 0)
        return self._failed(TOO_MANY_RESUMPTIONS) if crashes > MAX_RESUMPTIONS else None

    def _failed(self, reason: str) -> StatusChanged:
        return StatusChanged(State.FAILED, AgentMessage(self.new_id(), reason))

    async def _wait_for_admission(
        self, task_id: str, handle: TurnHandle, emit: Emit, state: State, *, resumed: bool = False
    ) -> None:
        """Wait until the turn may run. Meanwhile the task is `state`, and says its position in the queue."""
        handle.waits = True
        waited = handle.ticket is not None and await self._wait_in_queue(handle.ticket, emit, state)
        handle.waits = False
        if state is State.SUBMITTED and (waited or resumed):
            await emit(StatusChanged(State.WORKING))
            # From here on, and not before, a crash is counted against the task (rule 3).
            await retry_while_unavailable(partial(self.journal.flushed, task_id), _pause)

    async def _wait_in_queue(self, ticket: Ticket, emit: Emit, state: State) -> bool:
        waited = False
        while position := await ticket.next_position():
            label = AgentMessage(self.new_id(), f"Waiting: number {position} in the queue…", label=True)
            await emit(StatusChanged(state, label))
            waited = True
        return waited

    async def _close_drafts(self, record: TaskRecord, handle: TurnHandle, emit: Emit) -> None:
        store = self.store_of(record.task_id, handle)
        evented = EventedArtifactStore(store, listener(emit), record.artifacts)
        for artifact_id in await open_drafts(store, record.context_id, record.task_id):
            evented.adopt_draft(Ref(record.context_id, artifact_id, record.task_id))
        await evented.prepare_all()
        await evented.close_all()

    async def _ask(self, record: TaskRecord, handle: TurnHandle, emit: Emit) -> TaskRecord | None:
        return await self._review(record, handle).ask(partial(self._operation_request, record, handle), emit)

    def _review(self, record: TaskRecord, handle: TurnHandle) -> TurnReview:
        return TurnReview(
            record=record,
            store=self.store_of(record.task_id, handle),
            sender=lambda: handle.sender,
            journal=self.journal,
            access=self.access,
            agents_suggest=self.agents_suggest,
            now=self.now,
            new_id=self.new_id,
            pause=_pause,
        )

    def _operation_request(self, record: TaskRecord, handle: TurnHandle) -> OperationRequest:
        assert record.operation
        ids = record.first_message.message_id, record.task_id, record.context_id
        is_owner = self.access.is_owner(Caller.from_author(handle.sender), record.owner)
        return OperationRequest(record.operation, *ids, record.progress, is_owner)

    async def _run_operation(self, record: TaskRecord, handle: TurnHandle, emit: Emit) -> None:
        request, review = self._operation_request(record, handle), self._review(record, handle)
        if needs_model(record):
            one_by_one = bool(self.agent and self.agent.editor) or is_ready_made(self.llm.name)
            request = replace(request, suggests=await review.suggests(), separately=one_by_one)
        await run_operation(
            request,
            llm=await self._editor(record, handle, emit),
            store=self.store_of(record.task_id, handle),
            emit=emit,
            new_id=self.new_id,
            instructions=self.instructions,
            sleep=self.sleep,
            make_review=review.make,
        )

    @property
    def edits(self) -> bool:
        """Whether edits of a selection are answered, by the agent's function or by the model."""
        return bool(self.agent and self.agent.editor) or self.llm.name != NO_MODEL

    async def _editor(self, record: TaskRecord, handle: TurnHandle, emit: Emit) -> LLM:
        """What writes the new text of a selection: the agent's function for edits, or the model."""
        if not (isinstance(handle.operation, SelectionEdit) and self.agent and self.agent.editor):
            return self._metered_model(record, handle)
        turn = TurnRequest(
            task_id=record.task_id,
            context_id=record.context_id,
            earlier=await self._earlier(record),
            transcript=(),
            new_messages=lambda closing: (),
            caller=lambda: handle.sender,
            stop=partial(self._reason_to_stop, record, handle),
        )
        function = EditFunction(
            await self._agent_request(record, handle, turn),
            self.agent,
            handle.operation.artifact_id,
            tools=self.tools(),
            store=self.store_of(record.task_id, handle),
            emit=emit,
            new_id=self.new_id,
            instructions=self.instructions,
            handed_over=lambda: handle.detached,
            resumed=record.progress.round > 0,
        )
        return PacedLLM(function, self.journal.wait_writable)

    def _metered_model(self, record: TaskRecord, handle: TurnHandle) -> LLM:
        """The model, for one run of a turn."""

        return MeteredLLM(self.llm, partial(self._spend, record, handle))

    def _spend(self, record: TaskRecord, handle: TurnHandle, tokens_in: int, tokens_out: int) -> None:
        self.admission.meter.spend(payer(record.owner, handle.sender), tokens_in, tokens_out)

    async def _reason_to_stop(self, record: TaskRecord, handle: TurnHandle) -> str:
        """Why a turn must not call the model again; empty if it may."""
        try:
            self.check_tokens(record, handle.sender)
            # Guests read the status, too.
            await retry_while_unavailable(partial(self.admission.meter.check_bytes, record.owner, GUEST), _pause)
        except (QuotaReached, StorageFull) as error:
            return f"Stopped before the end. {error}"
        return ""

    async def _run_conversation(
        self,
        record: TaskRecord,
        handle: TurnHandle,
        emit: Emit,
        earlier: tuple[Transcript, ...],
        drafts: tuple[str, ...] = (),
        crashes: int = 0,
    ) -> None:
        converse = partial(self._converse, record, handle, earlier=earlier, drafts=drafts, crashes=crashes)
        await self._review(record, handle).answer(emit, converse)

    async def _converse(
        self,
        record: TaskRecord,
        handle: TurnHandle,
        emit: Emit,
        earlier: tuple[Transcript, ...],
        drafts: tuple[str, ...],
        crashes: int,
    ) -> None:
        review = self._review(record, handle)
        request = TurnRequest(
            task_id=record.task_id,
            context_id=record.context_id,
            earlier=earlier,
            transcript=record.transcript,
            new_messages=handle.take_new_messages,
            progress=record.progress,
            later=await retry_while_unavailable(partial(self.journal.later_tasks, record), _pause),
            changed=tuple(record.artifacts),
            drafts=drafts,
            limits=self.limits,
            caller=lambda: handle.sender,
            owner=record.owner,
            credentials=handle.credentials,
            suggests=await review.suggests(),
            stop=partial(self._reason_to_stop, record, handle),
        )
        flushed = partial(retry_while_unavailable, partial(self.journal.flushed, record.task_id), _pause)
        if self.agent:
            await self._run_agent(record, handle, request, flushed, emit, crashes)
            return
        await run_turn(
            request,
            llm=self._metered_model(record, handle),
            # In a thread, a question is a reply like any other.
            tools=[each for each in self.tools() if each is not ask_user or not record.asks_agent],
            find_tool=self.find_tool,
            store=self.store_of(record.task_id, handle),
            emit=emit,
            new_id=self.new_id,
            window_estimates=self._window_estimates,
            instructions=self.instructions,
            sleep=self.sleep,
            flushed=flushed,
            make_review=review.make,
        )

    async def _run_agent(
        self,
        record: TaskRecord,
        handle: TurnHandle,
        request: TurnRequest,
        flushed: Callable[[], Awaitable[None]],
        emit: Emit,
        crashes: int,
    ) -> None:
        assert self.agent
        handle.lasts = self.agent.lasts or not self.agent.restartable
        await run_function(
            replace(await self._agent_request(record, handle, request), crashes=crashes),
            self.agent,
            tools=self.tools(),
            store=self.store_of(record.task_id, handle),
            emit=emit,
            new_id=self.new_id,
            flushed=flushed,
            instructions=self.instructions,
            find_tool=self.find_tool,
            make_review=self._review(record, handle).make,
        )

    async def _agent_request(self, record: TaskRecord, handle: TurnHandle, turn: TurnRequest) -> AgentRequest:
        messages = _messages(record)[: _read(record)]
        values = self._values_of(record, handle)
        spend = partial(self._spend, record, handle)
        earlier = await retry_while_unavailable(partial(self.journal.earlier_messages, record), _pause)
        tokens_left = partial(self._tokens_left, record, handle)
        request = AgentRequest(turn, messages, values, earlier, spend, tokens_left, record.agui, frame=self.frame)
        return replace(request, thread=json.loads(quoted_thread(record.transcript))) if record.asks_agent else request

    def _tokens_left(self, record: TaskRecord, handle: TurnHandle) -> int | None:
        return self.admission.meter.tokens_left(payer(record.owner, handle.sender))

    def _values_of(self, record: TaskRecord, handle: TurnHandle) -> TaskValues:
        check = partial(self._check, record.task_id, handle)
        give_way = partial(self._give_way, record, handle)
        return TaskValues(self.journal.values, record.context_id, record.task_id, check, _pause, give_way)

    async def _give_way(self, record: TaskRecord, handle: TurnHandle, hold: Hold) -> Held:
        """Wait for values that another task of the context holds, without a place among the turns that run."""
        waiting = asyncio.ensure_future(hold())
        try:
            done, _ = await asyncio.wait((waiting,), timeout=GIVE_WAY)
            if done or handle.ticket is None:
                return await waiting
            self.admission.leave(handle.ticket)
            handle.ticket = None
            held = await waiting
            handle.ticket = self.admission.enter(record.context_id, payer(record.owner, handle.sender), begun=True)
            while await handle.ticket.next_position():
                pass
            return held
        finally:
            waiting.cancel()

    def store_of(self, task_id: str, handle: TurnHandle | None = None) -> ArtifactStore:
        """The store for a task, or for one run of it. A change that could not be emitted is not made (rule 2)."""
        return RetryingStore(self.store, _pause, partial(self._check, task_id, handle))

    def _check(self, task_id: str, handle: TurnHandle | None) -> None:
        if handle and handle.detached:
            raise TaskDetached(task_id)
        self.journal.check_runs_here(task_id)

    async def _earlier(self, record: TaskRecord) -> tuple[Transcript, ...]:
        return await retry_while_unavailable(partial(self.journal.earlier_transcripts, record), _pause)


def _can_move(handle: TurnHandle) -> bool:
    return handle.waits and not (handle.begun or handle.stopping) and handle.credentials is None


def _to_interrupted_turn(record: TaskRecord, drafts: tuple[str, ...]) -> InterruptedTurn:
    return InterruptedTurn(
        task_id=record.task_id,
        context_id=record.context_id,
        round=record.progress.round if record.call_open else None,
        open_edits=tuple((e.edit_id, e.artifact_id, e.selection, e.mode) for e in record.open_edits.values()),
        drafts=drafts,
    )
