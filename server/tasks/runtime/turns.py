"""The turns that run in this process, from their start, or from where another process left them, to their last entry.

Rule 1: nothing stays `working` with nobody working: a turn's last entry is its status, whatever ends it.
Rule 2: a turn whose task was abandoned says nothing more, not even that.
Rule 3: what was left by a crash is first taken back to the last completed call (`agent/resume.py`). It is taken up
        `MAX_RESUMPTIONS` times at most; a task that brings down whoever runs it must end.
Rule 4: only so many turns run at once (`admission.py`); the others wait, as `submitted`, or as they were if they are
        taken up. What needs no model (undo, redo, restore, a person's own edit) does not wait: it is done at once.
Rule 5: what waits can be cancelled, written to, handed over and taken over like what runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from a2a_canvas.server.agent.edit.run import OperationRequest, run_operation
from a2a_canvas.server.agent.endings import INTERNAL_ERROR
from a2a_canvas.server.agent.events import (
    AgentMessage,
    Emit,
    State,
    StatusChanged,
    Transcript,
    TranscriptAppended,
    TurnEvent,
    UserInput,
    UserMessage,
)
from a2a_canvas.server.agent.intent import Converse, Operation, SelectionEdit, intent_of
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.agent.models.wrappers import PacedLLM
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.agent.turn.resume import InterruptedTurn, open_drafts, reclaim
from a2a_canvas.server.agent.turn.turn import TurnLimits, TurnRequest, run_turn
from a2a_canvas.server.agent.turn.window import WindowEstimates
from a2a_canvas.server.tasks.journal.journal import Journal
from a2a_canvas.server.tasks.ownership import Detached, Orphan
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.admission import Admission, Ticket
from a2a_canvas.server.tasks.runtime.running import TurnHandle
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.models import Ref
from a2a_canvas.store.retrying import RetryingStore, retry_while_unavailable
from a2a_canvas.tools.base import Tool

logger = logging.getLogger(__name__)

MAX_RESUMPTIONS = 2
RETRY_DELAY = 0.2
"""Seconds between two tries of a turn to reach the database."""
TOO_MANY_RESUMPTIONS = (
    f"The server broke down in the middle of this task {MAX_RESUMPTIONS + 1} times, "
    "so it has been given up. Send it again."
)

NOT_STORED = "What this task said could not be stored, so it has failed. The server's log says why. Send it again."

Run = Callable[[Emit], Awaitable[None]]


def first_message(record: TaskRecord) -> UserMessage:
    """The message that began a task."""
    message = record.history[0]
    assert isinstance(message, UserMessage)
    return message


def operation_of(record: TaskRecord) -> Operation | None:
    """The operation that a task is; None for a conversation."""
    intent = intent_of(first_message(record))
    return None if isinstance(intent, Converse) else intent


def needs_model(operation: Operation | None) -> bool:
    """Whether a task asks the model, and so has to wait for its place (rule 4)."""
    return operation is None or isinstance(operation, SelectionEdit)


def unread_messages(record: TaskRecord) -> tuple[UserMessage, ...]:
    """The user's messages that the model has not been shown."""
    shown = sum(isinstance(item, UserInput) and bool(item.message_id) for item in record.transcript)
    return tuple(message for message in record.history if isinstance(message, UserMessage))[shown:]


async def _pause() -> None:
    await asyncio.sleep(RETRY_DELAY)


