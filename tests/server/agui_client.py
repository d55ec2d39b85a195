"""A client of `POST /canvas/stream`: reads runs event by event, and keeps the state as AG-UI says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from tests.server.app_server import Served
from tests.server.protocols.agui.agui_verifier import CLIENTS, HERE, verify
from tests.server.protocols.agui.state_patches import meaning, patched

Json = dict[str, Any]
PATH = "/canvas/stream"


class Run:
    """One run.

    Attributes:
        seen: the events so far.
        state: the snapshot with the patches so far.
    """

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.seen: list[Json] = []
        self.state: Json = {}
        self._events = _events(response)

    async def next(self) -> Json:
        event = await anext(self._events)
        self.seen.append(event)
        match event["type"]:
            case "STATE_SNAPSHOT":
                self.state = event["snapshot"]
            case "STATE_DELTA":
                self.state = patched(self.state, event["delta"])
        return event

    async def until(self, kind: str) -> Json:
        """Read on to the next event of a type, or a CUSTOM one of a name."""
        while kind not in ((event := await self.next())["type"], event.get("name")):
            pass
        return event

    async def rest(self) -> Run:
        try:
            while True:
                await self.next()
        except StopAsyncIteration:
            return self

    @property
    def task_id(self) -> str:
        return str(self.state["taskId"])

    @property
    def end(self) -> Json:
        return self.seen[-1]

    @property
    def outcome(self) -> str:
        """How it ended: the type of its outcome, or the code of its error."""
        return str(self.end["outcome"]["type"] if self.end["type"] == "RUN_FINISHED" else self.end["code"])

    @property
    def kinds(self) -> list[str]:
        return [event["name"] if event["type"] == "CUSTOM" else event["type"] for event in self.seen]

    def of(self, kind: str) -> list[Any]:
        """The events of a type, or the values of the CUSTOM ones of a name."""
        return [event.get("value", event) for event in self.seen if kind in (event["type"], event.get("name"))]

    @property
    def said(self) -> list[str]:
        """The agent's messages."""
        texts = {event["messageId"]: "" for event in self.of("TEXT_MESSAGE_START")}
        for event in self.of("TEXT_MESSAGE_CONTENT"):
            texts[event["messageId"]] += event["delta"]
        return list(texts.values())

    def text(self, artifact_id: str) -> str:
        parts = meaning(self.state)["artifacts"][artifact_id]["parts"]
        return "".join(part.get("text", "") for part in parts)

    @property
    def older(self) -> Json:
        """The artifact as clients of the older request are shown it."""
        artifact: Json = self.state["artifact"]
        return artifact


async def _events(response: httpx.Response) -> AsyncIterator[Json]:
    """The events of an SSE answer, cut where AG-UI's client cuts it: `httpx` would also cut at other ends of lines."""
    buffer = b""
    async for chunk in response.aiter_bytes():
        *whole, buffer = (buffer + chunk).split(b"\n\n")
        for event in whole:
            if not event.startswith(b":"):
                yield json.loads(event.removeprefix(b"data: "))
    assert not buffer


@dataclass
class Thread:
    """A thread of runs.

    Attributes:
        runs: those that were begun, by both bodies.
    """

    served: Served
    id: str = field(default_factory=lambda: str(uuid4()))
    runs: list[Run] = field(default_factory=list)

    def body(self, text: Any = "", message_id: str = "", run_id: str = "", **fields: Any) -> Json:
        """A `RunAgentInput`."""
        message = {"id": message_id or str(uuid4()), "role": "user", "content": text}
        return {"threadId": self.id, "runId": run_id or str(uuid4()), "messages": [message], **fields}

    def older_body(self, message: str, **fields: Any) -> Json:
        return {"message": message, "thread_id": self.id, **fields}

    @asynccontextmanager
    async def opened(self, body: Json) -> AsyncIterator[Run]:
        async with self.served.http.stream("POST", PATH, json=body) as response:
            assert response.status_code == 200, await response.aread()
            run = Run(response)
            self.runs.append(run)
            yield run

    async def run(self, text: Any, **fields: Any) -> Run:
        return await self.ran(self.body(text, **fields))

    async def older(self, message: str, **fields: Any) -> Run:
        return await self.ran(self.older_body(message, **fields))

    async def ran(self, body: Json) -> Run:
        async with self.opened(body) as run:
            return await run.rest()

    async def artifact(self, artifact_id: str) -> Json:
        """An artifact as the server has it, in the terms of the state."""
        path = f"/artifacts/{self.id}/{artifact_id}"
        artifact = (await self.served.http.get(path)).raise_for_status().json()
        versions = (await self.served.http.get(f"{path}/versions")).raise_for_status().json()["versions"]
        return {
            "text": "".join(part.get("text", "") for part in artifact["parts"]),
            "name": artifact.get("name", ""),
            "version": artifact["version"],
            "open": artifact["open"],
            "versions": [{name: version[name] for name in ("number", "author", "parent")} for version in versions],
        }


def shown(run: Run, artifact_id: str) -> Json:
    """An artifact as a run's state shows it, to be compared with `Thread.artifact`."""
    artifact = run.state["artifacts"][artifact_id]
    told = {name: artifact[name] for name in ("name", "version", "open", "versions")}
    return {"text": run.text(artifact_id), **told}


async def agent(thread: Thread, *messages: str, client: str = CLIENTS[0]) -> Json:
    """What AG-UI's own client has after a run for each message."""
    verify()
    process = await asyncio.create_subprocess_exec(
        *("node", str(HERE / "agent.mjs"), client, thread.served.url + PATH, thread.id, *messages),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    found: Json = json.loads(out)
    assert "error" not in found, found
    return found
