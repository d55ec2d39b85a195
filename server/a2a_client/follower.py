"""Follows one task of another server to its end, however often the connection breaks.

Rule 1: a task is over at a terminal state, at a question, or with a message in place of a task.
Rule 2: a stream that ends before that is resumed by `SubscribeToTask`; a task without streams is polled by `GetTask`.
Rule 3: a message is sent again, under its id, only if nothing answered it, and only `resends` times.
Rule 4: with `confirms`, `GetTask` confirms the state before each stream, after a failed one, and at the end. An end
        that it does not confirm within some time is accepted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_connection import AgentConnection
from a2a_canvas.server.a2a_client.agent_fault import AgentFault

ENDED = (pb.TASK_STATE_COMPLETED, pb.TASK_STATE_FAILED, pb.TASK_STATE_CANCELED, pb.TASK_STATE_REJECTED)
WAITS = (pb.TASK_STATE_INPUT_REQUIRED, pb.TASK_STATE_AUTH_REQUIRED)

Take = Callable[[pb.StreamResponse], Awaitable[None]]
"""Takes an event of the task; a polled snapshot is one, too."""
Wait = Callable[[float, int], Awaitable[object]]
"""Waits some seconds before a try; with its number since the connection was lost, or 0."""


@dataclass(frozen=True, slots=True)
class Persistence:
    """How long a follower tries.

    Attributes:
        delays: seconds before each try to reach a server that was lost; after the last try it is given up.
        polls: seconds between polls; the last one repeats.
        resends: how often a message without an answer is sent again.
        confirms: see rule 4.
    """

    delays: tuple[float, ...]
    polls: tuple[float, ...]
    resends: int = 0
    confirms: bool = False


@dataclass(frozen=True, slots=True)
class Tries:
    """Consecutive tries that lost the connection, and that brought nothing new."""

    lost: int = 0
    quiet: int = 0

    def after_loss(self) -> Tries:
        return Tries(self.lost + 1, self.quiet)

    def after_answer(self) -> Tries:
        return Tries(quiet=self.quiet + 1)

    def pause(self, persistence: Persistence) -> float | None:
        """Seconds until the next try; None if the server is given up."""
        if self.lost > len(persistence.delays):
            return None
        return persistence.delays[self.lost - 1] if self.lost else persistence.polls[: self.quiet or 1][-1]


NEWS = Tries(lost=1)
"""After a stream that brought something new, and ended before the task."""


def task_of(event: pb.StreamResponse) -> tuple[str, str]:
    """The ids of an event's task and context; empty for a message."""
    update = event.status_update if event.HasField("status_update") else event.artifact_update
    return event.task.id or update.task_id, event.task.context_id or update.context_id


def status_key(status: pb.TaskStatus) -> str:
    """A key that differs between statuses; empty if the server sends nothing to tell them apart."""
    time = status.timestamp.ToJsonString() if status.HasField("timestamp") else ""
    return f"{status.message.message_id} {time}".strip()


def is_over(event: pb.StreamResponse, answered: str = "") -> bool:
    """Whether an event ends the task for now (rule 1).

    Args:
        answered: the key of the question that has an answer.
    """
    status = event.task.status if event.HasField("task") else event.status_update.status
    if status.state in WAITS:
        return not status_key(status) or status_key(status) != answered
    return status.state in ENDED or event.HasField("message")


@dataclass(slots=True)
class Follower:
    """Follows one task.

    Attributes:
        task_id: empty until the first event names the task.
        answered: the key of the question that a message answers, if it is known.
    """

    connection: AgentConnection
    take: Take
    wait: Wait
    persistence: Persistence
    task_id: str = ""
    answered: str = ""
    _tries: Tries = Tries()
    _polling: bool = False
    _has_answer: bool = False
    _end_announced: bool = False
    _last_fault: AgentFault = field(default_factory=lambda: AgentFault("the connection to it was lost", retryable=True))

    async def run(self, message: pb.Message | None = None) -> None:
        """Send a message, if there is one, and follow the task until it is over.

        Raises:
            AgentFault: the server refuses, or is given up.
        """
        self._polling = not self.connection.streams
        over = await (self._send(message) if message else self._resume())
        while not over and not (self._end_announced and self._tries.quiet > len(self.persistence.polls)):
            if (pause := self._tries.pause(self.persistence)) is None:
                raise self._last_fault
            await self.wait(pause, self._tries.lost)
            over = await self._resume()

    async def _send(self, message: pb.Message) -> bool:
        """Whether the task is over; the other steps return the same."""
        delays = iter(self.persistence.delays[: self.persistence.resends])
        while True:
            try:
                return await self._read(self.connection.send(message), message)
            except AgentFault as fault:
                delay = next(delays, None)
                if self._has_answer or not fault.retryable or delay is None:
                    raise
            await self.wait(delay, 0)

    async def _resume(self) -> bool:
        if self.persistence.confirms or self._polling:
            over = await self._poll()
            if over or self._polling or self._tries.lost:
                return over
        return await self._read(self.connection.subscribe(self.task_id))

    async def _poll(self) -> bool:
        try:
            task = await self.connection.get(self.task_id)
        except AgentFault as fault:
            if not self._end_announced and not fault.retryable:
                raise
            self._last_fault, self._tries = fault, self._tries.after_loss()
            return self._end_announced
        event = pb.StreamResponse(task=task)
        over = is_over(event, self.answered)
        if over or not self._end_announced:
            await self.take(event)
        self._tries = self._tries.after_answer()
        return over

    async def _read(self, stream: AsyncGenerator[pb.StreamResponse], message: pb.Message | None = None) -> bool:
        self._has_answer = news = False
        end = asked = fault = None
        # The stream that answers a question may begin with the old state, still asking. If that is all, it asks
        # the next question.
        stale = message is not None and bool(message.task_id) and self.connection.streams
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    if self._is_ours(event, names_task=message is not None and not self._has_answer):
                        self._has_answer, news = True, news or not event.HasField("task")
                        stale = stale and event.task.status.state in WAITS
                        await self.take(event)
                        asked = event if stale else None
                        if not stale and is_over(event, self.answered):
                            end = event
                            break
            if asked and is_over(asked, self.answered) and not self.persistence.confirms:
                end = asked
        except AgentFault as raised:
            fault = raised
        if message is not None and not self._has_answer:
            raise fault or AgentFault("it ends without an answer", retryable=True)
        return await self._decide(news, end, fault)

    def _is_ours(self, event: pb.StreamResponse, names_task: bool) -> bool:
        task_id, _ = task_of(event)
        if names_task:
            if not task_id and not event.HasField("message"):
                raise AgentFault("it answers without a task")
            self.task_id = task_id or self.task_id
        return task_id in ("", self.task_id)

    async def _decide(self, news: bool, end: pb.StreamResponse | None, fault: AgentFault | None) -> bool:
        confirms = self.persistence.confirms
        if end and (end.HasField("message") or not confirms):
            return True
        refused = fault is not None and not fault.retryable
        if fault and refused and not (fault.streamless or confirms):
            raise fault
        if end or (refused and not self._has_answer):
            self._end_announced, self._polling = end is not None, True
            return await self._poll()
        if news:
            self._tries = NEWS
        elif not (confirms or self._polling):
            self._tries = self._tries.after_loss()
        return False
