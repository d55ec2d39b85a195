"""One command that sends a message to an A2A server: the task it starts is followed to its end and shown.

Rule 1: an answer is over at a terminal state, at a question, or with a message in place of a task.
Rule 2: a stream that ends before that is resumed by `SubscribeToTask`, six times in a row at most without anything
        new, which is half a minute; the message is never sent a second time.
Rule 3: every failure is one line on `err`, and it names the task and the context once they are known. Commands that
        the user can type next are below it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Protocol, TextIO, cast

import httpx
from a2a.client import A2AClientError, Client, ClientCallContext
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InternalError, MethodNotFoundError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.client import connection
from a2a_canvas.server.client.address import RequestHeaders
from a2a_canvas.server.client.connection import ConnectionLost
from a2a_canvas.server.client.display import FailureNotice, ScreenEvent, StatusText
from a2a_canvas.server.client.errors import ClientError, Interrupted
from a2a_canvas.server.client.fold import BROKE_OFF, ENDED_BADLY, PAUSED, SeenTask, asked_again, events, fold
from a2a_canvas.server.client.invocation import Invocation
from a2a_canvas.server.client.state_file import remember
from a2a_canvas.server.client.terminal import Terminal, json_line

Sleep = Callable[[float], Awaitable[object]]
"""Waits that many seconds, between tries."""

INTERRUPTED = 130
"""The exit code of a program that was stopped by Ctrl+C, as shells have it."""

_RETRIES = 6
_POLL_SECONDS = 1.0


class MessageCommand(Protocol):
    """What one command does besides sending its message and following the task.

    Attributes:
        url: how the user calls the server.
        headers: sent with every request.
        json: print each response as one line of JSON; `show` and `closing` are not called.
        thinking: show the model's thinking in the status line.
        extensions: activated if the card lists them.
    """

    url: str
    headers: RequestHeaders
    json: bool
    thinking: bool
    extensions: Sequence[str]

    # Raises what `connection.explain` explains.
    async def message(self, http: httpx.AsyncClient, card: pb.AgentCard) -> pb.Message: ...
    def show(self, response: pb.StreamResponse, seen: SeenTask, terminal: Terminal) -> None: ...

    # When the task is over, before its failure if it failed.
    def closing(self, seen: SeenTask) -> Sequence[ScreenEvent]: ...

    # On Ctrl+C, once the server has named the task.
    def interrupted(self, seen: SeenTask) -> FailureNotice: ...
    def advice(self, error: Exception, seen: SeenTask) -> tuple[str, ...]: ...


async def carry_out(command: MessageCommand, out: TextIO, err: TextIO, *, pause: Sleep = asyncio.sleep) -> int:
    """Send the command's message and show what comes back until the task ends or asks.

    Args:
        out: what the command prints, or with `command.json` one response per line. Colours and a status line are
            used if it is a terminal.
        err: failures, and statuses if `out` is no terminal.
        pause: waits that many seconds, between tries.

    Returns:
        The exit code of `exit_code`; 1 also for a task that failed.
    """
    terminal = Terminal(out, err, thinking=command.thinking)
    exchange = _Exchange(command, terminal, out, pause)

    def interrupted() -> FailureNotice:
        if not exchange.seen.task_id:
            return FailureNotice("Interrupted before the server named a task")
        return command.interrupted(exchange.seen)

    def failed(error: Exception) -> FailureNotice:
        reason = connection.explain(error, command.url) + exchange.seen.where
        return FailureNotice(reason, command.advice(error, exchange.seen))

    return await exit_code(exchange.run(), terminal, interrupted, failed)


async def exit_code(
    command: Awaitable[int],
    terminal: Terminal,
    interrupted: Callable[[], FailureNotice],
    failed: Callable[[Exception], FailureNotice],
) -> int:
    """Await a command and show what went wrong, if anything did. Nothing is raised.

    Returns:
        The command's own exit code, 1 or 2 if it failed, 130 if it was interrupted.
    """
    try:
        return await command
    except BrokenPipeError:
        return 1
    except (asyncio.CancelledError, KeyboardInterrupt):
        terminal.show(interrupted())
        return INTERRUPTED
    except Exception as error:
        terminal.show(failed(error))
        return error.exit_code if isinstance(error, ClientError) else 1


class _Exchange:
    """Sends the message of a command, follows the task and shows it. `seen`: the task as far as it is known."""

    def __init__(self, command: MessageCommand, terminal: Terminal, out: TextIO, pause: Sleep) -> None:
        self.seen = SeenTask()
        self._command, self._terminal, self._out, self._pause = command, terminal, out, pause
        self._updates = 0
        self._stale = False

    async def run(self) -> int:
        async with connection.connected(self._command.url, self._command.headers) as (http, card):
            message = await self._command.message(http, card)
            async with connection.client(http, card) as client:
                await self._converse(client, card, message)
        return self._conclude()

    def _conclude(self) -> int:
        if not self._command.json:
            for event in self._command.closing(self.seen):
                self._terminal.show(event)
        problem = ENDED_BADLY.get(self.seen.state, "")
        if problem:
            message = self.seen.message
            self._terminal.show(FailureNotice(f"{problem}: {message}" if message else f"{problem}."))
        return 1 if problem else 0

    def _show(self, response: pb.StreamResponse) -> None:
        if self._command.json:
            json_line(self._out, MessageToDict(response))
        else:
            self._command.show(response, self.seen, self._terminal)

    def _say(self, text: str) -> None:
        if not self._command.json:
            self._terminal.show(StatusText(text))

    async def _converse(self, client: Client, card: pb.AgentCard, message: pb.Message) -> None:
        call = connection.call_context(card, self._command.extensions, self._command.headers)
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
        self._stale = self._stale and response.task.status.state in PAUSED
        if asked_again(before, self.seen, response):
            self._say(BROKE_OFF)
        self._show(response)

    async def _resume(self, client: Client, call: ClientCallContext) -> None:
        tries = 0
        while not self._over:
            self._check_retry(tries)
            tries += 1
            await self._announce(tries)
            if await self._subscribe(client, call):
                tries = 0

    async def _subscribe(self, client: Client, call: ClientCallContext) -> bool:
        """Whether anything new came."""
        before = self._updates
        try:
            with _may_be_lost():
                await self._read(client.subscribe(pb.SubscribeToTaskRequest(id=self.seen.task_id), context=call))
        except (UnsupportedOperationError, MethodNotFoundError):
            # The task is over by now, or this server cannot subscribe: ask for the task itself.
            await self._get(client, call)
        return self._updates > before

    async def _poll(self, client: Client, call: ClientCallContext) -> None:
        tries = 0
        while not self._over:
            self._check_retry(tries)
            await (self._announce(tries) if tries else self._pause(_POLL_SECONDS))
            tries = 0 if await self._get(client, call) else tries + 1

    async def _get(self, client: Client, call: ClientCallContext) -> bool:
        """Whether the server answered."""
        with _may_be_lost():
            task = await client.get_task(pb.GetTaskRequest(id=self.seen.task_id), context=call)
            self._take(pb.StreamResponse(task=task))
            return True
        return False

    def _check_retry(self, tries: int) -> None:
        if not self.seen.task_id:
            raise ClientError("The server's answer ended without a task and without a message")
        if tries == _RETRIES:
            raise ConnectionLost(self._command.url)

    async def _announce(self, tries: int) -> None:
        self._say(f"Connection lost, trying again ({tries} of {_RETRIES})…")
        await self._pause(2.0 ** (tries - 2))


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


# ------------------------------------------------------------------------ a conversation

Take = Callable[[pb.StreamResponse, SeenTask], None]
"""Shows one response, which led to what is known of the task."""


async def converse(
    invocation: Invocation,
    http: httpx.AsyncClient,
    card: pb.AgentCard,
    message: pb.Message,
    extensions: Sequence[str],
    take: Take | None = None,
) -> SeenTask:
    """Send a message and follow the task that it starts, to its end or its question.

    Args:
        extensions: activated if the card lists them.
        take: shows each response, unless `invocation.json`: then it has been printed as one line. All that a response
            says is shown if this is left out.

    Raises:
        ClientError: it failed; with the task, and what to do next, once the server has named it. How the task ended is
            for `check_outcome`.
    """
    conversation = _Conversation(invocation, card, extensions, take)
    return await conversation.run(http, lambda client: conversation.send(client, message))


async def watch_task(
    invocation: Invocation,
    http: httpx.AsyncClient,
    card: pb.AgentCard,
    task_id: str,
    extensions: Sequence[str],
    take: Take | None = None,
) -> SeenTask:
    """Follow a task that has been started, as `converse` does."""
    conversation = _Conversation(invocation, card, extensions, take)
    conversation.seen = SeenTask(task_id)
    return await conversation.run(http, conversation.watch)


def check_outcome(seen: SeenTask) -> None:
    """Raises `ClientError` if the task ended badly."""
    if problem := ENDED_BADLY.get(seen.state):
        raise ClientError(f"{problem}: {seen.message}" if seen.message else f"{problem}.")


class _Conversation:
    """Follows one task. `seen`: the task as far as it is known."""

    def __init__(
        self, invocation: Invocation, card: pb.AgentCard, extensions: Sequence[str], take: Take | None
    ) -> None:
        self.seen = SeenTask()
        self._invocation, self._card, self._take_shown = invocation, card, take or self._show
        self._call = connection.call_context(card, extensions, invocation.headers)
        self._updates = 0
        self._stale = False

    async def run(self, http: httpx.AsyncClient, talk: Callable[[Client], Awaitable[None]]) -> SeenTask:
        try:
            async with connection.client(http, self._card) as client:
                await talk(client)
        except asyncio.CancelledError:
            if not self.seen.task_id:
                raise Interrupted("Interrupted before the server named a task") from None
            raise Interrupted(f"Interrupted; the task goes on{self.seen.where}", *self._next()) from None
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

    async def send(self, client: Client, message: pb.Message) -> None:
        # A stream that answers a question may begin with the task as it was: still asking.
        self._stale = self._card.capabilities.streaming and bool(message.task_id)
        try:
            await self._read(client.send_message(pb.SendMessageRequest(message=message), context=self._call))
        except (A2AClientError, InternalError) as error:
            if not (self.seen.task_id and connection.lost(error)):
                raise
        self._stale = False
        await self._go_on(client)

    async def watch(self, client: Client) -> None:
        if not self._card.capabilities.streaming or not await self._subscribe(client):
            await self._get(client)
        await self._go_on(client)

    async def _go_on(self, client: Client) -> None:
        streaming = self._card.capabilities.streaming
        tries = first = int(streaming)
        while not self._over:
            if not self.seen.task_id:
                raise ClientError("The server's answer ended without a task and without a message")
            if tries > _RETRIES:
                raise ConnectionLost(self._invocation.url)
            if tries:
                self._say(f"Connection lost, trying again ({tries} of {_RETRIES})…")
            await self._invocation.pause(2.0 ** (tries - 2) if tries else _POLL_SECONDS)
            tries = first if await (self._subscribe if streaming else self._get)(client) else tries + 1

    async def _subscribe(self, client: Client) -> bool:
        """Whether anything new came."""
        before = self._updates
        try:
            with _may_be_lost():
                await self._read(client.subscribe(pb.SubscribeToTaskRequest(id=self.seen.task_id), context=self._call))
        except (UnsupportedOperationError, MethodNotFoundError):
            # The task is over by now, or this server cannot subscribe: ask for the task itself.
            await self._get(client)
        return self._updates > before

    async def _get(self, client: Client) -> bool:
        """Whether the server answered."""
        with _may_be_lost():
            task = await client.get_task(pb.GetTaskRequest(id=self.seen.task_id), context=self._call)
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
        if self.seen.context_id != before.context_id:
            remember(self._invocation.url, self.seen.context_id)
        if asked_again(before, self.seen, response):
            self._say(BROKE_OFF)
        if self._invocation.json:
            json_line(self._invocation.out, MessageToDict(response))
        self._take_shown(response, self.seen)

    def _show(self, response: pb.StreamResponse, seen: SeenTask) -> None:
        for event in () if self._invocation.json else events(response, seen):
            self._invocation.screen.show(event)

    def _say(self, text: str) -> None:
        if not (self._invocation.json or self._invocation.quiet):
            self._invocation.screen.show(StatusText(text))
