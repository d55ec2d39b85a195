"""Servers that behave badly over HTTP. Each call has a clear outcome, and the next one works."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.tool_sources.mcp_servers import mcp_connection
from a2a_canvas.server.tool_sources.mcp_servers.source import McpSource
from tests.server.tool_sources.mcp_servers import our_server
from tests.server.tool_sources.mcp_servers.call_canvas import outcome
from tests.server.tool_sources.mcp_servers.test_source import server_at, started, tool

Answer = Callable[[Send], Awaitable[None]]


@cache
def bomb() -> bytes:
    """50 MB in 0.05 MB, made only where a test needs it."""
    return gzip.compress(b" " * 50_000_000)


def instead_of_calls(answer: Answer) -> Callable[[ASGIApp], ASGIApp]:
    """A server that answers calls of the tool `picture`, and of no other, in its own way."""

    def wrap(app: ASGIApp) -> ASGIApp:
        async def hostile(scope: Scope, receive: Receive, send: Send) -> None:
            body = await _body(receive) if scope["type"] == "http" and scope["method"] == "POST" else None

            async def again() -> Message:
                return {"type": "http.request", "body": body}

            if body and b'"picture"' in body:
                await answer(send)
            else:
                waiting = iter((again,) if body is not None else ())
                await app(scope, lambda: next(waiting, receive)(), send)

        return hostile

    return wrap


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


def answering(body: bytes, content_type: str, **headers: str) -> Answer:
    """An answer of 200 with some headers."""
    given = {"content-type": content_type, **{name.replace("_", "-"): value for name, value in headers.items()}}

    async def answer(send: Send) -> None:
        raw = [(name.encode(), value.encode()) for name, value in given.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        await send({"type": "http.response.body", "body": body})

    return answer


def endless(piece: bytes, content_type: str) -> Answer:
    async def answer(send: Send) -> None:
        raw = [(b"content-type", content_type.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        for _ in range(10_000):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)  # it shares its loop with the client

    return answer


@asynccontextmanager
async def hostile(answer: Answer, seconds: float = 60) -> AsyncIterator[McpSource]:
    serving = our_server.over_http(our_server.made(), wrap=instead_of_calls(answer))
    async with serving as url, started(server_at(url, "http", seconds)) as (source,):
        yield source


async def picture(source: McpSource) -> Any:
    return await outcome(tool(source, "picture"), {})


async def is_well(source: McpSource) -> bool:
    return bool(await outcome(tool(source, "add"), {"a": 1, "b": 2}) == ["3"])


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_a_compressed_answer_is_refused_and_not_decompressed(content_type: str) -> None:
    async with hostile(answering(bomb(), content_type, content_encoding="gzip")) as source:
        failed = await picture(source)
        assert failed == "ToolError: ours__picture failed: it compresses its answers although it was asked not to"
        assert await is_well(source)


async def test_a_server_that_compresses_from_the_first_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    def wrap(app: ASGIApp) -> ASGIApp:
        async def compressing(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                await answering(bomb(), "application/json", content_encoding="gzip")(send)
            else:
                await app(scope, receive, send)

        return compressing

    async with our_server.over_http(our_server.made(), wrap=wrap) as url:
        for kind in ("http", "sse"):
            source = McpSource(server_at(url, kind), delays=(10,))  # type: ignore[arg-type]
            await source.start()
            await source.stop()
    said = [record.getMessage() for record in caplog.records if record.name.startswith("a2a_canvas")]
    assert "is not there: it compresses its answers although it was asked not to" in said[0]
    assert "is not there: " in said[1]


@pytest.mark.parametrize("piece", [b" " * 2**20, b"data: x\n" * 2**17])
async def test_a_body_or_an_event_without_end_breaks_off_at_the_limit(piece: bytes) -> None:
    content_type = "application/json" if piece.isspace() else "text/event-stream"
    async with hostile(endless(piece, content_type)) as source:
        assert (await picture(source)).startswith("ToolError: ")
        assert await is_well(source)


async def test_a_nested_answer_fails_its_call_alone() -> None:
    async with hostile(answering(b"[" * 1_000_000, "application/json")) as source:
        assert "ToolError: ours__picture failed: Failed to parse" in await picture(source)
        assert await is_well(source)


async def test_an_answer_that_drips_fails_after_the_time_of_a_call() -> None:
    async def drip(send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        while True:
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            await asyncio.sleep(0.01)

    async with hostile(drip, seconds=0.3) as source:
        assert "gave no sign of life for 0.3 seconds" in await picture(source)
        assert await is_well(source)


async def test_a_redirect_to_another_origin_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_connection, "DELAYS", (0.05,))
    seen: list[str] = []

    async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["path"])

    async def redirect(send: Send) -> None:
        headers = [(b"location", b"http://127.0.0.1:9/latest/meta-data")]
        await send({"type": "http.response.start", "status": 307, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async with hostile(redirect) as source:
        assert "not followed" in await picture(source)
        assert await is_well(source)
