"""Limits on the size of answers. Pure."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from typing import Any, Final

MAX_MESSAGE: Final = 16 * 1024 * 1024
"""The maximum bytes of another program's message: a body, or an event of a stream."""

UNCOMPRESSED: Final[Mapping[str, str]] = {"Accept-Encoding": "identity"}
"""The headers of every request: a limit on compressed bytes would bound nothing."""

COMPRESSED: Final = "it compresses its answers although it was asked not to"

_EVENTS: Final = "text/event-stream"
_BLANK_LINES: Final = (b"\n\n", b"\n\r\n", b"\r\r")


def too_large(most: int) -> str:
    return f"it sends more than {most / 2**20:.0f} MB at once"


def is_compressed(content_encoding: str) -> bool:
    """Whether an answer with this `Content-Encoding` is compressed."""
    return any(each.strip().lower() not in ("", "identity") for each in content_encoding.split(","))


def is_stream(method: str, accept: str, status: int, content_type: str) -> bool:
    """Whether clients read an answer event by event; any other is read as a whole, whatever its type."""
    return (
        method in ("GET", "POST") and status == 200 and _EVENTS in accept and content_type.lower().startswith(_EVENTS)
    )


class AnswerMeter:
    """Counts the bytes of a body or of each event of a stream.

    Args:
        most: the maximum bytes of a body, or of an event.
        refused: why the answer is not read at all, if so.
    """

    def __init__(self, most: int = MAX_MESSAGE, *, events: bool = False, refused: str = "") -> None:
        self._most = most
        self._events = events
        self._refused = refused
        self._size = 0
        self._end = b""

    @classmethod
    def for_response(cls, response: Any, most: int, *, by_event: bool = True) -> AnswerMeter:
        """The meter of a response of httpx or httpx2."""
        request, headers = response.request, response.headers
        accept, content_type = request.headers.get("accept", ""), headers.get("content-type", "")
        events = by_event and is_stream(request.method, accept, response.status_code, content_type)
        refused = COMPRESSED if is_compressed(headers.get("content-encoding", "")) else ""
        return cls(most, events=events, refused=refused)

    def fault(self, chunk: bytes) -> str:
        """Count `chunk`; returns why the answer is refused, or an empty text."""
        self._size += len(chunk)
        if self._events:
            known = self._end + chunk
            ended = max(known.rfind(each) + len(each) if each in known else 0 for each in _BLANK_LINES)
            self._size = len(known) - ended if ended else self._size
            self._end = known[-2:]
        return self._refused or (too_large(self._most) if self._size > self._most else "")

    async def read(self, stream: AsyncIterable[bytes], error: Callable[[str], Exception]) -> AsyncIterator[bytes]:
        """The chunks of a body; raises an error at its limit."""
        if self._refused:
            raise error(self._refused)
        async for chunk in stream:
            if fault := self.fault(chunk):
                raise error(fault)
            yield chunk
