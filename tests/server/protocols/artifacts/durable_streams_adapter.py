"""A Durable Streams server for the conformance suite, whose streams are artifacts of a real server.

Rule 1: a stream is the artifact `log` of a context of its own. PUT starts a task that writes it, POST has that task
        append to it, `Stream-Closed` ends the task, and DELETE deletes the context.
Rule 2: a message of the suite is a line of the artifact, in Base64, so that any bytes can be one.
Rule 3: reads are those of the server, with its status and headers. Only the bodies are translated: the text that the
        changes add, back into messages.
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from a2a_canvas import Turn
from tests.sse_events import sse_events

NOSNIFF = {"X-Content-Type-Options": "nosniff"}
PASSED = ("if-none-match", "origin", "access-control-request-method", "access-control-request-headers")
CLOSED = "Stream-Closed"


@dataclass
class Stream:
    """
    Attributes:
        writes: lines to append, each with the future of the write; None ends the task.
        seq: the last Stream-Seq.
    """

    context: str
    media_type: str
    writes: asyncio.Queue[tuple[str | None, asyncio.Future[None]]] = field(default_factory=asyncio.Queue)
    task: str = ""
    closed: bool = False
    seq: str = ""

    @property
    def is_json(self) -> bool:
        return _plain(self.media_type) == "application/json"

    @property
    def is_text(self) -> bool:
        return self.is_json or self.media_type.startswith("text/")

    async def write(self, line: str | None) -> None:
        written = asyncio.get_running_loop().create_future()
        await self.writes.put((line, written))
        await written

    def lines(self, body: bytes) -> str:
        """What a body adds to the artifact. Raises `ValueError` if it is no JSON."""
        if not self.is_json:
            return _line(body) if body else ""
        value = json.loads(body)
        values = value if isinstance(value, list) else [value]
        return "".join(_line(json.dumps(each).encode()) for each in values)

    def payload(self, changes: Iterable[dict[str, Any]]) -> bytes:
        """The messages that changes add."""
        parts = [part for each in changes for part in each.get("parts", each.get("artifact", {}).get("parts", []))]
        messages = [b64decode(line) for part in parts for line in part["text"].splitlines()]
        return b"[%b]" % b",".join(messages) if self.is_json else b"".join(messages)


class Adapter:
    """The ASGI application, and the agent of the server behind it."""

    server: httpx.AsyncClient

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}
        self._by_context: dict[str, Stream] = {}
        self._count = 0

    async def agent(self, turn: Turn) -> None:
        stream = self._by_context[turn.context_id]
        log = turn.artifact("log")
        await log.replace("")
        while True:
            line, written = await stream.writes.get()
            if line is None:
                return written.set_result(None)
            await log.append(line)
            written.set_result(None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope, receive)
            response = await self._answer(request)
            await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        stream = self._streams.get(request.url.path)
        match request.method:
            case "PUT":
                return await self._create(request, stream)
            case "OPTIONS":
                answer = await self.server.options("/artifacts/c/log/stream", headers=_passed(request))
                return Response(answer.content, answer.status_code, dict(answer.headers))
            case _ if stream is None:
                return Response(status_code=404, headers=NOSNIFF)
            case "POST":
                return await self._append(request, stream)
            case "DELETE":
                await self._close(stream)
                deleted = await self.server.delete(f"/artifacts/{stream.context}")
                del self._streams[request.url.path]
                return Response(status_code=deleted.status_code)
            case _:
                return await self._read(request, stream)

    # ------------------------------------------------------------------ writing

    async def _create(self, request: Request, old: Stream | None) -> Response:
        media_type = request.headers.get("content-type", "application/octet-stream")
        closed, body = request.headers.get(CLOSED) == "true", await request.body()
        if old:
            is_same = _plain(old.media_type) == _plain(media_type) and old.closed == closed
            return Response(status_code=200 if is_same else 409, headers=await self._headers(old))
        self._count += 1
        stream = Stream(f"c{self._count}", media_type)
        try:
            lines = stream.lines(body) if body else ""
        except ValueError:
            return Response(status_code=400)
        self._streams[request.url.path] = self._by_context[stream.context] = stream
        stream.task = await self._send(stream.context)
        await stream.write(lines)
        if closed:
            await self._close(stream)
        return Response(status_code=201, headers={"Location": str(request.url), **await self._headers(stream)})

    async def _send(self, context: str) -> str:
        """Start the task of a stream; returns its id."""
        message = {"messageId": context, "role": "ROLE_USER", "parts": [{"text": "log"}], "contextId": context}
        params = {"message": message, "configuration": {"returnImmediately": True}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        answer = await self.server.post("/", json=call, headers={"A2A-Version": "1.0"})
        return str(answer.json()["result"]["task"]["id"])

    async def _append(self, request: Request, stream: Stream) -> Response:
        body, closes = await request.body(), request.headers.get(CLOSED) == "true"
        seq = request.headers.get("Stream-Seq", "")
        if closes and not body:
            await self._close(stream)
            return Response(status_code=204, headers=await self._headers(stream))
        if not body or "content-type" not in request.headers:
            return Response(status_code=400)
        if stream.closed or _plain(request.headers["content-type"]) != _plain(stream.media_type):
            return Response(status_code=409, headers=await self._headers(stream))
        if seq and seq <= stream.seq:
            return Response(status_code=409)
        try:
            lines = stream.lines(body)
        except ValueError:
            return Response(status_code=400)
        if not lines:
            return Response(status_code=400)
        stream.seq = seq or stream.seq
        await stream.write(lines)
        if closes:
            await self._close(stream)
        return Response(status_code=204, headers=await self._headers(stream))

    async def _close(self, stream: Stream) -> None:
        if not stream.closed:
            stream.closed = True
            await stream.write(None)
            async with self.server.stream(
                "GET", f"/artifacts/{stream.context}/log/stream?offset=now&live=sse&task={stream.task}"
            ) as events:
                await events.aread()  # it ends with the task

    async def _headers(self, stream: Stream) -> dict[str, str]:
        head = await self.server.head(self._url(stream), params={"task": stream.task})
        return {**_stream_headers(head), "Content-Type": stream.media_type, **NOSNIFF}

    # ------------------------------------------------------------------ reading

    def _url(self, stream: Stream) -> str:
        return f"/artifacts/{stream.context}/log/stream"

    async def _read(self, request: Request, stream: Stream) -> Response:
        query = request.url.query.replace(" ", "%20")
        url = f"{self._url(stream)}?{query}{'&' if query else ''}task={quote(stream.task)}"
        upstream = self.server.build_request(request.method, url, headers=_passed(request))
        answer = await self.server.send(upstream, stream=True)
        headers = dict(answer.headers)
        if headers.get("content-type", "").startswith("text/event-stream"):
            if not stream.is_text:
                headers["Stream-SSE-Data-Encoding"] = "base64"
            return StreamingResponse(self._events(stream, answer), headers=headers)
        body = await answer.aread()
        await answer.aclose()
        if answer.status_code == 200:
            headers = {**headers, "content-type": stream.media_type}
            headers.pop("content-length")
            body = stream.payload(json.loads(body)) if request.method == "GET" else b""
        return Response(body, answer.status_code, headers)

    async def _events(self, stream: Stream, answer: httpx.Response) -> AsyncGenerator[bytes, None]:
        try:
            together = b""  # the server sends messages and where they lead in one piece
            async for fields in sse_events(answer):
                if fields["event"] == "control":
                    yield together + _event("control", fields["data"].encode())
                    together = b""
                elif (data := stream.payload(json.loads(fields["data"]))) not in (b"", b"[]"):
                    together = _event("data", data if stream.is_text else b64encode(data))
        finally:
            await answer.aclose()


def _event(name: str, data: bytes) -> bytes:
    lines = re.split(rb"\r\n|\r|\n", data)
    return f"event: {name}\n".encode() + b"".join(b"data:%b\n" % line for line in lines) + b"\n"


def _line(message: bytes) -> str:
    return b64encode(message).decode() + "\n"


def _plain(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _passed(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name in PASSED}


def _stream_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("stream-")}
