"""One request of every kind that a user can make, as a table, and the kinds that the server has.

Rule 1: a kind is a method of A2A 1.0 or 0.3 over JSON-RPC or gRPC, a path of HTTP+JSON, a method of one of the
        resources of `/artifacts`, an operation of `canvas:v1`, a tool of MCP, or a route. The server's own tables
        have them all (`kinds`). Routes that depend on settings exist with `every_route`.
Rule 2: an id in a request is a stand-in, such as `WAITING`. The sender of the request replaces it (`resolved`).
Rule 3: a call of gRPC has the method `GRPC`, the path of its method as its URL, and its message as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args
from urllib.parse import urlsplit
from uuid import uuid4

from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from starlette.routing import Route

from a2a_canvas.server.agent.intent import OPERATIONS
from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.a2a_v1.operations.share_operations import SHARE_OPERATIONS
from a2a_canvas.server.protocols.artifacts.paths import Resource, parse_path
from a2a_canvas.server.protocols.artifacts.routes import METHODS
from a2a_canvas.server.protocols.guard.calls import LEGACY_METHODS, REQUESTS
from a2a_canvas.server.protocols.guard.rest_calls import REST_ROUTES, RestRoute, find_rest_route
from a2a_canvas.server.protocols.identity.browser_sessions import COOKIE, OWN_PAGE
from a2a_canvas.server.protocols.mcp_server.tool_forms import TOOLS
from a2a_canvas.server.protocols.sign_in.session_routes import FLOW_COOKIE
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.server.wire import (
    CANVAS,
    CATALOG_PATH,
    EXTENSIONS_HEADERS,
    KEYS_PATH,
    MCP_PATH,
    RESOURCE_PATH,
    TURN,
    VERSION_HEADER,
)
from tests.open_id_provider import signing_in_with

Json = dict[str, Any]

DONE, CONFIGURED = "<task>", "<task with a config>"
WAITING, WAITING_CONTEXT = "<waiting task>", "<its context>"
CONTEXT, REMOVED, FILE = "<context>", "<context to remove>", "<file of the page>"
SHARE, GIVEN_CONTEXT, GIVEN = "<share>", "<given context>", "<given share>"
COMMENT, SUGGESTION = "<comment>", "<suggestion>"
CODE, STATE, FLOW, SESSION = "<code>", "<state>", "<cookie of a sign-in>", "<cookie of a session>"
FRIEND_NAME = "<friend>"
"""The name of a user that the sender gives a context to, and gets one from."""

HOOK = {"url": "http://127.0.0.1:1/", "id": "hook", "token": "t"}
_SELECTION = {"start": 0, "end": 1, "unit": "utf16", "text": "T", "lineStart": 1, "lineEnd": 1}
JSON = {"Content-Type": "application/json"}
GRPC = "gRPC"
SERVICES = [module.DESCRIPTOR.services_by_name["A2AService"] for module in (a2a_pb2, a2a_v0_3_pb2)]
GRPC_METHODS = {f"/{service.full_name}/{method.name}": method for service in SERVICES for method in service.methods}
"""The methods of gRPC, 1.0 and 0.3, by their paths."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    url: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def follows(self) -> bool:
        """Whether its answer is a stream that may not end."""
        if self.method == GRPC:
            return bool(GRPC_METHODS[self.url].server_streaming)
        subscribes = isinstance(self.body, dict) and self.body.get("method") in _FOLLOWING
        return subscribes or urlsplit(self.url).path.endswith((":subscribe", "/events"))


_FOLLOWING = ("SubscribeToTask", "tasks/resubscribe", "subscriptions/listen")


# ------------------------------------------------------------------------ A2A, about a task and its context


@dataclass(frozen=True)
class Place:
    """A task and the context that it is in."""

    task: str
    context: str


