"""Maps gRPC's statuses to those of HTTP, for the metrics (`request_metrics.py`, rule 1)."""

from __future__ import annotations

from typing import Any

import grpc

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
"""The HTTP status of gRPC's codes, as google.rpc.Code defines it; 500 for all others."""


def http_status_of(context: Any) -> int:
    """The HTTP status of a call that was aborted."""
    code = context.code()
    return next((http for each, http in _STATUS.items() if code in (each, each.value[0])), 500)
