"""uvicorn's HTTP/1.1 connections with time-outs and limits.

Rules:
1. A request's head must arrive within `head` seconds of the connection, or of its first byte on a kept-alive one. Its
   body must make progress every `body` seconds. Otherwise the answer is 408 and the connection is closed.
2. Answers have no time-out: a stream lasts as long as its task. uvicorn closes idle connections.
3. A connection beyond `max_connections` gets 503 and is closed. The size of a head is limited (431).
4. After a refusal, or an answer that closes the connection before the request was read, the server ends its side of the
   connection but keeps reading, until nothing has arrived for `LINGER` seconds, and for `MAX_LINGER` at most: a socket
   that is closed with unread data resets the connection, and the client loses the answer (RFC 9112, 9.6).
5. A request with both Content-Length and Transfer-Encoding is refused (400) and the connection closed: a proxy may use
   the other header and see a body where this server sees a request (request smuggling).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from a2a_canvas.server.protocols.edge.availability import NO_STORE, RETRY_AFTER
from a2a_canvas.server.protocols.edge.origins import PEER

MAX_HEAD: Final = 32 * 1024
"""Bytes of a request's line and header fields together."""
MAX_FIELDS: Final = 100
"""Header fields of a request."""

REFUSAL_TIMEOUT: Final = 1.0
"""Seconds in which a connection beyond the limit may send a request, which is answered with the reason."""

LINGER: Final = 1.0
"""Seconds without data after which a refused client is assumed to have read the answer."""
MAX_LINGER: Final = 15.0
"""Seconds for which a refused client may keep sending."""

_HEAD_TOO_LARGE: Final = f"The request's head is larger than {MAX_HEAD} bytes or {MAX_FIELDS} fields; send less of it"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The most connections, and the seconds for a head and between pieces of a body (rule 1)."""

    max_connections: int
    head: float = 10
    body: float = 30


class _HeadRefused(h11.RemoteProtocolError):
    """A head that h11 accepts and this server does not."""


class _HeadCheckingParser(h11.Connection):
    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            _check_head(event)
        return event


def _check_head(request: h11.Request) -> None:
    size = len(request.target) + sum(len(name) + len(value) for name, value in request.headers)
    if size > MAX_HEAD or len(request.headers) > MAX_FIELDS:
        raise _HeadRefused(_HEAD_TOO_LARGE, error_status_hint=431)
    names = {name for name, _ in request.headers}
    if {b"content-length", b"transfer-encoding"} <= names:
        raise _HeadRefused("A request has Content-Length or Transfer-Encoding, not both", error_status_hint=400)


def _lighten(event: asyncio.Event) -> None:
    """Have an event keep those who wait in a list: its deque takes 0.7 KB, though nobody may wait."""
    event._waiters = []  # type: ignore[assignment]


class _DelegatingTransport:
    """A transport whose `close` is replaced."""

    def __init__(self, inner: asyncio.BaseTransport, close: Callable[[], None]) -> None:
        self._inner = inner
        self.close = close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class LimitedConnection(H11Protocol):
    """One connection. `limited_connection` makes the class for a server."""

    limits: ClassVar[ConnectionLimits]
    refused: ClassVar[Callable[[int], None]]
    # A dictionary of more than 30 attributes takes twice the memory, in each connection.
    __slots__ = ("_deadline", "_lingers", "_lingers_until", "_over_limit", "_socket")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = _HeadCheckingParser(h11.SERVER, MAX_HEAD)
        self._deadline: asyncio.TimerHandle | None = None
        self._over_limit = self._lingers = False
        self._lingers_until = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(_DelegatingTransport(transport, self._close))  # type: ignore[arg-type]
        _lighten(self.flow._is_writable_event)
        self._socket = transport
        # Each scope has a copy of this state; its "client" may come from a proxy.
        self.app_state = {**self.app_state, PEER: self.client[0] if self.client else ""}
        self._over_limit = len(self.connections) > self.limits.max_connections
        self._set_deadline(min(self.limits.head, REFUSAL_TIMEOUT) if self._over_limit else self.limits.head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            self._set_deadline(max(0.0, min(LINGER, self._lingers_until - self.loop.time())))
            return
        if self._over_limit:
            self._refuse(503, "This server has reached its limit of connections. Try again in a moment.", RETRY_AFTER)
            return
        before, cycle = self.conn.their_state, self.cycle
        super().data_received(data)
        if self.cycle and self.cycle is not cycle:
            _lighten(self.cycle.message_event)
        self._update_deadline(before)

    def on_response_complete(self) -> None:
        if self._lingers:
            return
        super().on_response_complete()
        self._update_deadline(h11.DONE)

    def send_400_response(self, msg: str) -> None:
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        text = str(error) if isinstance(error, _HeadRefused) else "This is not a valid HTTP/1.1 request"
        self._refuse(status, _HEAD_TOO_LARGE if status == 431 else text)

    def _update_deadline(self, before: Any) -> None:
        """Set the deadline of what is expected next, after data has arrived or an answer has ended."""
        if self._lingers or self.transport.is_closing():
            return
        match self.conn.their_state:
            case h11.SEND_BODY:
                self._set_deadline(self.limits.body)
            case h11.IDLE if not self.conn.trailing_data[0]:
                self._set_deadline(None)  # uvicorn closes it if nothing comes
            case h11.IDLE:
                if before is not h11.IDLE or self._deadline is None:
                    self._set_deadline(self.limits.head)
            case _:
                self._set_deadline(None)

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._timed_out)

    def _timed_out(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._lingers:
            self._socket.close()
        elif self.flow.read_paused:  # the application does not read
            self._set_deadline(self.limits.body)
        elif self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self.transport.close()  # no byte has arrived
        else:
            self._refuse(408, "The request did not arrive in time")

    def _refuse(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        """Send an error if no answer has begun, and close the connection (rule 4)."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            type(self).refused(status)
            body = json.dumps({"error": {"code": status, "message": text}}).encode()
            fields = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
            fields.update(NO_STORE)
            head = [(name.encode(), value.encode()) for name, value in {**fields, **(headers or {})}.items()]
            response = h11.Response(status_code=status, headers=head, reason=HTTPStatus(status).phrase.encode())
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self._linger()

    def _close(self) -> None:
        """Close the connection; immediately if all of the request was read."""
        if self.conn.their_state is h11.SEND_BODY and not self._lingers and not self._socket.is_closing():
            self._linger()
        else:
            self._socket.close()

    def _linger(self) -> None:
        """Keep reading (rule 4). For the application and the limit, the connection is closed now."""
        self._lingers = True
        self._lingers_until = self.loop.time() + MAX_LINGER
        self._set_deadline(LINGER)
        self.connections.discard(self)
        if self.cycle:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()


def limited_connection(
    limits: ConnectionLimits, refused: Callable[[int], None] = lambda status: None
) -> type[LimitedConnection]:
    """The class of connections for `uvicorn.Config(http=...)`.

    Args:
        refused: called with the status of each refusal.
    """
    return type("LimitedConnection", (LimitedConnection,), {"limits": limits, "refused": staticmethod(refused)})
