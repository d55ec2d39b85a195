"""`--only edits`: one edit of 100 characters in an artifact of 1 MB and in one of 10 KB, watched with `canvas:v1`.

Bytes are those of the edit's events from `start` up to, but without, `complete`: server-sent events with the HTTP chunk
around each, gRPC messages with their prefix and their frame header. CPU is all CPU of the server between the first
chunk and the last but one: the model pauses between two chunks, so only the edit happens in that time. The kernel
counts in ticks of 10 ms, so the result is the mean of many edits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any
from uuid import uuid4

from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub
from google.protobuf.json_format import ParseDict

from a2a_canvas.server.wire import CANVAS
from bench.canvas import NEW, PER_CHUNK, TIMES_TEXT, WATCHES, Meter, Place, Watch, connected
from bench.client import ClientError
from bench.report import Check, Report
from bench.servers import MEMORY, Command, Server, ours, running, script
from tests.free_port import free_port

MORE_MS = 20.0
SMALL, LARGE = 10_000, 1_000_000
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
  - match: {text: "^write (?P<piece>[0-9]+) at a time$", selection: "^.{100}$"}
    rounds:
      - {text: {repeat: "abcdefghij", times: 10}, chunk: "{piece}", delay: 0.01}
"""


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
    await watch(place, _message(place.context, f"write {piece} at a time", asked), meter)
    return meter.check()


def serving(path: Path, grpc_port: int) -> Command:
    """Our server, each delta an event: the deltas of one frame would be one chunk."""
    return ours(0, path, MEMORY, "--grpc-port", str(grpc_port))


async def run(plan: Plan) -> Report:
    """All edits on one server."""
    with script(SCRIPT) as path:
        port = free_port()
        async with running(serving(path, port)) as server, connected(port) as rpc:
            return await measure(server, rpc, plan)


async def measure(server: Server, rpc: A2AServiceStub, plan: Plan) -> Report:
    """The table; bytes and CPU have targets on every binding.

    Raises:
        ClientError: a watcher was not sent what was asked for.
    """
    columns = ("binding", "chunks", "artifact", "bytes", "allowed", "a chunk", "allowed", "cpu ms")
    table = Report("edits", f"an edit of {NEW} characters, until it is complete", columns)
    places = {size: await make(server, rpc, size) for size in (SMALL, LARGE)}
    for binding, watch in WATCHES.items():
        for piece in plan.pieces:
            cpu: dict[int, float] = {}
            for size, place in places.items():
                found = [await edit(place, size, piece, watch) for _ in range(plan.edits)]
                cpu[size] = _milliseconds(found)
                last = found[-1]
                one = TIMES_TEXT * piece + PER_CHUNK
                table.rows.append((binding, last.chunks, size, last.sent, last.allowed, last.chunk, one, cpu[size]))
            name = f"{binding}, {last.chunks} chunks"
            table.checks.append(Check(f"bytes, {name}", last.sent / last.allowed, "at most", 1, "x"))
            table.checks.append(Check(f"more CPU, {name}", cpu[LARGE] - cpu[SMALL], "at most", MORE_MS, "ms"))
    table.notes.append("bytes: `start` and all chunks, against 3 x the new text + 300 for each chunk")
    table.notes.append("a chunk: the longest event of a chunk, against 3 x its text + 300")
    return table


def _milliseconds(meters: Sequence[Meter]) -> float:
    """For all chunks of an edit, by what those cost that were measured."""
    chunks = meters[0].chunks
    return mean(meter.cpu for meter in meters) * chunks / (chunks - 2) * 1000
