"""What a call must be before the SDK's routes see it: JSON-RPC requests, params, 0.3 messages. Pure.

Rules:
1. What the SDK would fail on is tried here first, on a scratch message, with the SDK's own parsers and converters:
   a request that passes cannot make them raise. That costs the parsing twice, and buys answers without their text.
2. The checks go envelope, version, params: who speaks the wrong version hears that, not what is wrong in the other.
3. A method that is not known passes: saying so is the SDK's.
4. Codes are the SDK's: a 0.3 request that does not fit its model is InvalidRequest, a 1.0 one is InvalidParams.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

# First of all: the SDK's modules import each other in a circle that opens only from here.
import a2a.server.routes.jsonrpc_dispatcher as dispatcher
from a2a.compat.v0_3 import a2a_v0_3_pb2, conversions, proto_utils
from a2a.compat.v0_3 import types as types_v03
from a2a.compat.v0_3.jsonrpc_adapter import JSONRPC03Adapter
from a2a.utils.errors import InvalidParamsError, InvalidRequestError
from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from pydantic import ValidationError

from a2a_canvas.server.protocols.guard.checks import (
    BodyLimits,
    Refusal,
    check_json,
    check_message,
    check_version,
    invalid,
)

RequestId: TypeAlias = str | int | None


@dataclass(frozen=True, slots=True)
class RpcCall:
    """A JSON-RPC request that may pass. `legacy`: its method is one of A2A 0.3."""

    id: RequestId
    method: str
    legacy: bool


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A JSON-RPC request that may not: the id to answer with, and whether to answer as the 0.3 adapter does."""

    refusal: Refusal
    id: RequestId = None
    legacy: bool = False


# ---------------------------------------------------------------- JSON-RPC


_TO_CORE: Mapping[str, Callable[[Any], Message]] = {
    "message/send": conversions.to_core_send_message_request,
    "message/stream": conversions.to_core_send_message_request,
    "tasks/get": conversions.to_core_get_task_request,
    "tasks/cancel": conversions.to_core_cancel_task_request,
    "tasks/resubscribe": conversions.to_core_subscribe_to_task_request,
    "tasks/pushNotificationConfig/set": conversions.to_core_create_task_push_notification_config_request,
    "tasks/pushNotificationConfig/get": conversions.to_core_get_task_push_notification_config_request,
    "tasks/pushNotificationConfig/list": conversions.to_core_list_task_push_notification_config_request,
    "tasks/pushNotificationConfig/delete": conversions.to_core_delete_task_push_notification_config_request,
    "agent/getAuthenticatedExtendedCard": conversions.to_core_get_extended_agent_card_request,
}


_BASE64 = re.compile(r"(?:[\w+/-]{4})*(?:[\w+/-]{2,3}={0,2})?", re.ASCII)


def check_jsonrpc(body: bytes, version: str | None, limits: BodyLimits) -> RpcCall | RejectedCall:
    """A JSON-RPC request, from its bytes and its A2A-Version header to the params of its method."""
    request = check_json(body, limits)
    if isinstance(request, Refusal):
        return RejectedCall(request)
    call = _envelope(request)
    if isinstance(call, RejectedCall):
        return call
    assert isinstance(request, dict)
    if refusal := check_version(version):
        return RejectedCall(refusal, call.id)
    refusal = _check_method(call, request, version, limits)
    return call if refusal is None else RejectedCall(refusal, call.id, call.legacy)


def _envelope(request: object) -> RpcCall | RejectedCall:
    """The members of a JSON-RPC 2.0 request, which has no others."""
    if isinstance(request, list):
        return RejectedCall(_not_a_call("Batches are not supported; send one request at a time"))
    if not isinstance(request, dict):
        return RejectedCall(_not_a_call("Send one JSON object with jsonrpc, id, method and params"))
    id_ = request.get("id")
    if isinstance(id_, bool) or not isinstance(id_, str | int | None):
        return RejectedCall(_not_a_call("id must be a string, a whole number or null"))
    if text := _wrong_members(request):
        return RejectedCall(_not_a_call(text), id_)
    method = request["method"]
    return RpcCall(id_, method, method in JSONRPC03Adapter.METHOD_TO_MODEL)


