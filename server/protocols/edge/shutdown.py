"""Graceful shutdown: first the runtime, so that subscribers get the last events, then the answers, then the process.

Rules:
1. Requests that arrive after the shutdown has begun are refused: HTTP with 503, gRPC with UNAVAILABLE.
2. The shutdown takes `grace` seconds at most: the runtime gets all but the last ANSWER_GRACE of them, and is then
   abandoned.
3. An answer that outlives the runtime (its task runs on another server or waits for input, its client is slow) gets
   DRAIN_SHARE of the rest, and is then cancelled. An HTTP answer that had begun is still completed, with a final event
   if its protocol has one: a client can distinguish a server that stopped from a broken connection.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.protocols.edge.availability import RETRY_AFTER
from a2a_canvas.server.protocols.edge.cancellable import Cancellable

if TYPE_CHECKING:
    import grpc.aio

logger = logging.getLogger(__name__)

SHUTDOWN_GRACE: Final = 5.0
"""Default seconds of a shutdown."""

ANSWER_GRACE: Final = 1.0
"""Seconds at the end of the grace, at most half of it, in which answers end."""

DRAIN_SHARE: Final = 0.8
"""The part of ANSWER_GRACE in which answers can end by themselves. In the rest the connections are closed."""

EXIT_POLL_SECONDS: Final = 0.5

_FINAL_EVENT: Final = "a2a_canvas.final_event"


class Shutdown:
    """The shutdown of one application. A second call closes what the runtime accepted during the first.

    Args:
        close: stops the runtime; it is called twice, and may be cancelled.
        grace: seconds that the whole shutdown may take.

    Attributes:
        begun: new requests are refused.
        grpc_server: the application's gRPC server while there is one.
    """

    def __init__(self, close: Callable[[], Awaitable[None]], grace: float = SHUTDOWN_GRACE) -> None:
        self.begun = False
        self.grpc_server: grpc.aio.Server | None = None
        self._close = close
        self._grace = grace
        self._answer_grace = min(ANSWER_GRACE, grace / 2)
        self._one_at_a_time = asyncio.Lock()
        self._answers: set[Cancellable] = set()
        self._all_ended = asyncio.Event()
        self._all_ended.set()

    async def __call__(self) -> None:
        first, self.begun = not self.begun, True
        async with self._one_at_a_time:
            if first:
                await self._run()
            else:
                await self._close_runtime(self._answer_grace)

    async def _run(self) -> None:
        # In this order: gRPC accepts no more calls from its first step on.
        calls = [asyncio.ensure_future(self.grpc_server.stop(self._grace))] if self.grpc_server else []
        await self._close_runtime(self._grace - self._answer_grace)
        ends = [*calls, asyncio.ensure_future(self._all_ended.wait())]
        await asyncio.wait(ends, timeout=self._answer_grace * DRAIN_SHARE)
        ends[-1].cancel()
        for answer in tuple(self._answers):
            answer.cancel()
        if self.grpc_server:
            await self.grpc_server.stop(None)
        await asyncio.gather(*calls)

    async def _close_runtime(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._close()
        except TimeoutError:
            logger.warning("The runtime did not stop within %g seconds; running turns were abandoned.", seconds)
        except Exception:
            logger.exception("The runtime failed to stop")

    async def run(self, answer: Awaitable[None]) -> bool:
        """Send an answer; it is cancelled when its time is up (rule 3). Returns whether it was."""
        cancellable = Cancellable()
        self._answers.add(cancellable)
        self._all_ended.clear()
        try:
            with cancellable:
                await answer
        finally:
            self._answers.discard(cancellable)
            if not self._answers:
                self._all_ended.set()
        return cancellable.cancelled


@dataclass(slots=True)
class FinalEvent:
    """The bytes that end a streamed answer if the shutdown cancels it: its protocol's last event, or nothing."""

    text: bytes = b""


def final_event_of(scope: Scope) -> FinalEvent:
    """The final event of the answer to this request. Without `ShutdownMiddleware` it is never sent."""
    final_event = scope.get(_FINAL_EVENT)
    return final_event if isinstance(final_event, FinalEvent) else FinalEvent()


class ShutdownMiddleware:
    """ASGI middleware for the rules of HTTP. It runs inside `HttpPipeline`, which may wait long for a body."""

    def __init__(self, app: ASGIApp, *, shutdown: Shutdown) -> None:
        self._app = app
        self._shutdown = shutdown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._shutdown.begun:
            await _refuse(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        scope[_FINAL_EVENT] = answer.final_event
        cancelled = await self._shutdown.run(self._app(scope, receive, answer.send))
        if cancelled and not answer.begun:
            await _refuse(scope, receive, send)
        elif answer.open:
            # A cancelled SSE response returns normally.
            await answer.end(stopped=self._shutdown.begun)


class _Answer:
    """An answer while it is sent. `begun`: the status has been sent; `open`: the end has not."""

    __slots__ = ("_send", "begun", "final_event", "open")

    def __init__(self, send: Send) -> None:
        self.begun = False
        self.open = False
        self.final_event = FinalEvent()
        self._send = send

    async def send(self, message: Message) -> None:
        await self._send(message)
        # After the send: the server may wait before writing; if that wait is cancelled, nothing was written.
        self.begun = True
        self.open = message.get("more_body", message["type"] == "http.response.start")

    async def end(self, *, stopped: bool) -> None:
        body = self.final_event.text if stopped else b""
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    text = "The server is stopping. Send it again in a moment."
    body = {"error": {"code": 503, "status": "UNAVAILABLE", "message": text}}
    await JSONResponse(body, 503, {**RETRY_AFTER, "Connection": "close"})(scope, receive, send)


class GracefulServer(uvicorn.Server):
    """uvicorn, except that the application shuts down while uvicorn waits for the answers, not after it.

    Args:
        stop: the application's `Shutdown`. `config.timeout_graceful_shutdown` closes the connection of a client that
            does not read the end of its answer: it must not be less than the shutdown's grace.
    """

    def __init__(self, config: uvicorn.Config, stop: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._stop = stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Starts at uvicorn's first await, when no new connections are accepted.
        stopping = asyncio.ensure_future(self._stop())
        try:
            await super().shutdown(sockets)
        finally:
            await stopping


async def exit_of_plain_uvicorn() -> None:
    """Wait until the uvicorn that runs this application is stopped; under any other server, wait forever.

    uvicorn notifies an application only after its last answer, which may be an endless stream.
    """
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    plain = server if isinstance(server, uvicorn.Server) and not isinstance(server, GracefulServer) else None
    while not (plain and plain.should_exit):  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(EXIT_POLL_SECONDS)
