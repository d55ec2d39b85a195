"""Accepts messages, and starts, continues and cancels the turns that answer them. A task has one owner.

Rule 1: a message is accepted in one of five ways (`send`): it starts a task, answers one that waits for input, is
        added to one that is working here, or elsewhere, or repeats one that was accepted before and joins its task.
Rule 2: whoever is accepted gets a snapshot first, before any slow work, and then everything that follows it.
Rule 3: what has been accepted is durable: it is carried out even if this process ends in the next moment.
Rule 4: nothing is accepted by halves (`starts.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from a2a_canvas.server.agent.edit.run import check_operation
from a2a_canvas.server.agent.events import (
    AgentMessage,
    MessageReceived,
    State,
    StatusChanged,
    TranscriptAppended,
    UserMessage,
)
from a2a_canvas.server.agent.intent import Converse, InvalidOperation, Operation, intent_of
from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.agent.turn.turn import TurnLimits
from a2a_canvas.server.tasks.alone import LocalOwnership
from a2a_canvas.server.tasks.errors import (
    ContextMismatch,
    TaskFinished,
    TaskNotCancelable,
    TaskNotFound,
    TaskTakesNoMessages,
)
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import Journal, TaskSubscription
from a2a_canvas.server.tasks.ownership import DuplicateMessage, Orphan, Ownership
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.tasks.runtime.locks import NamedLocks
from a2a_canvas.server.tasks.runtime.running import TurnHandle
from a2a_canvas.server.tasks.runtime.starts import POLL_INTERVAL, Starts
from a2a_canvas.server.tasks.runtime.turns import Turns, operation_of
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.tools.base import Tool

logger = logging.getLogger(__name__)

SERVER_STOPPED = "The server was stopped before the task was done. Send it again."


class Runtime:
    """Runs the tasks of this process. It is the `TaskRunner` that the keeper of leases knows.

    Args:
        ownership: who runs which task; None if there is nobody else, and nothing outlives the process.
        admission: how many turns run at once, and how many wait.
        now, new_id: the clock and the source of ids.
        sleep: waits before a model is asked again.
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
        ownership: Ownership | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        admission: Admission | None = None,
    ) -> None:
        self.journal = journal
        self._store = store
        self._now = now
        self._new_id = new_id
        self._lasting = ownership is not None
        self._ownership = ownership or LocalOwnership(journal)
        self._turns = Turns(
            journal=journal,
            store=store,
            llm=llm,
            tools=tools,
            new_id=new_id,
            limits=limits or TurnLimits(),
            sleep=sleep,
            admission=admission or Admission(),
        )
        self._locks = NamedLocks()
        self._starts = Starts(journal, store, self._turns, new_id)

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

    async def follow(self, task_id: str, owner: str) -> TaskSubscription:
        """A snapshot of the task and everything after it.

        Raises:
            TaskNotFound: there is none, or it is somebody else's.
        """
        following = await self.journal.follow(task_id)
        if following.snapshot.owner != owner:
            raise TaskNotFound(task_id)
        return following

    # --------------------------------------------------------------- accepting

    async def send(self, incoming: Incoming) -> TaskSubscription:
        """Accept a message; what comes back begins with the task it belongs to.

        Raises:
            TaskNotFound, TaskFinished, TaskTakesNoMessages, ContextMismatch, InvalidOperation: the message was not
                accepted.
            QueueFull: it was not either; the same again may be.
            Unavailable: nobody can tell whether it was; the same again joins the task, if it was.
        """
        key = incoming.key
        async with self._locks.hold(incoming.task_id or key):
            try:
                joined = await self.journal.find_duplicate(key)
                if joined:
                    await self.journal.flushed(joined)
                    return await self.journal.follow(joined)
                return await self._accept(incoming, key)
            except DuplicateMessage as repeated:
                return await self.journal.follow(repeated.task_id)

    async def _accept(self, incoming: Incoming, key: str) -> TaskSubscription:
        """The task that has taken the message, before anything has come of it."""
        intent = intent_of(incoming.message)
        if not isinstance(intent, Converse) and not incoming.changes:
            await self._check(intent, incoming)
        if not incoming.task_id:
            return await self._begin(incoming, key)
        while True:
            record = await self.get(incoming.task_id, incoming.owner)
            if incoming.context_id and incoming.context_id != record.context_id:
                raise ContextMismatch(incoming.task_id, incoming.context_id)
            if record.state.terminal:
                raise TaskFinished(incoming.task_id, record.state)
            if following := await self._taken(record, incoming, key):
                return following

    async def _taken(self, record: TaskRecord, incoming: Incoming, key: str) -> TaskSubscription | None:
        """The task, if it has taken the message as it stood; else it has gone on meanwhile."""
        running = self._turns.get(record.task_id)
        if running is None and record.state is State.INPUT_REQUIRED:
            return await self._answer(record, incoming, key)
        if operation_of(record):
            raise TaskTakesNoMessages(record.task_id)
        if running is None:
            posted = await self._ownership.post(record.task_id, incoming.message, key)
            return await self.journal.follow(record.task_id) if posted else None
        if await self._add(record.task_id, running, incoming.message):
            await self.journal.remember_message(key, record.task_id)
            await self.journal.flushed(record.task_id)
            return await self.journal.follow(record.task_id)
        await running.ended()
        return None

    async def _check(self, operation: Operation, incoming: Incoming) -> None:
        if incoming.task_id:
            raise InvalidOperation("message.taskId", "must be left out: an operation is a task of its own")
        if not incoming.context_id:
            raise InvalidOperation("message.contextId", "is missing: say in which context the artifact is")
        await check_operation(operation, incoming.context_id, self._store)

    async def _begin(self, incoming: Incoming, key: str) -> TaskSubscription:
        record = TaskRecord(
            task_id=self._new_id(),
            context_id=incoming.context_id or self._new_id(),
            owner=incoming.owner,
            changed_at=self._now(),
            history=(incoming.message,),
            transcript=(to_user_input(incoming.message),),
        )
        with self._turns.reserve(operation_of(record)):
            await self._starts.prepare(incoming, record)
            if incoming.changes and (joined := await self.journal.find_duplicate(key)):
                # Whoever took it elsewhere has made the changes before it let go of the artifacts.
                raise DuplicateMessage(joined)
            return await self._starts.go_on(record, incoming, partial(self.journal.create, record, key))

    async def _answer(self, record: TaskRecord, incoming: Incoming, key: str) -> TaskSubscription | None:
        """The task waits for input: its turn goes on, here."""
        with self._turns.reserve(None) as waits:
            await self._starts.prepare(incoming, record)
            acquired = await self._ownership.acquire(record.task_id)
            if acquired is None:
                await asyncio.sleep(POLL_INTERVAL)  # somebody is about to say that it works again
            if acquired is None or acquired.state is not State.INPUT_REQUIRED:
                return None
            goes_on = StatusChanged(State.SUBMITTED if waits else State.WORKING)
            accept = partial(self._say_answer, record.task_id, incoming.message, goes_on, key)
            return await self._starts.go_on(acquired, incoming, accept)

    async def _say_answer(self, task_id: str, message: UserMessage, goes_on: StatusChanged, key: str) -> None:
        await self.journal.append(
            task_id, MessageReceived(message), TranscriptAppended((to_user_input(message),)), goes_on
        )
        await self.journal.remember_message(key, task_id)

    async def _add(self, task_id: str, running: TurnHandle, message: UserMessage) -> bool:
        """The task is working here: its turn is given the message before its next round, if there is one."""
        if running.operation or running.closed:
            return False
        running.inbox.append(message)
        await self.journal.append(task_id, MessageReceived(message))
        return True

    # ------------------------------------------------------- as the keeper of leases asks

    def resume(self, orphan: Orphan) -> None:
        logger.info("Task %s is taken up from where it was left", orphan.record.task_id)
        self._turns.resume(orphan)

    async def deliver(self, task_id: str, message: UserMessage) -> bool:
        running = self._turns.get(task_id)
        return running is not None and await self._add(task_id, running, message)

    def interrupt(self, task_id: str) -> None:
        if running := self._turns.get(task_id):
            running.interrupt()

    def detach(self, task_ids: Iterable[str] | None = None) -> None:
        self._turns.detach(task_ids)

    # ---------------------------------------------------------------- stopping

    async def cancel(self, task_id: str, owner: str) -> TaskRecord:
        """Stop a task's turn at once, wherever it runs, and make the task `canceled`.

        Raises:
            TaskNotFound: there is none, or it is somebody else's.
            TaskNotCancelable: it had ended before.
            Unavailable: nobody can tell whether it was.
        """
        record = await self.get(task_id, owner)
        if record.state.terminal:
            raise TaskNotCancelable(task_id, record.state)
        while await self._is_running(task_id):
            if running := self._turns.get(task_id):
                await running.stop()
                if running.detached:
                    continue  # it is taken up again, here or elsewhere, and has to be told so there
            else:
                await self._ownership.request_cancel(task_id)
            await _settled(await self.journal.follow(task_id))
        record = await self.journal.get(task_id)
        if record.state is not State.CANCELED:
            raise TaskNotCancelable(task_id, record.state)
        return record

    async def _is_running(self, task_id: str) -> bool:
        """Whether somebody works on the task; one that waits for input has been cancelled by now."""
        async with self._locks.hold(task_id):  # a message may just be making it work again
            record = await self.journal.get(task_id)
            if self._turns.get(task_id) or record.state is not State.INPUT_REQUIRED:
                return not record.state.terminal
            acquired = await self._ownership.acquire(task_id)
            if acquired is None:
                await asyncio.sleep(POLL_INTERVAL)
                return True
            if acquired.state is State.INPUT_REQUIRED:
                await self.journal.append(task_id, StatusChanged(State.CANCELED))
                await self.journal.flushed(task_id)
            return False

    async def close(self) -> None:
        """Stop every turn: the server is going down. Where tasks last, somebody else goes on with them."""
        if self._lasting:
            self._turns.detach()  # they stop when they are next waited for: by then nobody hears them
            await self._ownership.resign()
            await self._turns.ended()
        else:
            await self._turns.stop_all(
                lambda: StatusChanged(State.FAILED, AgentMessage(self._new_id(), SERVER_STOPPED))
            )


async def _settled(following: TaskSubscription) -> None:
    """Wait until the task ends, or pauses: then nobody hears any more that it is to be cancelled."""
    if following.snapshot.state.settled:
        return
    async for entry in following:
        if isinstance(entry.event, StatusChanged) and entry.event.state.settled:
            return
