"""The file of an agent card: a few lines are enough, the rest is filled in.

Rule 1: the server sets the interfaces and our extensions, except their `params`; the file sets everything else. It may
        switch streams and push notifications off.
Rule 2: if the file lists no skills, they are made from the tools and the skills that every agent here has. The tools of
        other servers and agents come and go.
Rule 3: a card of A2A 0.3 is converted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from a2a_canvas.server.wire import CANVAS
from a2a_canvas.tools.functions.function_tool import AnyTool

Fields = Mapping[str, Any]

MAX_DESCRIPTION = 500
"""Characters of the description of a skill that is made from a tool: those of MCP servers can be very long."""

OLD_FIELDS = (
    *("url", "preferredTransport", "protocolVersion", "additionalInterfaces"),
    *("supportsAuthenticatedExtendedCard", "security"),
)
"""The fields of a card that exist in A2A 0.3 but not in 1.0."""

PLACEHOLDERS: Fields = {
    "name": "-",
    "description": "-",
    "version": "-",
    "url": "http://localhost",
    "capabilities": {},
    "defaultInputModes": [],
    "defaultOutputModes": [],
    "skills": [],
}
"""Values for the fields that A2A 0.3 requires and a card may leave out here."""


class CardError(Exception):
    """The card cannot be served; `str()` is one line that names the file and the fault."""


def read_card(path: Path) -> Fields:
    """The content of a file, as fields of A2A 1.0.

    Raises:
        CardError: it cannot be read, is not a card, or promises what is not offered.
    """
    try:
        fields = json.loads(path.read_text(encoding="utf-8-sig"))
        if not isinstance(fields, dict):
            raise ValueError("it must be a JSON object")
        _check_types(fields)
        card = _parse(_with_ids(fields))
    except OSError as error:
        raise CardError(f"The agent card {path} cannot be read: {error.strerror}.") from None
    except (ValueError, ParseError) as error:
        raise invalid(path, _reason(error)) from None
    except RecursionError:
        raise invalid(path, "it is nested too deeply") from None
    if card.capabilities.extended_agent_card:
        raise invalid(path, "capabilities.extendedAgentCard: this server does not offer it; leave it out")
    return MessageToDict(card)


def _check_types(fields: Fields) -> None:
    """Report wrong types in our words: the parser's messages are about Python types."""
    for name in ("name", "description", "version"):
        if not isinstance(fields.get(name, ""), str):
            raise ValueError(f'"{name}" must be a text in quotes')
    skills = fields.get("skills", [])
    if not isinstance(skills, list) or not all(isinstance(each, dict) for each in skills):
        raise ValueError('"skills" must be a list of objects, such as {"name": "Tell tides", "description": "When…"}')


def invalid(path: Path, why: str) -> CardError:
    return CardError(f"The agent card {path} is not valid: {why}")


def fill_card(fields: Fields, defaults: Fields) -> pb.AgentCard:
    """The card, completed from the defaults, without the skills of its tools.

    Args:
        fields: those of its file.
        defaults: the card of the built-in agent.
    """
    capabilities = {**defaults["capabilities"], **fields.get("capabilities", {})}
    own = defaults["capabilities"]["extensions"]
    theirs = {each["uri"]: each for each in capabilities["extensions"]}
    params = {uri: {"params": each["params"]} for uri, each in theirs.items() if "params" in each}
    ours = [{**each, **params.get(each["uri"], {})} for each in own]
    added = [each for uri, each in theirs.items() if uri not in [each["uri"] for each in own]]
    card = {**defaults, **fields, "capabilities": {**capabilities, "extensions": [*ours, *added]}}
    modes = {"inputModes": card["defaultInputModes"], "outputModes": card["defaultOutputModes"]}
    # Some clients require the modes in each skill.
    card["skills"] = [{"tags": [each.get("id", "")], **modes, **each} for each in card["skills"]]
    return ParseDict(card, pb.AgentCard())


def declare_quick_actions(card: pb.AgentCard, actions: Iterable[Mapping[str, str]]) -> None:
    """Declare the quick actions in `canvas:v1`, unless the card's file does."""
    for extension in card.capabilities.extensions:
        if extension.uri == CANVAS and "quickActions" not in extension.params:
            extension.params.update({"quickActions": [dict(each) for each in actions]})


