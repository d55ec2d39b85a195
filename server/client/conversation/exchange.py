"""One command that sends a message to an A2A server: the task it starts is followed to its end and shown.

Rule 1: an answer is over at a terminal state, at a question, or with a message in place of a task.
Rule 2: a stream that ends before that is resumed by `SubscribeToTask`, six times in a row at most without anything
        new, which is half a minute; the message is never sent a second time.
Rule 3: every failure is one line on `err`, and it names the task and the context once they are known. Commands that
        the user can type next are below it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import cast
from uuid import uuid4

from a2a.client import A2AClientError
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InternalError, MethodNotFoundError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.client.conversation import connection
from a2a_canvas.server.client.conversation.connection import ConnectionLost, Session
from a2a_canvas.server.client.conversation.errors import WAITS, ClientError, Interrupted, TaskWaits
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.conversation.state_file import remember
from a2a_canvas.server.client.screen.fold import BROKE_OFF, ENDED_BADLY, PAUSED, SeenTask, asked_again, fold

_RETRIES = 6
_POLL_SECONDS = 1.0

Take = Callable[[pb.StreamResponse, SeenTask], None]
"""Shows one response, which led to what is known of the task."""


async def converse(
    invocation: Invocation,
    session: Session,
    request: pb.Message | str,
    extensions: Sequence[str],
    take: Take | None = None,
) -> SeenTask:
    """Send a message, or take up the task that has this id, and follow the task to its end or its question.

    Args:
        extensions: activated if the card lists them.
        take: shows each response; `invocation.show` if this is left out. With `invocation.json` the response has been
            printed before.

    Raises:
        ClientError: it failed; with the task, and what to do next, once the server has named it. How the task ended is
            for `check_outcome`.
    """
    return await _Conversation(invocation, session, extensions, take or invocation.show).run(request)


def new_message(text: str, context: str = "", task: str = "", parts: Sequence[pb.Part] = ()) -> pb.Message:
    """A message of the user's."""
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
    """Follows one task. `seen`: the task as far as it is known."""

    def __init__(self, invocation: Invocation, session: Session, extensions: Sequence[str], show: Take) -> None:
        self.seen = SeenTask()
        self._invocation, self._client, self._show = invocation, session.client, show
        self._call, self._streaming = session.call(*extensions), session.card.capabilities.streaming
        self._updates = 0
        self._stale = False
        self._sent = False

    async def run(self, request: pb.Message | str) -> SeenTask:
        try:
            if isinstance(request, pb.Message):
                await self._send(request)
            else:
                self.seen = SeenTask(request)
                await (self._subscribe if self._streaming else self._get)()
            await self._go_on()
        except asyncio.CancelledError:
            if not self.seen.task_id:
                raise Interrupted("Interrupted before the server named a task") from None
            raise Interrupted("Interrupted; the task goes on", *self._next()) from None
        except BrokenPipeError:
            raise
        except Exception as error:
            if not self.seen.task_id:
                raise
            reason = connection.explain(error, self._invocation.url) + self.seen.where
            raise ClientError(reason, *(self._next() if isinstance(error, ConnectionLost) else ())) from error
        return self.seen

    def _next(self) -> tuple[str, str]:
        line, task = self._invocation.line, self.seen.task_id
        return (f"Watch it: {line('watch', task)}", f"Cancel it: {line('cancel', task)}")

    async def _send(self, message: pb.Message) -> None:
        # A stream that answers a question may begin with the task as it was: still asking.
        self._sent, self._stale = True, self._streaming and bool(message.task_id)
        try:
            await self._read(self._client.send_message(pb.SendMessageRequest(message=message), context=self._call))
        except (A2AClientError, InternalError) as error:
            if not (self.seen.task_id and connection.lost(error)):
                raise
        self._stale = False

    async def _go_on(self) -> None:
        tries = first = int(self._streaming)
        while not self._over:
            if not self.seen.task_id:
                raise ClientError("The server's answer ended without a task and without a message")
            if tries > _RETRIES:
                raise ConnectionLost(self._invocation.url)
            if tries:
                self._say(f"Connection lost, trying again ({tries} of {_RETRIES})…")
            await self._invocation.pause(2.0 ** (tries - 2) if tries else _POLL_SECONDS)
            tries = first if await (self._subscribe if self._streaming else self._get)() else tries + 1

    async def _subscribe(self) -> bool:
        """Whether anything new came."""
        before = self._updates
        try:
            with _may_be_lost():
                await self._read(
                    self._client.subscribe(pb.SubscribeToTaskRequest(id=self.seen.task_id), context=self._call)
                )
        except (UnsupportedOperationError, MethodNotFoundError):
            # The task is over by now, or this server cannot subscribe: ask for the task itself.
            await self._get()
        return self._updates > before

    async def _get(self) -> bool:
        """Whether the server answered."""
        with _may_be_lost():
            task = await self._client.get_task(pb.GetTaskRequest(id=self.seen.task_id), context=self._call)
            self._take(pb.StreamResponse(task=task))
            return True
        return False

    async def _read(self, stream: AsyncIterator[pb.StreamResponse]) -> None:
        async with aclosing(cast(AsyncGenerator[pb.StreamResponse], stream)) as responses:
            async for response in responses:
                self._take(response)
                if self._over:
                    return

    @property
    def _over(self) -> bool:
        return self.seen.over and not self._stale

    def _take(self, response: pb.StreamResponse) -> None:
        before, self.seen = self.seen, fold(self.seen, response)
        self._updates += not response.HasField("task")
        self._stale = self._stale and response.task.status.state in PAUSED
        if self._sent and self.seen.context_id != before.context_id:
            remember(self._invocation.url, self.seen.context_id)
        if asked_again(before, self.seen, response):
            self._say(BROKE_OFF)
        if self._invocation.json:
            self._invocation.print_json(MessageToDict(response))
        self._show(response, self.seen)

    def _say(self, text: str) -> None:
        if not (self._invocation.json or self._invocation.quiet):
            self._invocation.screen.status(text)


@contextmanager
def _may_be_lost() -> Iterator[None]:
    """Suppresses what another try may mend; an `InternalError` only if the server says so."""
    try:
        yield
    except TaskNotFoundError as error:
        raise ClientError("The server no longer knows the task; it may have been restarted") from error
    except (A2AClientError, InternalError) as error:
        if isinstance(error, InternalError) and not connection.lost(error):
            raise
