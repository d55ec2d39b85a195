"""An MCP server, an agent and an issuer that answer as badly as they can, all on one port.

Rule 1: what an answer is depends on the seed and the number of the request alone.
Rule 2: about half of the answers are good ones, so that the server under attack takes the next step.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

MEGABYTES = 2**20
TOOL = {"name": "boom", "description": "d", "inputSchema": {"type": "object", "properties": {}}}


@cache
def bodies() -> dict[str, tuple[bytes, dict[str, str]]]:
    """Bodies that are no answer, with their headers."""
    bomb = gzip.compress(bytes(200 * MEGABYTES), compresslevel=6)
    return {
        "nothing": (b"", {}),
        "a bomb": (bomb, {"Content-Encoding": "gzip"}),
        "a bomb in disguise": (bomb, {"Content-Encoding": "deflate, gzip"}),
        "deep": (b"[" * MEGABYTES, {}),
        "deep objects": (b'{"a":' * MEGABYTES, {}),
        "many lists": (b"[" + b"[]," * (5 * MEGABYTES) + b"[]]", {}),
        "digits": (b'{"jsonrpc":"2.0","id":1,"result":' + b"9" * 4 * MEGABYTES + b"}", {}),
        "30 MB of text": (json.dumps({"jsonrpc": "2.0", "id": 1, "result": "x" * 30 * MEGABYTES}).encode(), {}),
        "no UTF-8": (b"\xff" * 1000, {}),
        "NaN": (b'{"jsonrpc":"2.0","id":1,"result":NaN}', {}),
        "a surrogate": (rb'{"jsonrpc":"2.0","id":1,"result":"\ud800"}', {}),
        "a number": (b"1", {}),
        "a list": (b"[]", {}),
        "null": (b"null", {}),
        "html": (b"<html>", {"Content-Type": "text/html"}),
        "events without end": (b"data: " + b"x" * 20 * MEGABYTES, {"Content-Type": "text/event-stream"}),
        "comments": (b":\n\n" * MEGABYTES, {"Content-Type": "text/event-stream"}),
    }


class HostileServer:
    """Attributes: answered: how often each kind of answer was begun."""

    def __init__(self, port: int, seed: int) -> None:
        self._port, self._seed, self._number = port, seed, 0
        self.answered: dict[str, int] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        with suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = next((line for line in head.split("\r\n") if line.startswith("content-length:")), "x: 0")
                body = await reader.readexactly(int(length.partition(":")[2]))
                if not await self._answer(head.split()[1], body, writer):
                    break
        writer.close()

    async def _answer(self, path: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
        self._number += 1
        rng = random.Random(f"{self._seed}:{self._number}")
        good = self._good(path, body)
        kind = "good" if good is not None and rng.random() < 0.5 else rng.choice(["cut off", "redirect", *bodies()])
        self.answered[kind] = self.answered.get(kind, 0) + 1
        given = {"Content-Type": "application/json"}
        if kind == "good":
            content = good or b""
        elif kind == "cut off":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
            return False
        elif kind == "redirect":
            content, given = b"", given | {"Location": f"http://127.0.0.1:{self._port}/{'x' * 2000}"}
        else:
            content, more = bodies()[kind]
            given |= more
        status = rng.choice([200, 200, 401, 404, 500]) if kind != "good" else 200
        given |= {"Content-Length": str(len(content))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        number = 302 if kind == "redirect" else status
        writer.write(f"HTTP/1.1 {number} Said\r\n{lines}\r\n".encode() + content)
        await writer.drain()
        return True

    def _good(self, path: str, body: bytes) -> bytes | None:
        if "openid-configuration" in path:
            return self._json({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})
        if path.endswith("/keys"):
            return self._json({"keys": []})
        if "agent-card" in path or "agent.json" in path:
            return self._json(self._card())
        try:
            call = json.loads(body)
        except ValueError:
            return None
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "boom", "version": "1"},
            },
            "tools/list": {"tools": [TOOL]},
            "tools/call": {"content": [{"type": "text", "text": "said"}]},
        }
        method = call.get("method") if isinstance(call, dict) else None
        return (
            self._json({"jsonrpc": "2.0", "id": call.get("id"), "result": results.get(method, {})}) if method else None
        )

    def _card(self) -> dict[str, Any]:
        interface = {"url": f"{self.url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        skill = {"id": "s", "name": "s", "description": "d", "tags": []}
        text = ["text/plain"]
        return {"name": "Boom", "description": "d", "version": "1", "capabilities": {}, "skills": [skill],
                "supportedInterfaces": [interface], "defaultInputModes": text, "defaultOutputModes": text}  # fmt: skip

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @staticmethod
    def _json(value: Any) -> bytes:
        return json.dumps(value).encode()


@asynccontextmanager
async def hostile_server(port: int, seed: int) -> AsyncIterator[HostileServer]:
    """Serving until the end of the context."""
    hostile = HostileServer(port, seed)
    server = await asyncio.start_server(hostile.serve, "127.0.0.1", port, limit=2**20)
    try:
        yield hostile
    finally:
        server.close()
