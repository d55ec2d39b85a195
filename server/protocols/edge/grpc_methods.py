"""What gRPC's interceptors do with the method of a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc


def wrapped(
    handler: Any, unary: Callable[[Any, Any], Awaitable[Any]], stream: Callable[[Any, Any], AsyncIterator[Any]]
) -> grpc.RpcMethodHandler[Any, Any]:
    """A handler that reads and writes as `handler` does, and calls `unary` or `stream` with request and context."""
    form = (handler.request_deserializer, handler.response_serializer)
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(stream, *form)
    return grpc.unary_unary_rpc_method_handler(unary, *form)
