"""A2A over HTTP+JSON, below a prefix: 1.0, and 0.3 below `/v1`.

Rules:
1. The pipeline runs before this (`pipeline/http_pipeline.py`): it has parsed and checked the call, and put it into the
   scope. Without a call there is no such path (404), or it has other methods (405).
2. A failure before a stream begins gets an ordinary answer with the error's HTTP status, in both versions
   (`edge/sse_response.py`, rule 2). The pipeline makes a later failure the stream's last event, with `event: error`.
3. Errors are `google.rpc.Status` in both versions.
4. The handler raises only `A2AError`; any other exception is a bug, and the pipeline answers it.
"""

from __future__ import annotations

from typing import Any, Final

from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.compat.v0_3.proto_utils import ToProto
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import A2A_JSON_MEDIA_TYPE
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict
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
from a2a_canvas.server.protocols.edge.availability import retry_header
from a2a_canvas.server.protocols.edge.http_requests import ANYTHING
from a2a_canvas.server.protocols.edge.sse_response import SseResponse
from a2a_canvas.server.protocols.guard.calls import CALL, Call
from a2a_canvas.server.protocols.guard.error_forms import (
    method_not_allowed,
    no_such_path,
    rest_error_payload,
    rest_response,
)
from a2a_canvas.server.protocols.guard.rest_calls import REST_PATHS, allowed_methods


def rest_route(handler: RequestHandler, prefix: str) -> Route:
    """Every path below `prefix`."""
    return Route(f"{prefix}/{{rest:{ANYTHING}}}", _RestEndpoint(handler))


class _RestEndpoint:
    def __init__(self, handler: RequestHandler) -> None:
        self._operations = Operations(handler)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call | None = scope.get(CALL)
        request = Request(scope, receive)
        response = await self._respond(call, request) if call else _refusal(request)
        await response(scope, receive, send)

    async def _respond(self, call: Call, request: Request) -> ASGIApp:
        try:
            answer = await self._operations.run(call, request, _LEGACY_EVENT if call.legacy else EVENT_JSON)
        except A2AError as error:
            payload = rest_error_payload(error)
            return JSONResponse(payload, payload["error"]["code"], retry_header(error))
        if isinstance(answer, EventStream):
            return SseResponse(answer.encode())
        if call.legacy:
            return JSONResponse(_legacy_answer(call, answer))
        return JSONResponse(answer_json(call, answer) if answer else {}, media_type=A2A_JSON_MEDIA_TYPE)


def _refusal(request: Request) -> ASGIApp:
    path, below = request.url.path, request.path_params["rest"]
    if allowed := allowed_methods(below):
        return rest_response(method_not_allowed(request.method, path, allowed))
    prefix = path.removesuffix(below)
    return rest_response(no_such_path(path, dict.fromkeys(REST_PATHS, ""), prefix))


_LEGACY_EVENT: Final = EventForm(lambda event: to_json(MessageToDict(ToProto.stream_response(to_legacy(event)))))


def _legacy_answer(call: Call, answer: Any) -> Json:
    match answer:
        case None:
            return {}
        case pb.AgentCard():
            card: Json = to_legacy(answer).model_dump(mode="json", by_alias=True, exclude_none=True)
            return card
        case pb.TaskPushNotificationConfig():
            return MessageToDict(_legacy_config(answer))
        case pb.ListTaskPushNotificationConfigsResponse():
            configs = [_legacy_config(each) for each in answer.configs]
            return MessageToDict(pb03.ListTaskPushNotificationConfigResponse(configs=configs))
        case _:
            write = ToProto.task_or_message if isinstance(call.params, pb.SendMessageRequest) else ToProto.task
            return MessageToDict(write(to_legacy(answer)))


def _legacy_config(config: pb.TaskPushNotificationConfig) -> pb03.TaskPushNotificationConfig:
    return ToProto.task_push_notification_config(to_legacy(config))
