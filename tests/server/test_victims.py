"""Whatever one user sends, in any field, the next requests of another succeed: in memory, on SQLite and PostgreSQL.

Bob has a context of his own, which he shares, and may edit one of ann's. He sends bodies with one value replaced by an
extreme one (`tests/extreme_values.py`); then ann makes requests of every kind.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import grpc.aio
import pytest
from google.protobuf.json_format import ParseDict, ParseError

from a2a_canvas.server.agent.endings import INTERNAL_ERROR
from a2a_canvas.server.api_key import new_key
from a2a_canvas.server.migrations import upgrade
from a2a_canvas.server.protocols.guard.calls import REQUESTS
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.extreme_values import VALUES, alterations, deep
from tests.property_examples import examples
from tests.server.app_server import Served, envelope, serving

Json = dict[str, Any]

KEYS = {"ann": new_key(), "bob": new_key()}
HOOK = {"url": "http://127.0.0.1:1/", "id": "hook", "token": "t"}
SELECTION = {"start": 0, "end": 1, "unit": "utf16", "text": "T", "lineStart": 1, "lineEnd": 1}
BACKENDS = ("memory", "sqlite", "postgresql")
DEEP = tuple(deep(100_000, closed=closed).encode() for closed in (True, False))
IN_A_BATCH = examples(400)
"""Bodies of one kind that bob sends before ann's requests."""


@dataclass(frozen=True)
class Attack:
    """A request of bob's, and its body before a value in it is replaced."""

    method: str
    url: str
    body: Any


def attacks(of_bob: str, of_ann: str, task: str) -> dict[str, Attack]:
    """One of each kind."""
    found = {
        "share with ann": Attack(
            "POST", f"/artifacts/{of_bob}/shares", {"user": "ann", "level": "read", "expires": "2090-01-01T00:00:00Z"}
        ),
        "share by a link": Attack("POST", f"/artifacts/{of_bob}/shares", {"link": True, "expires": 60}),
        "rename": Attack("PATCH", f"/artifacts/{of_bob}", {"name": "Mine"}),
        "signed address": Attack("POST", "/auth/signed-urls", {"path": "/artifacts/notes/events"}),
        "list": rpc("ListTasks", {"contextId": of_ann, "pageSize": 1, "historyLength": 1, "pageToken": "a",
                                  "status": "TASK_STATE_COMPLETED", "statusTimestampAfter": "2026-01-01T00:00:00Z"}),
        "push": rpc("CreateTaskPushNotificationConfig", {"taskId": task, **HOOK,
                                                         "authentication": {"scheme": "Bearer", "credentials": "c"}}),
        "AG-UI": Attack("POST", "/canvas/stream", {"threadId": of_ann, "runId": "r", "state": {"a": 1}, "tools": [],
                        "context": [], "forwardedProps": {},
                        "messages": [{"id": "m", "role": "user", "content": "just say it"}]}),
    }  # fmt: skip
    for whose, context in (("own", of_bob), ("ann's", of_ann)):
        found |= {f"{name} in {whose} context": attack for name, attack in messages(context, task).items()}
    return found


def messages(context: str, task: str) -> dict[str, Attack]:
    whole = message(context, {}, referenceTaskIds=[task], extensions=[CANVAS])
    whole["message"]["parts"] += [{"data": {"a": 1}}, {"raw": "AAAA", "filename": "a.bin", "mediaType": "image/png"}]
    whole |= {"metadata": {"a": 1}, "configuration": {"historyLength": 1, "returnImmediately": False,
                                                      "taskPushNotificationConfig": HOOK}}  # fmt: skip
    at = {"artifactId": "report", "baseVersion": 1}
    operations = {
        "put": {"op": "put", **at, "text": "Text"},
        "restore": {"op": "restore", **at, "version": 1},
        "edit": {"op": "edit", **at, "selection": SELECTION, "strategy": "replace"},
        "undo": {"op": "undo", **at, "group": True},
        "share": {"op": "share", "user": "ann", "level": "edit", "expires": 60},
    }
    return {"message": rpc("SendMessage", whole)} | {
        name: rpc("SendMessage", message(context, {CANVAS: operation})) for name, operation in operations.items()
    }


def message(context: str, metadata: Json, **more: Any) -> Json:
    fields = {"messageId": str(uuid4()), "contextId": context, "role": "ROLE_USER", "metadata": metadata}
    return {"message": {**fields, "parts": [{"text": "write report"}], **more}}


def rpc(method: str, params: Json) -> Attack:
    return Attack("POST", "/", envelope(method, params))


@dataclass(frozen=True)
class Answer:
    status: int
    kind: str
    text: str


