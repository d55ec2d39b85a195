"""`a2a-canvas mcp`: MCP over stdio, for hosts that take no address. Each line becomes a request to the server's `/mcp`.

Rule 1: the standard output has messages of MCP alone, one a line, and they pass unchanged.
Rule 2: the headers that a request needs come from its message. A client older than 2026-07-28 gets its version and its
        session from the answer to `initialize`, so the lines after that one wait for it.
Rule 3: a request that cannot be answered gets an error that says what to do, which the host shows. The bridge ends when
        its input does.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any, BinaryIO

import httpx

from a2a_canvas.server.client.conversation.address import agent_addresses
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.wire import MCP_PATH, TOKEN_VARIABLE

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The methods whose header has a parameter, too."""
VERSION, SESSION = "mcp-protocol-version", "mcp-session-id"
FAILED = -32000

Json = dict[str, Any]


async def run_mcp(invocation: Invocation) -> None:
    """Speak MCP on the standard input and output until the input ends."""
    headers = {each.name: each.value for each in invocation.headers}
    async with httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(10, read=None)) as http:
        await McpBridge(invocation, http).run(_lines_of(sys.stdin.buffer))


async def _lines_of(stream: BinaryIO) -> AsyncIterator[bytes]:
    """The lines of a stream: a pipe, a file, or what Windows has. The thread that reads keeps no program alive."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        with suppress(RuntimeError):  # the loop has ended
            for line in iter(stream.readline, b""):
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    Thread(target=read, daemon=True).start()
    while line := await lines.get():
        yield line


class McpBridge:
    """One host and one server."""

    def __init__(self, invocation: Invocation, http: httpx.AsyncClient) -> None:
        self._out = invocation.out
        self._url = agent_addresses(invocation.url)[-1].rstrip("/") + MCP_PATH
        self._http = http
        self._headers: dict[str, str] = {}
        self._in_flight: dict[object, asyncio.Task[None]] = {}

    async def run(self, lines: AsyncIterator[bytes]) -> None:
        """Pass on what the host sends, to its end; answers to requests that are in flight then are not awaited."""
        async for line in lines:
            if line.strip():
                await self._take_line(line)
        for task in self._in_flight.values():
            task.cancel()
        await asyncio.gather(*self._in_flight.values(), return_exceptions=True)

    async def _take_line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._write({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "This is not JSON."}})
            return
        if not isinstance(message, dict) or not isinstance(message.get("id", 0), int | str):
            why = "A message must be one JSON-RPC object whose id is a number or a string."
            self._write({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": why}})
        elif message.get("method") == "initialize":
            await self._send(message, line)
        elif message.get("method") != "notifications/cancelled" or not self._cancel(message):
            task = asyncio.create_task(self._send(message, line))
            self._in_flight[message.get("id", task)] = task
            task.add_done_callback(self._forget)

    def _cancel(self, message: Json) -> bool:
        """Since 2026-07-28, closing a request's stream cancels it; older clients send a notification."""
        params = message.get("params")
        asked = params.get("requestId") if isinstance(params, dict) else None
        task = self._in_flight.get(asked) if isinstance(asked, int | str) else None
        if task and VERSION not in self._headers:
            task.cancel()
        return VERSION not in self._headers

    def _forget(self, done: asyncio.Task[None]) -> None:
        self._in_flight = {key: task for key, task in self._in_flight.items() if task is not done}

    async def _send(self, message: Json, line: bytes) -> None:
        try:
            async with self._http.stream("POST", self._url, content=line, headers=self._headers_of(message)) as answer:
                if SESSION in answer.headers:
                    self._headers[SESSION] = answer.headers[SESSION]
                answered = False
                async for text in _messages(answer):
                    answered = self._take(message, text) or answered
                if not answered:
                    leads = f" and leads to {answer.headers['location']}" if "location" in answer.headers else ""
                    self._refuse(message, f"{self._url} answered with HTTP {answer.status_code}{leads}. Check --url.")
        except httpx.TransportError as error:
            self._refuse(message, f"No server answers at {self._url} ({error}). Start it, or give its --url.")

    def _headers_of(self, message: Json) -> Mapping[str, str]:
        accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        method, params = str(message.get("method", "")), message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        version = meta.get("io.modelcontextprotocol/protocolVersion") if isinstance(meta, dict) else None
        if not isinstance(version, str):
            return accept | self._headers
        named = params.get(NAMED.get(method, "")) if isinstance(params, dict) else None
        name = {"mcp-name": _header_value(named)} if isinstance(named, str) else {}
        return accept | {VERSION: version, "mcp-method": method} | name

    def _take(self, message: Json, text: str) -> bool:
        """Pass on one message of the server; what is no message of MCP may be why it refused the request.

        Returns:
            Whether it was either.
        """
        try:
            told = json.loads(text)
        except ValueError:
            return False
        if isinstance(told, dict) and "jsonrpc" in told:
            self._write(told)
            if message.get("method") == "initialize" and "result" in told:
                self._headers[VERSION] = str(told["result"].get("protocolVersion", ""))
        elif isinstance(told, dict) and isinstance(told.get("error"), dict):
            why = str(told["error"].get("message", ""))
            key = f" Set {TOKEN_VARIABLE} to it." if told["error"].get("status") == "UNAUTHENTICATED" else ""
            self._refuse(message, why + key)
        else:
            return False
        return True

    def _refuse(self, message: Json, why: str) -> None:
        """Answer a request with an error."""
        if "id" in message and "method" in message:
            self._write({"jsonrpc": "2.0", "id": message["id"], "error": {"code": FAILED, "message": why}})

    def _write(self, message: Json) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


async def _messages(answer: httpx.Response) -> AsyncIterator[str]:
    """The messages of an answer: its events, or its body."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        yield (await answer.aread()).decode(errors="replace")
        return
    rest = b""
    async for piece in answer.aiter_bytes():
        *lines, rest = (rest + piece).split(b"\n")  # nothing else ends a line: a text may have what Unicode calls one
        for line in lines:
            if line.startswith(b"data:"):
                yield line.removeprefix(b"data:").decode(errors="replace").strip(" \r")


def _header_value(text: str) -> str:
    """A value as the specification wants it in a header: in Base64 unless it is plain ASCII."""
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
