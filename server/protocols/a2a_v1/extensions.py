"""Which extensions of a request are activated, echoed in the response (A2A 1.0, section 4.6)."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.wire import AGENTSTACK, CANVAS, EXTENSIONS_HEADERS, TURN, VERSION_HEADER

SUPPORTED = frozenset({TURN, CANVAS, AGENTSTACK})


def extension_headers(version: str) -> tuple[str, ...]:
    """The headers that activate something in a request of this version; none stands for 0.3."""
    return EXTENSIONS_HEADERS[:1] if version.startswith("1") else EXTENSIONS_HEADERS


def activated_header(values: Iterable[str]) -> str:
    """The supported ones of the URIs that header values ask for, as a header value; empty for none."""
    asked = {uri.strip() for value in values for uri in value.split(",")}
    return ", ".join(sorted(asked & SUPPORTED))


class ExtensionsEcho:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        echo = _echo(Headers(scope=scope)) if scope["type"] == "http" else {}
        if not echo:
            await self._app(scope, receive, send)
            return

        async def with_echo(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(echo)
            await send(message)

        await self._app(scope, receive, with_echo)


def _echo(headers: Headers) -> dict[str, str]:
    names = extension_headers(headers.get(VERSION_HEADER, ""))
    return {name: uris for name in names if (uris := activated_header(headers.getlist(name)))}
