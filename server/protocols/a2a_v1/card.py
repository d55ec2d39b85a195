"""The agent card: read from `agent_card.json`, completed from the settings, checked at start-up, served."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
from google.protobuf.json_format import ParseDict, ParseError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from a2a_canvas.server.protocols.edge.http_requests import etag_of, is_not_modified

REST_PREFIX = "/rest"
CACHE_SECONDS = 300
"""Seconds for which a client may cache the card."""


class CardError(Exception):
    """The card cannot be served; `str()` is one line that names the file and the fault."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The server's addresses. `grpc` is `host:port` without a scheme, empty if gRPC is off."""

    url: str
    grpc: str = ""

    @classmethod
    def of(cls, url: str, grpc_port: int | None) -> Addresses:
        host = urlsplit(url).hostname or ""
        return cls(url, f"{f'[{host}]' if ':' in host else host}:{grpc_port}" if grpc_port else "")


def load_card(path: Path, addresses: Addresses, *, advertise_0_3: bool, note: str = "") -> pb.AgentCard:
    """The card that this server serves.

    Args:
        note: a sentence to add to the description.

    Raises:
        CardError: the file cannot be read, is not a card, lacks what A2A requires, or promises what is not offered.
    """
    card = _read(path)
    card.description = " ".join(filter(None, (card.description, note)))
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(_interfaces(addresses, advertise_0_3))
    card.capabilities.streaming = True
    try:
        validate_proto_required_fields(card)
    except InvalidParamsError as error:
        faults = "; ".join(f"{fault['field']}: {fault['message']}" for fault in (error.data or {}).get("errors", ()))
        raise _invalid(path, faults) from None
    return card


def _read(path: Path) -> pb.AgentCard:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(fields, dict):
            raise ValueError("it must be a JSON object")
        card = ParseDict(fields, pb.AgentCard())
    except OSError as error:
        raise CardError(f"The agent card {path} cannot be read: {error.strerror}.") from None
    except (ValueError, ParseError) as error:
        # protobuf adds lines that list what it would have accepted.
        raise _invalid(path, str(error).partition("\n")[0]) from None
    except RecursionError:
        raise _invalid(path, "it is nested too deeply") from None
    for promise in ("push_notifications", "extended_agent_card"):
        if getattr(card.capabilities, promise):
            name = card.capabilities.DESCRIPTOR.fields_by_name[promise].json_name
            raise _invalid(path, f"capabilities.{name}: this server does not offer it; leave it out")
    return card


def _invalid(path: Path, why: str) -> CardError:
    return CardError(f"The agent card {path} is not valid: {why}")


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
