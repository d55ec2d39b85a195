"""How much of an answer is read. Pure."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from typing import Any, Final

MAX_MESSAGE: Final = 16 * 1024 * 1024
"""Bytes of one message of another program: a body, or an event of a stream."""

UNCOMPRESSED: Final[Mapping[str, str]] = {"Accept-Encoding": "identity"}
"""What every request asks for: a limit of compressed bytes bounds nothing."""

COMPRESSED: Final = "it compresses its answers although it was asked not to"

_EVENTS: Final = "text/event-stream"
_BLANK_LINES: Final = (b"\n\n", b"\n\r\n", b"\r\r")


def too_large(most: int) -> str:
    return f"it sends more than {most / 2**20:.0f} MB at once"


def is_compressed(content_encoding: str) -> bool:
    """Whether an answer with this `Content-Encoding` would have to be decompressed."""
    return any(each.strip().lower() not in ("", "identity") for each in content_encoding.split(","))


def is_stream(method: str, accept: str, status: int, content_type: str) -> bool:
    """Whether a client reads an answer event by event: any other is read as a whole, whatever it says that it is."""
    return (
        method in ("GET", "POST") and status == 200 and _EVENTS in accept and content_type.lower().startswith(_EVENTS)
    )


class AnswerMeter:
    """Counts the bytes of a body or, of a stream, of each event.

    Args:
        most: bytes of a body, or of an event.
        refused: why the answer is not read at all.
    """

    def __init__(self, most: int = MAX_MESSAGE, *, events: bool = False, refused: str = "") -> None:
        self._most = most
        self._events = events
        self._refused = refused
        self._size = 0
        self._end = b""

    @classmethod
    def for_response(cls, response: Any, most: int, *, by_event: bool = True) -> AnswerMeter:
        """That of an answer as httpx and httpx2 have it."""
        request, headers = response.request, response.headers
        accept, content_type = request.headers.get("accept", ""), headers.get("content-type", "")
        events = by_event and is_stream(request.method, accept, response.status_code, content_type)
        refused = COMPRESSED if is_compressed(headers.get("content-encoding", "")) else ""
        return cls(most, events=events, refused=refused)

    def fault(self, chunk: bytes) -> str:
        """What is wrong with an answer that goes on with `chunk`; empty if nothing is."""
        self._size += len(chunk)
        if self._events:
            known = self._end + chunk
            ended = max(known.rfind(each) + len(each) if each in known else 0 for each in _BLANK_LINES)
            self._size = len(known) - ended if ended else self._size
            self._end = known[-2:]
        return self._refused or (too_large(self._most) if self._size > self._most else "")

    async def read(self, stream: AsyncIterable[bytes], error: Callable[[str], Exception]) -> AsyncIterator[bytes]:
        """The chunks of a body, as long as nothing is wrong; then raises an error."""
        if self._refused:
            raise error(self._refused)
        async for chunk in stream:
            if fault := self.fault(chunk):
                raise error(fault)
            yield chunk
