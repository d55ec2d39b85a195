"""“call high_water port=Brest”: how the rehearsal model is told to call a tool of the agent, as it chooses none. Pure.

Rule: what follows the name is a JSON object, or pairs of a name and a value.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

MAX_EXAMPLES = 5

_CALL = re.compile(r"\W*(?:please\s+)?call\s+(?P<name>[\w-]+)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)


class Offered(Protocol):
    """A tool, as far as it is to be called."""

    @property
    def name(self) -> str: ...

    @property
    def input_schema(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class AskedFor:
    """A call that a message asks for. Without an `input` it could not be read."""

    tool: Offered
    input: Mapping[str, Any] | None


def asked_for(text: str, tools: Iterable[Offered]) -> AskedFor | None:
    """The call that a message asks for; None if it asks for none of these tools."""
    found = _CALL.fullmatch(text.strip())
    tool = next((each for each in tools if found and each.name == found["name"]), None)
    return AskedFor(tool, _input(found["rest"].strip(), tool)) if found and tool else None


def examples(tools: Iterable[Offered]) -> str:
    """How to ask for calls of these tools, in a sentence's words."""
    shown = [f"“{example(tool)}”" for tool in tools]
    return ", ".join(shown[:MAX_EXAMPLES]) + ("…" if len(shown) > MAX_EXAMPLES else "")


def example(tool: Offered) -> str:
    """How to ask for a call of this tool."""
    return " ".join(["call", tool.name, *(f"{name}=…" for name in tool.input_schema.get("required", ()))])


def _input(rest: str, tool: Offered) -> Mapping[str, Any] | None:
    try:
        if rest.startswith("{"):
            given = json.loads(rest)
            return given if isinstance(given, dict) else None
        pairs = [word.partition("=") for word in shlex.split(rest)]
    except ValueError:
        return None
    if not all(name and sign for name, sign, _ in pairs):
        return None
    return {name: _value(text, tool.input_schema.get("properties", {}).get(name, {})) for name, _, text in pairs}


def _value(text: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
