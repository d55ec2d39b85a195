"""The extensions that a request activates, and their echo in the response (A2A 1.0, section 4.6)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.wire import AGENTSTACK, CANVAS, EXTENSIONS_HEADERS, TURN, VERSION_HEADER

SUPPORTED = frozenset({TURN, CANVAS, AGENTSTACK})


@dataclass(frozen=True, slots=True)
class ActivatedExtensions:
    """Which of our own extensions a client has activated."""

    turn: bool = False
    canvas: bool = False

    @classmethod
    def of(cls, uris: Container[str]) -> ActivatedExtensions:
        return cls(TURN in uris, CANVAS in uris)


def extension_headers(version: str) -> tuple[str, ...]:
    """The headers that activate extensions in a request of this version; an empty version is 0.3."""
    return EXTENSIONS_HEADERS[:1] if version.startswith("1") else EXTENSIONS_HEADERS


def activated_header(values: Iterable[str]) -> str:
    """Those of the requested URIs that are supported, as a header value; empty if there is none."""
    requested = {uri.strip() for value in values for uri in value.split(",")}
    return ", ".join(sorted(requested & SUPPORTED))


class ExtensionsEcho:
    """ASGI middleware that names the activated extensions in the response, in the header that the client used."""

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
