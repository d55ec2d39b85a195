"""`make fuzz`: hostile requests against a real server, over every route and gRPC; the exit code is 1 for any fault.

Rule 1: a request depends on the seed and its number alone, so that it can be repeated.
Rule 2: a fault is a 5xx or an internal error that is not a retryable refusal, an answer that takes longer than
        `RESPONSE_TIMEOUT`, the text of an exception in an answer or in the log, what the sender of a request must not
        see (fuzz_users.py), a task that fails with `INTERNAL_ERROR`, memory that is not freed (more than `MAX_LEAK`
        since the warm-up, plus `MAX_LEAK_PER_REQUEST` for every request, because its task is stored), and a server that
        is not healthy, or does not stop, at the end.
Rule 3: every kind of string may contain NUL, control characters and lone surrogates: in JSON as escapes and as bytes,
        in paths and queries percent-encoded. gRPC has no lone surrogates, because protobuf strings cannot have them.
Rule 4: a context gets `REQUESTS_PER_CONTEXT` requests, so that its artifacts have a bounded number of versions and a
        long run does not get slower.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast
from urllib.parse import quote, urlsplit

import grpc
import grpc.aio
import httpx
from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2

from a2a_canvas.server.agent.endings import INTERNAL_ERROR
from a2a_canvas.server.wire import AGENTSTACK, CANVAS
from bench.databases import databases, upgrade
from bench.fuzz_users import (
    OPEN,
    PRIVATE,
    SENDERS,
    SMUGGLED,
    TASKS,
    WEBHOOK_TOKEN,
    WORDS,
    Accounts,
    credentials_of,
)
from bench.servers import MEMORY, Checkout, Server, end, end_in_order, script, shipped, start
from tests.free_port import free_port

RESPONSE_TIMEOUT = 20.0
STREAM_SECONDS = 0.5
"""How long an answer that may be endless is read."""
CONCURRENCY = 8
MAX_LEAK = 64 * 2**20
MAX_LEAK_PER_REQUEST = 16 * 2**10
REQUESTS_PER_CONTEXT = 200

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
ODD_VALUES: list[Any] = [None, True, -1, 0, -0.0, 1.5, 2**31, 2**63, 10**30, 1e308, [], {}, [[]], {"": None}, *STRINGS]
QUERIES = ["-0.0", "1e0", "1.0", " 1", "1_0", "-1", "9" * 30, "NaN", "", "\0", "true", "x"]
ERROR_TRACES = (
    "Traceback",
    'File "/',
    "object at 0x",
    "sqlalchemy",
    "asyncpg",
    "KeyError",
    "IndexError",
    "ValueError",
    "TypeError",
)

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
SCRIPT = json.dumps({"rules": [{"match": {"text": text}, "rounds": rounds} for text, rounds in _RULES]})

_SELECTION = {"start": 0, "end": 1, "unit": "utf16", "text": "x"}
SHARES: list[dict[str, Any]] = [{"user": "bob", "level": "edit"}, {"link": True, "expires": "1h"}]
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


@dataclass(slots=True)
class Result:
    """The result of a run."""

    seed: int
    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    slowest: float = 0.0
    grown: int = 0


# ---------------------------------------------------------------------------- requests


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
    context, artifact = (_quoted(rng.choice([each, _text(rng)])) for each in (rng.context, known))
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


# ------------------------------------------------------------------------------ answers


class Fuzzer:
    """Sends the requests of a seed to a server."""

    def __init__(
        self, server: Server, http: httpx.AsyncClient, channel: grpc.aio.Channel, seed: int, accounts: Accounts
    ) -> None:
        self._accounts = accounts
        self._server = server
        self._http = http
        self._channel = channel
        self.result = Result(seed)

    async def run(self, count: int) -> None:
        """Send them, `CONCURRENCY` at a time; the first tenth is the warm-up."""
        await self._accounts.prepare(self._http)
        begun, warm = time.monotonic(), count // 10
        await self._some(iter(range(warm)))
        before = self._server.rss()
        await self._some(iter(range(warm, count)))
        self.result.seconds = time.monotonic() - begun
        self.result.grown = self._server.rss() - before
        if self.result.grown > MAX_LEAK + MAX_LEAK_PER_REQUEST * count:
            self.result.faults.append(f"memory: {self.result.grown / 2**20:.0f} MB are kept")
        for user in await self._accounts.changed(self._http):
            self.result.faults.append(f"what {user} has was changed by somebody else")
        if (await self._http.get("/healthz", timeout=2)).status_code != 200:
            self.result.faults.append("/healthz is not 200")

    async def _some(self, numbers: Any) -> None:
        async def work() -> None:
            for number in numbers:
                await self._one(number)

        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))

    async def _one(self, number: int) -> None:
        asked, begun = request(self.result.seed, number), time.monotonic()
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT):
                answer, text, judged = await (self._call(asked) if asked.kind == "gRPC" else self._ask(asked))
        except (TimeoutError, httpx.HTTPError) as error:
            answer, text = f"{type(error).__name__}, or no answer within {RESPONSE_TIMEOUT:g} s", ""
            judged = ""
        self.result.slowest = max(self.result.slowest, time.monotonic() - begun)
        self.result.answers[f"{asked.kind} {answer}"] += 1
        leaks = self._accounts.leaks(asked.sender, text)
        if leaks or _is_fault(answer, judged):
            again = f"seed {self.result.seed}, request {number}: {asked}"
            seen = f" {asked.sender} sees {', '.join(leaks)}:" if leaks else ""
            self.result.faults.append(f"{answer}:{seen} {text[:600]!r}\n    {again}")

    async def _ask(self, asked: Request) -> tuple[str, str, str]:
        """How it was answered, all of the answer with its headers, and what of it is looked at for errors."""
        target = f"http://127.0.0.1:{self._server.port}{self._accounts.filled(asked.target)}".encode()
        credentials = [("Authorization", self._accounts.filled(each)) for each in asked.credentials]
        headers = [*((name, self._accounts.filled(value)) for name, value in asked.headers.items()), *credentials]
        url, body = self._accounts.with_tasks(target).decode(), self._accounts.with_tasks(asked.body)
        async with self._http.stream(asked.method, url, headers=headers, content=body) as response:
            endless = "event-stream" in response.headers.get("content-type", "")
            text = (
                await _read_for_a_while(response.aiter_text())
                if endless
                else (await response.aread()).decode(errors="replace")
            )
            retry = " retryable" if "retry-after" in response.headers else ""
            # A page and a script may have any word in them.
            judged = text if "html" not in response.headers.get("content-type", "") else ""
            return f"{response.status_code}{retry}", f"{response.headers.multi_items()}\n{text}", judged

    async def _call(self, asked: Request) -> tuple[str, str, str]:
        answer, text = await self._call_grpc(asked)
        return answer, text, text

    async def _call_grpc(self, asked: Request) -> tuple[str, str]:
        channel: Any = self._channel  # without a serializer it takes bytes
        body = self._accounts.with_tasks(asked.body)
        metadata = [("authorization", self._accounts.filled(each)) for each in asked.credentials]
        try:
            if "Stream" in asked.target or "Subscri" in asked.target:
                with ExitStack() as stack:
                    stream = channel.unary_stream(asked.target)(body, metadata=metadata)
                    stack.callback(stream.cancel)
                    pieces = _read(stream)
                    return "OK", await anext(pieces, "") + await _read_for_a_while(pieces)
            answer = await channel.unary_unary(asked.target)(body, metadata=metadata)
            return "OK", answer.decode(errors="replace")
        except grpc.aio.AioRpcError as error:
            return error.code().name, f"{error.details() or ''} {list(error.trailing_metadata() or ())}"


async def _read(stream: Any) -> AsyncGenerator[str]:
    while (piece := await stream.read()) is not grpc.aio.EOF:
        yield piece.decode(errors="replace")


async def _read_for_a_while(answer: AsyncIterator[str]) -> str:
    """The part of an answer that is sent within `STREAM_SECONDS`."""
    pieces: list[str] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(STREAM_SECONDS):
            async for piece in answer:
                pieces.append(piece)
    return "".join(pieces)


def _is_fault(answer: str, text: str) -> bool:
    if answer.startswith("5") and answer != "503 retryable":
        return True
    refused = '"code": -32603' in text or '"code":-32603' in text
    internal = refused and "Internal error" in text
    silent = "no answer" in answer or answer in ("INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED")
    return internal or silent or any(trace in text for trace in (*ERROR_TRACES, INTERNAL_ERROR))


# --------------------------------------------------------------------------------- runs


async def fuzz(count: int, database: str, seed: int) -> Result:
    """A run against a new server."""
    with databases(cast(Any, database)) if database != MEMORY else nullcontext(lambda: MEMORY) as new:
        url = await upgrade(new()) if database == "postgresql" else new()
        return await _against(url, count, seed)


async def _against(url: str, count: int, seed: int) -> Result:
    port, rpc, accounts = free_port(), free_port(), Accounts.new(urlsplit(url).password or "")
    with script(SCRIPT) as path, tempfile.TemporaryFile() as said:
        command = shipped(
            f"script:{path}", url, "--grpc-port", str(rpc), "--log-level", "debug", "--push-allow", "127.0.0.1"
        )
        process = await start(command, port, said, Checkout(environ=accounts.environ))
        try:
            client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=RESPONSE_TIMEOUT)
            async with client, grpc.aio.insecure_channel(f"127.0.0.1:{rpc}") as channel:
                fuzzer = Fuzzer(Server(port, process.pid), client, channel, seed, accounts)
                await fuzzer.run(count)
        finally:
            await end(process, signal.SIGTERM)
        if process.returncode != 0:
            fuzzer.result.faults.append(f"SIGTERM: ended with {process.returncode}")
        said.seek(0)
        log = said.read().decode(errors="replace")
        if "Traceback" in log or "ERROR" in log:
            fuzzer.result.faults.append(f"the log:\n{log[:4000]}")
        for secret in accounts.logged(log):
            fuzzer.result.faults.append(f"the log has {secret}: {_around(secret, log)!r}")
        return fuzzer.result


def _around(found: str, text: str) -> str:
    at = text.index(found)
    return text[max(0, at - 300) : at + 300]


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--database", choices=["sqlite", "postgresql", MEMORY], default="sqlite")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    given = parser.parse_args()
    end_in_order()
    result = asyncio.run(fuzz(given.requests, given.database, given.seed))
    for name, number in sorted(result.answers.items()):
        print(f"{number:7} {name}")
    print(f"seed {result.seed}, {given.database}: {sum(result.answers.values())} requests in {result.seconds:.0f} s,")
    print(f"slowest {result.slowest:.1f} s, memory +{result.grown / 2**20:.0f} MB, {len(result.faults)} faults")
    for fault in result.faults[:20]:
        print(f"FAULT {fault}")
    return 1 if result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
