"""Whether the application was started: without its lifespan there is no database, no tool of a server, no gRPC.

Rule 1: an application that was not started answers `/healthz`, the card and the page; `/readyz` and all operations are
        503, and say what is missing. An ASGI server may lack the lifespan, or run without it; a mounted application has
        none unless the outer one enters it.
"""

from __future__ import annotations

from typing import Final

from a2a_canvas.server.protocols.edge.availability import ReadinessCheck, UnavailableError
from a2a_canvas.server.protocols.guard.checks import Refusal
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

    def check(self, method: str, path: str) -> Refusal | None:
        """Why a request is refused before the application was started; None if it may pass."""
        if self.done or not (method == "POST" or path.startswith(_OPERATIONS)):
            return None
        return Refusal(UnavailableError, NOT_STARTED, http_status=503)
