"""Another agent's card: the tool's name and description, and the interfaces to use. Pure.

Rule 1: an agent on the internet cannot send us to a private network: its interfaces there are ignored, and addresses
        are checked again at each connection.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.outbound.addresses import address_of, is_public
from a2a_canvas.server.outbound.token_origin import is_downgrade

TOOL_PREFIX = "ask_"
BINDINGS = ("JSONRPC", "HTTP+JSON")
"""The supported ones."""
MAX_NAME = 60
MAX_DESCRIPTION = 4_000
MAX_SKILLS = 20
MAX_SENTENCES = 400
"""Characters of the description of one skill."""

INPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "message": {
            "type": "string",
            "description": "What the agent is to do. It knows nothing of this conversation: say all that it needs.",
        },
        "artifact_ids": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Artifacts to send along. The agent may change them.",
        },
        "context_id": {
            "type": "string",
            "description": "To go on with an earlier conversation with the agent: the context_id in its result.",
        },
    },
    "required": ["message"],
    "additionalProperties": False,
}


def tool_name(card_name: str, taken: Collection[str]) -> str:
    """A unique name that every provider accepts."""
    plain = re.sub(r"[^a-z0-9]+", "_", card_name.lower()).strip("_")[: MAX_NAME - 8].rstrip("_") or "agent"
    names = (f"{TOOL_PREFIX}{plain}" + (f"_{number}" if number > 1 else "") for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def tool_description(card: pb.AgentCard) -> str:
    """The description of an agent for the model."""
    lines = [f"Ask another agent, {_line(card.name, 100)}: {_line(card.description, 1_000)}", ""]
    for skill in card.skills[:MAX_SKILLS]:
        lines.append(f"- {_line(skill.name or skill.id, 100)}: {_line(skill.description, MAX_SENTENCES)}")
    lines.append("What it writes becomes artifacts of this conversation while it works.")
    return "\n".join(lines)[:MAX_DESCRIPTION]


def _line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"


def usable_interfaces(card: pb.AgentCard) -> tuple[pb.AgentInterface, ...]:
    """The supported interfaces, in the agent's order of preference."""
    interfaces = card.supported_interfaces
    return tuple(each for each in interfaces if each.protocol_binding in BINDINGS and host_of(each.url))


def host_of(url: str) -> str:
    """The host of an HTTP address; empty for any other."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return (parts.hostname or "") if parts.scheme in ("http", "https") else ""


def without_downgrades(interfaces: Sequence[pb.AgentInterface], agent: str) -> tuple[pb.AgentInterface, ...]:
    """The interfaces without those that would drop an agent's TLS; all if none has TLS."""
    return tuple(each for each in interfaces if not is_downgrade(each.url, agent)) or tuple(interfaces)


def may_lead(agent: Sequence[str], interface: Sequence[str]) -> bool:
    """Whether an agent at some IP addresses may send us to others (rule 1). An agent with public and private addresses
    is on the internet, and may lead to its own."""
    return not any(map(_is_public, agent)) or all(_is_public(each) or each in agent for each in interface)


def _is_public(address: str) -> bool:
    return is_public(address_of(address))


def needs_credentials(card: pb.AgentCard) -> bool:
    """Whether the card requires credentials for every request."""
    required = card.security_requirements
    return bool(required) and all(each.schemes for each in required)


def token_header(card: pb.AgentCard) -> tuple[str, str]:
    """The header of a token, and the prefix of its value."""
    for scheme in card.security_schemes.values():
        key = scheme.api_key_security_scheme
        if scheme.HasField("api_key_security_scheme") and key.location == "header" and key.name:
            return key.name, ""
    return "Authorization", "Bearer "
