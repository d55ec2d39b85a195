"""A2A over gRPC, 1.0 and 0.3 on one port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Set
from typing import Any

import grpc
import grpc.aio
from a2a.compat.v0_3.a2a_v0_3_pb2_grpc import add_A2AServiceServicer_to_server as add_0_3
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.grpc_handler import DefaultGrpcServerCallContextBuilder, GrpcHandler
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2
from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server as add_1_0

from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import SUPPORTED, activated_header, extension_headers
from a2a_canvas.server.protocols.a2a_v1.projection.update_json import LEGACY
from a2a_canvas.server.protocols.edge.connections import MAX_HEAD
from a2a_canvas.server.protocols.edge.grpc_methods import wrapped
from a2a_canvas.server.protocols.edge.grpc_metrics import MetricsInterceptor
from a2a_canvas.server.protocols.edge.http_requests import CALLER, STREAM_CHECK
from a2a_canvas.server.protocols.guard.bodies import BodyBudget
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.guard.grpc_guard import GuardInterceptor
from a2a_canvas.server.protocols.guard.guests import RefuseMessage, refuse_none
from a2a_canvas.server.protocols.guard.parsing import ParsingThread
from a2a_canvas.server.protocols.pipeline.grpc_authentication import (
    GrpcAuthentication,
    caller_in,
    stream_check_in,
)

CONNECTION_OPTIONS = {
    "grpc.max_metadata_size": MAX_HEAD,
    "grpc.absolute_max_metadata_size": MAX_HEAD,
    "grpc.max_concurrent_streams": 256,
    "grpc.server_handshake_timeout_ms": 10_000,
    "grpc.keepalive_time_ms": 60_000,
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.max_connection_idle_ms": 600_000,
}
"""What bounds one connection: the metadata of a call; the calls on it at once, the rest wait in the client; how long it
may take to begin, to answer a ping, and to have no call. gRPC has nothing that bounds connections, or the messages on
all of them, in sum."""

_SERVICE_1_0 = a2a_pb2.DESCRIPTOR.services_by_name["A2AService"].full_name


class GrpcError(Exception):
    """gRPC cannot be served; `str()` is one line."""


def grpc_server(
    handler: RequestHandler,
    host: str,
    port: int,
    limits: BodyLimits,
    budget: BodyBudget | None = None,
    max_calls: int | None = None,
    authentication: GrpcAuthentication | None = None,
    metrics: Metrics | None = None,
    extensions: Set[str] = SUPPORTED,
    parsing: ParsingThread | None = None,
    refuse_message: RefuseMessage = refuse_none,
) -> grpc.aio.Server:
    """A server that is bound but not started.

    Args:
        budget: of all request bodies; one of its own if not given.
        max_calls: how many calls there may be at once; any number if not given.
        metrics: count the streams and the refusals.
        authentication: who is let in; everybody if not given.
        extensions: URIs of those that requests may activate.
        parsing: where large messages are parsed; a thread of its own if not given.
        refuse_message: for callers who may send none.

    Raises:
        GrpcError: the port is not free.
    """
    server = grpc.aio.server(
        interceptors=[
            MetricsInterceptor(metrics or Metrics()),
            *filter(None, [authentication]),
            GuardInterceptor(limits, budget, parsing, refuse_message),
            GrpcExtensionsEcho(extensions),
        ],
        options=[
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", limits.max_body_bytes),
            *CONNECTION_OPTIONS.items(),
        ],
        maximum_concurrent_rpcs=max_calls,
    )
    add_1_0(GrpcHandler(handler, _CallContexts()), server)  # type: ignore[no-untyped-call]
    add_0_3(CompatGrpcHandler(handler, _LegacyContexts()), server)  # type: ignore[no-untyped-call]
    try:
        server.add_insecure_port(f"{f'[{host}]' if ':' in host else host}:{port}")
    except RuntimeError:
        raise GrpcError(f"gRPC cannot listen on {host}:{port}: the port may be in use. Choose another.") from None
    return server


class _CallContexts(DefaultGrpcServerCallContextBuilder):
    """A2A's call contexts, with the caller that authentication has found."""

    def build(self, context: Any) -> ServerCallContext:
        built = super().build(context)
        built.state[CALLER], built.state[STREAM_CHECK] = caller_in(context), stream_check_in(context)
        return built


class _LegacyContexts(_CallContexts):
    """The same for clients of A2A 0.3."""

    def build(self, context: Any) -> ServerCallContext:
        built = super().build(context)
        built.state[LEGACY] = True
        return built


class GrpcExtensionsEcho(grpc.aio.ServerInterceptor):
    """Names the activated extensions in the initial metadata of each answer, as `ExtensionsEcho` does over HTTP."""

    def __init__(self, supported: Set[str] = SUPPORTED) -> None:
        self._supported = supported

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any) -> Any:
        handler = await continuation(handler_call_details)
        metadata = handler_call_details.invocation_metadata or ()
        version = "1.0" if handler_call_details.method.startswith(f"/{_SERVICE_1_0}/") else "0.3"
        echo = [
            (name.lower(), uris)
            for name in extension_headers(version)
            if (uris := activated_header((str(v) for key, v in metadata if key == name.lower()), self._supported))
        ]
        if handler is None or not echo:
            return handler
        return wrapped(handler, _unary(handler.unary_unary, echo), _streaming(handler.unary_stream, echo))


def _unary(method: Any, echo: list[tuple[str, str]]) -> Any:
    async def with_echo(request: Any, context: Any) -> Any:
        await context.send_initial_metadata(echo)
        return await method(request, context)

    return with_echo


def _streaming(method: Any, echo: list[tuple[str, str]]) -> Any:
    async def with_echo(request: Any, context: Any) -> Any:
        await context.send_initial_metadata(echo)
        async for response in method(request, context):
            yield response

    return with_echo
