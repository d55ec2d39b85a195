"""Time stamps without a zone, as some servers write them, in the answers to A2A calls.

A2A's time stamps have a zone, and protobuf's JSON parser refuses a whole answer for one that has none. Such a time
stamp is read as UTC: the screen shows none, and nothing is decided by it.

Rule 1: only a task's status is mended. What a server says in data, metadata and text stays as it is.
Rule 2: an answer without such a time stamp passes byte for byte, and an event stream event by event.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

import httpx

_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?", re.ASCII)
_SUSPECT = re.compile(rb'"timestamp"\s*:\s*"[\dT:.-]+"')
_STATUS = {"state", "message", "timestamp"}


async def zoned_answer(response: httpx.Response) -> None:
    """A hook of httpx: has the answer to a JSON-RPC call mended while it is read."""
    # Artifacts are read by GET, and their content is the user's.
    if response.request.method == "POST" and isinstance(response.stream, httpx.AsyncByteStream):
        by_line = response.headers.get("content-type", "").startswith("text/event-stream")
        response.stream = _Mended(response.stream, by_line=by_line)


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
    stamp = fields.get("timestamp")
    is_status = "state" in fields and fields.keys() <= _STATUS
    if is_status and isinstance(stamp, str) and _WITHOUT_ZONE.fullmatch(stamp):
        return fields | {"timestamp": f"{stamp}Z"}
    return fields


class _Mended(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, *, by_line: bool) -> None:
        self._stream, self._by_line = stream, by_line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for text in _lines(self._stream) if self._by_line else _whole(self._stream):
            yield zoned(text)

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _whole(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    yield b"".join([piece async for piece in pieces])


async def _lines(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Lines without their ends, and the ends."""
    open_line: list[bytes] = []
    async for piece in pieces:
        first, *more = piece.split(b"\n")
        open_line.append(first)
        for start in more:
            yield b"".join(open_line)
            yield b"\n"
            open_line = [start]
    yield b"".join(open_line)
