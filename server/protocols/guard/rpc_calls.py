"""JSON-RPC requests, from bytes to a `Call`. Pure.

Rule 1: the order of the checks is envelope, method, version, params: a caller with the wrong version learns that first.
        A missing id is reported last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Any, Final

from a2a.compat.v0_3.jsonrpc_adapter import JSONRPC03Adapter
from a2a.utils.errors import InvalidRequestError, MethodNotFoundError
from google.protobuf.message import Message
from pydantic import ValidationError

from a2a_canvas.server.protocols.guard.calls import LEGACY_METHODS, REQUESTS, Call, RequestId, convert_legacy
from a2a_canvas.server.protocols.guard.checks import (
    MAX_ITEMS,
    BodyLimits,
    Refusal,
    check_json,
    check_version,
    invalid,
    too_many_items,
)
from a2a_canvas.server.protocols.guard.proto_messages import check_required, parse_params
from a2a_canvas.store.text.wording import choice, format_value, nearest
from a2a_canvas.tools.faults import reason_of

MAX_FAULTS = 100
"""The most errors of a request that its answer names."""


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A JSON-RPC request that is refused: the id to answer with, and whether to answer as A2A 0.3."""

    refusal: Refusal
    id: RequestId = None
    legacy: bool = False


def check_jsonrpc(body: bytes, version: str | None, limits: BodyLimits) -> Call | RejectedCall:
    """A JSON-RPC request, from its bytes and its A2A-Version to the params of its method."""
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
    call = _check_method(request, id_, version, limits)
    if isinstance(call, Call) and "id" not in request:
        return RejectedCall(_not_a_call("id is required, because A2A has no notifications"), legacy=call.legacy)
    return call


def _wrong_members(request: Mapping[str, Any]) -> str:
    """What is wrong in the members of a JSON-RPC 2.0 request; others are ignored (A2A 1.0, section 5.7)."""
    method = request.get("method")
    if request.get("jsonrpc") != "2.0":
        return 'jsonrpc must be exactly "2.0"'
    if not isinstance(method, str) or not method:
        return "method is required and must be a string"
    if method.startswith("rpc."):
        return "Names of methods that begin with rpc. are reserved by JSON-RPC"
    return "" if isinstance(request.get("params"), dict | list | None) else "params must be an object"


def _not_a_call(text: str) -> Refusal:
    return Refusal(InvalidRequestError, f"Invalid request: {text}")


def _check_method(
    request: Mapping[str, Any], id_: RequestId, version: str | None, limits: BodyLimits
) -> Call | RejectedCall:
    method = request["method"]
    legacy = method in LEGACY_METHODS
    if not legacy and method not in REQUESTS:
        return RejectedCall(_no_such_method(method), id_)
    params: Message | Refusal | None = check_version(version, "0.3" if legacy else "1.0", _display_name(method))
    if params is None:
        params = _legacy_params(method, request, limits) if legacy else _params(method, request, limits)
    if isinstance(params, Refusal):
        return RejectedCall(params, id_, legacy)
    return Call(LEGACY_METHODS[method][0] if legacy else method, params, legacy, id_)


def _no_such_method(method: str) -> Refusal:
    """Suggests methods with similar names, otherwise lists those of 1.0."""
    near = nearest(method, (*REQUESTS, *LEGACY_METHODS))
    these = f"Did you mean {choice(near)}?" if near else f"A2A 1.0 has {choice(REQUESTS, 'and')}."
    return Refusal(MethodNotFoundError, f"There is no method {format_value(method)}. {these}")


def _display_name(method: str) -> str:
    """A method as a sentence names it, with its name in 1.0."""
    return f"{method} ({LEGACY_METHODS[method][0]} in 1.0)" if method in LEGACY_METHODS else method


def _params(method: str, request: Mapping[str, Any], limits: BodyLimits) -> Message | Refusal:
    given = request.get("params", {})
    params = parse_params(given, REQUESTS[method], limits)
    return params if isinstance(params, Refusal) else check_required(params, given) or params


_PUSH_CONFIGS: Final = (("params", "pushNotificationConfig"), ("params", "configuration", "pushNotificationConfig"))
"""Where push configs are in a request of A2A 0.3."""


def _without_authentication(given: Any, place: Sequence[str]) -> Any:
    """A value without an empty `authentication` at a path (`calls.py`, rule 3; the SDK's model requires `schemes`)."""
    if not isinstance(given, dict):
        return given
    if not place:
        found = given.get("authentication")
        empty = isinstance(found, dict) and not (found.get("schemes") or found.get("credentials"))
        return {name: value for name, value in given.items() if name != "authentication" or not empty}
    name = place[0]
    return {**given, name: _without_authentication(given[name], place[1:])} if name in given else given


def _legacy_params(method: str, request: Mapping[str, Any], limits: BodyLimits) -> Message | Refusal:
    model: Any = JSONRPC03Adapter.METHOD_TO_MODEL[method]
    match request:
        case {"params": {"message": {"parts": [*parts]}}} if len(parts) > MAX_ITEMS:
            return too_many_items("message.parts", len(parts))
    try:
        parsed = model.model_validate(reduce(_without_authentication, _PUSH_CONFIGS, {"id": 0, **request}))
    except ValidationError as error:
        return invalid(_fields_at_fault(error))
    return convert_legacy(lambda: LEGACY_METHODS[method][1](parsed), limits)


def _fields_at_fault(error: ValidationError) -> tuple[tuple[str, str], ...]:
    """The paths of the first faults, with reasons in our words. Below a union pydantic lists every alternative: they
    count as one fault, of the union."""
    found: dict[str, str] = {}
    for detail in islice(error.errors(include_url=False), MAX_FAULTS):
        path, union = _path(detail["loc"])
        found.setdefault(path, "does not match the definition of A2A 0.3" if union else reason_of(detail))
    return tuple(found.items())


def _path(loc: tuple[int | str, ...]) -> tuple[str, bool]:
    """`loc` as a path, cut off at the name of a model: below it pydantic tries one alternative of a union."""
    path = ""
    for step in loc[1:] if len(loc) > 1 and loc[0] == "params" else loc:
        if isinstance(step, str) and not step[:1].islower():
            return path, True
        path += f"[{step}]" if isinstance(step, int) else f".{step}".lstrip("." if not path else "")
    return path, False
