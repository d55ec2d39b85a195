"""Reads time stamps without a zone as UTC. For one, protobuf rejects the whole answer, and fasta2a writes no others.

Rule: only a task's status is changed. Data, metadata and text stay as they are.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx

_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?"
LARGE = 65_536
"""The size in bytes from which a text is parsed off the event loop."""
_SUSPECT = re.compile(rf'"timestamp"\s*:\s*"{_STAMP}"'.encode())


async def add_zones_to_answer(response: httpx.Response) -> None:
    """A hook of httpx that adds zones to the answer of an A2A call while it is read."""
    method, path = response.request.method, response.request.url.path
    # Other resources, such as artifacts, are the user's content.
    if method == "POST" or ("/tasks" in path and "/artifacts/" not in path):
        response.stream = _ZonedBody(response)


def add_zones(text: bytes) -> bytes:
    """JSON, or a line of an event stream with JSON in it, whose time stamps without a zone become UTC."""
    if not _SUSPECT.search(text):
        return text
    start = text.find(b"{")
    try:
        return text[:start] + json.dumps(json.loads(text[start:], object_hook=_add_zone)).encode()
    except (ValueError, RecursionError):
        return text


async def _add_zones_off_loop(text: bytes) -> bytes:
    return add_zones(text) if len(text) < LARGE else await asyncio.to_thread(add_zones, text)


def _add_zone(fields: dict[str, Any]) -> dict[str, Any]:
    is_status = "state" in fields and fields.keys() <= {"state", "message", "timestamp"}
    stamp = str(fields.get("timestamp"))
    return fields | {"timestamp": f"{stamp}Z"} if is_status and re.fullmatch(_STAMP, stamp, re.ASCII) else fields


class _ZonedBody(httpx.AsyncByteStream):
    """An event stream is read line by line, any other answer as a whole."""

    def __init__(self, response: httpx.Response) -> None:
        self._stream: Any = response.stream
        self._by_line = response.headers.get("content-type", "").startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending = bytearray()
        async for chunk in self._stream:
            pending += chunk
            end = pending.rfind(b"\n", len(pending) - len(chunk)) + 1 if self._by_line else 0
            if end:
                yield b"\n".join([await _add_zones_off_loop(line) for line in bytes(pending[:end]).split(b"\n")])
                del pending[:end]
        yield await _add_zones_off_loop(bytes(pending))

    async def aclose(self) -> None:
        await self._stream.aclose()