def _wrong_members(request: Mapping[str, Any]) -> str:
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


def _check_method(call: RpcCall, request: Mapping[str, Any], version: str | None, limits: BodyLimits) -> Refusal | None:
    model = dispatcher.JsonRpcDispatcher.METHOD_TO_MODEL.get(call.method)
    if call.legacy:
        return check_version(version, "0.3") or _check_legacy(call.method, request, limits)
    if model is None:
        return None
    return check_version(version, "1.0") or check_params(request.get("params", {}), model(), limits)


def check_params(params: object, scratch: Message, limits: BodyLimits) -> Refusal | None:
    """An object of JSON against the protobuf message that the SDK parses it into. `scratch` is filled."""
    if not isinstance(params, dict):
        return Refusal(InvalidParamsError, "Invalid params: send an object")
    refusal = try_parse(lambda: ParseDict(params, scratch, ignore_unknown_fields=True), scratch, limits)
    return refusal or check_enums_and_bytes(params, scratch)


def check_enums_and_bytes(params: Mapping[str, Any], scratch: Message) -> Refusal | None:
    """What the lenient parser would take for something else: an enum's unknown name for its zero, and bytes that
    are not base64 for fewer bytes."""
    fault = next(_misread(params, cast(Descriptor, scratch.DESCRIPTOR), ""), None)
    return invalid((fault,)) if fault else None


def _misread(params: Mapping[str, Any], descriptor: Descriptor, path: str) -> Iterator[tuple[str, str]]:
    for field in descriptor.fields:
        given = params.get(field.json_name, params.get(field.name))
        for index, value in enumerate(given) if isinstance(given, list) else ((None, given),):
            at = f"{path}{field.json_name}" if index is None else f"{path}{field.json_name}[{index}]"
            if field.enum_type and isinstance(value, str) and not _names(field.enum_type, value):
                yield at, f"Not one of {', '.join(field.enum_type.values_by_name)}."
            elif field.type == field.TYPE_BYTES and isinstance(value, str) and not _BASE64.fullmatch(value):
                yield at, "Not base64."
            elif isinstance(value, dict) and field.message_type and not field.message_type.file.package.startswith("g"):
                yield from _misread(value, field.message_type, f"{at}.")


def _names(enum: EnumDescriptor, value: str) -> bool:
    return value in enum.values_by_name or (value.isdecimal() and int(value) in enum.values_by_number)


def try_parse(parse: Callable[[], object], scratch: Message, limits: BodyLimits) -> Refusal | None:
    """Runs a parser that fills `scratch`; what it fails on, and what `check_message` finds in the result."""
    try:
        parse()
    # json_format lets whatever goes wrong inside it out (TypeError, AttributeError, ...), not only its ParseError.
    except Exception as error:
        text = "Not what A2A defines for this field: check its type, its range and that only one alternative is set."
        return invalid(((_field(str(error), scratch.DESCRIPTOR.name), text),))
    return check_message(scratch, limits, from_json=True)


def _field(text: str, root: str) -> str:
    """The path of a field from json_format's error text: the names it leads in with, or the path it ends on if longer.

    The names have no indices, and leave out alternatives of a oneof; the path may stop one name early, or be missing.
    """
    lead = re.match(r"(?:Failed to parse \w+ field: )*", text)
    names = re.findall(r"parse (\w+) field", lead.group()) if lead else []
    paths = re.findall(rf"\b{root}((?:\.\w+|\[\d+\])+)", text)
    path = str(paths[-1]).lstrip(".") if paths else ""
    longer = path if path and path.count(".") + 1 >= len(names) else ".".join(names)
    return longer[:200]


# ---------------------------------------------------------------- A2A 0.3


def _check_legacy(method: str, request: Mapping[str, Any], limits: BodyLimits) -> Refusal | None:
    model: Any = JSONRPC03Adapter.METHOD_TO_MODEL[method]
    try:
        parsed = model.model_validate(request)
    except ValidationError as error:
        fields = _fields_at_fault(error)
        text = f"Invalid request: check {', '.join(path for path, _ in fields)}"
        return Refusal(InvalidRequestError, text, fields)
    return _convert(lambda: _TO_CORE[method](parsed), limits)


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
