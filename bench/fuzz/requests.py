"""The hostile requests of `make fuzz`: a request depends on the seed and its number alone, so that it can be repeated.

Rule 1: every kind of string may contain NUL, control characters and lone surrogates: in JSON as escapes and as bytes,
        in paths and queries percent-encoded. gRPC has no lone surrogates, because protobuf strings cannot have them.
Rule 2: every kind of value may be an extreme one (`tests/extreme_values.py`).
Rule 3: a context gets `REQUESTS_PER_CONTEXT` requests, so that its artifacts have a bounded number of versions and a
        long run does not get slower.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2

from a2a_canvas.server.wire import AGENTSTACK, CANVAS
from bench.fuzz.users import (
    OPEN,
    OWNED,
    PRIVATE,
    SENDERS,
    SMUGGLED,
    TASKS,
    WEBHOOK_TOKEN,
    WORDS,
    credentials_of,
)
from bench.fuzz.worst_bodies import worst_bodies
from tests.extreme_values import VALUES as EXTREME
from tests.victims import RULES, VICTIM

REQUESTS_PER_CONTEXT = 200
WORST_EVERY = 100
"""Every so many requests one has a body of up to ten megabytes."""

CONTEXT, ARTIFACT = "z\ufffd", "i\ufffdj"
"""U+FFFD is stored in place of NUL. `CONTEXT` is replaced by the context of a request, which begins with it."""
TASK, SAID = "the task", "hi"
"""They are replaced by the id of a task, which may be somebody else's, and by what the sender says."""
SAME_ID = "9d0ee38c-6a1f-4a39-b3f1-1b38a4c2c9c6"
"""The id of many messages, of all senders."""
STRINGS = [
    "",
    "\0",
    "i\0j",
    "z\x000",
    "\x1f",
    "a\n",
    "\x7f",
    "\ud83d",
    "i\ude00j",
    "\ufffd",
    ARTIFACT,
    "😀",
    "a" * 300,
    "%00",
]
ODD_VALUES: list[Any] = [None, True, [], {}, [[]], {"": None}, *EXTREME, *STRINGS]
QUERIES = ["-0.0", "1e0", "1.0", " 1", "1_0", "-1", "9" * 30, "NaN", "", "\0", "true", "x"]
_PART = {"kind": "text", "text": "x"}
_UPDATE = {"append": False, "last_chunk": True, "artifact": {"artifact_id": ARTIFACT, "parts": [_PART]}}
_ROUNDS = [{"tools": [{"name": "artifact_update", "input": _UPDATE}]}, {"text": "Done."}]
_READ = {"name": "artifact_read", "input": {"artifact_id": "secret"}}
_SAID = {"name": "artifact_update", "input": json.loads(json.dumps(_UPDATE).replace('"x"', '"{said}"'))}
_QUESTION = {"name": "ask_user", "input": {"question": "{said}?"}}
_RULES = [
    ("^ask (?P<said>.+)", [{"tools": [_QUESTION]}, {"text": "Done."}]),
    ("^hi (?P<said>.+)", [{"tools": [_READ, _SAID]}, {"text": "{said}"}]),
    ("", _ROUNDS),
]
SCRIPT = json.dumps({"rules": [*RULES, *({"match": {"text": text}, "rounds": rounds} for text, rounds in _RULES)]})

