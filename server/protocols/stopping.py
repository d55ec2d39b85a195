"""How the server stops: first its turns, so that whoever watches them is told, then the streams, then the process.

Rules:
1. What comes once the stop has begun is refused: HTTP says 503, gRPC UNAVAILABLE.
2. A stream that outlives the turns (its task waits for input, its reader is slow) is cut after `GRACE`. The answer
   is complete all the same: a reader of HTTP can tell a server that stopped from a connection that broke.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import grpc.aio
import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.tasks.runtime import Runtime

GRACE: Final = 0.8
"""Seconds that a stream is given once it has learned of the stop; HTTP streams learn of it within half a second."""

_REFUSAL: Final = {
    "error": {"code": 503, "status": "UNAVAILABLE", "message": "The server is stopping. Send it again in a moment."}
}


class Stop:
    """The stop of one application. A second call ends what the first one still let in.

    Attributes:
        begun: nothing new is taken any more.
        rpc: the application's gRPC server while there is one.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.begun = False
        self.rpc: grpc.aio.Server | None = None
        self._runtime = runtime

    async def __call__(self) -> None:
        self.begun = True
        # In this order: gRPC takes no more calls from its first step on.
        ends = [self.rpc.stop(GRACE)] if self.rpc else []
        await asyncio.gather(*ends, self._runtime.close())


class Stopping:
    """ASGI middleware that keeps both rules for HTTP. It stands inside the guard: a body may take its time."""

    def __init__(self, app: ASGIApp, *, stop: Stop) -> None:
        self._app = app
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._stop.begun:
            headers = {"retry-after": "1", "connection": "close"}
            await JSONResponse(_REFUSAL, 503, headers)(scope, receive, send)
        else:
            await _completed(self._app, scope, receive, send)


async def _completed(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    unfinished = False

    async def watched(message: Message) -> None:
        nonlocal unfinished
        unfinished = message.get("more_body", message["type"] == "http.response.start")
        await send(message)

    await app(scope, receive, watched)
    # An SSE response that is cut returns as if it were done.
    if unfinished:
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Server(uvicorn.Server):
    """uvicorn, but the application stops while the server waits for its streams, and not after it.

    Args:
        stop: the application's stop.
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
