"""Watches one edit on each binding, and counts its events and their bytes on the wire.

Server-sent events count with the HTTP chunk around each, gRPC messages with their prefix and their HTTP/2 frame header.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any

import grpc.aio
from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub
from google.protobuf.json_format import MessageToDict, ParseDict

from a2a_canvas.server.wire import CANVAS
from bench.client import HOST, ClientError, post
from bench.servers import Server
from bench.sse import Chunked

NEW = 100
"""Characters of the new text and of the selected text: the length of the artifact does not change."""
TIMES_TEXT, PER_CHUNK = 3, 300
"""Limits of the events: bytes for each byte of the new text, and bytes for each chunk."""
GRPC_OVERHEAD = 5 + 9
"""Bytes of a message besides its content: gRPC's prefix and the HTTP/2 frame header."""


@dataclass(slots=True)
class Meter:
    """What one edit cost.

    Attributes:
        sent: bytes of its events up to `complete`.
        chunk: bytes of the longest event with a chunk.
        chunks: number of chunks.
        cpu: CPU seconds of the server for all chunks but two.
    """

    server: Server
    pieces: int
    sent: int = 0
    chunk: int = 0
    chunks: int = 0
    cpu: float = 0.0
    phase: str = ""
    text: list[str] = field(default_factory=list)

    def take(self, edit: dict[str, Any], size: int) -> None:
        """Count an event of the edit, of `size` bytes."""
        self.phase = edit["phase"]
        if self.phase not in ("start", "chunk"):
            return
        self.sent += size
        if self.phase == "chunk":
            self.chunks += 1
            self.chunk = max(self.chunk, size)
            self.text.append(edit["chunk"])
            if self.chunks in (1, self.pieces - 1):
                self.cpu = self.server.cpu() - self.cpu

    def check(self) -> Meter:
        """Raises `ClientError` if it was not the edit that was asked for."""
        if self.phase != "complete" or len("".join(self.text)) != NEW or self.chunks != self.pieces:
            raise ClientError(f"{self.phase}, {self.chunks} chunks")
        return self

    @property
    def allowed(self) -> int:
        return TIMES_TEXT * NEW + PER_CHUNK * self.chunks


@dataclass(frozen=True, slots=True)
class Place:
    """A server, and a context with an artifact."""

    server: Server
    rpc: A2AServiceStub
    context: str


Watch = Callable[[Place, dict[str, Any], Meter], Coroutine[Any, Any, None]]


async def _jsonrpc(place: Place, params: dict[str, Any], meter: Meter) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}
    async for event, size in _sse(place.server.port, "/", body):
        _read(event["result"], size, meter)


async def _rest(place: Place, params: dict[str, Any], meter: Meter) -> None:
    async for event, size in _sse(place.server.port, "/rest/message:stream", params):
        _read(event, size, meter)


async def _grpc(place: Place, params: dict[str, Any], meter: Meter) -> None:
    request = ParseDict(params, pb.SendMessageRequest())
    async for event in place.rpc.SendStreamingMessage(request, metadata=[("a2a-extensions", CANVAS)]):
        if event.HasField("status_update"):
            _read(MessageToDict(event), event.ByteSize() + GRPC_OVERHEAD, meter)


def _read(event: dict[str, Any], size: int, meter: Meter) -> None:
    update = event.get("statusUpdate", {})
    if edit := update.get("metadata", {}).get(CANVAS, {}).get("edit"):
        meter.take(edit, size)


async def _sse(port: int, path: str, body: dict[str, Any]) -> AsyncIterator[tuple[dict[str, Any], int]]:
    """The events of a stream, and the bytes of each on the wire."""
    reader, writer = await asyncio.open_connection(HOST, port)
    with closing(writer):
        writer.write(post(path, body, [CANVAS]))
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise ClientError(head.decode())
        chunked, rest = Chunked(), b""
        while data := await reader.read(1 << 20):
            *events, rest = (rest + chunked.feed(data)).split(b"\r\n\r\n")
            for event in events:
                whole = len(event) + 4
                yield json.loads(event.removeprefix(b"data: ")), whole + len(f"{whole:x}") + 4


WATCHES: dict[str, Watch] = {"JSON-RPC": _jsonrpc, "HTTP+JSON": _rest, "gRPC": _grpc}


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[A2AServiceStub]:
    """A gRPC client."""
    async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
        yield A2AServiceStub(channel)  # type: ignore[no-untyped-call]  # generated code
