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
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile

from server.agent.events import (
    AgentMessage,
    MessageReceived,
    Remembered,
    State,
    StatusChanged,
    TurnEvent,
    UserMessage,
)
from server.agent.history import user_said
from server.agent.model import LLM
from server.agent.turn import LOST, TurnLimits, TurnRequest, run_turn
from server.tasks.errors import ContextMismatch, TaskFinished, TaskNotCancelable, TaskNotFound
from server.tasks.incoming import Incoming, Repeats
from server.tasks.journal import Following, Journal
from server.tasks.record import TaskRecord
from store.base import ArtifactStore
from tools.base import Tool

logger = logging.getLogger(__name__)


def _is_history(other: TaskRecord, owner: str) -> bool:
    """Whether a later task of the context may be told of `other`: what is still being said is not history."""
    return other.owner == owner and other.state not in (State.SUBMITTED, State.WORKING)


@dataclass(slots=True)
class _Running:
    """A turn that runs. `closed`: it takes no more messages; `ending`: what its task becomes if it is stopped."""

    task: asyncio.Task[None] | None = None
    begun: bool = False
    inbox: list[UserMessage] = field(default_factory=list)
    closed: bool = False
    stopping: bool = False
    ending: StatusChanged = field(default_factory=lambda: StatusChanged(State.CANCELED))

    async def stop(self, ending: StatusChanged | None = None) -> None:
        """Cancel the turn, once, and wait until its task has its status."""
        if not self.stopping:
            self.stopping, self.ending = True, ending or self.ending
            if self.task and self.begun:
                self.task.cancel()
        await self.ended()

    def begin(self) -> None:
        """The turn's first step. An `asyncio.Task` that is cancelled before it never runs, and would say nothing."""
        self.begun = True
        if self.stopping:
            raise asyncio.CancelledError

    async def ended(self) -> None:
        if self.task:
            await asyncio.wait([self.task])

    def take(self, closing: bool) -> tuple[UserMessage, ...]:
        messages, self.inbox = tuple(self.inbox), []
        self.closed = closing and not messages
        return messages


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
        self._running: dict[str, _Running] = {}
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
            TaskNotFound, TaskFinished, ContextMismatch: the message was not accepted.
        """
        async with self._accepting:
            joined = self._repeats.task_of(incoming)
            if joined:
                return await self.journal.follow(joined)
            following = await self._accept(incoming)
            self._repeats.remember(incoming, following.snapshot.task_id)
            return following

    async def _accept(self, incoming: Incoming) -> Following:
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
                return await self._answer(record, incoming.message)
            if not running.closed:
                return await self._add(record, running, incoming.message)
            await running.ended()

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
        return await self._start(record)

    async def _answer(self, record: TaskRecord, message: UserMessage) -> Following:
        """The task waits for input: its turn goes on."""
        said = Remembered((user_said(message),))
        await self.journal.append(record.task_id, MessageReceived(message), said, StatusChanged(State.WORKING))
        return await self._start(await self.journal.get(record.task_id))

    async def _add(self, record: TaskRecord, running: _Running, message: UserMessage) -> Following:
        """The task is working: its turn is given the message before its next round."""
        running.inbox.append(message)
        await self.journal.append(record.task_id, MessageReceived(message))
        return await self.journal.follow(record.task_id)

    # ----------------------------------------------------------------- running

    async def _start(self, record: TaskRecord) -> Following:
        following = await self.journal.follow(record.task_id)
        running = self._running[record.task_id] = _Running()
        running.task = asyncio.create_task(self._run(record, running), name=f"turn of task {record.task_id}")
        return following

    async def _run(self, record: TaskRecord, running: _Running) -> None:
        async def emit(event: TurnEvent) -> None:
            await self.journal.append(record.task_id, event)

        try:
            running.begin()
            await run_turn(
                await self._request(record, running),
                llm=self._llm,
                tools=self._tools,
                store=self._store,
                emit=emit,
                new_id=self._new_id,
            )
        except asyncio.CancelledError:
            if late := running.take(closing=True):
                await emit(Remembered(tuple(user_said(message) for message in late)))
            await emit(running.ending)
        except Exception:
            logger.exception("The turn of task %s was lost", record.task_id)
            await emit(StatusChanged(State.FAILED, AgentMessage(self._new_id(), LOST)))
        finally:
            del self._running[record.task_id]

    async def _request(self, record: TaskRecord, running: _Running) -> TurnRequest:
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