def declare_edits_off(card: pb.AgentCard) -> None:
    """Declare in `canvas:v1` that edits of a selection are refused, so there are no quick actions."""
    for extension in card.capabilities.extensions:
        if extension.uri == CANVAS:
            extension.params.update({"edits": False, "quickActions": []})


def declare_formats(card: pb.AgentCard, formats: Iterable[str]) -> None:
    """Declare in `canvas:v1` the formats in which Markdown can be downloaded."""
    for extension in card.capabilities.extensions:
        if extension.uri == CANVAS:
            extension.params.update({"formats": list(formats)})


def is_off(card: pb.AgentCard, capability: str) -> bool:
    """Whether a card says that the agent lacks a capability (`streaming`, `push_notifications`)."""
    return card.capabilities.HasField(capability) and not getattr(card.capabilities, capability)


def with_tools(card: pb.AgentCard, tools: Iterable[AnyTool]) -> pb.AgentCard:
    """The card with a skill for each tool, in front of its own."""
    made = pb.AgentCard()
    made.CopyFrom(card)
    del made.skills[:]
    made.skills.extend([*(_skill_of(tool, card) for tool in tools), *card.skills])
    return made


def _skill_of(tool: AnyTool, card: pb.AgentCard) -> pb.AgentSkill:
    server, _, of_server = tool.name.partition("__")  # of a tool of an MCP server
    words = re.sub(r"[_\W]+", " ", of_server or tool.name).strip()
    summary = " ".join(tool.description.strip().partition("\n\n")[0].split())
    return pb.AgentSkill(
        id=tool.name,
        name=words[:1].upper() + words[1:],
        description=(summary if len(summary) <= MAX_DESCRIPTION else f"{summary[:MAX_DESCRIPTION]}…") or words,
        tags=["tool", *((server,) if of_server else ())],
        input_modes=card.default_input_modes,
        output_modes=card.default_output_modes,
    )


def _with_ids(fields: Fields) -> Fields:
    """The fields, with an id for each skill that has a name but no id."""
    skills = fields.get("skills")
    if not isinstance(skills, list):
        return fields
    named = [{"id": _slug(each), **each} if isinstance(each, dict) and _slug(each) else each for each in skills]
    return {**fields, "skills": named}


def _slug(skill: Fields) -> str:
    return re.sub(r"\W+", "-", str(skill.get("name", "")).lower()).strip("-")


def _parse(fields: Fields) -> pb.AgentCard:
    old = [name for name in OLD_FIELDS if name in fields]
    if "supportedInterfaces" in fields:  # a card for both versions, such as this server's own
        return ParseDict({name: value for name, value in fields.items() if name not in old}, pb.AgentCard())
    return _convert_legacy(fields) if old else ParseDict(dict(fields), pb.AgentCard())


def _convert_legacy(fields: Fields) -> pb.AgentCard:
    """Convert a card of A2A 0.3 (rule 3)."""
    from a2a.compat.v0_3 import conversions, types

    if unknown := fields.keys() - {info.alias or name for name, info in types.AgentCard.model_fields.items()}:
        raise ValueError(f'A2A 0.3 has no field "{min(unknown)}" in a card')
    skills = fields.get("skills", [])
    if isinstance(skills, list):
        skills = [{"tags": [each.get("id", "")], **each} if isinstance(each, dict) else each for each in skills]
    card = conversions.to_core_agent_card(types.AgentCard.model_validate({**PLACEHOLDERS, **fields, "skills": skills}))
    for name in ("name", "description", "version"):
        if name not in fields:
            card.ClearField(name)
    return card


def _reason(error: ValueError | ParseError) -> str:
    faults = getattr(error, "errors", None)
    if faults:  # pydantic's, for a card of 0.3
        fault = faults()[0]
        return f"A2A 0.3: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
    # protobuf adds lines that list what it would have accepted.
    text, _, more = str(error).partition("\n")
    if not (unknown := re.search(r'Message type "[\w.]*?(\w+)" has no field named "(.*?)"', text)):
        return text
    close = get_close_matches(unknown[2], re.findall(r"'(\w+)'", more), n=1)
    return f'{unknown[1]} has no field "{unknown[2]}".' + (f' Did you mean "{close[0]}"?' if close else "")