def message_10(**fields: Any) -> Json:
    return {"message": {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": "just say it"}], **fields}}


def message_03(**fields: Any) -> Json:
    part = {"kind": "text", "text": "just say it"}
    return {"message": {"kind": "message", "messageId": str(uuid4()), "role": "user", "parts": [part], **fields}}


def rpc_10(at: Place) -> Mapping[str, list[Json]]:
    """The params of each operation, one or more."""
    sends = [
        message_10(taskId=at.task),
        message_10(taskId=at.task, contextId=at.context),
        message_10(contextId=at.context),
        message_10(contextId=at.context, metadata={CANVAS: {"op": "undo", "artifactId": "report"}}),
        message_10(contextId=at.context, metadata={CANVAS: {"op": "put", "artifactId": "report", "text": "Mine"}}),
        message_10(referenceTaskIds=[at.task]),
    ]
    return {
        "SendMessage": sends,
        "SendStreamingMessage": sends,
        "GetTask": [{"id": at.task}],
        "CancelTask": [{"id": at.task}],
        "SubscribeToTask": [{"id": at.task}],
        "ListTasks": [{"contextId": at.context, "includeArtifacts": True}],
        "CreateTaskPushNotificationConfig": [{"taskId": at.task, **HOOK}],
        "GetTaskPushNotificationConfig": [{"taskId": at.task, "id": "hook"}],
        "ListTaskPushNotificationConfigs": [{"taskId": at.task}],
        "DeleteTaskPushNotificationConfig": [{"taskId": at.task, "id": "hook"}],
        "GetExtendedAgentCard": [{}],
    }


def rpc_03(at: Place) -> Mapping[str, list[Json]]:
    sends = [message_03(taskId=at.task), message_03(contextId=at.context)]
    config = {"taskId": at.task, "pushNotificationConfig": HOOK}
    return {
        "message/send": sends,
        "message/stream": sends,
        "tasks/get": [{"id": at.task}],
        "tasks/cancel": [{"id": at.task}],
        "tasks/resubscribe": [{"id": at.task}],
        "tasks/pushNotificationConfig/set": [config],
        "tasks/pushNotificationConfig/get": [{"id": at.task, "pushNotificationConfigId": "hook"}],
        "tasks/pushNotificationConfig/list": [{"id": at.task}],
        "tasks/pushNotificationConfig/delete": [{"id": at.task, "pushNotificationConfigId": "hook"}],
        "agent/getAuthenticatedExtendedCard": [{}],
    }


def grpc_03(at: Place) -> Mapping[str, list[Json]]:
    """The messages of each method of gRPC in A2A 0.3, one or more."""
    task, config = f"tasks/{at.task}", f"tasks/{at.task}/pushNotificationConfigs/hook"
    said = {"messageId": str(uuid4()), "role": "ROLE_USER", "content": [{"text": "just say it"}]}
    sends: list[Json] = [{"request": said | place} for place in ({"taskId": at.task}, {"contextId": at.context})]
    created = {"parent": task, "configId": "hook", "config": {"name": config, "pushNotificationConfig": HOOK}}
    return {
        "SendMessage": sends,
        "SendStreamingMessage": sends,
        "GetTask": [{"name": task, "historyLength": 1}],
        "CancelTask": [{"name": task}],
        "TaskSubscription": [{"name": task}],
        "CreateTaskPushNotificationConfig": [created],
        "GetTaskPushNotificationConfig": [{"name": config}],
        "ListTaskPushNotificationConfig": [{"parent": task}],
        "DeleteTaskPushNotificationConfig": [{"name": config}],
        "GetAgentCard": [{}],
    }


def rest_requests(route: RestRoute, at: Place, messages: Sequence[Json]) -> Iterator[Asked]:
    """One for a route of HTTP+JSON, and one with each of the messages if it takes one.

    Args:
        messages: the fields of each beside its text.
    """
    path = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", route.path)
    ids = {"task_id": at.task, "id": "hook"} if "task_id" in path else {"id": at.task}
    asked = Asked(route.method, f"/rest/{path.format(**ids)}", None, {VERSION_HEADER: route.version})
    if route.operation.startswith("Send"):
        part = {"parts" if route.version == "1.0" else "content": [{"text": "just say it"}]}
        for each in messages:
            yield replace(asked, body={"message": {"messageId": str(uuid4()), "role": "ROLE_USER", **part, **each}})
    elif route.method == "POST" and route.body:
        old = {"configId": "hook", "config": {"pushNotificationConfig": HOOK}}
        yield replace(asked, body=HOOK if route.version == "1.0" else old)
    elif route.operation == "ListTasks":
        yield replace(asked, url=f"{asked.url}?contextId={at.context}&includeArtifacts=true")
    else:
        yield asked


def rpc(method: str, params: Json) -> Asked:
    new = method in REQUESTS
    headers = {VERSION_HEADER: "1.0" if new else "0.3", EXTENSIONS_HEADERS[0 if new else 1]: TURN}
    return Asked("POST", "/", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers)


# ------------------------------------------------------------------------ the table


def every_request() -> Iterator[Asked]:
    """One or more of each kind over HTTP that every server has. Each succeeds, whatever was asked before."""
    for asked in (*_of_a2a(), *_of_operations(), *_of_ag_ui(), *_of_mcp(), *_of_artifacts(), *_of_routes()):
        yield replace(asked, headers=asked.headers | (JSON if asked.body is not None else {}))


def every_call() -> Iterator[Asked]:
    """One or more of each method of gRPC."""
    new, old = (service.full_name for service in SERVICES)
    for method in REQUESTS:
        for params in _params_10(method):
            yield Asked(GRPC, f"/{new}/{method}", params)
    for method in grpc_03(Place(DONE, CONTEXT)):
        at = Place(WAITING, CONTEXT) if method.startswith("Send") else _task_for(method)
        for message in grpc_03(at)[method]:
            yield Asked(GRPC, f"/{old}/{method}", message)


def _params_10(method: str) -> Iterable[Json]:
    """Those of an operation of 1.0."""
    if method.startswith("Send"):
        return _sends_10()
    return [params | (_LIST if method == "ListTasks" else {}) for params in rpc_10(_task_for(method))[method]]


def _task_for(operation: str) -> Place:
    if operation in ("CancelTask", "SubscribeToTask", "TaskSubscription"):
        return Place(WAITING, CONTEXT)
    return Place(CONFIGURED if "PushNotification" in operation else DONE, CONTEXT)


def _of_a2a() -> Iterator[Asked]:
    for method in REQUESTS:
        for params in _params_10(method):
            yield rpc(method, params)
    for method, (operation, _) in LEGACY_METHODS.items():
        sends = [message_03(contextId=CONTEXT), message_03(taskId=WAITING)]
        for params in sends if operation.startswith("Send") else rpc_03(_task_for(operation))[method]:
            yield rpc(method, params)
    for route in REST_ROUTES:
        yield from rest_requests(route, _task_for(route.operation), [{"contextId": CONTEXT}, {"taskId": WAITING}])
    yield Asked("GET", f"/rest/tasks/{DONE}?historyLength=1", None, {VERSION_HEADER: "1.0"})
    times = "statusTimestampAfter=2026-01-01T00:00:00Z&status=TASK_STATE_COMPLETED"
    yield Asked("GET", f"/rest/tasks?pageSize=1&historyLength=1&{times}", None, {VERSION_HEADER: "1.0"})


_LIST = {
    "pageSize": 1,
    "historyLength": 1,
    "status": "TASK_STATE_COMPLETED",
    "statusTimestampAfter": "2026-01-01T00:00:00Z",
}


def _sends_10() -> Iterator[Json]:
    whole = message_10(contextId=CONTEXT, metadata={"a": 1}, referenceTaskIds=[DONE], extensions=[CANVAS])
    whole["message"]["parts"] += [{"data": {"a": 1}}, {"raw": "AAAA", "filename": "a.bin", "mediaType": "image/png"}]
    config = HOOK | {"authentication": {"scheme": "Bearer", "credentials": "c"}}
    settings = {"historyLength": 1, "returnImmediately": False, "taskPushNotificationConfig": config}
    yield whole | {"metadata": {"a": 1}, "configuration": settings}
    yield message_10(contextId=GIVEN_CONTEXT)
    yield message_10()
    yield message_10(taskId=WAITING)


def _of_operations() -> Iterator[Asked]:
    at: Json = {"artifactId": "mine"}
    put: Json = {"op": "put", **at, "text": "Text"}
    yield Asked("GET", "/artifacts?text=report")
    gives: Json = {"user": FRIEND_NAME, "level": "read", "expires": "2090-01-01T00:00:00Z"}
    for context, operation in (
        (CONTEXT, put),
        (CONTEXT, put | {"text": "Text of another version"}),
        (CONTEXT, {"op": "undo", **at, "group": True}),
        (CONTEXT, {"op": "redo", **at}),
        (CONTEXT, {"op": "restore", **at, "version": 1}),
        (CONTEXT, {"op": "edit", **at, "selection": _SELECTION, "strategy": "replace"}),
        (CONTEXT, {"op": "annotate", **at, "selection": _SELECTION}),
        (CONTEXT, {"op": "annotate", **at, "selection": _SELECTION, "replacement": "T"}),
        (CONTEXT, {"op": "reply", **at, "annotationId": COMMENT}),
        (CONTEXT, {"op": "resolve", **at, "annotationId": COMMENT}),
        (CONTEXT, {"op": "withdraw", **at, "annotationId": COMMENT}),
        (CONTEXT, {"op": "accept", **at, "annotationId": SUGGESTION}),
        (CONTEXT, {"op": "reject", **at, "annotationId": SUGGESTION}),
        (CONTEXT, {"op": "accept-all", **at, "by": "bob"}),
        (CONTEXT, {"op": "shares"}),
        (CONTEXT, {"op": "share", **gives}),
        (CONTEXT, {"op": "unshare", "shareId": SHARE}),
        (GIVEN_CONTEXT, put | {"name": "mine.md"}),
        (GIVEN_CONTEXT, {"op": "unshare", "shareId": GIVEN}),
    ):
        yield rpc("SendMessage", message_10(contextId=context, metadata={CANVAS: operation}))


def _of_ag_ui() -> Iterator[Asked]:
    said = [{"id": str(uuid4()), "role": "user", "content": "just say it"}]
    run: Json = {"threadId": CONTEXT, "runId": str(uuid4()), "state": {"a": 1}, "tools": [], "context": []}
    run |= {"forwardedProps": {"a": 1}, "messages": said}
    answer = [{"interruptId": WAITING, "status": "resolved", "payload": {"approved": True}}]
    content = {"index": 1, "type": "text", "title": "T", "fullMarkdown": "T and more"}
    older: Json = {"message": "just say it", "thread_id": str(uuid4()), "run_id": str(uuid4())}
    older |= {"artifact": {"currentIndex": 1, "contents": [content]}}
    selected = {"start": 0, "end": 1, "text": "T", "lineStart": 1, "lineEnd": 1}
    for body in (
        run,
        run | {"threadId": WAITING_CONTEXT, "messages": [], "resume": answer},
        older,
        older | {"selectedText": selected},
    ):
        yield Asked("POST", "/canvas/stream", body)


def _of_mcp() -> Iterator[Asked]:
    """A tool may refuse what has changed meanwhile: its answer is a result all the same."""
    mine: Json = {"id": f"{CONTEXT}/mine"}
    for tool, arguments in (
        ("list_artifacts", {"query": "report"}),
        ("list_artifacts", {"context": CONTEXT}),
        ("read_artifact", mine | {"lines": "1", "version": 1}),
        ("write_artifact", {"name": "notes.md", "text": "Text"}),
        ("edit_artifact", mine | {"old": "The", "new": "A", "base_version": 1}),
        ("comments", mine),
        ("comment", mine | {"lines": "1", "text": "T"}),
        ("suggest", mine | {"lines": "1", "new": "T", "text": "T"}),
        ("history", mine),
        ("undo", mine | {"base_version": 1, "restore": 1}),
        ("ask_agent", {"text": "just say it", "context": CONTEXT}),
    ):
        yield mcp("tools/call", {"name": tool, "arguments": arguments})
    for method in ("tools/list", "resources/list", "resources/templates/list"):
        yield mcp(method, {})
    uri = f"canvas://{CONTEXT}/mine"
    yield mcp("resources/read", {"uri": uri})
    yield mcp("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
    for path in (CATALOG_PATH, RESOURCE_PATH, RESOURCE_PATH + MCP_PATH):
        yield Asked("GET", path)


def mcp(method: str, params: Json) -> Asked:
    """A request of MCP 2026-07-28."""
    version = "2026-07-28"
    meta = {f"{_MCP}/protocolVersion": version, f"{_MCP}/clientCapabilities": {}, f"{_MCP}/clientInfo": _CLIENT}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    named = params.get("name") or params.get("uri")
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version, "Mcp-Method": method}
    return Asked("POST", MCP_PATH, body, headers | ({"Mcp-Name": named} if named else {}))


_MCP, _CLIENT = "io.modelcontextprotocol", {"name": "Cursor", "version": "1"}


def _of_artifacts() -> Iterator[Asked]:
    for below in ("", "/mine", "/mine?raw=1", "?format=zip", "/mine/versions", "/mine/versions/1"):
        yield Asked("GET", f"/artifacts/{CONTEXT}{below}")
    yield Asked("GET", f"/artifacts/{CONTEXT}/mine/versions/2/diff?from=1")
    yield Asked("GET", f"/artifacts/{CONTEXT}/mine/annotations")
    yield Asked("GET", f"/artifacts/{CONTEXT}/mine/stream?offset=-1&live=long-poll&cursor=1")
    yield Asked("GET", f"/artifacts/{CONTEXT}/mine/annotations/{COMMENT}")
    yield Asked("GET", f"/artifacts/{CONTEXT}/events", None, {"Last-Event-ID": "1", "Accept": "text/event-stream"})
    moved = {"window": "1", "artifactId": "mine", "version": 1, "start": 0, "end": 4}
    yield Asked("POST", f"/artifacts/{CONTEXT}/presence", moved)
    yield Asked("GET", f"/artifacts/{CONTEXT}/shares")
    yield Asked("GET", "/artifacts?query=report&pageSize=2", None, {"If-None-Match": '"a"', "Accept": "*/*"})
    yield Asked("GET", "/artifacts?text=report")
    gives: Json = {"user": FRIEND_NAME, "level": "read", "expires": "2090-01-01T00:00:00Z"}
    for given in (gives, {"link": True, "expires": 60}):
        yield Asked("POST", f"/artifacts/{CONTEXT}/shares", given)
    yield Asked("DELETE", f"/artifacts/{CONTEXT}/shares/{SHARE}")
    yield Asked("GET", f"/artifacts/{GIVEN_CONTEXT}")
    yield Asked("DELETE", f"/artifacts/{GIVEN_CONTEXT}/shares/{GIVEN}")
    yield Asked("PATCH", f"/artifacts/{CONTEXT}", {"name": "Mine"})
    yield Asked("DELETE", f"/artifacts/{REMOVED}")


def _of_routes() -> Iterator[Asked]:
    pages = ("/", "/embed", "/page/program")
    for path in (*pages, "/.well-known/agent-card.json", "/healthz", "/readyz", "/metrics", "/auth/session"):
        yield Asked("GET", path)
    yield Asked("GET", FILE, None, {"Accept-Encoding": "gzip"})
    yield Asked("POST", "/auth/signed-urls", {"path": "/artifacts/notes/events"})


def requests_of_settings() -> Iterator[Asked]:
    """One or more of each kind that a server has with the settings `every_route`, and not without them."""
    yield Asked("GET", KEYS_PATH)
    yield Asked("GET", "/auth/sign-in?return=/")
    yield Asked("GET", f"/auth/callback?code={CODE}&state={STATE}", None, {"Cookie": f"{FLOW_COOKIE}={FLOW}"})
    yield Asked("POST", "/auth/sign-out", None, {"Cookie": f"{COOKIE}={SESSION}", OWN_PAGE: "1"})


async def resolved(asked: Asked, makers: Mapping[str, str | Callable[[], Awaitable[str]]]) -> Asked:
    """A request with values in place of its stand-ins: those that are given, and those that are made for it."""
    text = json.dumps([asked.url, asked.body, asked.headers])
    for stand_in, make in makers.items():
        if stand_in in text:
            text = text.replace(stand_in, make if isinstance(make, str) else await make())
    url, body, headers = json.loads(text)
    return replace(asked, url=url, body=body, headers=headers)


# ------------------------------------------------------------------------ the kinds


def every_route(folder: Path, issuer: str) -> Json:
    """Settings of a server with every route, also those of the sign-in and of the key that signs the card."""
    key = ec.generate_private_key(ec.SECP256R1())
    path = folder / "card.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return {"card_signing_key": path, **signing_in_with(issuer)}


def kinds() -> set[str]:
    """Those of a server with every route."""
    with TemporaryDirectory() as folder:
        options = every_route(Path(folder), "https://login.example.com")
        options |= {"model": "rehearsal", "database": "memory"}
        routes = _own(create_app(Settings(**options)).routes)
    paths = [
        *((route.path, route.methods or {"POST"}) for route in routes),
        *((resource.__name__, METHODS.get(resource, ("GET",))) for resource in get_args(Resource)),
    ]
    return {
        *(f"JSON-RPC {method}" for method in (*REQUESTS, *LEGACY_METHODS)),
        *(f"{GRPC} {path}" for path in GRPC_METHODS),
        *(f"{route.method} {route.path}" for route in REST_ROUTES),
        *(f"canvas:v1 {name}" for name in (*OPERATIONS, *SHARE_OPERATIONS)),
        *(f"MCP {name}" for name in TOOLS),
        *(f"{method} {path}" for path, methods in paths for method in methods if method != "HEAD"),
    }


def kinds_of(asked: Asked) -> set[str]:
    """The kinds of a request."""
    path = urlsplit(asked.url).path
    if asked.method == GRPC:
        return {f"{GRPC} {path}"}
    if path == "/" and asked.method == "POST":
        message = asked.body["params"].get("message", {})
        operation = message.get("metadata", {}).get(CANVAS, {}).get("op")
        return {f"JSON-RPC {asked.body['method']}"} | ({f"canvas:v1 {operation}"} if operation else set())
    if path == MCP_PATH:
        tool = asked.body["params"].get("name")
        return {f"POST {path}"} | ({f"MCP {tool}"} if tool else set())
    if found := find_rest_route(asked.method, path.removeprefix("/rest/")) if path.startswith("/rest/") else None:
        return {f"{asked.method} {found[0].path}"}
    if path.startswith("/artifacts"):
        return {f"{asked.method} {type(parse_path(path.removeprefix('/artifacts').lstrip('/'))).__name__}"}
    return {f"{asked.method} {_PAGE_FILE if path == FILE else path}"}


_PAGE_FILE = "/page/{digest}/{name:anything}"


def _own(routes: Iterable[Any]) -> list[Route]:
    """The routes without those that have a table of their own."""
    own = [route for route in routes if not route.path.startswith(("/artifacts", "/rest"))]
    return [route for route in own if (route.path, route.methods) != ("/", {"POST"})]
