"""Counts the open streams and the refused requests, at the edge of HTTP (`grpc_metrics.py`: of gRPC).

Rule 1: a request is refused if it is answered with an error. The reason is the name of the HTTP status that says why,
        for every binding: what JSON-RPC answers with 200 and gRPC with a status of its own counts as REST answers it.
Rule 2: an error in a stream that has begun is none: the request was accepted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from a2a.utils.errors import A2A_ERROR_MAPPING
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.metrics import OTHER, Metrics
from a2a_canvas.server.wire import AGUI_PATH, BELOW_REST

_REFUSED = "a2a_canvas.refused"
_BINDINGS = ((BELOW_REST, "HTTP+JSON"), (f"{AGUI_PATH}/", "AG-UI"), ("/artifacts/", "artifacts"))
"""The bindings by the beginning of their paths."""


def reason_of(status: int) -> str:
    """The name of an HTTP status in the metrics: `not_found`."""
    try:
        return HTTPStatus(status).name.lower()
    except ValueError:
        return OTHER


def binding_of(method: str, path: str) -> str:
    """The binding of a request; `other` for the card, the page and what is nowhere."""
    if path == "/" and method not in ("GET", "HEAD"):
        return "JSONRPC"
    return next((name for prefix, name in _BINDINGS if f"{path}/".startswith(prefix)), OTHER)


def note_refusal(scope: Scope, kind: type[Exception]) -> None:
    """The request is about to be refused with such an error, in a form that has no status of its own (rule 1)."""
    scope[_REFUSED] = A2A_ERROR_MAPPING[kind].http_code if kind in A2A_ERROR_MAPPING else 400


def refused_connections(metrics: Metrics) -> Callable[[int], None]:
    """Counts what is refused with an HTTP status before it is a request."""
    return lambda status: metrics.refused.labels(OTHER, reason_of(status)).inc()


class MetricsMiddleware:
    """ASGI middleware around all others."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        binding = binding_of(scope["method"], scope["path"].removeprefix(scope.get("root_path", "")))
        answer = _CountedAnswer(scope, send, self._metrics, binding)
        try:
            await self._app(scope, receive, answer.send)
        except Exception:
            answer.failed()
            raise
        finally:
            answer.ended()


class _CountedAnswer:
    def __init__(self, scope: Scope, send: Send, metrics: Metrics, binding: str) -> None:
        self._scope = scope
        self._send = send
        self._metrics = metrics
        self._binding = binding
        self._begun = self._streams = False

    def send(self, message: Message) -> Awaitable[None]:
        if not self._begun:
            self._begun = True
            self._begin(message)
        return self._send(message)

    def _begin(self, start: Message) -> None:
        status = self._scope.get(_REFUSED, start["status"])
        if status >= 400:
            self._metrics.refused.labels(self._binding, reason_of(status)).inc()
        elif any(
            name == b"content-type" and value.startswith(b"text/event-stream") for name, value in start["headers"]
        ):
            self._streams = True
            self._metrics.open_streams.labels(self._binding).inc()

    def failed(self) -> None:
        if not self._begun:
            self._metrics.refused.labels(self._binding, reason_of(500)).inc()

    def ended(self) -> None:
        if self._streams:
            self._metrics.open_streams.labels(self._binding).dec()
