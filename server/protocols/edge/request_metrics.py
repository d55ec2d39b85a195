"""Counts the open streams and the refused requests, at the edge of HTTP and of gRPC.

Rule 1: a request is refused if it is answered with an error. The reason is the name of the HTTP status that says why,
        for every binding: what JSON-RPC answers with 200 and gRPC with a status of its own counts as REST answers it.
Rule 2: an error in a stream that has begun is none: the request was accepted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import grpc
import grpc.aio
from a2a.utils.errors import A2A_ERROR_MAPPING
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.metrics import OTHER, Metrics

_REFUSED = "a2a_canvas.refused"
_BINDINGS = (("/rest/", "HTTP+JSON"), ("/canvas/stream/", "AG-UI"), ("/artifacts/", "artifacts"))
"""The bindings by the beginning of their paths."""
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


def reason_of(status: int) -> str:
    """The name of an HTTP status in the metrics: `not_found`."""
    try:
        return HTTPStatus(status).name.lower()
    except ValueError:
        return OTHER


def binding_of(method: str, path: str) -> str:
    """The binding of a request; `other` for the card, the page and what is nowhere."""
    if path == "/" and method not in ("GET", "HEAD"):
        return "JSONRPC"
    return next((name for prefix, name in _BINDINGS if f"{path}/".startswith(prefix)), OTHER)


def note_refusal(scope: Scope, kind: type[Exception]) -> None:
    """The request is about to be refused with such an error, in a form that has no status of its own (rule 1)."""
    scope[_REFUSED] = A2A_ERROR_MAPPING[kind].http_code if kind in A2A_ERROR_MAPPING else 400


def refused_connections(metrics: Metrics) -> Callable[[int], None]:
    """Counts what is refused with an HTTP status before it is a request."""
    return lambda status: metrics.refused.add(OTHER, reason_of(status))


class MetricsMiddleware:
    """ASGI middleware around all others."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        binding = binding_of(scope["method"], scope["path"].removeprefix(scope.get("root_path", "")))
        answer = _CountedAnswer(scope, send, self._metrics, binding)
        try:
            await self._app(scope, receive, answer.send)
        except Exception:
            answer.failed()
            raise
        finally:
            answer.ended()


class _CountedAnswer:
    def __init__(self, scope: Scope, send: Send, metrics: Metrics, binding: str) -> None:
        self._scope = scope
        self._send = send
        self._metrics = metrics
        self._binding = binding
        self._begun = self._streams = False

    def send(self, message: Message) -> Awaitable[None]:
        if not self._begun:
            self._begun = True
            self._begin(message)
        return self._send(message)

    def _begin(self, start: Message) -> None:
        status = self._scope.get(_REFUSED, start["status"])
        if status >= 400:
            self._metrics.refused.add(self._binding, reason_of(status))
        elif any(
            name == b"content-type" and value.startswith(b"text/event-stream") for name, value in start["headers"]
        ):
            self._streams = True
            self._metrics.open_streams.add(self._binding)

    def failed(self) -> None:
        if not self._begun:
            self._metrics.refused.add(self._binding, reason_of(500))

    def ended(self) -> None:
        if self._streams:
            self._metrics.open_streams.add(self._binding, amount=-1)


class MetricsInterceptor(grpc.aio.ServerInterceptor):
    """The same for gRPC, around all other interceptors."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler: Any = await continuation(handler_call_details)
        if handler is None:
            return None
        form = (handler.request_deserializer, handler.response_serializer)
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(self._streaming(handler.unary_stream), *form)
        return grpc.unary_unary_rpc_method_handler(self._unary(handler.unary_unary), *form)

    def _unary(self, method: Any) -> Any:
        async def counted(request: Any, context: Any) -> Any:
            try:
                return await method(request, context)
            except grpc.aio.AbortError:
                self._refuse(context)
                raise

        return counted

    def _streaming(self, method: Any) -> Any:
        async def counted(request: Any, context: Any) -> Any:
            begun = False
            try:
                async for response in method(request, context):
                    if not begun:
                        begun = True
                        self._metrics.open_streams.add("GRPC")
                    yield response
            except grpc.aio.AbortError:
                if not begun:
                    self._refuse(context)
                raise
            finally:
                if begun:
                    self._metrics.open_streams.add("GRPC", amount=-1)

        return counted

    def _refuse(self, context: Any) -> None:
        code = context.code()
        status = next((http for each, http in _STATUS.items() if code in (each, each.value[0])), 500)
        self._metrics.refused.add("GRPC", reason_of(status))
