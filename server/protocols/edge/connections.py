"""uvicorn's HTTP/1.1 connections, with limits on what a client may make them wait for and hold.

Rules:
1. A request's head comes within `head` seconds of the connection, or of its first byte on one that is kept open. Its
   body makes progress every `body` seconds. Else the answer is 408 and the connection ends.
2. Answers have no time-out: a stream lasts as long as its task. Idle connections are uvicorn's to close.
3. Beyond `max_connections` a connection is told 503 and closed. What a head may hold is limited (431).
4. A request with both Content-Length and Transfer-Encoding is refused (400) and the connection closed: a proxy in front
   may have read it by the other of the two, and taken for a body what would be a request here (smuggling).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from a2a_canvas.server.protocols.edge.unavailable import RETRY_AFTER

MAX_HEAD: Final = 32 * 1024
"""Bytes of a request's line and header fields together."""
MAX_FIELDS: Final = 100
"""Header fields of a request."""

REFUSAL_TIMEOUT: Final = 1.0
"""Seconds that one connection too many has to say something, so that it can be told why it is closed."""

_CROWDED: Final = "This server has as many connections as it takes. Try again in a moment."
_HEAD_TOO_LARGE: Final = f"The request's head is larger than {MAX_HEAD} bytes or {MAX_FIELDS} fields; send less of it"
_TWO_LENGTHS: Final = "A request has Content-Length or Transfer-Encoding, not both"
_NOT_HTTP: Final = "This is not a valid HTTP/1.1 request"
_TOO_SLOW: Final = "The request did not come in time"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be, and how many seconds each may take for what (rule 1)."""

    max_connections: int
    head: float = 10
    body: float = 30


class _Refused(h11.RemoteProtocolError):
    """A head that h11 would take, and we do not."""


class _Parser(h11.Connection):
    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            _check_head(event)
        return event


def _check_head(request: h11.Request) -> None:
    size = len(request.target) + sum(len(name) + len(value) for name, value in request.headers)
    if size > MAX_HEAD or len(request.headers) > MAX_FIELDS:
        raise _Refused(_HEAD_TOO_LARGE, error_status_hint=431)
    names = {name for name, _ in request.headers}
    if {b"content-length", b"transfer-encoding"} <= names:
        raise _Refused(_TWO_LENGTHS, error_status_hint=400)


class LimitedConnection(H11Protocol):
    """One connection. `limited_connection` makes the class that a server is given."""

    limits: ClassVar[ConnectionLimits]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = _Parser(h11.SERVER, MAX_HEAD)
        self._deadline: asyncio.TimerHandle | None = None
        self._crowded = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._crowded = len(self.connections) > self.limits.max_connections
        self._wait(min(self.limits.head, REFUSAL_TIMEOUT) if self._crowded else self.limits.head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._crowded:
            self._refuse(503, _CROWDED, RETRY_AFTER)
            return
        before = self.conn.their_state
        super().data_received(data)
        self._watch(before)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch(h11.DONE)

    def send_400_response(self, msg: str) -> None:
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        text = _HEAD_TOO_LARGE if status == 431 else str(error) if isinstance(error, _Refused) else _NOT_HTTP
        self._refuse(status, text)

    # ---------------------------------------------------------------------- time-outs

    def _watch(self, before: Any) -> None:
        """Something has come, or an answer has ended: what is waited for now?"""
        if self.transport.is_closing():
            return
        match self.conn.their_state:
            case h11.SEND_BODY:
                self._wait(self.limits.body)
            case h11.IDLE if not self.conn.trailing_data[0]:
                self._wait(None)  # uvicorn closes it if nothing comes
            case h11.IDLE:
                if before is not h11.IDLE or self._deadline is None:
                    self._wait(self.limits.head)
            case _:
                self._wait(None)

    def _wait(self, seconds: float | None) -> None:
        if self._deadline:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused:  # it is we who do not read
            self._wait(self.limits.body)
        elif self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self.transport.close()  # it has said nothing at all
        else:
            self._refuse(408, _TOO_SLOW)

    def _refuse(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        """Answer, if no answer has begun, and close the connection."""
        self._wait(None)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": {"code": status, "message": text}}).encode()
            fields = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
            head = [(name.encode(), value.encode()) for name, value in {**fields, **(headers or {})}.items()]
            response = h11.Response(status_code=status, headers=head, reason=HTTPStatus(status).phrase.encode())
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def limited_connection(limits: ConnectionLimits) -> type[LimitedConnection]:
    """The class of connections for `uvicorn.Config(http=...)`."""
    return type("LimitedConnection", (LimitedConnection,), {"limits": limits})
