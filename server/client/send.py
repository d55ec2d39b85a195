"""`a2a-canvas send`: one message to any A2A server, and everything that comes back, on the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TextIO
from uuid import uuid4

import httpx
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotFoundError, UnsupportedOperationError

from a2a_canvas.server.client.connection import ConnectionLost
from a2a_canvas.server.client.display import FailureNotice, FinalReply, PlainLine, ScreenEvent, TaskFacts
from a2a_canvas.server.client.exchange import Sleep, carry_out
from a2a_canvas.server.client.fold import ENDED_BADLY, PAUSED, SeenTask, events
from a2a_canvas.server.client.invocation import Invocation
from a2a_canvas.server.client.operations import SendRequest
from a2a_canvas.server.client.terminal import Terminal
from a2a_canvas.server.wire import TURN


async def send(request: SendRequest, out: TextIO, err: TextIO, *, pause: Sleep = asyncio.sleep) -> int:
    """Send one message and print replies, artifacts and ids until the task ends or asks (`carry_out`).

    Returns:
        The exit code: 0 completed or asked, 1 failed, 130 interrupted. Nothing is raised.
    """
    return await carry_out(_Send(request), out, err, pause=pause)


async def send_words(invocation: Invocation, words: tuple[str, ...], context: str, task: str, thinking: bool) -> int:
    """Send what was typed."""
    request = SendRequest(
        *(" ".join(words), invocation.url, context, task, invocation.json, invocation.program, thinking),
        invocation.headers,
    )
    return await send(request, invocation.out, invocation.err)


class _Send:
    extensions: Sequence[str] = (TURN,)

    def __init__(self, request: SendRequest) -> None:
        self.url, self.headers = request.url, request.headers
        self.json, self.thinking = request.json, request.thinking
        self._request = request

    async def message(self, http: httpx.AsyncClient, card: pb.AgentCard) -> pb.Message:
        return pb.Message(
            message_id=str(uuid4()),
            role=pb.ROLE_USER,
            parts=[pb.Part(text=self._request.text)],
            context_id=self._request.context,
            task_id=self._request.task,
        )

    def show(self, response: pb.StreamResponse, seen: SeenTask, terminal: Terminal) -> None:
        for event in events(response, seen):
            terminal.show(event)

    def closing(self, seen: SeenTask) -> list[ScreenEvent]:
        asks = seen.state in PAUSED
        return [
            FinalReply("" if seen.state in ENDED_BADLY else seen.message),
            TaskFacts(seen.context_id, seen.task_id, seen.artifacts),
            *([PlainLine(self._request.how_to_answer(seen.task_id))] if asks else []),
        ]

    def interrupted(self, seen: SeenTask) -> FailureNotice:
        context = f" (context {seen.context_id})" if seen.context_id else ""
        advice = self._request.how_to_continue(seen.task_id, seen.context_id)
        return FailureNotice(f"Interrupted; the task goes on: {seen.task_id}{context}", advice)

    def advice(self, error: Exception, seen: SeenTask) -> tuple[str, ...]:
        match error:
            case ConnectionLost():
                return self._request.how_to_continue(seen.task_id, seen.context_id)
            case TaskNotFoundError() | UnsupportedOperationError() if self._request.task and not seen.task_id:
                return (self._request.instead_of_task(),)
            case _:
                return ()
