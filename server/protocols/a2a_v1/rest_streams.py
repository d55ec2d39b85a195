"""A2A's streams over HTTP+JSON, of 1.0 and 0.3: these two operations are answered here, the others by the SDK's routes.

Rules:
1. The guard runs before this (`guard/rest.py`): a body that it lets pass can be parsed.
2. What fails before a stream begins has an ordinary answer with the error's HTTP status, in both versions
   (`edge/sse_response.py`, rule 2). What fails later the guard makes the stream's last event, with `event: error`.
3. The events of 0.3 are those of the SDK's adapter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

# First, as in rpc_calls.py.
import a2a.server.routes  # noqa: F401
from a2a.compat.v0_3.context_builders import V03ServerCallContextBuilder
from a2a.compat.v0_3.rest_handler import REST03Handler
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.types import a2a_pb2 as pb
from a2a.utils import json_utils
from a2a.utils.error_handlers import rest_error_handler
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict, Parse
from starlette.requests import Request
from starlette.routing import Route

from a2a_canvas.server.protocols.edge.sse_response import SseResponse, begun, sse_event

Json = dict[str, Any]
Events = Callable[[Request, ServerCallContext], AsyncIterator[Json]]


def rest_stream_routes(handler: RequestHandler, prefix: str) -> list[Route]:
    """The routes, to stand before the SDK's.

    Args:
        prefix: the path of the binding.
    """
    current, legacy = _RestStreams(handler), REST03Handler(handler)
    contexts = DefaultServerCallContextBuilder()
    context_of, legacy_context_of = contexts.build, V03ServerCallContextBuilder(contexts).build
    return [
        _route(f"{prefix}/message:stream", ["POST"], current.send, context_of),
        _route(f"{prefix}/tasks/{{id}}:subscribe", ["GET", "POST"], current.subscribe, context_of),
        _route(f"{prefix}/v1/message:stream", ["POST"], legacy.on_message_send_stream, legacy_context_of),
        _route(f"{prefix}/v1/tasks/{{id}}:subscribe", ["GET", "POST"], legacy.on_subscribe_to_task, legacy_context_of),
    ]


def _route(path: str, methods: list[str], events: Events, context_of: Callable[[Request], ServerCallContext]) -> Route:
    @rest_error_handler
    async def respond(request: Request) -> Any:
        of_request = events(request, context_of(request))
        return SseResponse(_sse(await begun(anext(of_request, None)), of_request))

    return Route(path, respond, methods=methods)


async def _sse(first: asyncio.Future[Json | None], events: AsyncIterator[Json]) -> AsyncGenerator[bytes, None]:
    event = await first
    while event is not None:
        yield sse_event(json_utils.dumps(event))
        event = await anext(events, None)


class _RestStreams:
    """The operations of 1.0 that stream."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler

    async def send(self, request: Request, context: ServerCallContext) -> AsyncIterator[Json]:
        params = Parse(await request.body(), pb.SendMessageRequest(), ignore_unknown_fields=True)
        async for event in self._handler.on_message_send_stream(params, context):
            yield MessageToDict(to_stream_response(event))

    async def subscribe(self, request: Request, context: ServerCallContext) -> AsyncIterator[Json]:
        params = pb.SubscribeToTaskRequest(id=request.path_params["id"])
        async for event in self._handler.on_subscribe_to_task(params, context):
            yield MessageToDict(to_stream_response(event))
