"""Clients of others: their requests, as they were recorded (`protocols/fixtures`), and their patience.

A recording has the JSON-RPC requests of one release of a client, with CONTEXT and TASK for the ids that it was given,
and what each of them must be answered with at the end. docs/clients.md lists the releases.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.protocols.edge import sse_response
from tests.server.app_server import HTTP, Served, asking, serving

SCRIPT = Path(__file__).parent / "scripts" / "clients.yaml"
RECORDINGS = {
    file.stem: json.loads(file.read_text())
    for file in sorted((Path(__file__).parent / "protocols" / "fixtures").glob("*.json"))
}


# ------------------------------------------------------------------- recorded requests


@pytest.mark.parametrize("client", RECORDINGS)
async def test_what_a_client_sends_is_answered_as_it_expects(client: str) -> None:
    recording = RECORDINGS[client]
    headers = {"A2A-Version": recording["version"]} if "version" in recording else {}
    ids = {"CONTEXT": "recorded", "TASK": ""}
    async with serving(SCRIPT, grpc=False) as served:
        for call in recording["calls"]:
            task = await answered(served, call["request"], headers, ids)
            ids = {"CONTEXT": task["context"], "TASK": task["id"]}
            assert (task["state"], task["reply"]) == (call["state"], call["reply"]), call["request"]


async def answered(
    served: Served, request: dict[str, Any], headers: dict[str, str], ids: dict[str, str]
) -> dict[str, Any]:
    """The task as the answer leaves it: `id`, `context`, `state` in the words of 0.3, and the text of its status."""
    body = json.dumps(request)
    for name, value in ids.items():
        body = body.replace(json.dumps(name), json.dumps(value))
    response = await served.http.post("/", content=body, headers={"Content-Type": "application/json", **headers})
    assert response.status_code == 200, response.text
    task: dict[str, Any] = {}
    for answer in answers(response):
        assert "result" in answer, answer
        task |= told(answer["result"])
    return task


def answers(response: httpx.Response) -> Iterator[dict[str, Any]]:
    if response.headers["content-type"].startswith("application/json"):
        yield response.json()
    else:
        lines = response.text.splitlines()
        yield from (json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: "))


def told(result: dict[str, Any]) -> dict[str, Any]:
    """What one result of either version says about its task."""
    event = result.get("task") or result.get("statusUpdate") or result
    if "status" not in event:
        return {}
    status = event["status"]
    return {
        "id": event.get("taskId") or event["id"],
        "context": event["contextId"],
        "state": status["state"].removeprefix("TASK_STATE_").lower().replace("_", "-"),
        "reply": "".join(part.get("text", "") for part in status.get("message", {}).get("parts", [])),
    }


# ----------------------------------------------------------------------------- silence

READ_TIMEOUT = 1.0
"""Of the client below, in place of the 5 seconds of httpx, which both Python SDKs have by default."""
SCALE = READ_TIMEOUT / 5
PINGS = 30


class Counted(httpx.AsyncByteStream):
    """A body that counts the comments in it, and opens the gate after enough of them."""

    def __init__(self, body: httpx.AsyncByteStream, served: Served) -> None:
        self._body, self._served, self._pings = body, served, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._body:
            self._pings += piece.count(b": ping")
            if self._pings >= PINGS:
                self._served.gate.open()
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


@pytest.mark.parametrize(("binding", "version"), HTTP)
async def test_the_sdks_client_sits_through_a_silence_longer_than_its_timeout(
    binding: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is five times as fast as it is, and pings twenty times: 30 of them take longer than the timeout."""
    assert httpx.AsyncClient().timeout.read == READ_TIMEOUT / SCALE
    for name in ("FIRST_PING_SECONDS", "FIRST_EVENT_SECONDS"):
        monkeypatch.setattr(sse_response, name, getattr(sse_response, name) * SCALE)
    monkeypatch.setattr(sse_response, "PING_SECONDS", READ_TIMEOUT / 20)
    async with serving(SCRIPT, grpc=False) as served:

        async def counted(response: httpx.Response) -> None:
            if isinstance(response.stream, httpx.AsyncByteStream):
                response.stream = Counted(response.stream, served)

        hooks = {"response": [counted]}
        async with httpx.AsyncClient(trust_env=False, timeout=READ_TIMEOUT, event_hooks=hooks) as http:
            client = replace(served, sdk_http=http).client(binding, version)
            *_, last = [event async for event in client.send_message(asking("silence"))]
    assert last.status_update.status.state == pb.TASK_STATE_COMPLETED
