"""What a client is told when its request may go well in a moment: the database is away, a stream was lost, or the
server has no room for another turn.

Rule 1: HTTP says 503 and when to try again, gRPC UNAVAILABLE (RESOURCE_EXHAUSTED where there is no room) with the same
        as `RetryInfo`. JSON-RPC has no code for it: it is -32603, and `retryable` stands in the error's data.
Rule 2: a stream that had begun ends with it as its last event, in the form that the binding has for that.
Rule 3: what is told is our own sentence. Why the database cannot be used is for the operator, in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from a2a.utils.errors import A2A_ERROR_MAPPING, A2A_ERROR_REASONS, A2AError, ErrorMapping

from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

DATABASE_UNAVAILABLE: Final = "The database cannot be used just now. Try again in a moment."

RETRY_AFTER_SECONDS: Final = 1
RETRY_AFTER: Final[Mapping[str, str]] = {"Retry-After": str(RETRY_AFTER_SECONDS)}
"""The header of every 503."""


class UnavailableError(A2AError):
    """The request may go well in a moment. Its data is always `{"retryable": true}`."""

    message = DATABASE_UNAVAILABLE

    def __init__(self, message: str | None = None, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, {**(data or {}), "retryable": True})


class OverloadedError(UnavailableError):
    """There is no room for the request just now; nothing of it was kept."""


# The SDK looks up by class, in these tables alone, what an error is in each binding. A2A has no reason for it.
for _kind, _status in ((UnavailableError, "UNAVAILABLE"), (OverloadedError, "RESOURCE_EXHAUSTED")):
    A2A_ERROR_REASONS[_kind] = "INTERNAL_ERROR"
    A2A_ERROR_MAPPING[_kind] = ErrorMapping(503, _status, A2A_ERROR_REASONS[_kind])


def unavailable_error(error: Unavailable) -> UnavailableError:
    """What a client is told of it; the operator is told why (rule 3)."""
    logger.warning("A request could not be answered. %s", error)
    return UnavailableError(DATABASE_UNAVAILABLE)
