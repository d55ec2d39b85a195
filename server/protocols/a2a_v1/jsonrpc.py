"""A2A over JSON-RPC, `POST /`, 1.0 and 0.3.

Rules:
1. The guard runs before this (`guard/http_guard.py`): it has parsed and checked the call, and left it in the scope.
2. An answer has HTTP status 200, the request's id, and `result` or `error`.
3. What fails before a stream's first event has an ordinary answer. What fails later is the stream's last event, with
   `event: error`. In 0.3 both are data events, as clients of 0.3 read no other.
4. The handler raises only `A2AError`; any other exception is a bug, and the guard answers it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from a2a.server.jsonrpc_models import MethodNotFoundError
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes.common import create_event_source_response
from a2a.utils import json_utils
from a2a.utils.errors import A2AError
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a2a_canvas.server.protocols.a2a_v1.dispatch import (
    EventStream,
    Json,
    Operations,
    answer_json,
    event_json,
    to_legacy,
)
from a2a_canvas.server.protocols.guard.calls import CALL, Call
from a2a_canvas.server.protocols.guard.error_forms import JsonRpcForm


def jsonrpc_route(handler: RequestHandler, grace: float = 0) -> Route:
    """`POST /`. `grace`: seconds that streams have to end when the server stops."""
    return Route("/", _JsonRpcEndpoint(handler, grace).respond, methods=["POST"])


class _JsonRpcEndpoint:
    def __init__(self, handler: RequestHandler, grace: float) -> None:
        self._grace = grace
        self._operations = Operations(handler)

    async def respond(self, request: Request) -> Response:
        call: Call = request.scope[CALL]
        if call.params is None:
            return JSONResponse(build_error_response(call.id, MethodNotFoundError()))
        try:
            answer = await self._operations.run(call, request)
        except A2AError as error:
            if call.legacy and self._operations.streams(call):
                return self._stream(_failed(call, error))
            return JSONResponse(_error(call, error))
        if isinstance(answer, EventStream):
            return self._stream(_sse(call, answer))
        return JSONResponse(_response(call, _result(call, answer)))

    def _stream(self, events: AsyncIterator[dict[str, str]]) -> Response:
        return create_event_source_response(events, shutdown_grace_period=self._grace)


async def _sse(call: Call, events: EventStream) -> AsyncIterator[dict[str, str]]:
    written = _legacy_json if call.legacy else event_json
    try:
        if events.first is not None:
            yield {"data": json_utils.dumps(_response(call, written(events.first)))}
        async for event in events.rest:
            yield {"data": json_utils.dumps(_response(call, written(event)))}
    except A2AError as error:
        async for last in _failed(call, error):
            yield last


async def _failed(call: Call, error: A2AError) -> AsyncIterator[dict[str, str]]:
    name = {} if call.legacy else {"event": "error"}
    yield {**name, "data": json_utils.dumps(_error(call, error))}


def _response(call: Call, result: Json | None) -> Json:
    return {"result": result, "id": call.id, "jsonrpc": "2.0"}


def _error(call: Call, error: A2AError) -> Json:
    return JsonRpcForm(call.id, call.legacy).error_payload(error)


def _result(call: Call, answer: Message | None) -> Json | None:
    if answer is None:
        return None
    return _legacy_json(answer) if call.legacy else answer_json(call, answer)


def _legacy_json(answer: Message) -> Json:
    written: dict[str, Any] = to_legacy(answer).model_dump(mode="json", by_alias=True, exclude_none=True)
    return written
