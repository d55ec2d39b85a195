"""A small AG-UI agent on loopback: each run sends the events of a script, and what it was sent can be read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.loopback import serving_app

Json = dict[str, Any]
Script = Sequence[Json | asyncio.Event]

STARTED = {"type": "RUN_STARTED"}
FINISHED = {"type": "RUN_FINISHED"}


def said(*pieces: str, message: str = "m-1") -> list[Json]:
    """The events of a message."""
    contents = [{"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": piece} for piece in pieces]
    start = {"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"}
    return [start, *contents, {"type": "TEXT_MESSAGE_END", "messageId": message}]


def called(name: str, *pieces: str, call: str = "c-1", result: str = "ok") -> list[Json]:
    """The events of a tool call."""
    args = [{"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": piece} for piece in pieces]
    start = {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name}
    answer = {"type": "TOOL_CALL_RESULT", "toolCallId": call, "messageId": f"{call}-r", "content": result}
    return [start, *args, {"type": "TOOL_CALL_END", "toolCallId": call}, answer]


def interrupted(question: str, schema: Json | None = None, interrupt: str = "i-1") -> Json:
    """The end of a run that asks."""
    asked = {"id": interrupt, "reason": "input", "message": question, **({"responseSchema": schema} if schema else {})}
    return {"type": "RUN_FINISHED", "outcome": {"type": "interrupt", "interrupts": [asked]}}


def whole(*events: Json) -> list[Json]:
    """A run that finishes."""
    return [STARTED, *events, FINISHED]


@dataclass
class AguiServer:
    """The agent.

    Attributes:
        scripts: of its runs, in order; the last one repeats. An event that is an `asyncio.Event` is waited for.
        bodies, tokens: what its runs were sent.
    """

    scripts: Sequence[Script]
    status: int = 200
    bodies: list[Json] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: Request) -> Response:
        self.bodies.append(await request.json())
        self.tokens.append(request.headers.get("authorization", ""))
        script = self.scripts[min(len(self.bodies), len(self.scripts)) - 1]
        return StreamingResponse(_sse(script), self.status, media_type="text/event-stream")


async def _sse(script: Script) -> AsyncIterator[str]:
    for event in script:
        if isinstance(event, asyncio.Event):
            await event.wait()
        else:
            yield f"data: {json.dumps(event)}\n\n"


@asynccontextmanager
async def agui_server(*scripts: Script, **options: Any) -> AsyncIterator[AguiServer]:
    """A running agent."""
    server = AguiServer(scripts, **options)
    app = Starlette(routes=[Route("/run", server.answer, methods=["POST"])])
    async with serving_app(lambda url: app) as url:
        server.url = f"{url}/run"
        yield server
