"""JSON-RPC requests, from bytes to what a handler takes, and messages of A2A 0.3. Pure.

Rules:
1. A request is parsed once. What may pass is left in the scope for the route behind (`a2a_v1/jsonrpc.py`): a 1.0 call
   as the message of its method, a 0.3 call as its JSON, which the SDK's adapter reads.
2. A 0.3 call is tried here with the SDK's models and converters first: what passes cannot make them raise. That parses
   it twice, and gives errors without the text of an exception.
3. The checks go envelope, version, params: a caller with the wrong version learns that, not what is wrong in the rest.
4. An unknown method passes: the route answers it.
5. Codes are the SDK's: a 0.3 request that does not fit its model is InvalidRequest, a 1.0 one is InvalidParams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

# First: the SDK's modules import each other in a circle that opens only from here.
import a2a.server.routes  # noqa: F401
from a2a.compat.v0_3 import a2a_v0_3_pb2, conversions, proto_utils
from a2a.compat.v0_3 import types as types_v03
from a2a.compat.v0_3.jsonrpc_adapter import JSONRPC03Adapter
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError, InvalidRequestError
from google.protobuf.message import Message
from pydantic import ValidationError

from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, check_json, check_version
from a2a_canvas.server.protocols.guard.proto_messages import check_message, parse_params

RequestId: TypeAlias = str | int | None

RPC_CALL: Final = "a2a_canvas.rpc_call"
"""The key of an `RpcCall` in the scope (rule 1)."""


@dataclass(frozen=True, slots=True)
class RpcCall:
    """A JSON-RPC request that may pass.

    Attributes:
        params: those of a method of 1.0; None for other methods.
        legacy_request: the whole request, if its method is one of A2A 0.3.
    """

    id: RequestId
    method: str
    params: Message | None = None
    legacy_request: dict[str, Any] | None = None

    @property
    def legacy(self) -> bool:
        return self.legacy_request is not None


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A JSON-RPC request that may not: the id to answer with, and whether to answer as the 0.3 adapter does."""

    refusal: Refusal
    id: RequestId = None
    legacy: bool = False


REQUESTS: Mapping[str, type[Message]] = {
    "SendMessage": pb.SendMessageRequest,
    "SendStreamingMessage": pb.SendMessageRequest,
    "GetTask": pb.GetTaskRequest,
    "ListTasks": pb.ListTasksRequest,
    "CancelTask": pb.CancelTaskRequest,
    "SubscribeToTask": pb.SubscribeToTaskRequest,
    "CreateTaskPushNotificationConfig": pb.TaskPushNotificationConfig,
    "GetTaskPushNotificationConfig": pb.GetTaskPushNotificationConfigRequest,
    "ListTaskPushNotificationConfigs": pb.ListTaskPushNotificationConfigsRequest,
    "DeleteTaskPushNotificationConfig": pb.DeleteTaskPushNotificationConfigRequest,
    "GetExtendedAgentCard": pb.GetExtendedAgentCardRequest,
}
"""The methods of A2A 1.0 and the messages of their params."""

_PUSH: Final = "tasks/pushNotificationConfig"

LEGACY_CONVERTERS: Mapping[str, Callable[[Any], Message]] = {
    "message/send": conversions.to_core_send_message_request,
    "message/stream": conversions.to_core_send_message_request,
    "tasks/get": conversions.to_core_get_task_request,
    "tasks/cancel": conversions.to_core_cancel_task_request,
    "tasks/resubscribe": conversions.to_core_subscribe_to_task_request,
    f"{_PUSH}/set": conversions.to_core_create_task_push_notification_config_request,
    f"{_PUSH}/get": conversions.to_core_get_task_push_notification_config_request,
    f"{_PUSH}/list": conversions.to_core_list_task_push_notification_config_request,
    f"{_PUSH}/delete": conversions.to_core_delete_task_push_notification_config_request,
    "agent/getAuthenticatedExtendedCard": conversions.to_core_get_extended_agent_card_request,
}
"""The methods of A2A 0.3, and what makes 1.0 of their requests. The models of these are in the adapter's table."""


def check_jsonrpc(body: bytes, version: str | None, limits: BodyLimits) -> RpcCall | RejectedCall:
    """A JSON-RPC request, from its bytes and its A2A-Version header to the params of its method."""
    request = check_json(body, limits)
    if isinstance(request, Refusal):
        return RejectedCall(request)
    if not isinstance(request, dict):
        no_batch = "Batches are not supported; send one request at a time"
        one_object = "Send one JSON object with jsonrpc, id, method and params"
        return RejectedCall(_not_a_call(no_batch if isinstance(request, list) else one_object))
    id_ = request.get("id")
    if isinstance(id_, bool) or not isinstance(id_, str | int | None):
        return RejectedCall(_not_a_call("id must be a string, a whole number or null"))
    if text := _wrong_members(request):
        return RejectedCall(_not_a_call(text), id_)
    if refusal := check_version(version):
        return RejectedCall(refusal, id_)
    return _check_method(request, id_, version, limits)


