"""A2A over HTTP+JSON, below a prefix: 1.0, and 0.3 below `/v1`.

Rules:
1. The guard runs before this (`guard/http_guard.py`): it has parsed and checked the call, and left it in the scope.
   What it found no operation for is 404; the guard writes that answer.
2. What fails before a stream's first event has an ordinary answer, with the error's own status. What fails later is the
   stream's last event, with `event: error`.
3. Errors are `google.rpc.Status` in both versions.
4. The handler raises only `A2AError`; any other exception is a bug, and the guard answers it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from a2a.compat.v0_3.proto_utils import ToProto
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.common import create_event_source_response
from a2a.types import a2a_pb2 as pb
from a2a.utils import json_utils
from a2a.utils.constants import A2A_JSON_MEDIA_TYPE
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from a2a_canvas.server.protocols.a2a_v1.dispatch import (
    EventStream,
    Json,
    Operations,
    answer_json,
    event_json,
    to_legacy,
)
from a2a_canvas.server.protocols.edge.http_requests import ANYTHING
from a2a_canvas.server.protocols.guard.calls import CALL, Call
from a2a_canvas.server.protocols.guard.error_forms import rest_error_payload


def rest_route(handler: RequestHandler, prefix: str, grace: float = 0) -> Route:
    """Every path below `prefix`. `grace`: seconds that streams have to end when the server stops."""
    return Route(f"{prefix}/{{rest:{ANYTHING}}}", _RestEndpoint(handler, grace))


class _RestEndpoint:
    def __init__(self, handler: RequestHandler, grace: float) -> None:
        self._grace = grace
        self._operations = Operations(handler)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call | None = scope.get(CALL)
        response = await self._respond(call, Request(scope, receive)) if call else Response(status_code=404)
        await response(scope, receive, send)

    async def _respond(self, call: Call, request: Request) -> Response:
        try:
            answer = await self._operations.run(call, request)
        except A2AError as error:
            payload = rest_error_payload(error)
            return JSONResponse(payload, payload["error"]["code"])
        if isinstance(answer, EventStream):
            return create_event_source_response(_sse(call, answer), shutdown_grace_period=self._grace)
        if call.legacy:
            return JSONResponse(_legacy_answer(call, answer))
        return JSONResponse(answer_json(call, answer) if answer else {}, media_type=A2A_JSON_MEDIA_TYPE)


async def _sse(call: Call, events: EventStream) -> AsyncIterator[dict[str, str]]:
    written = _legacy_event if call.legacy else event_json
    try:
        if events.first is not None:
            yield {"data": json_utils.dumps(written(events.first))}
        async for event in events.rest:
            yield {"data": json_utils.dumps(written(event))}
    except A2AError as error:
        yield {"event": "error", "data": json_utils.dumps(rest_error_payload(error))}


def _legacy_event(event: Message) -> Json:
    return MessageToDict(ToProto.stream_response(to_legacy(event)))


def _legacy_answer(call: Call, answer: Any) -> Json:
    write = ToProto.task_or_message if isinstance(call.params, pb.SendMessageRequest) else ToProto.task
    return MessageToDict(write(to_legacy(answer)))
