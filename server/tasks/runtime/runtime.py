"""Accepts messages, and starts, continues and cancels the turns that answer them. A task has one owner replica.

Rule 1: a message is accepted in one of five ways (`send`): it starts a task, answers one that waits for input, is
        added to one that works here, or elsewhere, or repeats one that was accepted before and joins its task.
        One that names no task and is no operation answers the task of its context that waits, if it is the only one
        and the sender may answer it (`tasks/answering.py`).
Rule 2: the sender gets a snapshot first, before any slow work, and then everything that follows it.
Rule 3: what has been accepted is durable: it is carried out even if this process ends in the next moment.
Rule 4: a message and the changes that come with it are accepted in one step, or not at all. From that step on, and
        from when a task that waits is acquired, the work continues even if the sender hangs up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from a2a_canvas.server.accounts.access import Caller, Level
from a2a_canvas.server.accounts.errors import OUTSIDE_LINK, ContextNotFound, ReadOnly
from a2a_canvas.server.agent.annotation_operations import asks_agent, is_annotation_operation
from a2a_canvas.server.agent.edit.run import apply_user_changes, check_operation
from a2a_canvas.server.agent.endings import INTERNAL_ERROR, Ending
from a2a_canvas.server.agent.events import (
    MessageReceived,
    State,
    StatusChanged,
    TranscriptAppended,
    UserMessage,
)
from a2a_canvas.server.agent.intent import Converse, Operation, Put, SelectionEdit, Upload
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.agent.turn.function_calls import find_no_tool
from a2a_canvas.server.agent.turn.history import to_user_input, without_credentials
from a2a_canvas.server.agent.turn.pending_calls import asks_for_credentials, text_of_message
from a2a_canvas.server.agent.turn.turn import TurnLimits
from a2a_canvas.server.log_output import about, set_task
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.tasks.answering import check_answer, may_answer
from a2a_canvas.server.tasks.contexts import Context, Contexts
from a2a_canvas.server.tasks.errors import (
    ContextMismatch,
    DuplicateMessage,
    EditsOff,
    QuestionChanged,
    TaskDetached,
    TaskFinished,
    TaskNotCancelable,
    TaskNotFound,
    TaskTakesNoMessages,
    Unwritable,
)
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.journal.round_robin import round_robin
from a2a_canvas.server.tasks.kept_files import has_large_files, name_files
from a2a_canvas.server.tasks.named_locks import NamedLocks
from a2a_canvas.server.tasks.push_configs import PushConfigs
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.tasks.runtime.ownership import LocalOwnership, Orphan, Ownership
from a2a_canvas.server.tasks.runtime.turn_report import log_status
from a2a_canvas.server.tasks.runtime.turns import TurnHandle, Turns
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import NewId, context_key, new_id, public_id, shard_of
from a2a_canvas.store.models import Ref
from a2a_canvas.tools.functions.function_tool import AnyTool, FindTool

logger = logging.getLogger(__name__)

T = TypeVar("T")

POLL_INTERVAL = 0.05
"""Seconds between two looks at a step that another replica is about to finish."""
LAST_RUNS = 3.0
"""Seconds that a run which no server can continue may take when the server shuts down: most of a shutdown's grace."""
SERVER_STOPPED = "The server was stopped before the task was done. Send it again."

Accept = Callable[[], Awaitable[None]]
"""Writes to the journal that the message was accepted; it does not wait."""