class Turns:
    """What runs, by task."""

    def __init__(
        self,
        *,
        journal: Journal,
        store: ArtifactStore,
        llm: LLM,
        tools: Sequence[Tool],
        new_id: Callable[[], str],
        limits: TurnLimits,
        sleep: Callable[[float], Awaitable[object]],
        admission: Admission,
    ) -> None:
        self._journal = journal
        self._store = store
        self._llm = PacedLLM(llm, journal.wait_writable)
        self._tools = tools
        self._new_id = new_id
        self._limits = limits
        self._window_estimates = WindowEstimates()
        self._sleep = sleep
        self._admission = admission
        self._running: dict[str, TurnHandle] = {}

    def get(self, task_id: str) -> TurnHandle | None:
        """What runs for a task."""
        return self._running.get(task_id)

    # --------------------------------------------------------------------- beginning

    def reserve(self, operation: Operation | None) -> AbstractContextManager[bool]:
        """A turn is about to be accepted; whether it will have to wait, as things stand.

        Raises:
            QueueFull: it cannot be.
        """
        return self._admission.reserve() if needs_model(operation) else nullcontext(False)

    def start(self, record: TaskRecord) -> None:
        """Run a task's turn: from its beginning, or on from the answer to a question."""
        running = TurnHandle(operation_of(record))
        self._begin(record, running, partial(self._carry_out, record, running))

    def resume(self, orphan: Orphan) -> None:
        """Run the turn of a task that another process has left."""
        record = orphan.record
        running = TurnHandle(operation_of(record), inbox=list(unread_messages(record)))
        self._begin(record, running, partial(self._take_up, orphan, running), begun=record.state is State.WORKING)

    def _begin(self, record: TaskRecord, running: TurnHandle, run: Run, *, begun: bool = False) -> None:
        self._running[record.task_id] = running
        if needs_model(running.operation):
            running.ticket = self._admission.enter(record.context_id, begun=begun)
        running.task = asyncio.create_task(self._run(record, running, run), name=f"turn of task {record.task_id}")

    # ------------------------------------------------------------------------ ending

    async def stop_all(self, ending: Callable[[], StatusChanged]) -> None:
        """Stop every turn, and let each task end so."""
        while self._running:
            stopping = tuple(self._running.values())
            for running in stopping:  # all before any: none is to begin because another has ended
                running.interrupt(ending())
            for running in stopping:
                await running.ended()

    def detach(self, task_ids: Iterable[str] | None = None) -> None:
        """Stop the turns of these tasks, or every turn (None). Nothing that they say is kept."""
        for task_id in self._running if task_ids is None else task_ids:
            if running := self._running.get(task_id):
                running.detach()

    async def ended(self) -> None:
        """Wait until nothing runs."""
        while self._running:
            await next(iter(self._running.values())).ended()

    # ----------------------------------------------------------------------- running

    async def _run(self, record: TaskRecord, running: TurnHandle, run: Run) -> None:
        try:
            await self._to_its_status(record, running, run, partial(self._say, record.task_id, running))
        except Detached:
            logger.info("Task %s is not run here any more", record.task_id)
        finally:
            if running.ticket:
                self._admission.leave(running.ticket)
            # After an abandonment the task may run here again already.
            if self._running.get(record.task_id) is running:
                del self._running[record.task_id]

    async def _say(self, task_id: str, running: TurnHandle, event: TurnEvent) -> None:
        self._check(task_id, running)
        await self._journal.append(task_id, event)

    async def _to_its_status(self, record: TaskRecord, running: TurnHandle, run: Run, emit: Emit) -> None:
        try:
            running.begin()
            await run(emit)
        except Detached:
            raise
        except asyncio.CancelledError:
            if late := running.take(closing=True):
                await emit(TranscriptAppended(tuple(to_user_input(message) for message in late)))
            await emit(running.ending)
        except Exception:
            logger.exception("The turn of task %s was lost", record.task_id)
            await emit(self._failed(INTERNAL_ERROR))

    async def _take_up(self, orphan: Orphan, running: TurnHandle, emit: Emit) -> None:
        record = orphan.record
        store = self.store_of(record.task_id, running)
        if orphan.write_failures > 1:  # what it has begun cannot be ended
            await emit(self._failed(NOT_STORED))
            return
        ending = self._ending(orphan, running)
        try:
            drafts = await open_drafts(store, record.context_id, record.task_id)
            await reclaim(_interrupted(record, drafts), store, emit, record.artifacts)
            if ending is None:
                await self._admitted(record.task_id, running, emit, record.state, resumed=True)
            earlier = await self._earlier(record)
        except BaseException:  # what the crash left open would stay so
            await self._close(record, running, emit)
            raise
        if ending:
            await self._close(record, running, emit)
            await emit(ending)
        elif running.operation:
            await self._operate(record, running, running.operation, emit)
        else:
            await self._turn(record, running, emit, earlier, drafts)

    def _ending(self, orphan: Orphan, running: TurnHandle) -> StatusChanged | None:
        """What a task becomes that is taken up only to end."""
        if orphan.cancel_requested:
            return running.ending
        if orphan.write_failures:
            return self._failed(NOT_STORED)
        return self._failed(TOO_MANY_RESUMPTIONS) if orphan.resumptions > MAX_RESUMPTIONS else None

    def _failed(self, words: str) -> StatusChanged:
        return StatusChanged(State.FAILED, AgentMessage(self._new_id(), words))

    async def _admitted(
        self, task_id: str, running: TurnHandle, emit: Emit, state: State, *, resumed: bool = False
    ) -> None:
        """Wait until the turn may run. Meanwhile the task is `state`, and tells its place in the queue."""
        waited = running.ticket is not None and await self._waited(running.ticket, emit, state)
        if state is State.SUBMITTED and (waited or resumed):
            await emit(StatusChanged(State.WORKING))
            # From here on, and not before, a crash is counted against the task (rule 3).
            await retry_while_unavailable(partial(self._journal.flushed, task_id), _pause)

    async def _waited(self, ticket: Ticket, emit: Emit, state: State) -> bool:
        waited = False
        while place := await ticket.place():
            label = AgentMessage(self._new_id(), f"Waiting: number {place} in the queue…", label=True)
            await emit(StatusChanged(state, label))
            waited = True
        return waited

    async def _close(self, record: TaskRecord, running: TurnHandle, emit: Emit) -> None:
        store = self.store_of(record.task_id, running)
        evented = EventedArtifactStore(store, listener(emit), record.artifacts)
        for artifact_id in await open_drafts(store, record.context_id, record.task_id):
            evented.adopt_draft(Ref(record.context_id, artifact_id, record.task_id))
        await evented.prepare_all()
        await evented.close_all()

    async def _carry_out(self, record: TaskRecord, running: TurnHandle, emit: Emit) -> None:
        await self._admitted(record.task_id, running, emit, State.SUBMITTED)
        if running.operation:
            await self._operate(record, running, running.operation, emit)
        else:
            await self._turn(record, running, emit, await self._earlier(record))

    async def _operate(self, record: TaskRecord, running: TurnHandle, operation: Operation, emit: Emit) -> None:
        said = first_message(record).message_id
        request = OperationRequest(operation, said, record.task_id, record.context_id, record.progress)
        store = self.store_of(record.task_id, running)
        await run_operation(request, llm=self._llm, store=store, emit=emit, new_id=self._new_id, sleep=self._sleep)

    async def _turn(
        self,
        record: TaskRecord,
        running: TurnHandle,
        emit: Emit,
        earlier: tuple[Transcript, ...],
        drafts: tuple[str, ...] = (),
    ) -> None:
        request = TurnRequest(
            task_id=record.task_id,
            context_id=record.context_id,
            earlier=earlier,
            transcript=record.transcript,
            inbox=running.take,
            progress=record.progress,
            later=await retry_while_unavailable(partial(self._journal.later_tasks, record), _pause),
            changed=tuple(record.artifacts),
            drafts=drafts,
            limits=self._limits,
        )
        store = self.store_of(record.task_id, running)
        await run_turn(
            request,
            llm=self._llm,
            tools=self._tools,
            store=store,
            emit=emit,
            new_id=self._new_id,
            window_estimates=self._window_estimates,
            sleep=self._sleep,
        )

    def store_of(self, task_id: str, running: TurnHandle | None = None) -> ArtifactStore:
        """The store for a task, or for one run of it: nothing is changed that could not be told (rule 2)."""
        return RetryingStore(self._store, _pause, partial(self._check, task_id, running))

    def _check(self, task_id: str, running: TurnHandle | None) -> None:
        if running and running.detached:  # the task may have come back, but not to this run
            raise Detached(task_id)
        self._journal.check_owned(task_id)

    async def _earlier(self, record: TaskRecord) -> tuple[Transcript, ...]:
        return await retry_while_unavailable(partial(self._journal.earlier_transcripts, record), _pause)


def _interrupted(record: TaskRecord, drafts: tuple[str, ...]) -> InterruptedTurn:
    return InterruptedTurn(
        task_id=record.task_id,
        context_id=record.context_id,
        round=record.progress.round if record.call_open else None,
        open_edits=tuple((e.edit_id, e.artifact_id, e.selection) for e in record.open_edits.values()),
        drafts=drafts,
    )
