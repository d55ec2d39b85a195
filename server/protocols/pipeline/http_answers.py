"""Sets the headers for caches and browsers on every HTTP answer, and counts it.

Rule 1: an answer that does not say how it may be cached is not: `Cache-Control: no-store`, errors included.
Rule 2: an answer for its caller alone that may be cached varies with the caller's credential: `Vary`.
Rule 3: pages of other origins cannot embed an answer for its caller, as a script or an image:
        `Cross-Origin-Resource-Policy`. Pages of `--cors-origin` can still read answers, because they use CORS. The page
        itself and errors are public: with them another server's page finds out that there is a server.
Rule 4: no browser guesses the type of an answer: `X-Content-Type-Options`.
Rule 5: the metrics count it: `edge/request_metrics.py` has the rules.
"""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.edge.availability import NO_STORE
from a2a_canvas.server.protocols.edge.request_metrics import AnswerCount, binding_of, status_of

SAME_ORIGIN = {"Cross-Origin-Resource-Policy": "same-origin"}
NO_SNIFF = {"X-Content-Type-Options": "nosniff"}
CREDENTIAL_HEADERS = "Authorization, Cookie"


class Answers:
    """ASGI middleware, the outermost one."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics | None = None) -> None:
        self._app = app
        self._metrics = metrics or Metrics()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        binding = binding_of(scope["method"], scope["path"].removeprefix(scope.get("root_path", "")))
        with AnswerCount(self._metrics, binding) as count:

            async def send_complete(message: Message) -> None:
                if message["type"] == "http.response.start":
                    headers = MutableHeaders(scope=message)
                    streams = headers.get("content-type", "").startswith("text/event-stream")
                    count.begin(status_of(scope, message["status"]), streams=streams)
                    _complete(headers, message["status"])
                await send(message)

            await self._app(scope, receive, send_complete)


def _complete(headers: MutableHeaders, status: int) -> None:
    headers.update(NO_SNIFF)
    caching = headers.setdefault("Cache-Control", NO_STORE["Cache-Control"])
    if "private" in caching:
        headers.add_vary_header(CREDENTIAL_HEADERS)
    if status < 400 and ("private" in caching or "no-store" in caching):
        headers.update(SAME_ORIGIN)