def _wrong_members(request: Mapping[str, Any]) -> str:
    """What is wrong in the members of a JSON-RPC 2.0 request, which has no others."""
    method = request.get("method")
    if request.get("jsonrpc") != "2.0":
        return 'jsonrpc must be exactly "2.0"'
    if not isinstance(method, str) or not method:
        return "method is required and must be a string"
    if method.startswith("rpc."):
        return "Names of methods that begin with rpc. are reserved by JSON-RPC"
    if not request.keys() <= {"jsonrpc", "id", "method", "params"}:
        return "A request has the members jsonrpc, id, method and params alone; put everything else into params"
    return "" if isinstance(request.get("params"), dict | list | None) else "params must be an object"


def _not_a_call(text: str) -> Refusal:
    return Refusal(InvalidRequestError, f"Invalid request: {text}")


def _check_method(
    request: dict[str, Any], id_: RequestId, version: str | None, limits: BodyLimits
) -> RpcCall | RejectedCall:
    method = request["method"]
    if method in LEGACY_CONVERTERS:
        refusal = check_version(version, "0.3") or _check_legacy(method, request, limits)
        return RejectedCall(refusal, id_, legacy=True) if refusal else RpcCall(id_, method, legacy_request=request)
    if method not in REQUESTS:
        return RpcCall(id_, method)
    params = check_version(version, "1.0") or parse_params(request.get("params", {}), REQUESTS[method], limits)
    return RejectedCall(params, id_) if isinstance(params, Refusal) else RpcCall(id_, method, params)


def _check_legacy(method: str, request: Mapping[str, Any], limits: BodyLimits) -> Refusal | None:
    model: Any = JSONRPC03Adapter.METHOD_TO_MODEL[method]
    try:
        parsed = model.model_validate(request)
    except ValidationError as error:
        fields = _fields_at_fault(error)
        text = f"Invalid request: check {', '.join(path for path, _ in fields)}"
        return Refusal(InvalidRequestError, text, fields)
    return _convert(lambda: LEGACY_CONVERTERS[method](parsed), limits)


def _fields_at_fault(error: ValidationError) -> tuple[tuple[str, str], ...]:
    """Paths and reasons in our words. Below a union pydantic lists every alternative: they count as one, the union."""
    found: dict[str, str] = {}
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        path, union = _path(detail["loc"])
        missing = detail["type"] == "missing" and not union
        found.setdefault(path, "Field is required." if missing else "Not what A2A 0.3 defines for this field.")
    return tuple(found.items())


def _path(loc: tuple[int | str, ...]) -> tuple[str, bool]:
    """`loc` as a path, cut off at the name of a model: below it pydantic tries one alternative of a union."""
    path = ""
    for step in loc:
        if isinstance(step, str) and not step[:1].islower():
            return path, True
        path += f"[{step}]" if isinstance(step, int) else f".{step}".lstrip("." if not path else "")
    return path, False


def _convert(convert: Callable[[], Message], limits: BodyLimits) -> Refusal | None:
    """A 0.3 request on its way to 1.0. `convert` fails on base64, 32-bit ranges and the like."""
    try:
        core = convert()
    # The SDK's converters raise what their calls raise: ValueError, KeyError, TypeError, protobuf's and pydantic's.
    except Exception:
        text = "Invalid params: cannot be read as A2A 0.3; check that file bytes are base64 and numbers fit 32 bits"
        return Refusal(InvalidParamsError, text)
    return check_message(core, limits, from_json=True)


def check_legacy_proto(message: Message, limits: BodyLimits) -> Refusal | None:
    """A protobuf message of A2A 0.3, as REST and gRPC carry it: itself, and what the SDK makes of it."""
    if refusal := check_message(message, limits):
        return refusal
    if not isinstance(message, a2a_v0_3_pb2.SendMessageRequest):
        return None
    return _convert(lambda: _core_of(message), limits)


def _core_of(message: a2a_v0_3_pb2.SendMessageRequest) -> Message:
    params = proto_utils.FromProto.message_send_params(message)
    return conversions.to_core_send_message_request(types_v03.SendMessageRequest(id="", params=params))
