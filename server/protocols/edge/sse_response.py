"""Server-sent events: the answer of every route that streams, as a plain ASGI application.

Rules:
1. Clients give up after 5 s without a byte. A stream that is silent for PING_SECONDS sends a comment, the first one a
   second after its headers; the headers wait FIRST_EVENT_SECONDS at most for the first event.
2. A failure within these FIRST_EVENT_SECONDS gets an ordinary answer (`wait_for_start`). A later one ends the stream:
   the route or the pipeline says why in the last event.
3. A client that disconnects cancels the stream, and so does a server that stops (shutdown.py).
4. There may be further sources of events: they are sent as they come, between those of the first source, which never
   wait for them. The stream ends with the first source.
5. Events arrive encoded, with those that are ready together already joined, and are sent as they are, with one `send`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Final, TypeVar

from starlette.types import Receive, Scope, Send

from a2a_canvas.server.protocols.edge.cancellable import Cancellable
from a2a_canvas.server.protocols.edge.http_requests import wait_for_disconnect

T = TypeVar("T")

PING_SECONDS: Final = 4.0
FIRST_PING_SECONDS: Final = 1.0
FIRST_EVENT_SECONDS: Final = 3.0

LINE_END: Final = "\r\n"

HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "connection": "keep-alive",
    "x-accel-buffering": "no",  # nginx must not hold events back
}


def _raw_headers(headers: Mapping[str, str]) -> RawHeaders:
    return tuple((name.encode(), value.encode()) for name, value in headers.items())


RawHeaders = tuple[tuple[bytes, bytes], ...]
_RAW_HEADERS: Final = _raw_headers(HEADERS)


def sse_event(data: bytes, *, event_id: str = "", name: str = "", line_end: str = LINE_END) -> bytes:
    """An event, by default without id and name. No argument may contain a line break; JSON never does."""
    end = line_end.encode()
    identified = b"id: %b%b" % (event_id.encode(), end) if event_id else b""
    named = b"event: %b%b" % (name.encode(), end) if name else b""
    return b"%b%bdata: %b%b%b" % (identified, named, data, end, end)


async def wait_for_start(step: Awaitable[T]) -> asyncio.Future[T]:
    """Wait up to FIRST_EVENT_SECONDS for the first step of a stream, such as its first event (rule 2).

    Returns the step, done or still running. Raises what it raises within that time.
    """
    future = asyncio.ensure_future(step)
    try:
        await asyncio.wait((future,), timeout=FIRST_EVENT_SECONDS)
    except asyncio.CancelledError:
        future.cancel()
        raise
    if future.done():
        future.result()
    return future


class SseResponse:
    """An answer with status 200.

    Args:
        events: encoded events (`sse_event`); the answer ends with them.
        beside: the further sources of events (rule 4).
        headers: in addition to `HEADERS`.
        line_end: that of `events`, for the comments between them.
        on_disconnect: called when the client disconnects before the end, after `events` is closed.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        *,
        beside: Sequence[AsyncGenerator[bytes, None]] = (),
        headers: Mapping[str, str] | None = None,
        line_end: str = LINE_END,
        on_disconnect: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._events = events
        self._beside = beside
        own = {name.lower(): value for name, value in (headers or {}).items()}
        self._headers = _raw_headers({**HEADERS, **own}) if own else _RAW_HEADERS
        self._ping = f": ping{line_end}{line_end}".encode()
        self._on_disconnect = on_disconnect
        self._silent_since = 0.0
        self._streaming = Cancellable()
        self._ended = False
        self._pinging: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._events):
            await send({"type": "http.response.start", "status": 200, "headers": [*self._headers]})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                await self._stream(receive, send)
        if self._streaming.cancelled and self._on_disconnect:
            await self._on_disconnect()

    async def _stream(self, receive: Receive, send: Send) -> None:
        self._silent_since = monotonic() - PING_SECONDS + FIRST_PING_SECONDS
        with self._streaming:
            self._ping_if_silent(send)
            beside = [
                asyncio.create_task(self._cancel_at_disconnect(receive)),
                *(asyncio.create_task(self._send_beside(each, send)) for each in self._beside),
            ]
            try:
                async for event in self._events:
                    await self._send(send, event)
                    del event  # a stream that waits does not hold what it has sent
                async with self._one_at_a_time:
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                self._ended = True
                for each in (self._pinging, *beside):
                    if each:
                        each.cancel()

    async def _send(self, send: Send, body: bytes) -> None:
        async with self._one_at_a_time:
            await send({"type": "http.response.body", "body": body, "more_body": True})
        self._silent_since = monotonic()

    async def _send_beside(self, events: AsyncGenerator[bytes, None], send: Send) -> None:
        async with aclosing(events):
            async for event in events:
                await self._send(send, event)
                del event

    def _ping_if_silent(self, send: Send) -> None:
        """Called again when the stream may have been silent for long. A timer costs an idle stream less than a task."""
        loop = asyncio.get_running_loop()
        left = self._silent_since + PING_SECONDS - monotonic()
        if left <= 0:
            self._pinging = pinging = loop.create_task(self._send(send, self._ping))
            pinging.add_done_callback(lambda done: self._after_ping(done, send))
        else:
            self._pinging = loop.call_later(left, self._ping_if_silent, send)

    def _after_ping(self, ping: asyncio.Task[None], send: Send) -> None:
        failed = ping.cancelled() or ping.exception() is not None
        if not self._ended and not failed:
            self._ping_if_silent(send)

    async def _cancel_at_disconnect(self, receive: Receive) -> None:
        await wait_for_disconnect(receive)
        self._streaming.cancel()
