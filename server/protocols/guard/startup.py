"""Whether the application was started: without its lifespan there is no database, no MCP server and no gRPC.

Rule 1: an application that was not started answers `/healthz`, the card and the page; `/readyz` and all operations are
        503 and say what is missing. An ASGI server may not support the lifespan, or run without it; that of a mounted
        application runs only if the outer application enters it.
"""

from __future__ import annotations

from typing import Final

from a2a_canvas.server.protocols.edge.availability import ReadinessCheck, UnavailableError
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.wire import REST_PREFIX

NOT_STARTED: Final = (
    "create_app's lifespan has not run: serve the application with lifespan (uvicorn --lifespan on). Where it is "
    "mounted in another application, that one's lifespan must contain: async with app.router.lifespan_context(app): "
    "yield"
)
_OPERATIONS: Final = (REST_PREFIX, "/artifacts")


class Startup:
    """`done` is set by the lifespan."""

    def __init__(self) -> None:
        self.done = False

    def readiness(self, check: ReadinessCheck) -> ReadinessCheck:
        """The readiness check `check`, failing until the application is started."""

        async def ready() -> str | None:
            return await check() if self.done else NOT_STARTED

        return ready

    def check(self, method: str, path: str) -> Refusal | None:
        """Why a request is refused until the application is started; None if it may pass."""
        if self.done or not (method == "POST" or path.startswith(_OPERATIONS)):
            return None
        return Refusal(UnavailableError, NOT_STARTED, http_status=503)
