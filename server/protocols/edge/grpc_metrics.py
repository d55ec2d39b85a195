"""Counts the open streams and the refused requests of gRPC, by the rules of `request_metrics.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.edge.grpc_methods import method_of, wrapped
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


class MetricsInterceptor(grpc.aio.ServerInterceptor):
    """Around all other interceptors."""

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
        return wrapped(handler, self._unary(method_of(handler)), self._streaming(method_of(handler)))

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
