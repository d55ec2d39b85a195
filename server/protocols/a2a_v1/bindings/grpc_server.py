"""A2A over gRPC, 1.0 and 0.3 on one port."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Final

import grpc
import grpc.aio
from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3 import types as v0_3
from a2a.compat.v0_3.a2a_v0_3_pb2_grpc import add_A2AServiceServicer_to_server as add_0_3
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.compat.v0_3.proto_utils import FromProto, ToProto
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.grpc_handler import DefaultGrpcServerCallContextBuilder, GrpcHandler
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server as add_1_0
from a2a.utils.proto_utils import to_stream_response

from a2a_canvas.server.protocols.a2a_v1.operations.dispatch import to_legacy
from a2a_canvas.server.protocols.a2a_v1.projection.encoding import EVENT_FORM, EventForm
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
    *,
    shared: bool = False,
) -> grpc.aio.Server:
    """A server that is bound but not started.

    Args:
        pipeline: calls pass it before the handler; one without authentication if not given.
        max_calls: the most concurrent calls; unlimited if not given.
        shared: other processes of this user serve the port, too.

    Raises:
        GrpcError: the port is not free.
    """
    server = grpc.aio.server(
        interceptors=[pipeline or GrpcPipeline(limits)],
        options=[
            ("grpc.so_reuseport", int(shared)),
            ("grpc.max_receive_message_length", limits.max_body_bytes),
            *CONNECTION_OPTIONS.items(),
        ],
        maximum_concurrent_rpcs=max_calls,
    )
    add_1_0(_Streams(handler, _CallContexts()), server)  # type: ignore[no-untyped-call]
    add_0_3(_LegacyStreams(handler, _LegacyContexts()), server)  # type: ignore[no-untyped-call]
    try:
        server.add_insecure_port(f"{f'[{host}]' if ':' in host else host}:{port}")
    except RuntimeError:
        raise GrpcError(f"gRPC cannot listen on {host}:{port}: the port may be in use. Choose another.") from None
    return server


EVENT: Final = EventForm(lambda event: to_stream_response(event).SerializeToString())
LEGACY_EVENT: Final = EventForm(lambda event: ToProto.stream_response(to_legacy(event)).SerializeToString())


class _CallContexts(DefaultGrpcServerCallContextBuilder):
    """A2A's call contexts, with the authenticated caller."""

    form = EVENT

    def build(self, context: Any) -> ServerCallContext:
        built = super().build(context)
        built.state[CALLER], built.state[STREAM_CHECK] = context.caller, context.stream_check
        built.state[EVENT_FORM] = self.form
        return built


class _LegacyContexts(_CallContexts):
    """The same for clients of A2A 0.3."""

    form = LEGACY_EVENT

    def build(self, context: Any) -> ServerCallContext:
        built = super().build(context)
        built.state[LEGACY] = True
        return built


class _Streams(GrpcHandler):
    """The SDK's service, with streams of serialized events: the handler serializes each once for all readers."""

    def SendStreamingMessage(self, request: Any, context: Any) -> AsyncIterable[Any]:
        start = self.request_handler.on_message_send_stream
        return self._handle_stream(request, context, lambda call: _serialize(start(request, call), EVENT))

    def SubscribeToTask(self, request: Any, context: Any) -> AsyncIterable[Any]:
        start = self.request_handler.on_subscribe_to_task
        return self._handle_stream(request, context, lambda call: _serialize(start(request, call), EVENT))


class _LegacyStreams(CompatGrpcHandler):
    """The same in 0.3."""

    def SendStreamingMessage(self, request: Any, context: Any) -> AsyncIterable[Any]:
        start = self.handler03.request_handler.on_message_send_stream

        def events(call: ServerCallContext) -> AsyncIterator[bytes]:
            params = v0_3.SendMessageRequest(id=0, params=FromProto.message_send_params(request))
            return _serialize(start(conversions.to_core_send_message_request(params), call), LEGACY_EVENT)

        return self._handle_stream(context, events)

    def TaskSubscription(self, request: Any, context: Any) -> AsyncIterable[Any]:
        start = self.handler03.request_handler.on_subscribe_to_task

        def events(call: ServerCallContext) -> AsyncIterator[bytes]:
            params = v0_3.TaskResubscriptionRequest(id=0, params=FromProto.task_id_params(request))
            return _serialize(start(conversions.to_core_subscribe_to_task_request(params), call), LEGACY_EVENT)

        return self._handle_stream(context, events)


async def _serialize(events: AsyncIterator[Any], form: EventForm) -> AsyncIterator[bytes]:
    """The events of a handler, each alone."""
    async for event in events:
        for each in event if isinstance(event, tuple) else (form.write(event),):
            yield each
