"""A2A over gRPC, 1.0 and 0.3 on one port."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
from a2a.compat.v0_3.a2a_v0_3_pb2_grpc import add_A2AServiceServicer_to_server as add_0_3
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.grpc_handler import DefaultGrpcServerCallContextBuilder, GrpcHandler
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server as add_1_0

from a2a_canvas.server.protocols.a2a_v1.projection.update_json import LEGACY
from a2a_canvas.server.protocols.edge.connections import MAX_HEAD
from a2a_canvas.server.protocols.edge.http_requests import CALLER, STREAM_CHECK
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.pipeline.grpc_pipeline import GrpcPipeline

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
"""Bounds of one connection: the metadata of a call; concurrent calls, the rest wait in the client; the time for the
handshake, for the answer to a ping, and without a call. gRPC has no bound on all connections or their messages."""


class GrpcError(Exception):
    """gRPC cannot be served; `str()` is one line."""


def grpc_server(
    handler: RequestHandler,
    host: str,
    port: int,
    limits: BodyLimits,
    pipeline: GrpcPipeline | None = None,
    max_calls: int | None = None,
) -> grpc.aio.Server:
    """A server that is bound but not started.

    Args:
        pipeline: calls pass it before the handler; one without authentication if not given.
        max_calls: the most concurrent calls; unlimited if not given.

    Raises:
        GrpcError: the port is not free.
    """
    server = grpc.aio.server(
        interceptors=[pipeline or GrpcPipeline(limits)],
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
    """A2A's call contexts, with the authenticated caller."""

    def build(self, context: Any) -> ServerCallContext:
        built = super().build(context)
        built.state[CALLER], built.state[STREAM_CHECK] = context.caller, context.stream_check
        return built


class _LegacyContexts(_CallContexts):
    """The same for clients of A2A 0.3."""

    def build(self, context: Any) -> ServerCallContext:
        built = super().build(context)
        built.state[LEGACY] = True
        return built
