"""A2A over JSON-RPC, `POST /`: 1.0 is answered here, 0.3 by the SDK's adapter.

Rules:
1. The guard runs before this (`guard/http_guard.py`): it has parsed and checked the call, and left it in the scope.
2. An answer has HTTP status 200, the request's id, and `result` or `error`.
3. What fails before a stream begins has an ordinary answer (`edge/sse_response.py`, rule 2). What fails later the guard
   makes the stream's last event, with `event: error`.
4. Errors have the form of the SDK's `build_error_response`. The handler raises only `A2AError`; any other exception is
   a bug, and the guard answers it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

# First, as in rpc_calls.py.
import a2a.server.routes  # noqa: F401
from a2a.compat.v0_3.jsonrpc_adapter import JSONRPC03Adapter
from a2a.server.jsonrpc_models import MethodNotFoundError
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes.common import DefaultServerCallContextBuilder, serialize_list_tasks_response
from a2a.types import a2a_pb2 as pb
from a2a.utils import json_utils
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from a2a_canvas.server.protocols.edge.sse_response import SseResponse, begun, sse_event
from a2a_canvas.server.protocols.guard.rpc_calls import RPC_CALL, RpcCall

Json = dict[str, Any]

_ALTERNATIVES: Mapping[type[Message], str] = {
    pb.Task: "task",
    pb.Message: "message",
    pb.TaskStatusUpdateEvent: "statusUpdate",
    pb.TaskArtifactUpdateEvent: "artifactUpdate",
}
"""The members of `SendMessageResponse` and `StreamResponse`."""


def jsonrpc_route(handler: RequestHandler) -> Route:
    """`POST /`."""
    return Route("/", _JsonRpcEndpoint(handler).respond, methods=["POST"])


class _JsonRpcEndpoint:
    def __init__(self, handler: RequestHandler) -> None:
        self._contexts = DefaultServerCallContextBuilder()
        self._legacy = JSONRPC03Adapter(handler)
        self._streams: Mapping[str, Callable[..., AsyncIterator[Any]]] = {
            "SendStreamingMessage": handler.on_message_send_stream,
            "SubscribeToTask": handler.on_subscribe_to_task,
        }
        self._methods: Mapping[str, Callable[..., Awaitable[Any]]] = {
            "SendMessage": handler.on_message_send,
            "GetTask": handler.on_get_task,
            "ListTasks": handler.on_list_tasks,
            "CancelTask": handler.on_cancel_task,
            "CreateTaskPushNotificationConfig": handler.on_create_task_push_notification_config,
            "GetTaskPushNotificationConfig": handler.on_get_task_push_notification_config,
            "ListTaskPushNotificationConfigs": handler.on_list_task_push_notification_configs,
            "DeleteTaskPushNotificationConfig": handler.on_delete_task_push_notification_config,
            "GetExtendedAgentCard": handler.on_get_extended_agent_card,
        }

    async def respond(self, request: Request) -> ASGIApp:
        call: RpcCall = request.scope[RPC_CALL]
        if call.legacy_request is not None:
            answer = await self._legacy.handle_request(call.id, call.method, call.legacy_request, request)
            return SseResponse(_legacy_sse(answer)) if isinstance(answer, EventSourceResponse) else answer
        if call.params is None:
            return JSONResponse(build_error_response(call.id, MethodNotFoundError()))
        try:
            context = self._contexts.build(request)
            context.state.update(method=call.method, request_id=call.id)
            if call.method in self._streams:
                return await self._stream(call, self._streams[call.method](call.params, context))
            result = await self._methods[call.method](call.params, context)
        except A2AError as error:
            return JSONResponse(build_error_response(call.id, error))
        return JSONResponse(_response(call, _result(call, result)))

    async def _stream(self, call: RpcCall, events: AsyncIterator[Message]) -> SseResponse:
        return SseResponse(_sse(call, await begun(anext(events, None)), events))


async def _sse(
    call: RpcCall, first: asyncio.Future[Message | None], events: AsyncIterator[Message]
) -> AsyncGenerator[bytes, None]:
    event = await first
    while event is not None:
        yield sse_event(json_utils.dumps(_response(call, _alternative(event))))
        event = await anext(events, None)


async def _legacy_sse(answer: EventSourceResponse) -> AsyncGenerator[bytes, None]:
    """The events of the SDK's adapter, errors among them."""
    event: Any
    async for event in answer.body_iterator:
        yield sse_event(event["data"])


def _response(call: RpcCall, result: Json | None) -> Json:
    return {"result": result, "id": call.id, "jsonrpc": "2.0"}


def _alternative(message: Message) -> Json:
    return {_ALTERNATIVES[type(message)]: MessageToDict(message)}


def _result(call: RpcCall, message: Message | None) -> Json | None:
    match call.params, message:
        case _, None:
            return None
        case pb.SendMessageRequest(), Message():
            return _alternative(message)
        case pb.ListTasksRequest(), pb.ListTasksResponse():
            return serialize_list_tasks_response(message, call.params.include_artifacts)
        case _:
            return MessageToDict(message)
