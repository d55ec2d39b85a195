"""The extensions that a request activates, and those that a card lists and requires."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import ExtensionSupportRequiredError

from a2a_canvas.server.wire import CANVAS, EXTENSIONS_HEADERS, TURN
from a2a_canvas.store.text.wording import choice


@dataclass(frozen=True, slots=True)
class ActivatedExtensions:
    """Which of our own extensions a client has activated."""

    turn: bool = False
    canvas: bool = False

    @classmethod
    def from_uris(cls, uris: Container[str]) -> ActivatedExtensions:
        return cls(TURN in uris, CANVAS in uris)


def extensions_of(card: pb.AgentCard) -> frozenset[str]:
    """The URIs of the extensions that a card lists."""
    return frozenset(each.uri for each in card.capabilities.extensions)


def check_required(card: pb.AgentCard, requested: Container[str]) -> None:
    """Raises `ExtensionSupportRequiredError` if a request lacks an extension that the card requires."""
    missing = [each.uri for each in card.capabilities.extensions if each.required and each.uri not in requested]
    if missing:
        raise ExtensionSupportRequiredError(
            f"This agent requires the extension {choice(missing, 'and')}. If you support it, name it in the header "
            f"{choice(EXTENSIONS_HEADERS)}."
        )
