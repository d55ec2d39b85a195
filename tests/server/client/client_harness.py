"""What a client command writes, and servers that answer it with exactly what a test wants."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from a2a_canvas.server.commands.cli import main
from tests.free_port import free_port

UNKNOWN_METHOD = {"code": -32601, "message": "Method not found"}
BREAK = object()
"""In an answer: the connection breaks."""


class Screen(StringIO):
    """A stream that tells when a text has been written; a terminal on demand."""

    def __init__(self, waits_for: str = "", *, tty: bool = False) -> None:
        super().__init__()
        self._waits_for, self._tty, self.written = waits_for, tty, asyncio.Event()

    def isatty(self) -> bool:
        return self._tty

    def write(self, text: str) -> int:
        count = super().write(text)
        if self._waits_for and self._waits_for in self.getvalue():
            self.written.set()
        return count


@dataclass
class Result:
    code: int
    out: str
    err: str


async def typed(*arguments: str, stdin: str | bytes = "") -> Result:
    """What a command prints that is typed, in a thread; its outputs are no terminals."""
    out, err = StringIO(), StringIO()
    given = TextIOWrapper(BytesIO(stdin if isinstance(stdin, bytes) else stdin.encode()))
    before, sys.stdin, called, sys.argv = sys.stdin, given, sys.argv, ["a2a-canvas"]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = await asyncio.to_thread(main, arguments)
    finally:
        sys.stdin, sys.argv = before, called
    return Result(code, out.getvalue(), err.getvalue())


def unused_url() -> str:
    return f"http://127.0.0.1:{free_port()}"


def card(
    url: str, binding: str = "JSONRPC", *, streaming: bool = True, extension: str = "", version: str = "1.0"
) -> dict[str, Any]:
    interface = {"url": url, "protocolBinding": binding, "protocolVersion": version}
    extensions = [{"uri": extension}] if extension else []
    return {
        "name": "test",
        "description": "test",
        "version": "1",
        "supportedInterfaces": [interface],
        "capabilities": {"streaming": streaming, "extensions": extensions},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
    }


def card_route(content: Any, status: int = 200, path: str = "") -> Route:
    async def answer(_: Request) -> Response:
        return JSONResponse(content, status_code=status)

    return Route(f"{path}/.well-known/agent-card.json", answer)


@dataclass
class Script:
    """Answers the calls in order. A list of responses is a stream: `BREAK` cuts it, a dict ends it with an error.

    `ListTasks` is an unknown method, unless the next answer lists tasks.
    """

    answers: list[Any]
    extension: str = ""
    streaming: bool = True
    calls: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)

    def app(self, url: str) -> ASGIApp:
        content = card(url, streaming=self.streaming, extension=self.extension)
        return Starlette(routes=[card_route(content), Route("/", self.answer, methods=["POST"])])

    async def answer(self, request: Request) -> Response:
        call = await request.json()
        if call["method"] == "ListTasks" and "tasks" not in str(self.answers[len(self.calls) :][:1]):
            return JSONResponse({"jsonrpc": "2.0", "id": call["id"], "error": UNKNOWN_METHOD})
        self.calls.append((call["method"], call["params"], request.headers.get("a2a-extensions", "")))
        answer = self.answers[len(self.calls) - 1]
        if isinstance(answer, int):
            return PlainTextResponse("no", status_code=answer)
        if isinstance(answer, dict):
            return JSONResponse({"jsonrpc": "2.0", "id": call["id"], **answer})
        return StreamingResponse(self._stream(answer, call["id"]), media_type="text/event-stream")

    async def _stream(self, answer: list[Any], call_id: str) -> AsyncIterator[str]:
        for response in answer:
            if response is BREAK:
                raise ConnectionResetError
            said = response if isinstance(response, dict) else {"result": MessageToDict(response)}
            answered = {"jsonrpc": "2.0", "id": call_id, **said}
            yield f"data: {json.dumps(answered)}\n\n"


def status(state: str, text: str = "") -> pb.TaskStatus:
    said = pb.Message(message_id="m", role=pb.ROLE_AGENT, parts=[pb.Part(text=text)]) if text else None
    return pb.TaskStatus(state=f"TASK_STATE_{state}", message=said)


def update(state: str, text: str = "") -> pb.StreamResponse:
    event = pb.TaskStatusUpdateEvent(task_id="t1", context_id="c1", status=status(state, text))
    return pb.StreamResponse(status_update=event)
