"""The agent card: read from its file, filled in (`card_file.py`), checked at start-up, served."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import urlsplit

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import validate_proto_required_fields
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from a2a_canvas.server.protocols.a2a_v1.card_file import Fields, filled, invalid, read_card
from a2a_canvas.server.protocols.edge.http_requests import etag_of, is_not_modified

REST_PREFIX = "/rest"
CACHE_SECONDS = 300
"""Seconds for which a client may cache the card."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The server's addresses. `grpc` is `host:port` without a scheme, empty if gRPC is off."""

    url: str
    grpc: str = ""

    @classmethod
    def of(cls, url: str, grpc_port: int | None) -> Addresses:
        host = urlsplit(url).hostname or ""
        return cls(url, f"{f'[{host}]' if ':' in host else host}:{grpc_port}" if grpc_port else "")


PACKAGED_CARD = Path(__file__).parents[3] / "agent_card.json"
"""The card of the agent that every server has."""


def load_card(
    path: Path | None,
    addresses: Addresses,
    *,
    advertise_0_3: bool,
    note: str = "",
    name: str = "",
    tool_skills: Iterable[Fields] = (),
) -> pb.AgentCard:
    """The card that this server serves.

    Args:
        path: the card's file; the packaged one if it is None.
        note: a sentence to add to the description.
        name: the agent's, unless the file has it.
        tool_skills: a skill for each tool, unless the file has skills.

    Raises:
        CardError: the file cannot be read, is not a card, lacks what A2A requires, or promises what is not offered.
    """
    said = read_card(path) if path else {}
    card = filled({"name": name, **said} if name else said, read_card(PACKAGED_CARD), tool_skills)
    card.description = " ".join(filter(None, (card.description, note)))
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(_interfaces(addresses, advertise_0_3))
    card.capabilities.streaming = True
    try:
        validate_proto_required_fields(card)
    except InvalidParamsError as error:
        faults = "; ".join(f"{fault['field']}: {fault['message']}" for fault in (error.data or {}).get("errors", ()))
        raise invalid(path or PACKAGED_CARD, faults) from None
    return card


def _interfaces(addresses: Addresses, advertise_0_3: bool) -> Iterator[pb.AgentInterface]:
    for version in ("1.0", "0.3") if advertise_0_3 else ("1.0",):
        yield pb.AgentInterface(url=addresses.url + "/", protocol_binding="JSONRPC", protocol_version=version)
        yield pb.AgentInterface(url=addresses.url + REST_PREFIX, protocol_binding="HTTP+JSON", protocol_version=version)
        if addresses.grpc:
            yield pb.AgentInterface(url=addresses.grpc, protocol_binding="GRPC", protocol_version=version)


def card_route(card: pb.AgentCard, modified: datetime) -> Route:
    """`GET /.well-known/agent-card.json`, with `ETag`, `Last-Modified` and `Cache-Control`."""
    body = json.dumps(agent_card_to_dict(card), ensure_ascii=False).encode()
    modified = modified.astimezone(UTC).replace(microsecond=0)
    headers = {
        "ETag": etag_of(body),
        "Last-Modified": format_datetime(modified, usegmt=True),
        "Cache-Control": f"public, max-age={CACHE_SECONDS}",
    }

    async def serve(request: Request) -> Response:
        if is_not_modified(request, headers["ETag"], modified):
            return Response(status_code=304, headers=headers)
        return Response(body, media_type="application/json", headers=headers)

    return Route(AGENT_CARD_WELL_KNOWN_PATH, serve, methods=["GET"])
