"""The extensions that a request activates, and their echo in the response (A2A 1.0, section 4.6).

Rule 1: those that the operator's card adds are echoed, and required where the card says so; what they mean is the
        matter of the operator's agent.
"""

from __future__ import annotations

from collections.abc import Container, Set
from dataclasses import dataclass

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import ExtensionSupportRequiredError
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.server.protocols.pipeline.extension_headers import SUPPORTED, activated_extensions
from a2a_canvas.server.wire import CANVAS, EXTENSIONS_HEADERS, TURN, VERSION_HEADER
from a2a_canvas.store.text.wording import choice


@dataclass(frozen=True, slots=True)
class ActivatedExtensions:
    """Which of our own extensions a client has activated."""

    turn: bool = False
    canvas: bool = False

    @classmethod
    def of(cls, uris: Container[str]) -> ActivatedExtensions:
        return cls(TURN in uris, CANVAS in uris)


def extensions_of(card: pb.AgentCard) -> frozenset[str]:
    """The URIs of the extensions that a card lists."""
    return frozenset(each.uri for each in card.capabilities.extensions)


def check_required(card: pb.AgentCard, requested: Container[str]) -> None:
    """Raises `ExtensionSupportRequiredError` if a request does not name each extension that a card requires."""
    missing = [each.uri for each in card.capabilities.extensions if each.required and each.uri not in requested]
    if missing:
        raise ExtensionSupportRequiredError(
            f"This agent requires the extension {choice(missing, 'and')}. If you support it, name it in the header "
            f"{choice(EXTENSIONS_HEADERS)}."
        )


class ExtensionsEcho:
    """ASGI middleware that names the activated extensions in the response, in the header that the client used.

    Args:
        supported: URIs.
    """

    def __init__(self, app: ASGIApp, supported: Set[str] = SUPPORTED) -> None:
        self._app = app
        self._supported = supported

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        echo = activated_extensions(headers, headers.get(VERSION_HEADER, ""), self._supported)
        if not echo:
            await self._app(scope, receive, send)
            return

        async def with_echo(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(echo)
            await send(message)

        await self._app(scope, receive, with_echo)
