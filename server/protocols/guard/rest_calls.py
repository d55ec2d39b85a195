"""HTTP+JSON requests, from path, query and body to a `Call`: the paths of both versions as a table. Pure.

Rules:
1. A path that is not in the table passes: the route refuses it (`a2a_v1/bindings/http_json.py`).
2. Params are read from the body of a POST, otherwise from the query; the ids in the path override both.
3. A body that an operation does not need may be missing. If there is one, it must be a JSON object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.utils import proto_utils
from a2a.utils.errors import InvalidRequestError
from google.protobuf.message import Message
from starlette.datastructures import QueryParams

from a2a_canvas.server.protocols.guard.calls import REQUESTS, Call, read_legacy_proto
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, check_json, check_version, invalid
from a2a_canvas.server.protocols.guard.proto_messages import check_required, parse_params
from a2a_canvas.store.text.wording import format_value


@dataclass(frozen=True, slots=True)
class RestRoute:
    """One path of one version below the prefix; its groups are fields of the operation's params.

    Attributes:
        body: the message of a required body.
    """

    method: str
    path: str
    version: str
    operation: str
    body: type[Message] | None = None


_TASK = "tasks/(?P<id>[^/]+)"
_CONFIGS = "tasks/(?P<task_id>[^/]+)/pushNotificationConfigs"
_CONFIG = f"{_CONFIGS}/(?P<id>[^/]+)"
_PUSH = "TaskPushNotificationConfig"


def _routes(prefix: str, version: str, send: type[Message], push: type[Message]) -> tuple[RestRoute, ...]:
    """The routes that both versions have."""
    return (
        RestRoute("POST", f"{prefix}message:send", version, "SendMessage", send),
        RestRoute("POST", f"{prefix}message:stream", version, "SendStreamingMessage", send),
        RestRoute("POST", f"{prefix}{_TASK}:cancel", version, "CancelTask"),
        RestRoute("POST", f"{prefix}{_TASK}:subscribe", version, "SubscribeToTask"),
        RestRoute("GET", f"{prefix}{_TASK}:subscribe", version, "SubscribeToTask"),
        RestRoute("GET", f"{prefix}{_TASK}", version, "GetTask"),
        RestRoute("GET", f"{prefix}{_CONFIG}", version, f"Get{_PUSH}"),
        RestRoute("POST", f"{prefix}{_CONFIGS}", version, f"Create{_PUSH}", push),
        RestRoute("GET", f"{prefix}{_CONFIGS}", version, f"List{_PUSH}s"),
        RestRoute("DELETE", f"{prefix}{_CONFIG}", version, f"Delete{_PUSH}"),
    )


REST_ROUTES = (
    *_routes("v1/", "0.3", pb03.SendMessageRequest, pb03.CreateTaskPushNotificationConfigRequest),
    RestRoute("GET", "v1/card", "0.3", "GetExtendedAgentCard"),
    *_routes("", "1.0", REQUESTS["SendMessage"], REQUESTS[f"Create{_PUSH}"]),
    RestRoute("GET", "tasks", "1.0", "ListTasks"),
    RestRoute("GET", "extendedAgentCard", "1.0", "GetExtendedAgentCard"),
)
"""The first match counts."""


REST_PATHS = tuple(
    dict.fromkeys(
        re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", route.path) for route in REST_ROUTES if route.version == "1.0"
    )
)
"""The paths of 1.0 as messages name them."""


def find_rest_route(method: str, path: str) -> tuple[RestRoute, Mapping[str, str]] | None:
    """The route of a request by its path below the prefix, and the fields in it. HEAD is answered as GET."""
    verb = "GET" if method == "HEAD" else method
    found = ((route, re.fullmatch(route.path, path)) for route in REST_ROUTES if route.method == verb)
    return next(((route, match.groupdict()) for route, match in found if match), None)


def allowed_methods(path: str) -> tuple[str, ...]:
    """The methods that have a route at `path`, which is below the prefix, sorted; none if there is no such path."""
    return tuple(sorted({route.method for route in REST_ROUTES if re.fullmatch(route.path, path)}))


def check_rest(
    route: RestRoute,
    fields: Mapping[str, str],
    query: QueryParams,
    body: bytes,
    version: str | None,
    limits: BodyLimits,
) -> Call | Refusal:
    """Checks a request against its route: version, query, body. `fields` are those in its path."""
    legacy = route.version == "0.3"
    wrong_query = _check_legacy_query(query) if legacy else None
    if refusal := check_version(version, route.version, "This path") or wrong_query:
        return refusal
    given = _read_body(route, body, limits) if route.method == "POST" else query
    if isinstance(given, Refusal):
        return given
    params = _read_params(route, given, limits) if route.method == "POST" else _read_query(route, query, limits)
    if isinstance(params, Refusal):
        return params
    tenant = {"tenant": named} if (named := query.get("tenant")) else {}  # the handler refuses it, as in every binding
    for name, value in {**fields, **tenant}.items():
        setattr(params, name, value)
    return check_required(params, given) or Call(route.operation, params, legacy)


def _read_query(route: RestRoute, query: QueryParams, limits: BodyLimits) -> Message | Refusal:
    params = parse_params(query, REQUESTS[route.operation], limits, _parse_query)
    if route.version == "0.3" and not isinstance(params, Refusal) and not getattr(params, "history_length", 1):
        params.ClearField("history_length")  # in 0.3 no length and 0 mean the same
    return params


def _parse_query(fields: Mapping[str, Any], message: Message) -> None:
    proto_utils.parse_params(fields if isinstance(fields, QueryParams) else QueryParams(fields), message)


def _check_legacy_query(query: QueryParams) -> Refusal | None:
    """A whole number in 0.3 is stricter than in ProtoJSON, which accepts -0.0."""
    given = query.get("historyLength")
    if not given or re.fullmatch("-?[0-9]+", given, re.ASCII):
        return None
    return invalid([("historyLength", f"is {given!r} and must be a whole number")])


def check_encoding(raw_path: bytes, query: bytes) -> Refusal | None:
    """Checks that the percent-encoded bytes of a path and a query are UTF-8."""
    try:
        unquote_to_bytes(raw_path + query).decode()
    except UnicodeDecodeError:
        return Refusal(InvalidRequestError, "The path or the query is not UTF-8; encode it as UTF-8, then in percent")
    return None


def _read_body(route: RestRoute, body: bytes, limits: BodyLimits) -> Mapping[str, Any] | Refusal:
    value = check_json(body, limits) if body or route.body else {}
    if isinstance(value, Refusal | dict):
        return value
    return Refusal(InvalidRequestError, f"The body is {format_value(value)}; send one JSON object")


def _read_params(route: RestRoute, value: Mapping[str, Any], limits: BodyLimits) -> Message | Refusal:
    if route.version != "0.3":
        return parse_params(value, REQUESTS[route.operation], limits)
    if route.body is None:
        return REQUESTS[route.operation]()
    if route.body is pb03.CreateTaskPushNotificationConfigRequest and "config" not in value:
        value = {"config": value}  # A2A 0.3 says that the body is the config, its SDK that it is the request
    params = parse_params(value, route.body, limits)
    if isinstance(params, pb03.CreateTaskPushNotificationConfigRequest):
        params.parent = params.parent or "tasks/-"  # the task is in the path
    return params if isinstance(params, Refusal) else read_legacy_proto(params, limits)
