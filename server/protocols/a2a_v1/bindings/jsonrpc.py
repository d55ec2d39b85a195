"""A2A over JSON-RPC, `POST /`, 1.0 and 0.3.

Rules:
1. The pipeline runs before this (`pipeline/http_pipeline.py`): it has parsed and checked the call, and put it into the
   scope.
2. An answer has HTTP status 200, or 401 if only the caller's credentials are missing, the request's id, and `result`
   or `error`.
3. A failure before a stream begins gets an ordinary answer (`edge/sse_response.py`, rule 2). The pipeline makes a later
   failure the stream's last event, with `event: error`. In 0.3 both are data events: its clients read nothing else.
4. The handler raises only `A2AError`; any other exception is a bug, and the pipeline answers it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError
from google.protobuf.message import Message
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from a2a_canvas.server.protocols.a2a_v1.operations.dispatch import (
    EVENT_JSON,
    EventStream,
    Json,
    Operations,
    answer_json,
    to_legacy,
)
from a2a_canvas.server.protocols.a2a_v1.projection.encoding import EventForm
from a2a_canvas.server.protocols.edge.request_metrics import note_refusal
from a2a_canvas.server.protocols.edge.sse_response import SseResponse, sse_event
from a2a_canvas.server.protocols.guard.calls import CALL, Call
from a2a_canvas.server.protocols.guard.error_forms import JsonRpcForm
from a2a_canvas.server.protocols.pipeline.entrance import UnauthenticatedError


def jsonrpc_route(handler: RequestHandler) -> Route:
    """`POST /`."""
    return Route("/", _JsonRpcEndpoint(handler), methods=["POST"])


class _JsonRpcEndpoint:
    def __init__(self, handler: RequestHandler) -> None:
        self._operations = Operations(handler)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(scope[CALL], Request(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, call: Call, request: Request) -> ASGIApp:
        try:
            answer = await self._operations.run(call, request, _LEGACY_EVENT if call.legacy else EVENT_JSON)
        except A2AError as error:
            note_refusal(request.scope, type(error))
            if call.legacy and self._operations.streams(call):
                return SseResponse(_error_event(call, error))
            return JSONResponse(_error(call, error), 401 if isinstance(error, UnauthenticatedError) else 200)
        if isinstance(answer, EventStream):
            return SseResponse(_legacy_sse(call, answer) if call.legacy else _sse(call, answer))
        return JSONResponse(_response(call, _result(call, answer)))


def _sse(call: Call, events: EventStream) -> AsyncGenerator[bytes, None]:
    return events.encode(b'{"result":', b',"id":%b,"jsonrpc":"2.0"}' % to_json(call.id))


async def _legacy_sse(call: Call, events: EventStream) -> AsyncGenerator[bytes, None]:
    try:
        async for event in _sse(call, events):
            yield event
            del event
    except A2AError as error:
        async for event in _error_event(call, error):
            yield event


async def _error_event(call: Call, error: A2AError) -> AsyncGenerator[bytes, None]:
    yield sse_event(to_json(_error(call, error)))


def _response(call: Call, result: Json | list[Json] | None) -> Json:
    return {"result": result, "id": call.id, "jsonrpc": "2.0"}


def _error(call: Call, error: A2AError) -> Json:
    return JsonRpcForm(call.id, call.legacy).error_payload(error)


def _result(call: Call, answer: Message | None) -> Json | list[Json] | None:
    if answer is None:
        return None
    if call.legacy and isinstance(answer, pb.ListTaskPushNotificationConfigsResponse):
        return [_legacy_json(each) for each in answer.configs]
    return _legacy_json(answer) if call.legacy else answer_json(call, answer)


def _legacy_json(answer: Message) -> Json:
    written: dict[str, Any] = to_legacy(answer).model_dump(mode="json", by_alias=True, exclude_none=True)
    return written


_LEGACY_EVENT: Final = EventForm(lambda event: to_json(_legacy_json(event)))
