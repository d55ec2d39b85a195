"""The errors that say "try again", and `/healthz` and `/readyz`.

Rules:
1. While the server is unavailable, HTTP answers 503 with `Retry-After`, gRPC UNAVAILABLE (RESOURCE_EXHAUSTED if there
   is no room) with the same delay as `RetryInfo`. JSON-RPC has no code for it: it is -32603, with `retryable` in the
   error's data. A caller over its quota gets the same with 429 and RESOURCE_EXHAUSTED; the error's data also have the
   delay. If there is no room for more bytes, the answer is 413 and RESOURCE_EXHAUSTED without a delay, `retryable` is
   false, and JSON-RPC's code is -32013.
2. A stream that had begun has the error as its last event, in the form of its binding.
3. The message is our own sentence. The reason, such as the database's own error, is logged for the operator.
4. `/healthz` says whether the process answers, `/readyz` whether it can serve requests.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from a2a.utils.errors import A2AError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a2a_canvas.server.protocols.edge.error_tables import INTERNAL_REASON, register_error
from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

DATABASE_UNAVAILABLE: Final = "The database is unavailable. Try again in a moment."

RETRY_AFTER_SECONDS: Final = 1
RETRY_AFTER: Final[Mapping[str, str]] = {"Retry-After": str(RETRY_AFTER_SECONDS)}
"""The header of every 503."""

SECONDS: Final = "retryAfter"
"""The member of an error's data with the seconds to wait, if they differ from RETRY_AFTER_SECONDS."""

NO_STORE: Final = {"Cache-Control": "no-store"}

ReadinessCheck = Callable[[], Awaitable[str | None]]
"""Why the server cannot be used now, in words for the operator; None if it can."""


class UnavailableError(A2AError):
    """A retry of the request may succeed. Its data is always `{"retryable": true}`."""

    message = DATABASE_UNAVAILABLE

    def __init__(self, message: str | None = None, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, {**(data or {}), "retryable": True})


class OverloadedError(UnavailableError):
    """There is no room for the request now; none of it was stored."""


class TooManyRequestsError(UnavailableError):
    """The caller has reached a limit. The error's data also has the seconds after which to retry."""


class StorageFullError(A2AError):
    """There is no room for the request's data until something is removed. Its data: `{"retryable": false}`."""

    def __init__(self, message: str | None = None, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, {**(data or {}), "retryable": False})


# A2A has no reason for the first two.
register_error(UnavailableError, 503, "UNAVAILABLE", INTERNAL_REASON)
register_error(OverloadedError, 503, "RESOURCE_EXHAUSTED", INTERNAL_REASON)
register_error(TooManyRequestsError, 429, "RESOURCE_EXHAUSTED", "RATE_LIMITED")
register_error(StorageFullError, 413, "RESOURCE_EXHAUSTED", "STORAGE_FULL", -32013)


def retry_after(error: A2AError) -> int:
    """The seconds after which a retry may succeed."""
    seconds: int = (error.data or {}).get(SECONDS, RETRY_AFTER_SECONDS)
    return seconds


def retry_header(error: A2AError) -> dict[str, str]:
    """`Retry-After`, for an error that can be retried."""
    return {"Retry-After": str(retry_after(error))} if isinstance(error, UnavailableError) else {}


def unavailable_error(error: Unavailable) -> UnavailableError:
    """The client's error; the reason is logged (rule 3)."""
    logger.warning("A request could not be answered. %s", error)
    return UnavailableError(DATABASE_UNAVAILABLE)


def health_route() -> Route:
    """`GET /healthz`: always 200 and `{"status": "ok"}`."""
    return Route("/healthz", _healthy, methods=["GET"])


def ready_route(check: ReadinessCheck) -> Route:
    """`GET /readyz`: 200 and `{"status": "ok"}`, or 503 and `{"status": "unavailable"}`; the log says why."""
    return Route("/readyz", _Readiness(check).answer, methods=["GET"])


class _Readiness:
    def __init__(self, check: ReadinessCheck) -> None:
        self._check = check
        self._was_ready = True

    async def answer(self, request: Request) -> Response:
        reason = await self._check()
        if reason and self._was_ready:  # once, not for each request
            logger.warning("The server is not ready: %s", reason)
        self._was_ready = reason is None
        if reason is None:
            return JSONResponse({"status": "ok"}, headers=NO_STORE)
        return JSONResponse({"status": "unavailable"}, 503, {**NO_STORE, **RETRY_AFTER})


async def _healthy(request: Request) -> Response:
    return JSONResponse({"status": "ok"})
