"""What gRPC's interceptors do with the method of a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc


def method_of(handler: Any) -> Any:
    """What a handler calls."""
    return handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream


def wrapped(
    handler: Any, unary: Callable[[Any, Any], Awaitable[Any]], stream: Callable[[Any, Any], AsyncIterator[Any]]
) -> grpc.RpcMethodHandler[Any, Any]:
    """A handler that reads and writes as `handler` does, and calls `unary` or `stream` with request and context."""
    form = (handler.request_deserializer, handler.response_serializer)
    if handler.request_streaming:
        return _unread(handler, unary, stream)
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(stream, *form)
    return grpc.unary_unary_rpc_method_handler(unary, *form)


def wrapped_unread(
    handler: Any,
    before: Callable[[Any], Awaitable[Any]],
) -> grpc.RpcMethodHandler[Any, Any]:
    """A handler that reads the request once `before` has returned the context for it. What is refused before is not
    read: gRPC holds no more of a request that nobody asks for than its window."""

    async def unary(requests: AsyncIterator[Any], context: Any) -> Any:
        inner = await before(context)
        return await handler.unary_unary(await _only(requests, context), inner)

    async def stream(requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        inner = await before(context)
        async for response in handler.unary_stream(await _only(requests, context), inner):
            yield response

    return _unread(handler, unary, stream)


def _unread(handler: Any, unary: Any, stream: Any) -> grpc.RpcMethodHandler[Any, Any]:
    form = (handler.request_deserializer, handler.response_serializer)
    if handler.response_streaming:
        return grpc.stream_stream_rpc_method_handler(stream, *form)
    return grpc.stream_unary_rpc_method_handler(unary, *form)


async def _only(requests: AsyncIterator[Any], context: Any) -> Any:
    request = await anext(aiter(requests), None)
    if request is None:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The call has no message; send one")
    return request
