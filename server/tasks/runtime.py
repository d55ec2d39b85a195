"""Starts, continues and cancels turns. A task has one owner: the turn that runs it.

Rule 1: a message is accepted in one of four ways (`send`): it starts a task, answers one that waits for input, is
        added to one that is working, or repeats one that was accepted before and joins its task.
Rule 2: whoever is accepted gets a snapshot first, before any slow work, and then everything that follows it.
Rule 3: nothing stays `working` with nobody working: a turn's last entry is its status, whatever ends it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import takewhile

from server.agent.events import (
    AgentMessage,
    Emit,
    MessageReceived,
    Remembered,
    State,
    StatusChanged,
    UserMessage,
)
from server.agent.history import user_said
from server.agent.intent import intent_of
from server.agent.model import LLM
from server.agent.operate import OperationRequest, check, run_operation, save
from server.agent.operations import Converse, InvalidOperation, Operation
from server.agent.outcomes import LOST
from server.agent.turn import TurnLimits, TurnRequest, run_turn
from server.tasks.errors import ContextMismatch, TaskFinished, TaskNotCancelable, TaskNotFound, TaskTakesNoMessages
from server.tasks.incoming import Incoming, Repeats
from server.tasks.journal import Following, Journal
from server.tasks.record import TaskRecord
from server.tasks.running import Running
from store.base import ArtifactStore
from store.changes import Change
from tools.base import Tool

logger = logging.getLogger(__name__)


def _is_history(other: TaskRecord, owner: str) -> bool:
    """Whether a later task of the context may be told of `other`: what is still being said is not history."""
    return other.owner == owner and other.state not in (State.SUBMITTED, State.WORKING)


def _first(record: TaskRecord) -> UserMessage:
    """The message that began the task."""
    message = record.history[0]
    assert isinstance(message, UserMessage)
    return message


class Runtime:
    """Runs the turns of this process.

    Args:
        now, new_id: the clock and the source of ids.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        store: ArtifactStore,
        llm: LLM,
        tools: Sequence[Tool],
        now: Callable[[], datetime],
        new_id: Callable[[], str],
        limits: TurnLimits | None = None,
    ) -> None:
        self.journal = journal
        self._store = store
        self._llm = llm
        self._tools = tools
        self._now = now
        self._new_id = new_id
        self._limits = limits or TurnLimits()
        self._running: dict[str, Running] = {}
        self._repeats = Repeats(now)
        self._accepting = asyncio.Lock()

    # ---------------------------------------------------------------- reading

    async def get(self, task_id: str, owner: str) -> TaskRecord:
        """The task as it stands.

        Raises:
            TaskNotFound: there is none, or it is somebody else's.
        """
        record = await self.journal.get(task_id)
        if record.owner != owner:
            raise TaskNotFound(task_id)
        return record

    async def follow(self, task_id: str, owner: str) -> Following:
        """A snapshot of the task and everything after it.

        Raises:
            TaskNotFound: there is none, or it is somebody else's.
        """
        await self.get(task_id, owner)
        return await self.journal.follow(task_id)

    # --------------------------------------------------------------- accepting

    async def send(self, incoming: Incoming) -> Following:
        """Accept a message; what comes back begins with the task it belongs to.

        Raises:
            TaskNotFound, TaskFinished, TaskTakesNoMessages, ContextMismatch, InvalidOperation: the message was not
                accepted.
        """
        async with self._accepting:
            joined = self._repeats.task_of(incoming)
            if joined:
                return await self.journal.follow(joined)
            following = await self._accept(incoming)
            self._repeats.remember(incoming, following.snapshot.task_id)
            return following

    async def _accept(self, incoming: Incoming) -> Following:
        intent = intent_of(incoming.message)
        if not isinstance(intent, Converse) and not incoming.changes:
            await self._check(intent, incoming)
        if not incoming.task_id:
            return await self._begin(incoming)
        while True:
            record = await self.get(incoming.task_id, incoming.owner)
            if incoming.context_id and incoming.context_id != record.context_id:
                raise ContextMismatch(incoming.task_id, incoming.context_id)
            if record.state.terminal:
                raise TaskFinished(incoming.task_id, record.state)
            running = self._running.get(record.task_id)
            if running is None:
                return await self._answer(record, incoming)
            if running.operation:
                raise TaskTakesNoMessages(record.task_id)
            if not running.closed:
                return await self._add(record, running, incoming.message)
            await running.ended()

    async def _check(self, operation: Operation, incoming: Incoming) -> None:
        if incoming.task_id:
            raise InvalidOperation("message.taskId", "must be left out: an operation is a task of its own")
        if not incoming.context_id:
            raise InvalidOperation("message.contextId", "is missing: say in which context the artifact is")
        await check(operation, incoming.context_id, self._store)

    async def _begin(self, incoming: Incoming) -> Following:
        record = TaskRecord(
            task_id=self._new_id(),
            context_id=incoming.context_id or self._new_id(),
            owner=incoming.owner,
            changed_at=self._now(),
            history=(incoming.message,),
            transcript=(user_said(incoming.message),),
        )
        await self.journal.create(record)
        return await self._start(record, incoming.changes)

    async def _answer(self, record: TaskRecord, incoming: Incoming) -> Following:
        """The task waits for input: its turn goes on."""
        message = incoming.message
        said = Remembered((user_said(message),))
        await self.journal.append(record.task_id, MessageReceived(message), said, StatusChanged(State.WORKING))
        return await self._start(record, incoming.changes)

    async def _add(self, record: TaskRecord, running: Running, message: UserMessage) -> Following:
        """The task is working: its turn is given the message before its next round."""
        running.inbox.append(message)
        await self.journal.append(record.task_id, MessageReceived(message))
        return await self.journal.follow(record.task_id)

    # ----------------------------------------------------------------- running

    async def _start(self, record: TaskRecord, changes: tuple[tuple[str, Change], ...]) -> Following:
        emit = partial(self.journal.append, record.task_id)
        refused = await save(changes, record.context_id, record.task_id, self._store, emit)
        if refused:
            await emit(refused.status(self._new_id))
            return await self.journal.follow(record.task_id)
        following = await self.journal.follow(record.task_id)
        record = following.snapshot
        intent = intent_of(_first(record))
        running = self._running[record.task_id] = Running(None if isinstance(intent, Converse) else intent)
        running.task = asyncio.create_task(self._run(record, running), name=f"turn of task {record.task_id}")
        return following

    async def _run(self, record: TaskRecord, running: Running) -> None:
        emit = partial(self.journal.append, record.task_id)
        try:
            running.begin()
            if running.operation:
                await self._operate(record, running.operation, emit)
            else:
                await self._turn(record, running, emit)
        except asyncio.CancelledError:
            if late := running.take(closing=True):
                await emit(Remembered(tuple(user_said(message) for message in late)))
            await emit(running.ending)
        except Exception:
            logger.exception("The turn of task %s was lost", record.task_id)
            await emit(StatusChanged(State.FAILED, AgentMessage(self._new_id(), LOST)))
        finally:
            del self._running[record.task_id]

    async def _operate(self, record: TaskRecord, operation: Operation, emit: Emit) -> None:
        request = OperationRequest(operation, _first(record).message_id, record.task_id, record.context_id)
        await run_operation(request, llm=self._llm, store=self._store, emit=emit, new_id=self._new_id)

    async def _turn(self, record: TaskRecord, running: Running, emit: Emit) -> None:
        await run_turn(
            await self._request(record, running),
            llm=self._llm,
            tools=self._tools,
            store=self._store,
            emit=emit,
            new_id=self._new_id,
        )

    async def _request(self, record: TaskRecord, running: Running) -> TurnRequest:
        context = await self.journal.context(record.context_id)
        before = takewhile(lambda other: other.task_id != record.task_id, context)
        earlier = tuple(other.transcript for other in before if _is_history(other, record.owner))
        return TurnRequest(
            task_id=record.task_id,
            context_id=record.context_id,
            earlier=earlier,
            transcript=record.transcript,
            inbox=running.take,
            progress=record.progress,
            changed=tuple(record.artifacts),
            limits=self._limits,
        )

    # ---------------------------------------------------------------- stopping

    async def cancel(self, task_id: str, owner: str) -> TaskRecord:
        """Stop a task's turn at once and make the task `canceled`.

        Raises:
            TaskNotFound: there is none, or it is somebody else's.
            TaskNotCancelable: it had ended before.
        """
        async with self._accepting:  # a message may just be making it work again
            record = await self.get(task_id, owner)
            if record.state.terminal:
                raise TaskNotCancelable(task_id, record.state)
            running = self._running.get(task_id)
            if running is None:
                await self.journal.append(task_id, StatusChanged(State.CANCELED))
        if running:
            await running.stop()
        record = await self.journal.get(task_id)
        if record.state is not State.CANCELED:
            raise TaskNotCancelable(task_id, record.state)
        return record

    async def close(self) -> None:
        """Stop every turn: the server is going down."""
        text = "The server was stopped before the task was done. Send it again."
        while self._running:
            running = next(iter(self._running.values()))
            await running.stop(StatusChanged(State.FAILED, AgentMessage(self._new_id(), text)))
