"""`--only edits`: one edit of 100 characters in an artifact of 1 MB and in one of 10 KB, watched with `canvas:v1`.

Bytes are those of the edit's events from `start` up to, but without, `complete`: server-sent events with the HTTP chunk
around each, gRPC messages with their prefix and their frame header. CPU is all CPU of the server between the first
chunk and the last but one: the model pauses between two chunks, so only the edit happens in that time. The kernel
counts in ticks of 10 ms, so the result is the mean of many edits.

The disk: what edits of 10 characters in an artifact of 1 MB add to a SQLite database, its file and its write-ahead log,
after a checkpoint; on a server of its own.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import mean
from typing import Any
from uuid import uuid4

import grpc.aio
from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub
from google.protobuf.json_format import MessageToDict, ParseDict

from a2a_canvas.server.wire import CANVAS
from bench.client import HOST, ClientError, post
from bench.databases import databases
from bench.report import Check, Report
from bench.servers import MEMORY, Command, Server, ours, running, script
from bench.sse import Chunked
from tests.free_port import free_port

NEW = 100
"""Characters of the new text and of the selected text: the length of the artifact does not change."""
GRPC_OVERHEAD = 5 + 9
"""Bytes of a message besides its content: gRPC's prefix and the HTTP/2 frame header."""
MORE_MS = 20.0
SMALL, LARGE = 10_000, 1_000_000
STORED, STORED_BYTES = 20, 2048
"""Edits of which the disk is measured, and how many bytes one may add."""
SCRIPT = """\
rules:
  - match: {text: "^make (?P<n>[0-9]+)$"}
    rounds:
      - chunk: 65536
        tools:
          - name: artifact_update
            input:
              append: false
              last_chunk: true
              artifact: {artifact_id: doc, parts: [{kind: text, text: {repeat: "0123456789", times: "{n}"}}]}
      - text: ""
  - match: {text: "^write (?P<ten>[0-9]{10}), (?P<piece>[0-9]+) at a time$", selection: "^.{100}$"}
    rounds:
      - {text: {repeat: "{ten}", times: 10}, chunk: "{piece}", delay: 0.01}
  - match: {text: "^write ten$", selection: "^.{10}$"}
    rounds:
      - {text: abcdefghij, chunk: 10}
"""


_NUMBERS = count()
"""Each edit writes another text: one that changes nothing makes no version."""


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


@dataclass(frozen=True, slots=True)
class Plan:
    """So many edits of each kind, in pieces of so many characters."""

    edits: int
    pieces: Sequence[int] = (20, 5)


FULL = Plan(12)
QUICK = Plan(5)


def _message(context: str, text: str, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "contextId": context, "parts": [{"text": text}]}
    return {"message": message | ({"metadata": {CANVAS: metadata}} if metadata else {})}


async def make(server: Server, rpc: A2AServiceStub, size: int) -> Place:
    """An artifact of so many characters in a context of its own.

    Raises:
        ClientError: it was not made.
    """
    place = Place(server, rpc, str(uuid4()))
    answer = await rpc.SendMessage(ParseDict(_message(place.context, f"make {size // 10}"), pb.SendMessageRequest()))
    if [len(part.text) for artifact in answer.task.artifacts for part in artifact.parts] != [size]:
        raise ClientError(f"no artifact of {size} characters: {answer.task.status}")
    return place


async def edit(place: Place, size: int, piece: int, watch: Watch) -> Meter:
    """One edit in the middle of the artifact, in pieces of `piece` characters.

    Raises:
        ClientError: the watcher was not sent what was asked for.
    """
    selection = {"start": size // 2, "end": size // 2 + NEW}
    asked = {"op": "edit", "artifactId": "doc", "selection": selection}
    meter = Meter(place.server, NEW // piece)
    await watch(place, _message(place.context, f"write {next(_NUMBERS):010d}, {piece} at a time", asked), meter)
    return meter.check()


def serving(path: Path, grpc_port: int) -> Command:
    """Our server, each delta an event: the deltas of one frame would be one chunk."""
    return ours(0, path, MEMORY, "--grpc-port", str(grpc_port))


async def run(plan: Plan) -> Report:
    """All edits on one server."""
    with script(SCRIPT) as path:
        port = free_port()
        async with running(serving(path, port)) as server, connected(port) as rpc:
            table = await measure(server, rpc, plan)
        with databases("sqlite") as new:
            stored = await bytes_on_disk(path, new())
    table.checks.append(Check(f"disk, 10 of {LARGE} characters", stored, "at most", STORED_BYTES, "bytes"))
    return table


async def bytes_on_disk(path: Path, database: str) -> float:
    """What one edit of 10 characters adds to the database.

    Raises:
        ClientError: an edit failed.
    """
    port, file = free_port(), Path(database.removeprefix("sqlite:///"))
    async with running(ours(0, path, database, "--grpc-port", str(port))) as server, connected(port) as rpc:
        place = await make(server, rpc, LARGE)
        before = size_of(file)
        for number in range(STORED):
            start = number * LARGE // STORED
            asked = {"op": "edit", "artifactId": "doc", "selection": {"start": start, "end": start + 10}}
            message = _message(place.context, "write ten", asked)
            answer = await rpc.SendMessage(ParseDict(message, pb.SendMessageRequest()))
            if answer.task.status.state != pb.TASK_STATE_COMPLETED:
                raise ClientError(f"{answer.task.status}")
        return (size_of(file) - before) / STORED


def size_of(file: Path) -> int:
    """Bytes of a SQLite database, the used pages of its file and its write-ahead log, after a checkpoint."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        # Making the artifact has left free pages, which would hide what is added.
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    log = file.with_name(f"{file.name}-wal")
    return int((pages - free) * size + (log.stat().st_size if log.exists() else 0))


async def measure(server: Server, rpc: A2AServiceStub, plan: Plan) -> Report:
    """The table; CPU has a target on every binding.

    Raises:
        ClientError: a watcher was not sent what was asked for.
    """
    columns = ("binding", "chunks", "artifact", "bytes", "a chunk", "cpu ms")
    table = Report("edits", f"an edit of {NEW} characters, until it is complete", columns)
    places = {size: await make(server, rpc, size) for size in (SMALL, LARGE)}
    for binding, watch in WATCHES.items():
        for piece in plan.pieces:
            cpu: dict[int, float] = {}
            for size, place in places.items():
                found = [await edit(place, size, piece, watch) for _ in range(plan.edits)]
                cpu[size] = _milliseconds(found)
                last = found[-1]
                table.rows.append((binding, last.chunks, size, last.sent, last.chunk, cpu[size]))
            name = f"{binding}, {last.chunks} chunks"
            table.checks.append(Check(f"more CPU, {name}", cpu[LARGE] - cpu[SMALL], "at most", MORE_MS, "ms"))
    table.notes.append("bytes: `start` and all chunks; a chunk: the longest event of one, most of it A2A's envelope")
    return table


def _milliseconds(meters: Sequence[Meter]) -> float:
    """For all chunks of an edit, by what those cost that were measured."""
    chunks = meters[0].chunks
    return mean(meter.cpu for meter in meters) * chunks / (chunks - 2) * 1000
