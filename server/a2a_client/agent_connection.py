"""The calls that a follower needs, over the SDK's client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar, cast

from a2a.client import Client, ClientCallContext
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_fault import AgentFault, agent_faults

T = TypeVar("T")


class AgentConnection:
    """A connection to an agent by the SDK's client. Each method may raise `AgentFault`.

    Args:
        client: None until the agent's card has been read.
        context: of each call: its headers.
        streams: whether the agent offers streams.
        silence: the time-out, in seconds, of an answer without a stream; None for no time-out.
    """

    def __init__(
        self,
        client: Client | None = None,
        context: ClientCallContext | None = None,
        *,
        streams: bool = False,
        silence: float | None = None,
    ) -> None:
        self.streams = streams
        self._client = client
        self._context = context
        self._silence = silence

    def send(self, message: pb.Message) -> AsyncGenerator[pb.StreamResponse, None]:
        """The events of the task that a message starts or continues, or the message that answers it."""
        request = pb.SendMessageRequest(message=message)
        return self._events(lambda client: client.send_message(request, context=self._context))

    def subscribe(self, task_id: str) -> AsyncGenerator[pb.StreamResponse, None]:
        """The events of a task from now on."""
        request = pb.SubscribeToTaskRequest(id=task_id)
        return self._events(lambda client: client.subscribe(request, context=self._context))

    async def get(self, task_id: str) -> pb.Task:
        """A task as it is now."""
        request = pb.GetTaskRequest(id=task_id)
        task = await self._answer(lambda client: client.get_task(request, context=self._context))
        task.id = task_id
        return task

    async def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        request = pb.CancelTaskRequest(id=task_id)
        await self._answer(lambda client: client.cancel_task(request, context=self._context))

    async def _events(
        self, call: Callable[[Client], AsyncIterator[pb.StreamResponse]]
    ) -> AsyncGenerator[pb.StreamResponse, None]:
        with agent_faults():
            async with aclosing(cast("AsyncGenerator[pb.StreamResponse]", call(self._require_client()))) as events:
                async for event in events:
                    yield event

    async def _answer(self, call: Callable[[Client], Awaitable[T]]) -> T:
        with agent_faults():
            async with asyncio.timeout(self._silence):
                return await call(self._require_client())

    def _require_client(self) -> Client:
        if self._client is None:
            raise AgentFault("its card has not been read yet", retryable=True)
        return self._client
