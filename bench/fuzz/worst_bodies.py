"""The largest and most expensive bodies that a caller can send, for every route that takes one.

Rule 1: each has at most `MAX_BODY` bytes, the default of `--max-body-bytes`: a larger one is refused by its length.
Rule 2: each takes another part of the server to its limit: what splits the text, what reads numbers and strings, what
        makes messages of them, and what looks for the field at fault.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from a2a.types import a2a_pb2

from a2a_canvas.server.wire import CANVAS

MAX_BODY = 10 * 2**20
_LOOP = 64 * 2**10
"""Bodies up to this size do not count as large ones."""


@dataclass(frozen=True, slots=True)
class WorstBody:
    """One request; `target` is a path, or the full name of a gRPC method."""

    name: str
    target: str
    body: bytes
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)


@cache
def worst_bodies(context: str) -> tuple[WorstBody, ...]:
    """All of them, in `context` where they name one."""
    return tuple(_http(context)) + tuple(_grpc(context))


def _http(context: str) -> Iterator[WorstBody]:
    json_type = {"Content-Type": "application/json"}
    new = json_type | {"A2A-Version": "1.0"}
    shares = f"/artifacts/{context}/shares"
    for name, text in texts(MAX_BODY).items():
        for target, method in (
            ("/", "POST"),
            ("/rest/message:send", "POST"),
            ("/canvas/stream", "POST"),
            (shares, "POST"),
            (f"/artifacts/{context}", "PATCH"),
            ("/auth/signed-urls", "POST"),
        ):
            yield WorstBody(name, target, text, method, new)
    for name, text in texts(_LOOP).items():
        for target in ("/", "/canvas/stream", shares):
            yield WorstBody(f"{name}, 64 KB", target, text, "POST", new)
    for name, parts in _parts().items():
        message = {"messageId": "m", "contextId": context, "role": "ROLE_USER", "parts": parts}
        yield WorstBody(name, "/", _call("SendMessage", {"message": message}), "POST", new)
        yield WorstBody(name, "/rest/message:send", _json({"message": message}), "POST", new)
    for name, parts in _old_parts().items():
        old = {"kind": "message", "messageId": "m", "contextId": context, "role": "user", "parts": parts}
        yield WorstBody(name, "/", _call("message/send", {"message": old}), "POST", json_type)
    for name, run in _runs(context).items():
        yield WorstBody(name, "/canvas/stream", _json(run), "POST", json_type)


def texts(size: int) -> dict[str, bytes]:
    """Bodies that need not be JSON, of about `size` bytes."""
    return {
        "empty lists": b"[]" * (size // 2),
        "a list of empty lists": b"[" + b"[]," * (size // 3 - 1) + b"[]]",
        "empty strings": b'""' * (size // 2),
        "closing brackets": b"]" * size,
        "opening brackets": b"[" * size,
        "commas": b"," * size,
        "digits": b"[" + b"9" * (size - 2) + b"]",
        "a fraction": b"[0." + b"9" * (size - 4) + b"]",
        "spaces": b" " * size,
        "escapes": b'{"message":"' + b"\\n" * (size // 2 - 10) + b'"}',
        "surrogates": b'{"message":"' + b"\\ud83d\\ude00" * (size // 12 - 2) + b'"}',
        "quotes that stay open": b'{"' + b'\\"' * (size // 2 - 1),
        "the same key": b'{"a":0' + b',"a":0' * (size // 6 - 2) + b"}",
        "long keys": b"{" + b",".join(b'"%d%s":0' % (n, b"k" * (size // 10_100)) for n in range(9_990)) + b"}",
    }


def _parts() -> dict[str, list[Any]]:
    most, filler = 9_980, "x" * 1_000
    return {
        "a file": [{"raw": "AAAA" * (MAX_BODY // 4 - 100)}],
        "a file that is not base64": [{"raw": "AAAA" * (MAX_BODY // 4 - 100) + "*"}],
        "a long text": [{"text": "x" * (MAX_BODY - 400)}],
        "many texts": [{"text": filler}] * most,
        "many texts and a fault": [{"text": filler}] * most + [{"text": 1}],
        "many faults": [{"text": 1}] * most,
        "many texts, 1 MB": [{"text": "x" * 90}] * most,
        "data": [{"data": list(range(most))}],
        "nested data": [{"data": {str(number): {} for number in range(most)}}],
        "many parts of data": [{"data": {}}] * (most // 2),
    }


def _old_parts() -> dict[str, list[Any]]:
    most = 9_980
    return {
        "an old file": [{"kind": "file", "file": {"bytes": "AAAA" * (MAX_BODY // 4 - 100)}}],
        "many old texts": [{"kind": "text", "text": "x" * 1000}] * (most // 2),
        "many old texts, 1 MB": [{"kind": "text", "text": "x" * 90}] * (most // 2),
        "many old faults": [{"kind": "text", "text": 1}] * (most // 2),
        "old parts without a kind": [{}] * most,
        "old numbers": [0] * most,
    }


def _runs(context: str) -> dict[str, dict[str, Any]]:
    run: dict[str, Any] = {"threadId": context, "runId": "r", "state": {}, "tools": [], "context": []}
    said = {"id": "m", "role": "user", "content": "hi"}
    return {
        "a long history": run | {"messages": [said] * 99_000},
        "an invalid history": run | {"messages": [{}] * 240_000 + [said]},
        "a history of other roles": run | {"messages": [{"role": "x"}] * 99_000 + [said]},
        "invalid tools": run | {"messages": [said], "tools": [0] * 240_000},
        "invalid context": run | {"messages": [said], "context": [0] * 240_000},
        "invalid content": run | {"messages": [said | {"content": [{}] * 240_000}]},
        "a long state": run | {"messages": [said], "state": [0] * 900_000},
        "a long operation": run
        | {"messages": [said], "forwardedProps": {CANVAS: {"op": "put", "text": [0] * 240_000}}},
        "many versions": {
            "message": "hi",
            "thread_id": context,
            "artifact": {
                "currentIndex": 1,
                "contents": [{"index": n, "type": "text", "fullMarkdown": "x" * 9_000} for n in range(1_000)],
            },
        },
        "invalid versions": {
            "message": "hi",
            "thread_id": context,
            "artifact": {"currentIndex": 1, "contents": [0] * 400_000},
        },
    }


def _grpc(context: str) -> Iterator[WorstBody]:
    target = "/lf.a2a.v1.A2AService/SendMessage"
    message = a2a_pb2.SendMessageRequest()
    message.message.message_id, message.message.context_id = "m", context
    head = message.message.SerializeToString()
    empty_parts = b"\x2a\x00" * (MAX_BODY // 2 - 100)
    for name, more in {
        "empty parts": empty_parts,
        "unknown fields": b"\x98\x06\x00" * (MAX_BODY // 3 - 100),
        "a file": a2a_pb2.Message(parts=[a2a_pb2.Part(raw=bytes(MAX_BODY - 200))]).SerializeToString(),
        "a long text": a2a_pb2.Message(parts=[a2a_pb2.Part(text="x" * (MAX_BODY - 200))]).SerializeToString(),
        "nothing valid": b"\xff" * (MAX_BODY - 200),
    }.items():
        inner = head + more
        yield WorstBody(name, target, b"\x12" + _varint(len(inner)) + inner, "gRPC")


def _varint(number: int) -> bytes:
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + _varint(high) if high else bytes([low])


def _call(method: str, params: dict[str, Any]) -> bytes:
    return _json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
