"""Server-sent events from a socket, with as little work as possible."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

Take = Callable[[dict[str, Any], int], None]
"""Called with an event's JSON and the monotonic time in nanoseconds at which its bytes arrived."""


class StreamError(Exception):
    """The answer is not a complete event stream."""


class Refused(StreamError):
    """The answer is an error, not a stream."""


class Reader(asyncio.Protocol):
    """HTTP/1.1 with a chunked body of server-sent events, `Connection: close`.

    Attributes:
        ended: done when the whole answer has been read; fails with its error.

    Args:
        request: sent first, unless it is empty.
        take: called with each event.
    """

    def __init__(self, request: bytes, take: Take) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._event = take
        self._head: bytes | None = b""
        self._body = Chunked()
        self._events = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._request:
            transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        at = time.monotonic_ns()
        try:
            self._take(self._after_head(data), at)
        except Exception as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            whole = self._body.ended and not self._events.strip()
            self._fail(exc) if exc or not whole else self.ended.set_result(None)

    def _after_head(self, data: bytes) -> bytes:
        if self._head is None:
            return data
        self._head, end, rest = (self._head + data).partition(b"\r\n\r\n")
        if not end:
            return b""
        if not self._head.startswith(b"HTTP/1.1 200") or b"text/event-stream" not in self._head:
            raise Refused(f"not a stream: {self._head.decode()} {rest[:300].decode()}")
        self._head = None
        return rest

    def _take(self, data: bytes, at: int) -> None:
        *events, self._events = (self._events + self._body.feed(data)).split(b"\r\n\r\n")
        for event in events:
            for line in event.split(b"\r\n"):
                if line.startswith(b"data: "):
                    self._event(json.loads(line[6:]), at)

    def _fail(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(error or StreamError("the stream broke off"))
        if self._transport:
            self._transport.abort()


class ByteReader(asyncio.Protocol):
    """Reads the bytes of an answer with a chunked body, `Connection: close`, and looks at nothing but its ends.

    Attributes:
        ended: the number of bytes, once the whole answer has been read; fails with its error.

    Args:
        request: sent first.
    """

    def __init__(self, request: bytes) -> None:
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._request = request
        self._begun = b""
        self._size = 0
        self._last = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._begun = self._begun or data
        self._size += len(data)
        self._last = (self._last + data)[-len(LAST_CHUNK) :]

    def connection_lost(self, exc: Exception | None) -> None:
        if self.ended.done():
            return
        if not self._begun.startswith(b"HTTP/1.1 200"):
            self.ended.set_exception(exc or Refused(f"not a stream: {self._begun[:300].decode()}"))
        elif self._last != LAST_CHUNK:
            self.ended.set_exception(exc or StreamError("the stream broke off"))
        else:
            self.ended.set_result(self._size)


LAST_CHUNK = b"0\r\n\r\n"


class Chunked:
    """Decodes a chunked body (RFC 9112, section 7.1), cut anywhere; trailers are ignored.

    Attributes:
        ended: the last chunk has arrived.
    """

    def __init__(self) -> None:
        self.ended = False
        self._buffer = b""
        self._left = 0

    def feed(self, data: bytes) -> bytes:
        """The content in `data`."""
        buffer, at, out = self._buffer + data, 0, []
        while not self.ended:
            if self._left > 2:
                piece = buffer[at : at + self._left - 2]
                out.append(piece)
                at += len(piece)
                self._left -= len(piece)
            if len(buffer) - at < self._left or self._left > 2:
                break
            at, self._left = at + self._left, 0  # the line end after a chunk
            end = buffer.find(b"\r\n", at)
            if end < 0:
                break
            size = int(buffer[at:end].partition(b";")[0], 16)
            self.ended = size == 0
            at, self._left = end + 2, size + 2
        self._buffer = buffer[at:]
        return b"".join(out)
