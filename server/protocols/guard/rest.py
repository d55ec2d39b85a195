"""Checks of a REST request before the SDK's routes get it: their paths as a table, and what each reads. Pure.

Rules:
1. A path that is in no row passes: the router answers it.
2. A body or query that the SDK parses is parsed here first, and refused if that fails or loses something. Any other
   body need only be one JSON object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2
from a2a.utils import proto_utils
from a2a.utils.errors import InvalidRequestError
from google.protobuf.message import Message
from starlette.datastructures import QueryParams

from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, check_json, check_version, invalid
from a2a_canvas.server.protocols.guard.proto_messages import parse_params
from a2a_canvas.server.protocols.guard.rpc_calls import check_legacy_proto


@dataclass(frozen=True, slots=True)
class RestRoute:
    """One of the SDK's REST routes: its path below the prefix, its version, the messages of its body and query."""

    method: str
    path: str
    version: str
    body: type[Message] | None = None
    query: type[Message] | None = None


TENANT_PATTERN = "(?:/(?!artifacts/)[^/]+)?"
"""A tenant may stand before the prefix. `/artifacts/rest/…` is a context of that name, not a tenant."""

_PUSH = "tasks/[^/]+/pushNotificationConfigs"

# In the order in which the SDK registers them: the first that matches is taken. The field `historyLength` of the 1.0
# request knows the range that it has in 0.3 too.
REST_ROUTES = (
    RestRoute("POST", "v1/message:(?:send|stream)", "0.3", body=a2a_v0_3_pb2.SendMessageRequest),
    RestRoute("POST", "v1/tasks/[^/]+:(?:cancel|subscribe)", "0.3"),
    RestRoute("GET", "v1/tasks/[^/]+:subscribe", "0.3"),
    RestRoute("GET", "v1/tasks/[^/]+", "0.3", query=a2a_pb2.GetTaskRequest),
    RestRoute("GET", f"v1/{_PUSH}(?:/[^/]+)?", "0.3"),
    RestRoute("POST", f"v1/{_PUSH}", "0.3", body=a2a_v0_3_pb2.CreateTaskPushNotificationConfigRequest),
    RestRoute("GET", "v1/card", "0.3"),
    RestRoute("POST", "message:(?:send|stream)", "1.0", body=a2a_pb2.SendMessageRequest),
    RestRoute("POST", "tasks/[^/]+:(?:cancel|subscribe)", "1.0"),
    RestRoute("GET", "tasks/[^/]+:subscribe", "1.0"),
    RestRoute("GET", "tasks/[^/]+", "1.0", query=a2a_pb2.GetTaskRequest),
    RestRoute("GET", f"{_PUSH}/[^/]+", "1.0"),
    RestRoute("DELETE", f"{_PUSH}/[^/]+", "1.0"),
    RestRoute("POST", _PUSH, "1.0", body=a2a_pb2.TaskPushNotificationConfig),
    RestRoute("GET", _PUSH, "1.0", query=a2a_pb2.ListTaskPushNotificationConfigsRequest),
    RestRoute("GET", "tasks", "1.0", query=a2a_pb2.ListTasksRequest),
    RestRoute("GET", "extendedAgentCard", "1.0"),
)


def find_rest_route(method: str, path: str, prefix: str) -> RestRoute | None:
    """The route that the SDK takes. 1.0 routes also stand below a tenant: `/{tenant}{prefix}/...`."""
    verb = "GET" if method == "HEAD" else method
    return next((route for route in REST_ROUTES if route.method == verb and _matches(route, path, prefix)), None)


def allowed_methods(path: str, prefix: str) -> tuple[str, ...]:
    """The methods that have a route at `path`, sorted; none if there is no such path."""
    return tuple(sorted({route.method for route in REST_ROUTES if _matches(route, path, prefix)}))


def _matches(route: RestRoute, path: str, prefix: str) -> bool:
    tenant = TENANT_PATTERN if route.version == "1.0" else ""
    return re.fullmatch(f"{tenant}{re.escape(prefix)}/{route.path}", path) is not None


def check_rest(
    route: RestRoute, query: QueryParams, body: bytes, version: str | None, limits: BodyLimits
) -> Refusal | None:
    """A REST request against its route: version, query parameters, body."""
    if refusal := check_version(version) or check_version(version, route.version):
        return refusal
    if route.version == "0.3" and (refusal := _check_legacy_query(query)):
        return refusal
    if route.query is not None:
        parsed = parse_params(query, route.query, limits, _parse_query)
        if isinstance(parsed, Refusal):
            return parsed
    if route.method != "POST" or (not body and route.body is None):
        return None
    return _check_body(route, body, limits)


def _parse_query(fields: Mapping[str, Any], message: Message) -> None:
    proto_utils.parse_params(fields if isinstance(fields, QueryParams) else QueryParams(fields), message)


def _check_legacy_query(query: QueryParams) -> Refusal | None:
    """The SDK reads it with int(), which takes less than ProtoJSON (-0.0), and more (1_0)."""
    given = query.get("historyLength")
    if not given or re.fullmatch("-?[0-9]+", given, re.ASCII):
        return None
    return invalid((("historyLength", "Not a whole number."),))


def check_encoding(raw_path: bytes, query: bytes) -> Refusal | None:
    """A path and a query as they were sent: percent-encoded bytes must be UTF-8."""
    try:
        unquote_to_bytes(raw_path + query).decode()
    except UnicodeDecodeError:
        return Refusal(InvalidRequestError, "The path or the query is not UTF-8; encode it as UTF-8, then in percent")
    return None


def _check_body(route: RestRoute, body: bytes, limits: BodyLimits) -> Refusal | None:
    value = check_json(body, limits)
    if isinstance(value, Refusal):
        return value
    if not isinstance(value, dict):
        return Refusal(InvalidRequestError, "Send one JSON object as the body")
    if route.body is None:
        return None
    parsed = parse_params(value, route.body, limits)
    if isinstance(parsed, Refusal):
        return parsed
    return check_legacy_proto(parsed, limits) if route.version == "0.3" else None
