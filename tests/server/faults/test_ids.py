"""Ids that no database can carry: every entrance refuses them by their name."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from a2a.client.errors import A2AClientError
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError

from tests.database_fixtures import sqlite_url
from tests.server.faults.server_processes import ServerProcess, envelope, message, server_group

CANVAS = "urn:a2a-canvas:canvas:v1"
AGENTSTACK = "https://a2a-extensions.agentstack.beeai.dev/ui/canvas/v1"
V1 = {"A2A-Version": "1.0"}
NUL = "i\0j"
UPDATE = {
    "append": False,
    "last_chunk": True,
    "artifact": {"artifact_id": "i\ufffdj", "parts": [{"kind": "text", "text": "x"}]},
}
RULES = [
    {"match": {"text": ""}, "rounds": [{"tools": [{"name": "artifact_update", "input": UPDATE}]}, {"text": "Done."}]}
]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """It has an artifact whose id is what a database makes of NUL."""
    script = tmp_path / "rules.yaml"
    script.write_text(json.dumps({"rules": RULES}))
    async with server_group(sqlite_url(tmp_path), tmp_path, f"script:{script}") as servers:
        started = await servers.start()
        await started.call("SendMessage", {"message": message("write", context="z\ufffd1")})
        yield started


async def test_twenty_puts_at_once_are_refused_and_the_server_lives_and_ends(server: ServerProcess) -> None:
    put = {"op": "put", "artifactId": NUL, "text": "x"}
    calls = [envelope("SendMessage", {"message": message("x", context="z\ufffd1", operation=put)}) for _ in range(20)]
    answers = await asyncio.gather(*(server.http.post("/", json=call, headers=V1) for call in calls))
    assert {answer.json()["error"]["code"] for answer in answers} == {-32602}
    assert "artifactId must not contain the character NUL" in answers[0].json()["error"]["message"]
    assert (await server.http.get("/healthz")).status_code == 200
    server.signal(signal.SIGTERM)
    assert await server.ended() == 0


def said(**fields: Any) -> Any:
    return message("x", context="z\ufffd1") | fields


RPC: list[tuple[str, Any, str]] = [
    ("GetTask", {"id": NUL}, "id"),
    ("CancelTask", {"id": NUL}, "id"),
    ("SubscribeToTask", {"id": NUL}, "id"),
    ("ListTasks", {"contextId": "z\x001"}, "contextId"),
    ("SendMessage", {"message": said(messageId=NUL)}, "message.messageId"),
    ("SendStreamingMessage", {"message": said(contextId=NUL)}, "message.contextId"),
    ("SendMessage", {"message": said(taskId="a\n")}, "message.taskId"),
    ("SendMessage", {"message": said(metadata={CANVAS: {"artifactId": NUL}})}, "artifactId"),
    (
        "SendMessage",
        {"message": said(metadata={AGENTSTACK: {"artifact_id": NUL, "start_index": 0, "end_index": 1}})},
        "artifact_id",
    ),
]


async def json_rpc(server: ServerProcess, method: str, params: Any, field: str) -> None:
    answer = await server.http.post("/", json=envelope(method, params), headers=V1)
    error = json.loads(answer.text.removeprefix("data: "))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith(field)


PATHS: list[tuple[str, Any, str]] = [
    ("/artifacts/z%001", {}, "context"),
    ("/artifacts/z%001/events", {}, "context"),
    ("/artifacts/z%EF%BF%BD1/i%00j", {}, "artifact"),
    ("/artifacts/z%EF%BF%BD1/i%0Aj/versions", {}, "artifact"),
    ("/rest/tasks/i%00j", V1, "id"),
    ("/rest/tasks?contextId=z%001", V1, "contextId"),
    ("/rest/tasks?contextId=z%ED%A0%801", V1, "The path or the query is not UTF-8"),
    ("/rest/tasks/%FF", V1, "The path or the query is not UTF-8"),
    ("/rest/v1/tasks/i%00j", {}, "id"),
    ("/rest/v1/tasks/x?historyLength=-0.0", {}, "historyLength is '-0.0' and must be a whole number"),
]


async def get(server: ServerProcess, path: str, headers: Any, field: str) -> None:
    answer = await server.http.get(path, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(field)


RUNS: list[tuple[Any, str]] = [
    ({"threadId": NUL}, "threadId"),
    ({"runId": NUL}, "runId"),
    ({"messages": [{"id": NUL, "role": "user", "content": "x"}]}, "messages.0.id"),
    (
        {"forwardedProps": {CANVAS: {"op": "put", "artifactId": NUL, "text": "x"}}},
        f"forwardedProps.{CANVAS}.artifactId",
    ),
    ({"message": "x", "thread_id": NUL, "messages": None}, "thread_id"),
]


async def ag_ui(server: ServerProcess, body: Any, field: str) -> None:
    run = {"threadId": "z\ufffd1", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "x"}]}
    run |= {"state": {}, "tools": [], "context": [], "forwardedProps": {}} | body
    asked = {name: value for name, value in run.items() if value is not None}
    answer = await server.http.post("/canvas/stream", json=asked)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(field)


async def test_every_entrance_refuses_such_an_id_by_its_name(server: ServerProcess) -> None:
    for call in RPC:
        await json_rpc(server, *call)
    for path in PATHS:
        await get(server, *path)
    for run in RUNS:
        await ag_ui(server, *run)
    older = await server.http.post("/", json=envelope("tasks/get", {"id": NUL}))
    assert older.json()["error"]["code"] == -32602
    with pytest.raises((A2AError, A2AClientError), match="id must not contain the character NUL"):
        await server.sdk("GRPC").get_task(pb.GetTaskRequest(id=NUL))
