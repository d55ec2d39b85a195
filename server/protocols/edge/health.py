"""For whoever runs the server: `/healthz` says that it lives, `/readyz` whether it can be sent requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a2a_canvas.server.protocols.edge.unavailable import RETRY_AFTER

NO_STORE = {"Cache-Control": "no-store"}

ReadinessCheck = Callable[[], Awaitable[str | None]]
"""Why the server cannot be used just now, in words for an operator; None if it can."""


def health_route() -> Route:
    """`GET /healthz`: always 200 and `{"status": "ok"}`."""
    return Route("/healthz", _healthy, methods=["GET"])


def ready_route(check: ReadinessCheck) -> Route:
    """`GET /readyz`: 200 and `{"status": "ok"}`, or 503 and `{"status": "unavailable", "reason": …}`."""

    async def ready(request: Request) -> Response:
        reason = await check()
        if reason is None:
            return JSONResponse({"status": "ok"}, headers=NO_STORE)
        return JSONResponse({"status": "unavailable", "reason": reason}, 503, {**NO_STORE, **RETRY_AFTER})

    return Route("/readyz", ready, methods=["GET"])


async def _healthy(request: Request) -> Response:
    return JSONResponse({"status": "ok"})
