"""The agent card: read from its file, filled in (`card_file.py`), checked at start-up, served.

Rule: a card without skills of its own lists the tools that exist at the time of the request. Its ETag is made from its
      content, and each new content has a later date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import validate_proto_required_fields
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from a2a_canvas.server.protocols.a2a_v1.card.card_file import (
    declare_edits_off,
    declare_formats,
    declare_quick_actions,
    fill_card,
    invalid,
    read_card,
    with_tools,
)
from a2a_canvas.server.protocols.edge.http_requests import etag_of, is_not_modified
from a2a_canvas.server.protocols.identity.security import Security
from a2a_canvas.server.wire import REST_PREFIX
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.tools.functions.function_tool import AnyTool

CACHE_SECONDS = 300
"""Seconds for which a client may cache the card."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The server's addresses in the card. `grpc` is `host:port` without a scheme, empty if gRPC is not listed."""

    url: str
    grpc: str = ""

    @classmethod
    def from_settings(cls, url: str, grpc_port: int | None, public_grpc: str = "") -> Addresses:
        """gRPC is listed only if it is on and has a public address: some clients refuse a card that lists it.

        Args:
            public_grpc: its public address, with or without the port; empty if it has none.
        """
        if not (grpc_port and public_grpc):
            return cls(url)
        return cls(url, public_grpc if re.search(r":\d+$", public_grpc) else f"{public_grpc}:{grpc_port}")


PACKAGED_CARD = Path(__file__).parents[4] / "agent_card.json"
"""The card of the built-in agent."""


@dataclass(frozen=True, slots=True)
class LoadedCard:
    """A card that can be served.

    Attributes:
        content: the card without the skills made from tools.
        names_skills: its file lists skills, so none are added.
    """

    content: pb.AgentCard
    names_skills: bool

    def with_tools(self, tools: Sequence[AnyTool]) -> pb.AgentCard:
        """The card of a server with these tools."""
        return self.content if self.names_skills else with_tools(self.content, tools)


def load_card(
    path: Path | None,
    addresses: Addresses,
    *,
    advertise_0_3: bool,
    note: str = "",
    name: str = "",
    quick_actions: Sequence[Mapping[str, str]] = (),
    edits: bool = True,
    formats: Sequence[str] = (),
) -> LoadedCard:
    """The card of this server.

    Args:
        path: the card's file; None for the packaged one.
        note: a sentence to add to the description.
        name: the agent's, unless the file has one.
        quick_actions: those that the model supports, declared unless the file has its own; empty if the model supports
            any.
        edits: whether edits of a selection are answered.
        formats: those in which Markdown can be downloaded.

    Raises:
        CardError: the file cannot be read, is not a card, lacks what A2A requires, or promises what is not offered.
    """
    fields = read_card(path) if path else {}
    card = fill_card({"name": name, **fields} if name else fields, read_card(PACKAGED_CARD))
    if not edits:
        declare_edits_off(card)
    elif quick_actions:
        declare_quick_actions(card, quick_actions)
    if formats:
        declare_formats(card, formats)
    card.description = " ".join(filter(None, (card.description, note)))
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(_interfaces(addresses, advertise_0_3))
    try:
        validate_proto_required_fields(card)
    except InvalidParamsError as error:
        faults = "; ".join(f"{fault['field']}: {fault['message']}" for fault in (error.data or {}).get("errors", ()))
        raise invalid(path or PACKAGED_CARD, faults) from None
    return LoadedCard(card, names_skills=bool(fields.get("skills")))


def _interfaces(addresses: Addresses, advertise_0_3: bool) -> Iterator[pb.AgentInterface]:
    for version in ("1.0", "0.3") if advertise_0_3 else ("1.0",):
        yield pb.AgentInterface(url=addresses.url + "/", protocol_binding="JSONRPC", protocol_version=version)
        yield pb.AgentInterface(url=addresses.url + REST_PREFIX, protocol_binding="HTTP+JSON", protocol_version=version)
        if addresses.grpc:
            yield pb.AgentInterface(url=addresses.grpc, protocol_binding="GRPC", protocol_version=version)


class CurrentCard:
    """The card as it is now.

    Args:
        tools: lists the tools that exist now.
        security: the credentials that a request needs; None if it needs none.
        sign: signs the card; None if this server does not sign it.
    """

    def __init__(
        self,
        loaded: LoadedCard,
        tools: Callable[[], Sequence[AnyTool]] = tuple,
        security: Callable[[], Awaitable[Security]] | None = None,
        sign: Callable[[pb.AgentCard], pb.AgentCard] | None = None,
    ) -> None:
        self._loaded, self._tools, self._security, self._sign = loaded, tools, security, sign
        self._made_of: tuple[Sequence[AnyTool], Security] | None = None
        self._needed = Security()
        self._card = loaded.content

    async def __call__(self) -> pb.AgentCard:
        """The card; the same object until something changes."""
        if self._security:
            with suppress(Unavailable):  # keep the last known requirements
                self._needed = await self._security()
        made_of = self._tools(), self._needed
        if made_of != self._made_of:
            self._made_of = made_of
            card = self._needed.describe(self._loaded.with_tools(made_of[0]))
            self._card = self._sign(card) if self._sign else card
        return self._card


class _EncodedCard:
    """The bytes of a card, their tag, and the time of their last change."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._card: pb.AgentCard | None = None
        self.body, self.etag = b"", ""
        self.modified = now().astimezone(UTC).replace(microsecond=0)

    def refresh(self, card: pb.AgentCard) -> None:
        if card is self._card:
            return
        first, self._card = self._card is None, card
        body = json.dumps(agent_card_to_dict(card), ensure_ascii=False).encode()
        if body != self.body:
            self.body, self.etag = body, etag_of(body)
            if not first:
                now = self._now().astimezone(UTC).replace(microsecond=0)
                self.modified = max(now, self.modified + timedelta(seconds=1))

    @property
    def headers(self) -> dict[str, str]:
        return {
            "ETag": self.etag,
            "Last-Modified": format_datetime(self.modified, usegmt=True),
            "Cache-Control": f"public, max-age={CACHE_SECONDS}",
        }


def card_route(current: CurrentCard, now: Callable[[], datetime]) -> Route:
    """`GET /.well-known/agent-card.json`, with `ETag`, `Last-Modified` and `Cache-Control`."""
    encoded = _EncodedCard(now)

    async def serve(request: Request) -> Response:
        encoded.refresh(await current())
        if is_not_modified(request, encoded.etag, encoded.modified):
            return Response(status_code=304, headers=encoded.headers)
        return Response(encoded.body, media_type="application/json", headers=encoded.headers)

    return Route(AGENT_CARD_WELL_KNOWN_PATH, serve, methods=["GET"])
