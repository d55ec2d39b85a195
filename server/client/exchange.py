"""One message to an A2A server, and the task that it starts, followed to where it is over.

Rule 1: an answer is over at a terminal state, at a question, or with a message in place of a task.
Rule 2: a stream that ends before that is taken up again by `SubscribeToTask`, six times in a row at most without
        anything new, which is half a minute; the message is never sent a second time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Protocol, cast

import httpx
from a2a.client import A2AClientError, Client, ClientCallContext
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InternalError, MethodNotFoundError, TaskNotFoundError, UnsupportedOperationError

from a2a_canvas.server.client import connection
from a2a_canvas.server.client.connection import ConnectionLost, SendError, TaskForgotten
from a2a_canvas.server.client.fold import BROKE_OFF, TURN, Seen, asked_again, fold

Pause = Callable[[float], Awaitable[object]]
"""Waits that many seconds, between tries."""

_RETRIES = 6
_POLL = 1.0


class View(Protocol):
    """Who looks on."""

    def take(self, response: pb.StreamResponse) -> None:
        """Show what the server said."""

    def announce(self, text: str) -> None:
        """Show what is done about a connection or an answer that broke off."""


class Exchange:
    """Sends and follows.

    Args:
        url: what the user calls the server.
        view: who is shown everything.
        extensions: those to be activated, where the card lists them.

    Attributes:
        seen: the task as far as it is known.
    """

    def __init__(
        self, url: str, view: View, *, extensions: Sequence[str] = (TURN,), pause: Pause = asyncio.sleep
    ) -> None:
        self.seen = Seen()
        self._url, self._view, self._extensions, self._pause = url, view, extensions, pause
        self._updates = 0
        self._stale = False

    async def run(self, http: httpx.AsyncClient, card: pb.AgentCard, message: pb.Message) -> Seen:
        """Send the message; the task when it is over. Raises what `connection.explain` explains."""
        async with connection.client(http, card) as client:
            await self._converse(client, card, message)
        return self.seen

    async def _converse(self, client: Client, card: pb.AgentCard, message: pb.Message) -> None:
        call = connection.activation(card, self._extensions)
        streaming = card.capabilities.streaming
        # A stream that answers a question may begin with the task as it was: still asking.
        self._stale = streaming and bool(message.task_id)
        try:
            await self._read(client.send_message(pb.SendMessageRequest(message=message), context=call))
        except (A2AClientError, InternalError) as error:
            if not (self.seen.task_id and connection.lost(error)):
                raise
        self._stale = False
        await (self._resume(client, call) if streaming else self._poll(client, call))

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
        self._stale = self._stale and _asks(response)
        if asked_again(before, self.seen, response):
            self._view.announce(BROKE_OFF)
        self._view.take(response)

    # -------------------------------------------------- a task that is not over yet

    async def _resume(self, client: Client, call: ClientCallContext) -> None:
        tries = 0
        while not self._over:
            self._must_go_on(tries)
            tries += 1
            await self._announce(tries)
            if await self._subscribe(client, call):
                tries = 0

    async def _subscribe(self, client: Client, call: ClientCallContext) -> bool:
        """Whether anything new came."""
        before = self._updates
        try:
            await self._read(client.subscribe(pb.SubscribeToTaskRequest(id=self.seen.task_id), context=call))
        except (UnsupportedOperationError, MethodNotFoundError):
            # The task is over by now, or this server cannot: the task itself tells.
            await self._get(client, call)
        except TaskNotFoundError as error:
            raise TaskForgotten from error
        except (A2AClientError, InternalError) as error:
            _check_lost(error)
        return self._updates > before

    async def _poll(self, client: Client, call: ClientCallContext) -> None:
        tries = 0
        while not self._over:
            self._must_go_on(tries)
            await (self._announce(tries) if tries else self._pause(_POLL))
            tries = 0 if await self._get(client, call) else tries + 1

    async def _get(self, client: Client, call: ClientCallContext) -> bool:
        """Whether the server answered."""
        try:
            task = await client.get_task(pb.GetTaskRequest(id=self.seen.task_id), context=call)
        except TaskNotFoundError as error:
            raise TaskForgotten from error
        except (A2AClientError, InternalError) as error:
            _check_lost(error)
            return False
        self._take(pb.StreamResponse(task=task))
        return True

    def _must_go_on(self, tries: int) -> None:
        if not self.seen.task_id:
            raise SendError("The server's answer ended without a task and without a message")
        if tries == _RETRIES:
            raise ConnectionLost(self._url)

    async def _announce(self, tries: int) -> None:
        self._view.announce(f"Connection lost, trying again ({tries} of {_RETRIES})…")
        await self._pause(2.0 ** (tries - 2))


def _check_lost(error: A2AClientError | InternalError) -> None:
    """Raises the server's own word, unless it is that another try may go well."""
    if isinstance(error, InternalError) and not connection.lost(error):
        raise error


def _asks(response: pb.StreamResponse) -> bool:
    return response.HasField("task") and response.task.status.state == pb.TASK_STATE_INPUT_REQUIRED
