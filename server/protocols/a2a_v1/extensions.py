"""Which extensions of a request are activated, echoed in the response (A2A 1.0, section 4.6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import grpc
import grpc.aio
from a2a.types import a2a_pb2
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.agent.intent import AGENTSTACK
from a2a_canvas.server.protocols.a2a_v1 import canvas_ext, turn_ext

SUPPORTED = frozenset({turn_ext.URI, canvas_ext.URI, AGENTSTACK})
HEADERS = ("A2A-Extensions", "X-A2A-Extensions")
"""The header of 1.0 and that of 0.3, which takes both. The echo uses the one the client used."""

_SERVICE_1_0 = a2a_pb2.DESCRIPTOR.services_by_name["A2AService"].full_name


def extension_headers(version: str) -> tuple[str, ...]:
    """The headers that activate something in a request of this version; none stands for 0.3."""
    return HEADERS[:1] if version.startswith("1") else HEADERS


def activated_header(values: Iterable[str]) -> str:
    """The supported ones of the URIs that header values ask for, as a header value; empty for none."""
    asked = {uri.strip() for value in values for uri in value.split(",")}
    return ", ".join(sorted(asked & SUPPORTED))


class ExtensionsEcho:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        echo = _echo(Headers(scope=scope)) if scope["type"] == "http" else {}
        if not echo:
            await self._app(scope, receive, send)
            return

        async def with_echo(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(echo)
            await send(message)

        await self._app(scope, receive, with_echo)


def _echo(headers: Headers) -> dict[str, str]:
    names = extension_headers(headers.get("A2A-Version", ""))
    return {name: uris for name in names if (uris := activated_header(headers.getlist(name)))}


class GrpcExtensionsEcho(grpc.aio.ServerInterceptor):
    """The same for gRPC, as initial metadata."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any) -> Any:
        handler = await continuation(handler_call_details)
        metadata = handler_call_details.invocation_metadata or ()
        version = "1.0" if handler_call_details.method.startswith(f"/{_SERVICE_1_0}/") else "0.3"
        echo = [
            (name.lower(), uris)
            for name in extension_headers(version)
            if (uris := activated_header(str(value) for key, value in metadata if key == name.lower()))
        ]
        if handler is None or not echo:
            return handler
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(
                _streaming(handler.unary_stream, echo), handler.request_deserializer, handler.response_serializer
            )
        return grpc.unary_unary_rpc_method_handler(
            _unary(handler.unary_unary, echo), handler.request_deserializer, handler.response_serializer
        )


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