_SELECTION = {"start": 0, "end": 1, "unit": "utf16", "text": "x"}
SHARES: list[dict[str, Any]] = [
    {"user": "bob", "level": "edit"},
    {"user": VICTIM, "level": "read", "expires": "2090-01-01T00:00:00Z"},
    {"link": True, "expires": "1h"},
]
OPERATIONS: list[dict[str, Any]] = [
    {CANVAS: {"op": "put", "artifactId": ARTIFACT, "text": SAID}},
    {CANVAS: {"op": "edit", "artifactId": ARTIFACT, "baseVersion": 1, "selection": _SELECTION}},
    {CANVAS: {"op": "undo", "artifactId": ARTIFACT}},
    {CANVAS: {"op": "undo", "artifactId": ARTIFACT, "group": True}},
    {CANVAS: {"op": "redo", "artifactId": ARTIFACT, "baseVersion": 1}},
    {CANVAS: {"artifactId": ARTIFACT, "selection": _SELECTION}},
    {CANVAS: {"op": "restore", "artifactId": ARTIFACT, "version": 1}},
    {AGENTSTACK: {"artifact_id": ARTIFACT, "start_index": 0, "end_index": 1, "description": "d"}},
    *({CANVAS: {"op": "share", **each}} for each in SHARES),
    {CANVAS: {"op": "shares"}},
    {CANVAS: {"op": "unshare", "shareId": SAME_ID}},
    {},
]
_MESSAGE = {"messageId": "m", "contextId": CONTEXT, "role": "ROLE_USER", "parts": [{"text": SAID}]}
_OLD_PART = {"kind": "text", "text": SAID}
_OLD = {"kind": "message", "messageId": "m", "contextId": CONTEXT, "role": "user", "parts": [_OLD_PART]}
_OLD_REST = {"messageId": "m", "contextId": CONTEXT, "role": "ROLE_USER", "content": [{"text": SAID}]}
_RUN = {"threadId": CONTEXT, "runId": "r", "messages": [{"id": "m", "role": "user", "content": SAID}]}
_RUN_ALL: dict[str, Any] = _RUN | {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
_RESUMED = _RUN_ALL | {"resume": [{"interruptId": TASK, "status": "resolved", "payload": {"answer": "yes"}}]}
_OLDER = {"message": SAID, "thread_id": CONTEXT, "selectedText": {"start": 0, "end": 1}}
_WEBHOOK = {"url": "http://127.0.0.1:1/", "token": WEBHOOK_TOKEN}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
NEW_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("SendMessage", {"message": _MESSAGE}),
    ("SendStreamingMessage", {"message": _MESSAGE}),
    ("GetTask", {"id": TASK, "historyLength": 1}),
    ("CancelTask", {"id": TASK}),
    ("SubscribeToTask", {"id": TASK}),
    ("ListTasks", {"contextId": CONTEXT, "pageSize": 1, "pageToken": "", "status": "TASK_STATE_WORKING"}),
    ("CreateTaskPushNotificationConfig", {"taskId": TASK, "id": "p"} | _WEBHOOK),
    ("GetTaskPushNotificationConfig", {"taskId": TASK, "id": "p"}),
    ("ListTaskPushNotificationConfigs", {"taskId": TASK, "pageSize": 1, "pageToken": ""}),
    ("DeleteTaskPushNotificationConfig", {"taskId": TASK, "id": "p"}),
    ("GetExtendedAgentCard", {}),
]
OLD_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("message/send", {"message": _OLD}),
    ("message/stream", {"message": _OLD}),
    ("tasks/get", {"id": TASK, "historyLength": 1}),
    ("tasks/cancel", {"id": TASK}),
    ("tasks/resubscribe", {"id": TASK}),
    ("tasks/pushNotificationConfig/set", {"taskId": TASK, "pushNotificationConfig": _WEBHOOK}),
    ("tasks/pushNotificationConfig/get", {"id": TASK, "pushNotificationConfigId": "p"}),
    ("tasks/pushNotificationConfig/list", {"id": TASK}),
    ("tasks/pushNotificationConfig/delete", {"id": TASK, "pushNotificationConfigId": "p"}),
    ("agent/getAuthenticatedExtendedCard", {}),
]


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `target` is a path, or the full name of a gRPC method.

    Attributes:
        sender, credentials: who it is (fuzz_users.py), and what it says in Authorization.
    """

    kind: str
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    sender: str = "nobody"
    credentials: tuple[str, ...] = ()


class RequestRandom(random.Random):
    """The random numbers of one request, its sender, its context, its task, and what it says.

    Two users use the same ids for contexts of their own, and guess those of each other.
    """

    def __init__(self, seed: int, number: int) -> None:
        super().__init__(f"{seed}:{number}")
        self.sender = self.choice(SENDERS)
        self.said = f"{self.choice(['hi', 'hi', 'ask'])} {WORDS.get(self.sender, 'nothing')}"
        self.task = self.choice(["x", *TASKS])
        own = [f"{CONTEXT}{number // REQUESTS_PER_CONTEXT}"] * 6
        others = [place for user, place in PRIVATE.items() if user != self.sender]
        self.context = self.choice([OPEN] if self.sender in ("editor", "reader") else [*own, *others, OPEN])
        if self.sender == "ann" and self.context == OPEN:
            self.said = f"hi {WORDS[OPEN]}"


def request(seed: int, number: int) -> Request:
    """The request of that number (rule 1)."""
    rng = RequestRandom(seed, number)
    if number % WORST_EVERY == WORST_EVERY - 1:
        worst = rng.choice(worst_bodies(OPEN))
        kind = "gRPC" if worst.method == "gRPC" else "worst"
        asked = Request(kind, worst.method, worst.target, dict(worst.headers), worst.body, rng.sender)
        return replace(asked, credentials=rng.choice(credentials_of(rng.sender)))
    makers = (_json_rpc, _json_rpc, _rest, _rest, _rest_push, _ag_ui, _artifacts, _grpc, _grpc, _page)
    made = rng.choice(makers)(rng)
    smuggled = dict(rng.choice(SMUGGLED)) | {"X-Forwarded-For": f"10.0.{number % 65536 // 256}.{number % 256}"}
    headers = made.headers | smuggled
    return replace(made, headers=headers, sender=rng.sender, credentials=rng.choice(credentials_of(rng.sender)))


def _json_rpc(rng: RequestRandom) -> Request:
    old = rng.random() < 0.4
    method, params = rng.choice(OLD_CALLS if old else NEW_CALLS)
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": _call_params(rng, params)}
    return Request("JSON-RPC", "POST", "/", _headers(rng, old), _body(rng, _mutated(rng, call)))


def _rest(rng: RequestRandom) -> Request:
    old = rng.random() < 0.4
    base, odd = ("/rest/v1" if old else "/rest"), _quoted(rng.choice([rng.task, _text(rng)]))
    if rng.random() < 0.4:
        body = {"request": _OLD_REST} if old else {"message": _MESSAGE}
        path = f"{base}/message:{rng.choice(['send', 'stream'])}"
        return Request("REST", "POST", path, _headers(rng, old), _body(rng, _mutated(rng, _call_params(rng, body))))
    path = rng.choice([f"/tasks/{odd}", "/tasks", f"/tasks/{odd}:subscribe", "/card", "/extendedAgentCard"])
    if rng.random() < 0.2:
        return Request("REST", "POST", f"{base}/tasks/{odd}:cancel", _headers(rng, old), b"")
    method = rng.choice(["GET", "GET", "GET", *METHODS])
    return Request("REST", method, base + path + _query(rng), _headers(rng, old), b"")


def _rest_push(rng: RequestRandom) -> Request:
    old = rng.random() < 0.4
    path = (
        f"{'/rest/v1' if old else '/rest'}/tasks/{_quoted(rng.choice([rng.task, _text(rng)]))}/pushNotificationConfigs"
    )
    path += rng.choice(["", f"/{_quoted(_text(rng))}"])
    body = {"config": {"pushNotificationConfig": dict(_WEBHOOK)}} if old else {"taskId": rng.task, "id": "p"} | _WEBHOOK
    method = rng.choice(["GET", "POST", "POST", *METHODS])
    sent = _body(rng, _mutated(rng, body)) if method == "POST" else b""
    return Request("REST", method, path + rng.choice(["", _query(rng)]), _headers(rng, old), sent)


def _query(rng: RequestRandom) -> str:
    name = rng.choice(["historyLength", "pageSize", "contextId", "pageToken", "status", "statusTimestampAfter"])
    return f"?{name}={_quoted(rng.choice([*QUERIES, _text(rng)]))}"


def _ag_ui(rng: RequestRandom) -> Request:
    body = _in_context(rng, rng.choice([_RUN_ALL, _RUN_ALL, _RESUMED, _OLDER]))
    if "threadId" in body:
        body["forwardedProps"] = _in_context(rng, rng.choice(OPERATIONS))
    method = "POST" if rng.random() < 0.9 else rng.choice(METHODS)
    return Request("AG-UI", method, "/canvas/stream", _headers(rng, True), _body(rng, _mutated(rng, body)))


def _artifacts(rng: RequestRandom) -> Request:
    known = rng.choice([ARTIFACT, "secret"])
    place = OWNED if rng.sender == "ann" and rng.random() < 0.3 else rng.context
    context, artifact = (_quoted(rng.choice([each, each, _text(rng)])) for each in (place, known))
    number = _quoted(rng.choice(["1", *QUERIES]))
    tail = rng.choice(
        [
            "",
            "/events",
            "/shares",
            f"/shares/{SAME_ID}",
            f"/{artifact}",
            f"/{artifact}/versions",
            f"/{artifact}/versions/{number}",
        ]
    )
    tail += rng.choice(
        ["", "", "/diff", f"?from={_quoted(rng.choice(['1', *QUERIES, _text(rng)]))}", "?raw=1", "?format=zip"]
    )
    tail += _in_the_address(rng, tail)
    headers = {
        "Last-Event-ID": rng.choice(["1", "-1", "9" * 30, "x"]),
        "Accept": rng.choice(["*/*", "text/plain", ","]),
    }
    method = "GET" if rng.random() < 0.7 else rng.choice(METHODS)
    changes = method in ("POST", "PATCH")
    body = _body(rng, _mutated(rng, dict(rng.choice([*SHARES, {"name": rng.said}])))) if changes else b""
    return Request("/artifacts", method, f"/artifacts/{context}{tail}", headers | _headers(rng, True), body)


def _in_the_address(rng: RequestRandom, target: str) -> str:
    """A credential where none belongs: it lets nobody in, and no log has it."""
    if rng.sender != "forger":
        return ""
    separator = "&" if "?" in target else "?"
    return separator + rng.choice(["signature={signed}", "access_token={ann}", "key={ann}&signature={signed}x"])


def _page(rng: RequestRandom) -> Request:
    paths = ["/", "/healthz", "/readyz", "/metrics", "/.well-known/agent-card.json", f"/{_quoted(_text(rng))}"]
    callback = f"/auth/callback?state={_quoted(_text(rng))}&code={{ann}}"
    paths += ["/auth/session", "/auth/sign-in?return=//evil.example", callback, "/auth/sign-out", "/auth/signed-urls"]
    signs = {
        "path": rng.choice([f"/artifacts/{_quoted(rng.context)}", "//evil.example", "/auth/session", "/x?signature=y"])
    }
    method, path = rng.choice(METHODS), rng.choice(paths)
    body = _body(rng, _mutated(rng, signs)) if method == "POST" and path == "/auth/signed-urls" else b""
    return Request("page", method, path, _headers(rng, True), body)


def _grpc(rng: RequestRandom) -> Request:
    module: Any = rng.choice([a2a_pb2, a2a_v0_3_pb2])
    service = module.DESCRIPTOR.services_by_name["A2AService"]
    method = rng.choice(list(service.methods))
    message = getattr(module, method.input_type.name)()
    _fill(rng, message, 3)
    body = bytearray(message.SerializeToString())
    if body and rng.random() < 0.2:
        body[rng.randrange(len(body))] = rng.randrange(256)
    return Request("gRPC", method.name, f"/{service.full_name}/{method.name}", {}, bytes(body))


def _fill(rng: RequestRandom, message: Any, depth: int) -> None:
    for known in message.DESCRIPTOR.fields:
        if rng.random() < 0.5:
            continue
        if known.type == known.TYPE_STRING:
            odd = _text(rng).encode(errors="replace").decode()
            text = rng.said if known.name == "text" else rng.choice([odd, rng.context, rng.task])
            text = f"tasks/{text}" if known.name in ("name", "parent") else text
            getattr(message, known.name).append(text) if known.is_repeated else setattr(message, known.name, text)
        elif known.type in (known.TYPE_INT32, known.TYPE_ENUM) and not known.is_repeated:
            setattr(message, known.name, rng.choice([0, 1, 2**31 - 1, -1]))
        elif known.message_type and known.message_type.file.package.startswith(("lf", "a2a")) and depth:
            value = getattr(message, known.name)
            if known.is_repeated and not known.message_type.GetOptions().map_entry:
                _fill(rng, value.add(), depth - 1)
            elif not known.is_repeated:
                value.SetInParent()
                _fill(rng, value, depth - 1)


def _call_params(rng: RequestRandom, params: dict[str, Any]) -> dict[str, Any]:
    asked: dict[str, Any] = _in_context(rng, params)
    for message in (asked.get("message"), asked.get("request")):
        if isinstance(message, dict):
            message_id = rng.choice([SAME_ID, f"m{rng.random()}", f"m{rng.random()}"])
            message |= {"messageId": message_id, "metadata": _in_context(rng, rng.choice(OPERATIONS))}
            message |= {"taskId": rng.task} if rng.random() < 0.1 else {}
            message |= {"referenceTaskIds": [rng.task]} if rng.random() < 0.1 else {}
    return asked


def _in_context(rng: RequestRandom, value: Any) -> Any:
    """A copy with the request's context in place of `CONTEXT`, its task and what it says."""
    if isinstance(value, dict):
        return {key: _in_context(rng, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_in_context(rng, inner) for inner in value]
    of_request = {CONTEXT: rng.context, TASK: rng.task, SAID: rng.said}
    return of_request.get(value, value) if isinstance(value, str) else value


def _mutated(rng: RequestRandom, value: Any) -> Any:
    """Replace up to three of its values."""
    for _ in range(rng.randrange(4)):
        node, key = rng.choice(list(_positions(value)))
        old = node[key]
        put = _text(rng) if isinstance(old, str) and rng.random() < 0.7 else _in_context(rng, rng.choice(ODD_VALUES))
        node[key] = put
    return value


def _positions(value: Any) -> Sequence[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((value, key), *_positions(value[key]))]


def _text(rng: RequestRandom) -> str:
    text = rng.choice([*STRINGS, rng.context, rng.context.replace("\ufffd", "\0")])
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(["", "", "\0", chr(rng.randrange(32)), "\ufffd", "\udc80"]) + text[at:]


def _quoted(text: str) -> str:
    return quote(text.encode(errors="surrogatepass"), safe="")


def _headers(rng: RequestRandom, old: bool) -> dict[str, str]:
    headers = {"Content-Type": "application/json"} | ({} if old else {"A2A-Version": "1.0"})
    if rng.random() < 0.1:
        name = rng.choice(["A2A-Version", "Content-Type", "A2A-Extensions", "Accept", "Last-Event-ID"])
        headers[name] = rng.choice(["", "1.0", "0.3", "x", ",,;", CANVAS, "text/plain", "\x7f" * 20])
    return headers


def _body(rng: RequestRandom, value: Any) -> bytes:
    escapes = rng.random() < 0.7
    body = json.dumps(value, ensure_ascii=escapes).encode(errors="surrogatepass")
    if rng.random() < 0.08:
        at = rng.randrange(len(body) + 1)
        body = body[:at] + rng.choice([b"", b"\0", b"\xff", b"[" * 100, b"NaN", b"1e999"]) + body[at + 1 :]
    return body
