"""How the server stops: first the runtime, so that whoever watches is told, then the answers, then the process.

Rules:
1. What comes once the stop has begun is refused: HTTP says 503, gRPC UNAVAILABLE.
2. The stop takes `grace` seconds at most: the runtime has all but the last of them, and what it has not done by then
   is left undone.
3. An answer that outlives the runtime (its task goes on elsewhere or waits for input, its reader is slow) is given
   DRAIN_SHARE to end, and is then cut. What has begun over HTTP is complete all the same, with a last word where
   its protocol has one: a reader can tell a server that stopped from a connection that broke, and comes back.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import grpc.aio
import uvicorn
from anyio import CancelScope
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.protocols.edge.unavailable import RETRY_AFTER

logger = logging.getLogger(__name__)

SHUTDOWN_GRACE: Final = 5.0
"""Seconds that a server has to stop, unless its operator says otherwise."""

ANSWER_GRACE: Final = 1.0
"""Seconds of the grace, but never more than half of it, that are kept for the answers."""

DRAIN_SHARE: Final = 0.8
"""Which part of that an answer has to end by itself. The rest is for the connections to close."""

_FINAL_EVENT: Final = "a2a_canvas.final_event"
_STOPPING: Final = "The server is stopping. Send it again in a moment."
_REFUSAL: Final = {"error": {"code": 503, "status": "UNAVAILABLE", "message": _STOPPING}}


class Shutdown:
    """The stop of one application. A second call ends what the first one still let in.

    Args:
        close: stops the runtime; it is called twice, and may be cancelled.
        grace: seconds that all of it may take.

    Attributes:
        begun: nothing new is taken any more.
        rpc: the application's gRPC server while there is one.
    """

    def __init__(self, close: Callable[[], Awaitable[None]], grace: float = SHUTDOWN_GRACE) -> None:
        self.begun = False
        self.rpc: grpc.aio.Server | None = None
        self._close = close
        self._grace = grace
        self._last = min(ANSWER_GRACE, grace / 2)
        self._calls = asyncio.Lock()
        self._answers: set[CancelScope] = set()
        self._none_open = asyncio.Event()
        self._none_open.set()

    async def __call__(self) -> None:
        first, self.begun = not self.begun, True
        async with self._calls:
            if first:
                await self._first()
            else:
                await self._runtime_closed(self._last)

    async def _first(self) -> None:
        # In this order: gRPC takes no more calls from its first step on.
        calls = [asyncio.ensure_future(self.rpc.stop(self._grace))] if self.rpc else []
        await self._runtime_closed(self._grace - self._last)
        ends = [*calls, asyncio.ensure_future(self._none_open.wait())]
        await asyncio.wait(ends, timeout=self._last * DRAIN_SHARE)
        ends[-1].cancel()
        for answer in tuple(self._answers):
            answer.cancel()
        if self.rpc:
            await self.rpc.stop(None)
        await asyncio.gather(*calls)

    async def _runtime_closed(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._close()
        except TimeoutError:
            logger.warning("The server did not stop within its %g seconds; what it was doing is left undone.", seconds)
        except Exception:
            logger.exception("The server did not stop as it should")

    @contextmanager
    def cuts(self) -> Iterator[CancelScope]:
        """A scope for one answer, which is cancelled when its time is up."""
        with CancelScope() as answer:
            self._answers.add(answer)
            self._none_open.clear()
            try:
                yield answer
            finally:
                self._answers.discard(answer)
                if not self._answers:
                    self._none_open.set()


@dataclass(slots=True)
class FinalEvent:
    """What an answer that has begun ends with if the stop cuts it: the last event of its protocol, or nothing."""

    text: bytes = b""


def final_event_of(scope: Scope) -> FinalEvent:
    """The final event of the answer to this request; nobody reads it where there is no `ShutdownMiddleware`."""
    final_event = scope.get(_FINAL_EVENT)
    return final_event if isinstance(final_event, FinalEvent) else FinalEvent()


class ShutdownMiddleware:
    """ASGI middleware that keeps the rules for HTTP. It stands inside the guard: a body may take its time."""

    def __init__(self, app: ASGIApp, *, stop: Shutdown) -> None:
        self._app = app
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._stop.begun:
            await _refuse(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        scope[_FINAL_EVENT] = answer.final_event
        with self._stop.cuts() as cut:
            await self._app(scope, receive, answer.send)
        if cut.cancelled_caught and not answer.begun:
            await _refuse(scope, receive, send)
        elif answer.open:
            # An SSE response that is cut returns as if it were done.
            await answer.end(stopped=self._stop.begun)


class _Answer:
    """An answer on its way out. `begun`: its status has been sent; `open`: and its end has not."""

    def __init__(self, send: Send) -> None:
        self.begun = False
        self.open = False
        self.final_event = FinalEvent()
        self._send = send

    async def send(self, message: Message) -> None:
        await self._send(message)
        # Not before: a server waits in front of writing, and if that is cut, nothing was written.
        self.begun = True
        self.open = message.get("more_body", message["type"] == "http.response.start")

    async def end(self, *, stopped: bool) -> None:
        body = self.final_event.text if stopped else b""
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse(_REFUSAL, 503, {**RETRY_AFTER, "Connection": "close"})(scope, receive, send)


class GracefulServer(uvicorn.Server):
    """uvicorn, but the application stops while the server waits for its answers, and not after it.

    Args:
        stop: the application's stop. `config.timeout_graceful_shutdown` is what cuts off a reader that does not even
            take the end of its answer: it must not be less than the stop's grace.
    """

    def __init__(self, config: uvicorn.Config, stop: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._stop = stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # It begins when uvicorn waits for the first time: then nobody can connect any more.
        stopping = asyncio.ensure_future(self._stop())
        try:
            await super().shutdown(sockets)
        finally:
            await stopping