class Runtime:
    """Runs the tasks of this process; it is the `TaskRunner` of its backend.

    Args:
        ownership: which replica runs which task; None if there is only this process, and it stores nothing.
        admission: how many turns run at once, and how many wait.
        instructions: who the agent is and how it works; they stand before our own rules in each system prompt.
        push: stores the push configs of existing tasks; the journal stores that of a new one.
        metrics: count what the turns do.
        contexts: opens contexts, and the tasks in them, for callers.
        find_tool: waits for a tool that is not there when a task goes on.
        agent: runs the conversations in place of the model's rounds.
        frame: seconds within which pieces of an agent's reply are joined, as deltas of a model are; 0 joins nothing.
        now, new_id: the clock and the source of ids.
        sleep: waits before a model call is retried.
    """

    def __init__(
        self,
        *,
        contexts: Contexts,
        llm: LLM,
        tools: Callable[[], Sequence[AnyTool]],
        now: Callable[[], datetime],
        new_id: NewId,
        limits: TurnLimits | None = None,
        ownership: Ownership | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        admission: Admission | None = None,
        instructions: str = "",
        metrics: Metrics | None = None,
        find_tool: FindTool = find_no_tool,
        push: PushConfigs | None = None,
        agent: AgentFunction | None = None,
        frame: float = 0.0,
    ) -> None:
        self.contexts = contexts
        self.journal = journal = contexts.journal
        self._push = push
        self._store = store = contexts.store
        self._now = now
        self._new_id = new_id
        self.agent_name = ""  # by which comments mention the agent; the card says it, which is made of a runtime
        self._durable = ownership is not None
        self._ownership = ownership or LocalOwnership(journal)
        admission = admission or Admission()
        self.meter = admission.meter
        self._turns = Turns(
            journal=journal,
            access=contexts.access,
            store=store,
            llm=llm,
            tools=tools,
            now=now,
            new_id=new_id,
            limits=limits or TurnLimits(),
            sleep=sleep,
            admission=admission,
            instructions=instructions,
            metrics=metrics or Metrics(now),
            find_tool=find_tool,
            agents_suggest=contexts.owned.agents_suggest,
            agent=agent,
            frame=frame,
            presence=contexts.presence,
        )
        self._locks = NamedLocks()
        self._background: set[asyncio.Task[Any]] = set()

    @property
    def edits(self) -> bool:
        """Whether edits of a selection are answered, by the agent's function or by the model."""
        return self._turns.edits

    # ---------------------------------------------------------------- reading

    async def get(self, task_id: str, caller: Caller, level: Level = Level.READ) -> TaskRecord:
        """The current record of a task.

        Args:
            level: what the caller must be allowed to do.

        Raises:
            TaskNotFound: there is none that the caller may read.
            ReadOnly: it may read the task, and no more.
        """
        await self.contexts.open_task(caller, task_id, level)
        return await self.journal.get(task_id)

    async def follow(self, task_id: str, caller: Caller) -> TaskSubscription:
        """A snapshot of the task and everything after it.

        Raises:
            TaskNotFound: there is none that the caller may read; also later, when a share has ended.
        """
        context = await self.contexts.open_task(caller, task_id)
        return context.guard(await self.journal.follow(task_id))

    async def check_readable(self, task_id: str, caller: Caller) -> None:
        """Raises `TaskNotFound` if there is no such task that the caller may read."""
        await self.contexts.open_task(caller, task_id)

    # --------------------------------------------------------------- accepting

    async def send(self, incoming: Incoming, caller: Caller) -> TaskSubscription:
        """Accept a message; the subscription begins with the task it belongs to.

        Raises:
            TaskNotFound, TaskFinished, TaskTakesNoMessages, ContextMismatch, InvalidOperation, EditsOff, ReadOnly,
                AnswerNotAllowed: the message was not accepted.
            QueueFull, QuotaReached, StorageFull: it was not accepted; the same message may be later.
            Unavailable: it is unknown whether it was accepted; if it was, the same message joins the task.
        """
        if caller.author:
            incoming = replace(incoming, message=replace(incoming.message, sender=caller.author))
        context = await self._open(incoming, caller)
        if context is None:
            return await self._send(replace(incoming, owner=caller.name, level=Level.OWN))
        found = replace(incoming, owner=context.owner, level=context.level, context=context.key)
        return context.guard(await self._send(found))

    async def _send(self, incoming: Incoming) -> TaskSubscription:
        if has_large_files(incoming.message):
            incoming = replace(incoming, message=await asyncio.to_thread(name_files, incoming.message))
        message_key = incoming.message_key
        set_task(incoming.task_id, incoming.context or "")
        async with self._locks.hold(incoming.task_id or message_key):
            try:
                joined = await self.journal.find_duplicate(message_key)
                if joined:
                    await self.journal.flushed(joined)
                    return await self._join(joined, incoming)
                return await self._accept(incoming, message_key)
            except DuplicateMessage as duplicate:
                return await self._join(duplicate.task_id, incoming)

    async def _join(self, task_id: str, incoming: Incoming) -> TaskSubscription:
        subscription = await self.journal.follow(task_id)
        await self._register_push(incoming, subscription.snapshot)
        return subscription

    async def _register_push(self, incoming: Incoming, record: TaskRecord) -> None:
        if incoming.push and self._push:
            await self._push.add(incoming.push.of_task(record))

    async def _open(self, incoming: Incoming, caller: Caller) -> Context | None:
        """The context that a message is sent to; None for a new one without an id."""
        level = incoming.required_level
        if incoming.task_id:
            if not isinstance(incoming.message.intent, Converse) and not incoming.changes:
                raise InvalidOperation("message.taskId", "must be left out: an operation is a task of its own")
            context = await self.contexts.open_task(caller, incoming.task_id, level)
            if incoming.context_id and incoming.context_id != public_id(context.key):
                raise ContextMismatch(incoming.task_id, incoming.context_id)
            return context
        if caller.link and not incoming.context_id:
            raise ReadOnly(OUTSIDE_LINK)
        try:
            return await self.contexts.open(caller, incoming.context_id, level) if incoming.context_id else None
        except ContextNotFound:
            raise ReadOnly(OUTSIDE_LINK) from None

    async def _accept(self, incoming: Incoming, message_key: str) -> TaskSubscription:
        """Accept the message: the subscription to its task, before any work starts."""
        intent = incoming.message.intent
        await self.meter.check_bytes(incoming.owner, incoming.message.sender, incoming.size)
        if not isinstance(intent, Converse) and not incoming.changes:
            await self._check_operation(intent, incoming)
        if not incoming.task_id:
            return await self._answer_question(incoming, message_key) or await self._create(incoming, message_key)
        while True:
            record = await self.journal.get(incoming.task_id)
            if record.state.terminal:
                raise TaskFinished(incoming.task_id, record.state)
            if subscription := await self._try_continue(record, incoming, message_key):
                return subscription

    async def _check_operation(self, operation: Operation, incoming: Incoming) -> None:
        if isinstance(operation, SelectionEdit) and not self.edits:
            raise EditsOff
        if not incoming.context:
            if isinstance(operation, Put | Upload) and operation.name is not None:
                return
            raise InvalidOperation("message.contextId", "is missing: say in which context the artifact is")
        await check_operation(operation, incoming.context, self._store, self.journal.annotations)

    async def _answer_question(self, incoming: Incoming, message_key: str) -> TaskSubscription | None:
        """The only task of the context that waits for input, if it has taken the message; None if there is none that
        the sender may answer."""
        while task_id := await self._waiting_task(incoming):
            # Nobody who holds the lock of a task waits for the lock of a message key.
            async with self._locks.hold(task_id):
                with suppress(TaskNotFound):  # it has just been removed
                    record = await self.journal.get(task_id)
                    waits = record.state.paused
                    asked = record, incoming.message.sender, incoming.level
                    if waits and not may_answer(*asked, of_model=incoming.of_model):
                        return None
                    if waits and (subscription := await self._try_continue(record, incoming, message_key)):
                        return subscription
            await asyncio.sleep(POLL_INTERVAL)  # another message has answered it
        return None

    async def _waiting_task(self, incoming: Incoming) -> str:
        if not incoming.context or not isinstance(incoming.message.intent, Converse):
            return ""
        waiting = await self.journal.waiting_tasks(incoming.context, incoming.owner)
        return waiting[0] if len(waiting) == 1 else ""

    async def _create(self, incoming: Incoming, message_key: str) -> TaskSubscription:
        # The same message goes to the same shard, whichever server takes it.
        shard = shard_of(incoming.context or message_key or new_id())
        record = TaskRecord(
            task_id=self._new_id(shard),
            context_id=incoming.context or context_key(incoming.owner, self._new_id(shard)),
            owner=incoming.owner,
            changed_at=self._now(),
            history=(incoming.message,),
            transcript=(to_user_input(incoming.message),) if self._is_for_agent(incoming) else (),
        )
        push = incoming.push and incoming.push.of_task(record)
        with self._turns.reserve(record, incoming.message.sender):
            await self.journal.keep_files(record.context_id, incoming.message)
            await self._prepare(incoming, record)
            if incoming.changes and (joined := await self.journal.find_duplicate(message_key)):
                # A replica that took the same message made the changes before it released the artifacts.
                raise DuplicateMessage(joined)
            return await self._accept_and_start(
                record, incoming, partial(self.journal.create, record, message_key, push)
            )

    def _is_for_agent(self, incoming: Incoming) -> bool:
        """Whether the agent is shown the message: an annotation only if it asks the agent, and its sender may."""
        intent = incoming.message.intent
        may_ask = incoming.level >= Level.EDIT and asks_agent(intent, self.agent_name)
        return may_ask or not is_annotation_operation(intent)

    async def _try_continue(self, record: TaskRecord, incoming: Incoming, message_key: str) -> TaskSubscription | None:
        """The task, if it has taken the message in the state of `record`; None if its state has changed since."""
        handle = self._turns.get(record.task_id)
        if incoming.generation not in (0, record.generation):
            raise QuestionChanged(record.task_id)
        if handle is None and record.state.paused:
            check_answer(record, incoming.message.sender, incoming.level, of_model=incoming.of_model)
            resuming = self._resume_paused(record, incoming, message_key)
            return await asyncio.shield(self._in_background(resuming))  # rule 4
        if record.operation:
            raise TaskTakesNoMessages(record.task_id)
        self._turns.check_tokens(record, incoming.message.sender)
        await self._register_push(incoming, record)
        await self.journal.keep_files(record.context_id, incoming.message)
        if handle is None:
            posted = await self._ownership.post(record.task_id, incoming.message, message_key)
            return await self.journal.follow(record.task_id) if posted else None
        if await self._add_message(record.task_id, handle, incoming.message):
            await self.journal.remember_message(message_key, record.task_id)
            await self.journal.flushed(record.task_id)
            return await self.journal.follow(record.task_id)
        await handle.wait()
        return None

    async def _resume_paused(self, record: TaskRecord, incoming: Incoming, message_key: str) -> TaskSubscription | None:
        """Acquire the task that waits for input, append the answer and start its turn; None if it waits no more."""
        with self._turns.reserve(record, incoming.message.sender) as queued:
            if not asks_for_credentials(record.transcript):  # they are not stored
                await self.journal.keep_files(record.context_id, incoming.message)
            await self._prepare(incoming, record)
            # Of this generation: the sender may answer what the task waits for in it.
            acquired = await self._ownership.acquire(record.task_id, record.generation)
            if acquired is None:
                await asyncio.sleep(POLL_INTERVAL)  # another replica is about to write that it works again
            if acquired is None or not acquired.state.paused:
                return None
            await self._register_push(incoming, record)
            status = StatusChanged(State.SUBMITTED if queued else State.WORKING)
            message, credentials = incoming.message, None
            if asks_for_credentials(acquired.transcript):
                credentials = text_of_message(to_user_input(message))
                message = without_credentials(message)
            accept = partial(self._append_answer, record.task_id, message, status, message_key)
            return await self._accept_and_start(acquired, incoming, accept, credentials)

    async def _append_answer(self, task_id: str, message: UserMessage, status: StatusChanged, message_key: str) -> None:
        await self.journal.append(
            task_id, MessageReceived(message), TranscriptAppended((to_user_input(message),)), status
        )
        await self.journal.remember_message(message_key, task_id)

    async def _add_message(self, task_id: str, handle: TurnHandle, message: UserMessage) -> bool:
        """Give the message to the turn that runs here, before its next round; False if there is none."""
        if handle.operation or handle.closed:
            return False
        handle.new_messages.append(message)
        await self.journal.append(task_id, MessageReceived(message))
        return True

    # --------------------------------------------------------------- starting a turn

    async def _prepare(self, incoming: Incoming, record: TaskRecord) -> None:
        """Acquire the artifacts that the message changes, so that it is accepted with all its changes or not at all."""
        for artifact_id, _ in incoming.changes:
            await self._store.prepare(Ref(record.context_id, artifact_id, record.task_id, "user"))

    async def _accept_and_start(
        self, record: TaskRecord, incoming: Incoming, accept: Accept, credentials: str | None = None
    ) -> TaskSubscription:
        """Accept a message, store the changes that came with it, and start the turn once all of that is durable.

        Args:
            credentials: what the message says, if that is not stored.

        Raises:
            DuplicateMessage: another replica has accepted the message.
            Unavailable: it is unknown yet whether it was accepted.
        """
        set_task(record.task_id, record.context_id)
        if incoming.changes:
            return await asyncio.shield(
                self._in_background(self._accept_with_changes(record, incoming, accept, credentials))
            )
        await accept()
        return await self._start_or_retry(record.task_id, credentials)

    def _in_background(self, step: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A step that continues when its caller is cancelled (rule 4)."""
        task = asyncio.create_task(step)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _accept_with_changes(
        self, record: TaskRecord, incoming: Incoming, accept: Accept, credentials: str | None
    ) -> TaskSubscription:
        await round_robin().long_step()  # up to 2,000 changes are made in one step
        refused = await self._save(record, incoming, accept)
        if refused:
            await self._end(record.task_id, refused.status(self._new_id))
            return await self.journal.follow(record.task_id)
        return await self._start_or_retry(record.task_id, credentials)

    async def _save(self, record: TaskRecord, incoming: Incoming, accept: Accept) -> Ending | None:
        """Accept the message and store its changes, in one step; how the task ends if they cannot be stored."""
        emit = partial(self.journal.append, record.task_id)
        store = self._turns.store_of(record.task_id)
        try:
            await accept()
            return await apply_user_changes(incoming.changes, record.context_id, record.task_id, store, emit)
        except TaskDetached:
            raise Unavailable("another server has taken over") from None
        except Unavailable:
            raise  # it was not even accepted
        except Exception:
            logger.exception("The changes that came with the message were lost")
            return Ending(State.FAILED, INTERNAL_ERROR)

    async def _end(self, task_id: str, status: StatusChanged) -> None:
        """End a task that has no turn here."""
        await self.journal.append(task_id, status)
        log_status(status)
        await self.journal.flushed(task_id)

    async def _start_or_retry(self, task_id: str, credentials: str | None) -> TaskSubscription:
        try:
            return await self._start_when_durable(task_id, credentials)
        except TaskDetached:  # a `CancelledError`, but the request was not cancelled
            raise Unavailable("another server has taken over") from None
        except (Unavailable, asyncio.CancelledError):
            # It is on its way to the database, and no other replica will carry it out.
            self._in_background(self._start_later(task_id, credentials))
            raise

    async def _start_when_durable(self, task_id: str, credentials: str | None) -> TaskSubscription:
        self.journal.check_runs_here(task_id)
        await self.journal.flushed(task_id)
        self.journal.check_runs_here(task_id)
        subscription = await self.journal.follow(task_id)
        if self._turns.get(task_id) is None:  # otherwise it was lost and taken over again meanwhile
            self._turns.start(subscription.snapshot, credentials)
        return subscription

    async def _start_later(self, task_id: str, credentials: str | None) -> None:
        while True:
            with suppress(DuplicateMessage, TaskDetached, TaskNotFound, Unwritable):
                try:
                    await self._start_when_durable(task_id, credentials)
                except Unavailable:
                    await asyncio.sleep(POLL_INTERVAL)
                    continue
            return

    # ------------------------------------------------------- as a `TaskRunner`

    def resume(self, orphan: Orphan) -> None:
        logger.info(
            "The task was taken over and is resumed", extra=about(orphan.record.task_id, orphan.record.context_id)
        )
        self._turns.resume(orphan)

    async def deliver(self, task_id: str, message: UserMessage) -> bool:
        handle = self._turns.get(task_id)
        return handle is not None and await self._add_message(task_id, handle, message)

    def cancel_turn(self, task_id: str) -> None:
        if handle := self._turns.get(task_id):
            handle.cancel()

    @property
    def room(self) -> int:
        return self._turns.admission.room

    def waiting_tasks(self) -> Sequence[str]:
        return self._turns.waiting_tasks()

    async def wait_until_full(self) -> None:
        await self._turns.admission.full.wait()

    def detach(self, task_ids: Iterable[str] | None = None) -> None:
        self._turns.detach(task_ids)

    # ---------------------------------------------------------------- stopping

    async def cancel(self, task_id: str, caller: Caller) -> TaskRecord:
        """Stop a task's turn at once, wherever it runs, and make the task `canceled`.

        Raises:
            TaskNotFound: there is none that the caller may read.
            ReadOnly: it may read the task, and no more.
            TaskNotCancelable: it had ended before.
            Unavailable: it is unknown whether it was cancelled.
        """
        record = await self.get(task_id, caller, Level.EDIT)
        if record.state.terminal:
            raise TaskNotCancelable(task_id, record.state)
        while await self._is_running(task_id):
            if handle := self._turns.get(task_id):
                await handle.stop()
                if handle.detached:
                    continue  # it is resumed, here or elsewhere, and must be cancelled there
            else:
                await self._ownership.request_cancel(task_id)
            # A request to cancel a task that pauses is dropped: hence until it is settled, not until it has ended.
            await (await self.journal.follow(task_id)).wait_until_settled()
        record = await self.journal.get(task_id)
        if record.state is not State.CANCELED:
            raise TaskNotCancelable(task_id, record.state)
        return record

    async def _is_running(self, task_id: str) -> bool:
        """Whether a replica works on the task; one that waits for input is cancelled here."""
        async with self._locks.hold(task_id):  # a message may just be making it work again
            record = await self.journal.get(task_id)
            if self._turns.get(task_id) or not record.state.paused:
                return not record.state.terminal
            # First what its calls have begun elsewhere: if a crash comes between, the task can be cancelled again.
            await self._turns.abandon(record)
            return not await asyncio.shield(self._in_background(self._acquire_and_cancel(task_id)))

    async def _acquire_and_cancel(self, task_id: str) -> bool:
        acquired = await self._ownership.acquire(task_id)
        if acquired is None:
            await asyncio.sleep(POLL_INTERVAL)
            return False
        if acquired.state.paused:
            await self._end(task_id, StatusChanged(State.CANCELED))
        return True

    def admit(self) -> None:
        """Let turns run that waited for what other replicas have ended."""
        self._turns.admission.admit()

    async def close(self) -> None:
        """Stop every turn: the server shuts down. If tasks are durable, another replica takes them over."""
        if self._durable:
            # Before the tasks are given up: what the turns emit from then on is ignored.
            await self._turns.finish(LAST_RUNS)
            await self._ownership.resign()
            await self.idle()
        else:
            await self._turns.stop_all(SERVER_STOPPED)

    async def idle(self) -> None:
        """Wait until no turn runs."""
        await self._turns.wait()
