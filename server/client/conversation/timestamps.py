"""Time stamps without a zone, read as UTC: protobuf refuses a whole answer for one.

Rule: only a task's status is mended. Data, metadata and text stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx

_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?"
_SUSPECT = re.compile(rf'"timestamp"\s*:\s*"{_STAMP}"'.encode())


async def zoned_answer(response: httpx.Response) -> None:
    """A hook of httpx: has the answer to a JSON-RPC call mended while it is read."""
    # Artifacts are read by GET, and their content is the user's.
    if response.request.method == "POST" and isinstance(response.stream, httpx.AsyncByteStream):
        response.stream = _Mended(response)


def zoned(text: bytes) -> bytes:
    """JSON, or a line of an event stream with JSON in it, with time stamps of UTC in place of those without a zone."""
    if not _SUSPECT.search(text):
        return text
    start = text.find(b"{")
    try:
        return text[:start] + json.dumps(json.loads(text[start:], object_hook=_zoned_status)).encode()
    except ValueError:
        return text


def _zoned_status(fields: dict[str, Any]) -> dict[str, Any]:
    is_status = "state" in fields and fields.keys() <= {"state", "message", "timestamp"}
    stamp = str(fields.get("timestamp"))
    return fields | {"timestamp": f"{stamp}Z"} if is_status and re.fullmatch(_STAMP, stamp, re.ASCII) else fields


class _Mended(httpx.AsyncByteStream):
    """An event stream comes line by line, any other answer in one piece."""

    def __init__(self, response: httpx.Response) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        self._stream = response.stream
        self._by_line = response.headers.get("content-type", "").startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = bytearray()
        async for piece in self._stream:
            read += piece
            while self._by_line and (end := read.find(b"\n") + 1):
                yield zoned(bytes(read[: end - 1])) + b"\n"
                del read[:end]
        yield zoned(bytes(read))

    async def aclose(self) -> None:
        await self._stream.aclose()
