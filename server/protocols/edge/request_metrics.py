"""Counts the open streams and the refused requests.

Rule 1: a request counts as refused if it is answered with an error. The reason is the name of an HTTP status for every
        binding: an error that JSON-RPC answers with 200, and gRPC with a status of its own, counts with REST's status.
Rule 2: an error in a stream that has begun does not count: the request was accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from a2a.utils.errors import A2A_ERROR_MAPPING
from starlette.types import Scope

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
    """The binding of a request; `other` for the card, the page and unknown paths."""
    if path == "/" and method not in ("GET", "HEAD"):
        return "JSONRPC"
    return next((name for prefix, name in _BINDINGS if f"{path}/".startswith(prefix)), OTHER)


def note_refusal(scope: Scope, kind: type[Exception]) -> None:
    """Note that a request is refused with such an error, in a form without an HTTP status of its own (rule 1)."""
    scope[_REFUSED] = A2A_ERROR_MAPPING[kind].http_code if kind in A2A_ERROR_MAPPING else 400


def status_of(scope: Scope, status: int) -> int:
    """The HTTP status that an answer counts with (rule 1)."""
    noted: int = scope.get(_REFUSED, status)
    return noted


def refused_connections(metrics: Metrics) -> Callable[[int], None]:
    """Counts connections that are refused with an HTTP status before there is a request."""
    return lambda status: metrics.refused.labels(OTHER, reason_of(status)).inc()


class AnswerCount:
    """A context manager that counts one answer: as an open stream, or as refused.

    Args:
        binding: its name in the metrics.
        failure: the HTTP status to count if an exception ends the request before its answer begins.
    """

    def __init__(self, metrics: Metrics, binding: str, failure: Callable[[], int] = lambda: 500) -> None:
        self._metrics = metrics
        self._binding = binding
        self._failure = failure
        self._begun = self._streams = False

    def __enter__(self) -> AnswerCount:
        return self

    def begin(self, status: int, *, streams: bool) -> None:
        """The answer begins, if it has not begun."""
        if self._begun:
            return
        self._begun = True
        if status >= 400:
            self._metrics.refused.labels(self._binding, reason_of(status)).inc()
        elif streams:
            self._streams = True
            self._metrics.open_streams.labels(self._binding).inc()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception):
            self.begin(self._failure(), streams=False)
        if self._streams:
            self._metrics.open_streams.labels(self._binding).dec()
