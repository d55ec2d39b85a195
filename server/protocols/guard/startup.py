"""Whether the application was started: without its lifespan there is no database, no tool of a server, no gRPC.

Rule 1: an application that was not started answers `/healthz`, the card and the page; `/readyz` and all operations are
        503, and say what is missing. An ASGI server may lack the lifespan, or run without it; a mounted application has
        none unless the outer one enters it.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from a2a_canvas.server.protocols.edge.availability import ReadinessCheck, UnavailableError
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.protocols.guard.error_forms import form_of
from a2a_canvas.server.wire import REST_PREFIX

NOT_STARTED: Final = (
    "This application was not started: run it with an ASGI server that runs its lifespan (uvicorn --lifespan on), or "
    "enter app.router.lifespan_context(app) where it is mounted."
)
_OPERATIONS: Final = (REST_PREFIX, "/artifacts")


class Startup:
    """`done` is set by the lifespan."""

    def __init__(self) -> None:
        self.done = False

    def readiness(self, check: ReadinessCheck) -> ReadinessCheck:
        """A check of an application that was started, as one of an application that may not be."""

        async def ready() -> str | None:
            return await check() if self.done else NOT_STARTED

        return ready


class StartupCheck:
    """ASGI middleware that refuses operations of an application that was not started."""

    def __init__(self, app: ASGIApp, *, startup: Startup) -> None:
        self._app = app
        self._startup = startup

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._startup.done or scope["type"] != "http" or not _is_operation(scope):
            await self._app(scope, receive, send)
            return
        payload = form_of(scope["method"], _path(scope)).payload(Refusal(UnavailableError, NOT_STARTED))
        await JSONResponse(payload, 503)(scope, receive, send)


def _is_operation(scope: Scope) -> bool:
    return scope["method"] == "POST" or _path(scope).startswith(_OPERATIONS)


def _path(scope: Scope) -> str:
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return path