async def ask(served: Served, who: str, method: str, url: str, body: Any = None) -> Answer:
    """The answer, of a stream of events its first bytes."""
    headers = {"Authorization": f"Bearer {KEYS[who]}", "A2A-Version": "1.0", "Content-Type": "application/json"}
    content = body if body is None or isinstance(body, bytes) else json.dumps(body)
    async with served.http.stream(method, url, content=content, headers=headers) as response:
        text = ""
        async for piece in response.aiter_text():
            text += piece
            if url.endswith("/events"):
                break
    return Answer(response.status_code, response.headers.get("content-type", ""), text)


async def begun(served: Served, who: str, context: str, words: str = "write report") -> str:
    params = message(context, {})
    params["message"]["parts"] = [{"text": words}]
    answer = await ask(served, who, "POST", "/", envelope("SendMessage", params))
    return str(json.loads(answer.text)["result"]["task"]["id"])


def requests_of_ann(own: str, task: str) -> Iterator[tuple[str, str, Any]]:
    """One of each kind, all of which succeed."""
    for below in ("", f"/{own}", f"/{own}/events", f"/{own}/shares", f"/{own}/mine", f"/{own}/mine/versions"):
        yield "GET", f"/artifacts{below}", None
    yield "GET", f"/artifacts/{own}/mine/versions/1/diff", None
    yield "GET", "/artifacts?query=report", None
    yield "GET", "/auth/session", None
    yield "POST", "/auth/signed-urls", {"path": f"/artifacts/{own}/events"}
    yield "PATCH", f"/artifacts/{own}", {"name": "Notes"}
    put = {CANVAS: {"op": "put", "artifactId": "mine", "name": "mine.md", "text": "Text"}}
    for method, params in (
        ("SendMessage", message(own, {})),
        ("SendMessage", message(own, put)),
        ("SendMessage", message("", {})),
        ("GetTask", {"id": task}),
        ("ListTasks", {"includeArtifacts": True, "historyLength": 9}),
        ("ListTasks", {"contextId": own}),
        ("CreateTaskPushNotificationConfig", {"taskId": task, **HOOK}),
        ("GetTaskPushNotificationConfig", {"taskId": task, "id": "hook"}),
        ("ListTaskPushNotificationConfigs", {"taskId": task}),
        ("DeleteTaskPushNotificationConfig", {"taskId": task, "id": "hook"}),
    ):
        yield "POST", "/", envelope(method, params)
    run = {"threadId": own, "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {}}
    said = [{"id": str(uuid4()), "role": "user", "content": "just say it"}]
    yield "POST", "/canvas/stream", run | {"messages": said}


def fault(answer: Answer, *, refused: bool) -> str:
    """What is wrong with an answer.

    Args:
        refused: it may be a refusal.
    """
    if answer.status >= (500 if refused else 400):
        return f"HTTP {answer.status}"
    if not answer.kind.startswith("application/json"):
        return "the run failed" if "RUN_ERROR" in answer.text and not refused else ""
    body = json.loads(answer.text)
    error = body.get("error") if isinstance(body, dict) else None
    internal = "INTERNAL" in answer.text and "PERMISSION_DENIED" not in answer.text
    if isinstance(error, dict) and (internal or not refused):
        return json.dumps(error)
    return INTERNAL_ERROR if INTERNAL_ERROR in answer.text else ""


async def check_ann(served: Served, own: str, task: str, shared: str) -> None:
    requests = [*requests_of_ann(own, task)]
    requests.sort(key=lambda each: "put" not in json.dumps(each[2]))  # the artifact is there then
    for method, url, body in requests:
        response = await ask(served, "ann", method, url, body)
        assert not fault(response, refused=False), (method, url, body, response.text[:300])
    for below in ("", "/shares", "/report", "/report/versions"):
        response = await ask(served, "ann", "GET", f"/artifacts/{shared}{below}")
        assert not fault(response, refused=True), (below, response.text[:300])


@pytest.fixture(params=BACKENDS)
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory"
    url = sqlite_url(tmp_path) if request.param == "sqlite" else postgresql_url()
    opened = Database(url)
    await upgrade(opened)
    await opened.close()
    return url


@dataclass(frozen=True)
class World:
    """A server on which bob may edit a context of ann's, and she has another one; with a task in each."""

    served: Served
    of_ann: str
    of_bob: str
    own: str
    task: str
    mine: str


@asynccontextmanager
async def world(database: str, *, grpc: bool) -> AsyncIterator[World]:
    keys = ",".join(f"{name}={key}" for name, key in KEYS.items())
    async with serving(grpc=grpc, database=database, api_keys=keys, push_allow="127.0.0.1") as served:
        served.gate.open()
        of_ann, of_bob, own = (str(uuid4()) for _ in range(3))
        task = await begun(served, "ann", of_ann)
        mine = await begun(served, "ann", own)
        await begun(served, "bob", of_bob)
        shared = await ask(served, "ann", "POST", f"/artifacts/{of_ann}/shares", {"user": "bob", "level": "edit"})
        assert shared.status == 201
        yield World(served, of_ann, of_bob, own, task, mine)


async def test_whatever_one_user_sends_the_requests_of_another_succeed(database: str) -> None:
    async with world(database, grpc=False) as w:
        chance = random.Random(1)
        for kind, attack in attacks(w.of_bob, w.of_ann, w.task).items():
            bodies = [*alterations(attack.body, VALUES)]
            some = [*DEEP, *chance.sample(bodies, min(IN_A_BATCH, len(bodies)))]
            for start in range(0, len(some), 8):
                answers = [ask(w.served, "bob", attack.method, attack.url, body) for body in some[start : start + 8]]
                for body, answer in zip(some[start : start + 8], await asyncio.gather(*answers), strict=True):
                    assert not fault(answer, refused=True), (kind, str(body)[:300], answer.text[:300])
            await check_ann(w.served, w.own, w.mine, w.of_bob)


# ---------------------------------------------------------------------------------- gRPC


async def call(channel: grpc.aio.Channel, who: str, method: str, request: bytes) -> grpc.aio.AioRpcError | bytes:
    asked = channel.unary_unary(f"/lf.a2a.v1.A2AService/{method}", None, None)
    try:
        answer: bytes = await asked(request, metadata=[("authorization", f"Bearer {KEYS[who]}")], timeout=60)
    except grpc.aio.AioRpcError as error:
        return error
    return answer


def as_protobuf(method: str, params: Any) -> bytes | None:
    """The params as bytes; None for what is no message of the method."""
    try:
        json.dumps(params, ensure_ascii=False).encode()  # no half of a surrogate pair, for which protobuf has no error
        return bytes(ParseDict(params, REQUESTS[method](), ignore_unknown_fields=True).SerializeToString())
    except (ParseError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def hostile_bytes(whole: bytes, chance: random.Random) -> Iterator[bytes]:
    """What is no message, or one that is cut off, nested too deep, or has other bytes in it."""
    yield b"\xff" * 1000
    nested = b""
    for _ in range(10_000):
        nested = b"\x0a" + encoded_length(len(nested)) + nested
    yield nested
    for _ in range(IN_A_BATCH // 4):
        at = chance.randrange(len(whole) or 1)
        yield whole[:at]
        yield whole[:at] + chance.randbytes(2) + whole[at + 1 :]


def encoded_length(size: int) -> bytes:
    return bytes([size]) if size < 128 else bytes([size & 127 | 128]) + encoded_length(size >> 7)


def grpc_fault(answer: grpc.aio.AioRpcError | bytes) -> str:
    code = answer.code() if isinstance(answer, grpc.aio.AioRpcError) else grpc.StatusCode.OK
    mine = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.DEADLINE_EXCEEDED)  # fmt: skip
    return str(answer) if code in mine else ""


async def test_whatever_one_user_sends_over_grpc_the_requests_of_another_succeed(database: str) -> None:
    async with world(database, grpc=True) as w, grpc.aio.insecure_channel(w.served.grpc) as channel:
        chance = random.Random(2)
        rpcs = {kind: each.body for kind, each in attacks(w.of_bob, w.of_ann, w.task).items() if each.url == "/"}
        for kind, body in rpcs.items():
            method, params = body["method"], body["params"]
            messages = [data for each in alterations(params, VALUES) if (data := as_protobuf(method, each)) is not None]
            some = chance.sample(messages, min(IN_A_BATCH, len(messages)))
            some += hostile_bytes(as_protobuf(method, params) or b"", chance)
            for start in range(0, len(some), 8):
                calls = [call(channel, "bob", method, data) for data in some[start : start + 8]]
                for data, answer in zip(some[start : start + 8], await asyncio.gather(*calls), strict=True):
                    assert not grpc_fault(answer), (kind, data[:300], answer)
            await check_ann(w.served, w.own, w.mine, w.of_bob)
            await check_ann_over_grpc(channel, w)


async def check_ann_over_grpc(channel: grpc.aio.Channel, w: World) -> None:
    for _, url, body in requests_of_ann(w.own, w.mine):
        if url == "/":
            request = as_protobuf(body["method"], body["params"])
            assert request is not None
            answer = await call(channel, "ann", body["method"], request)
            assert isinstance(answer, bytes), (body, answer)
