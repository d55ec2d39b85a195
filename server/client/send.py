"""`a2a-canvas send`: one message to any A2A server, and everything that comes back, on the screen.

Rule 1: an answer is over at a terminal state, at a question, or with a message in place of a task.
Rule 2: a stream that ends before that is taken up again by `SubscribeToTask`, three times in a row at most
        without anything new; the message is never sent a second time.
Rule 3: every failure is one line on `err`, and it names the task and the context once they are known. Where there is
        something to type, to go on, it stands below.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TextIO, cast
from uuid import uuid4

import httpx
from a2a.client import A2AClientError, Client, ClientCallContext
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import MethodNotFoundError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from server.client import connection
from server.client.connection import CONNECT, ConnectionLost, SendError, TaskForgotten
from server.client.options import DEFAULT_URL, SendOptions
from server.client.reading import ENDED_BADLY, Seen, events, fold
from server.client.shown import Facts, Failure, FinalReply, Line, Status
from server.client.terminal import Terminal

__all__ = ["DEFAULT_URL", "SendOptions", "send"]

_RETRIES = 3
_POLL = 1.0


async def send(
    options: SendOptions,
    out: TextIO,
    err: TextIO,
    *,
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> int:
    """Send one message and show what comes back until the task ends or asks.

    Args:
        options: what to send and where.
        out: replies, artifacts and ids, or with `options.json` one event per line. Colours and a status line
            are used when it is a terminal.
        err: failures, and statuses where `out` is no terminal.
        pause: waits that many seconds, between tries.

    Returns:
        The exit code: 0 completed or asked, 1 failed, 130 interrupted. Nothing is raised.
    """
    terminal = Terminal(out, err, lambda: shutil.get_terminal_size().columns)
    exchange = _Exchange(options, terminal, out, pause)
    try:
        return await exchange.run()
    except BrokenPipeError:
        return 1
    except (asyncio.CancelledError, KeyboardInterrupt):
        terminal.show(_interrupted(exchange.seen, options))
        return 130
    except Exception as error:
        terminal.show(_failed(error, exchange.seen, options))
        return 1


class _Exchange:
    def __init__(
        self,
        options: SendOptions,
        terminal: Terminal,
        out: TextIO,
        pause: Callable[[float], Awaitable[object]],
    ) -> None:
        self.seen = Seen()
        self._options, self._terminal, self._out, self._pause = options, terminal, out, pause
        self._updates = 0
        self._stale = False

    async def run(self) -> int:
        timeout = httpx.Timeout(CONNECT, read=None)
        async with httpx.AsyncClient(timeout=timeout) as http:
            card = await connection.card(http, self._options.url)
            async with connection.client(http, card) as client:
                await self._converse(client, card)
        return self._conclude()

    async def _converse(self, client: Client, card: pb.AgentCard) -> None:
        call = connection.activation(card)
        streaming = card.capabilities.streaming
        # A stream that answers a question may begin with the task as it was: still asking.
        self._stale = streaming and bool(self._options.task)
        try:
            await self._read(client.send_message(_request(self._options), context=call))
        except A2AClientError as error:
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
        self.seen = fold(self.seen, response)
        self._updates += not response.HasField("task")
        self._stale = self._stale and _asks(response)
        if self._options.json:
            self._out.write(json.dumps(MessageToDict(response)) + "\n")
            self._out.flush()
            return
        for event in events(response):
            self._terminal.show(event)

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
        except A2AClientError:
            pass
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
        except A2AClientError:
            return False
        self._take(pb.StreamResponse(task=task))
        return True

    def _must_go_on(self, tries: int) -> None:
        if not self.seen.task_id:
            raise SendError("The server's answer ended without a task and without a message")
        if tries == _RETRIES:
            raise ConnectionLost(self._options.url)

    async def _announce(self, tries: int) -> None:
        if not self._options.json:
            self._terminal.show(Status(f"Connection lost, trying again ({tries} of {_RETRIES})…"))
        await self._pause(2.0 ** (tries - 2))

    # ------------------------------------------------------------------- the end

    def _conclude(self) -> int:
        seen, problem = self.seen, ENDED_BADLY.get(self.seen.state, "")
        if not self._options.json:
            self._terminal.show(FinalReply("" if problem else seen.message))
            self._terminal.show(Facts(seen.context_id, seen.task_id, seen.artifacts))
            if seen.state == pb.TASK_STATE_INPUT_REQUIRED:
                self._terminal.show(Line(self._options.how_to_answer(seen.task_id)))
        if problem:
            self._terminal.show(Failure(f"{problem}: {seen.message}" if seen.message else f"{problem}."))
        return 1 if problem else 0


def _asks(response: pb.StreamResponse) -> bool:
    return response.HasField("task") and response.task.status.state == pb.TASK_STATE_INPUT_REQUIRED


def _request(options: SendOptions) -> pb.SendMessageRequest:
    message = pb.Message(
        message_id=str(uuid4()),
        role=pb.ROLE_USER,
        parts=[pb.Part(text=options.text)],
        context_id=options.context,
        task_id=options.task,
    )
    return pb.SendMessageRequest(message=message)


def _interrupted(seen: Seen, options: SendOptions) -> Failure:
    if not seen.task_id:
        return Failure("Interrupted before the server named a task")
    context = f" (context {seen.context_id})" if seen.context_id else ""
    advice = options.how_to_go_on(seen.task_id, seen.context_id)
    return Failure(f"Interrupted; the task goes on: {seen.task_id}{context}", advice)


def _failed(error: Exception, seen: Seen, options: SendOptions) -> Failure:
    advice: tuple[str, ...] = ()
    match error:
        case ConnectionLost():
            advice = options.how_to_go_on(seen.task_id, seen.context_id)
        case TaskNotFoundError() | UnsupportedOperationError() if options.task and not seen.task_id:
            advice = (options.instead_of_task(),)
    ids = [f"{word} {value}" for word, value in (("task", seen.task_id), ("context", seen.context_id)) if value]
    known = f" ({', '.join(ids)})" if seen.task_id else ""
    return Failure(connection.explain(error, options.url) + known, advice)
