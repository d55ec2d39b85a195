"""Sends a message to an A2A server, follows its task to the end and shows it.

Rule 1: after six retries in a row without news, about half a minute, a lost connection is given up; the message is
        never sent twice.
Rule 2: every failure is one line on `err`, with the ids of task and context once known. The lines below it are
        commands that the user can type next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from uuid import uuid4

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotFoundError
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.a2a_client.agent_connection import AgentConnection
from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.a2a_client.follower import Follower, Persistence
from a2a_canvas.server.client.conversation.connection import ConnectionLost, Session, explain
from a2a_canvas.server.client.conversation.errors import WAITS, ClientError, TaskWaits, UserInterrupt
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.conversation.state_file import remember
from a2a_canvas.server.client.screen.fold import BROKE_OFF, ENDED_BADLY, PAUSED, SeenTask, answers_again, fold

PERSISTENCE = Persistence(delays=(0.5, 1.0, 2.0, 4.0, 8.0, 16.0), polls=(1.0,))

Take = Callable[[pb.StreamResponse, SeenTask], None]
"""Shows one response, and the state of the task after it."""


async def converse(
    invocation: Invocation,
    session: Session,
    request: pb.Message | str,
    extensions: Sequence[str],
    take: Take | None = None,
) -> SeenTask:
    """Send a message, or resume the task with this id, and follow the task to its end or its question.

    Args:
        extensions: activated if the card lists them.
        take: shows each response; `invocation.show` by default. With `invocation.json`, the response is already
            printed.

    Raises:
        ClientError: it failed; with the task and the next steps, once the server has named it. `check_outcome` judges
            the end of the task.
    """
    return await _Conversation(invocation, session, extensions, take or invocation.show).run(request)


def new_message(text: str, context: str = "", task: str = "", parts: Sequence[pb.Part] = ()) -> pb.Message:
    """A message from the user."""
    all_parts = [pb.Part(text=text), *parts]
    return pb.Message(message_id=str(uuid4()), role=pb.ROLE_USER, parts=all_parts, context_id=context, task_id=task)


def check_outcome(seen: SeenTask) -> int:
    """The exit code of a command that followed the task: 0, or `WAITS` if it waits for an answer.

    Raises:
        TaskWaits: it waits for authentication.
        ClientError: it ended badly.
    """
    if problem := ENDED_BADLY.get(seen.state):
        kind = TaskWaits if seen.state in PAUSED else ClientError
        raise kind(f"{problem}: {seen.message}" if seen.message else f"{problem}.")
    return WAITS if seen.state in PAUSED else 0


class _Conversation:
    """Follows one task. `seen`: its state so far."""

    def __init__(self, invocation: Invocation, session: Session, extensions: Sequence[str], show: Take) -> None:
        self.seen = SeenTask()
        self._invocation, self._show = invocation, show
        streams, context = session.card.capabilities.streaming, session.call(*extensions)
        connection = AgentConnection(session.client, context, streams=streams)
        self._follower = Follower(connection, self._take, self._wait, PERSISTENCE)
        self._sent = False

    async def run(self, request: pb.Message | str) -> SeenTask:
        try:
            if isinstance(request, pb.Message):
                self._sent = True
                await self._follower.run(request)
            else:
                self.seen, self._follower.task_id = SeenTask(request), request
                await self._follower.run()
        except asyncio.CancelledError:
            if not self.seen.task_id:
                raise UserInterrupt("Interrupted before the server named a task") from None
            raise UserInterrupt("Interrupted; the task continues", *self._next()) from None
        except BrokenPipeError:
            raise
        except Exception as raised:
            error = self._error(raised) if isinstance(raised, AgentFault) else raised
            if not self.seen.task_id:
                raise error from error.__cause__
            reason = explain(error, self._invocation.url) + self.seen.where
            raise ClientError(reason, *(self._next() if isinstance(error, ConnectionLost) else ())) from error
        return self.seen

    def _error(self, fault: AgentFault) -> Exception:
        cause = fault.__cause__
        if self.seen.task_id and fault.retryable:
            return ConnectionLost(self._invocation.url)
        if self.seen.task_id and isinstance(cause, TaskNotFoundError):
            return ClientError("The server no longer knows the task; it may have been restarted")
        if isinstance(cause, Exception):
            return cause
        return ClientError("The server's answer ended without a task and without a message")

    def _next(self) -> tuple[str, str]:
        line, task = self._invocation.line, self.seen.task_id
        return (f"Watch it: {line('watch', task)}", f"Cancel it: {line('cancel', task)}")

    async def _wait(self, seconds: float, lost: int) -> None:
        if lost:
            self._say(f"Connection lost, trying again ({lost} of {len(PERSISTENCE.delays)})…")
        await self._invocation.pause(seconds)

    async def _take(self, response: pb.StreamResponse) -> None:
        before, self.seen = self.seen, fold(self.seen, response)
        if self._sent and self.seen.context_id != before.context_id:
            remember(self._invocation.url, self.seen.context_id)
        if answers_again(before, self.seen, response):
            self._say(BROKE_OFF)
        if self._invocation.json:
            self._invocation.print_json(MessageToDict(response))
        self._show(response, self.seen)

    def _say(self, text: str) -> None:
        if not (self._invocation.json or self._invocation.quiet):
            self._invocation.screen.status(text)
