"""Counts the open streams and the refused requests of gRPC, by the rules of `request_metrics.py`."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio

from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.edge.request_metrics import reason_of

_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}
"""The HTTP status of gRPC's codes, as google.rpc.Code defines it; of any other 500."""


class CallCount:
    """Counts one call while it is entered: as a stream that is open, or as refused if it is aborted before one."""

    def __init__(self, metrics: Metrics, context: Any) -> None:
        self._metrics = metrics
        self._context = context
        self._streams = False

    def __enter__(self) -> CallCount:
        return self

    def begin_stream(self) -> None:
        """A response is about to be sent."""
        if not self._streams:
            self._streams = True
            self._metrics.open_streams.labels("GRPC").inc()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._streams:
            self._metrics.open_streams.labels("GRPC").dec()
        elif isinstance(error, grpc.aio.AbortError):
            code = self._context.code()
            status = next((http for each, http in _STATUS.items() if code in (each, each.value[0])), 500)
            self._metrics.refused.labels("GRPC", reason_of(status)).inc()
