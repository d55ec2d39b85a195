"""“call high_water port=Brest”: how the rehearsal model is told to call a tool of the agent, as it chooses none. Pure.

Rule: what follows the name is a JSON object, or pairs of a name and a value.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

MAX_EXAMPLES = 5

_CALL = re.compile(r"\W*(?:please\s+)?call\s+(?P<name>[\w-]+)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)

_PAIR = re.compile(r"([\w-]+)=(.*?)(?=\s+[\w-]+=|\s*$)", re.DOTALL)


class Offered(Protocol):
    """A tool, as far as it is to be called."""

    @property
    def name(self) -> str: ...

    @property
    def input_schema(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class AskedFor:
    """A call that a message asks for.

    Attributes:
        input: None if it could not be read.
        instead: how it could have been asked for then.
    """

    tool: Offered
    input: Mapping[str, Any] | None
    instead: str = ""


def asked_for(text: str, tools: Iterable[Offered]) -> AskedFor | None:
    """The call that a message asks for; None if it asks for none of these tools."""
    found = _CALL.fullmatch(text.strip())
    tool = next((each for each in tools if found and each.name == found["name"]), None)
    if not found or not tool:
        return None
    rest = found["rest"].strip()
    given = _input(rest, tool)
    return AskedFor(tool, given, "" if given is not None else _instead(rest, tool))


def no_such_tool(text: str, tools: Iterable[Offered]) -> str:
    """What to say to a message that asks for a call of no tool, but nearly of one of these; else empty."""
    found = _CALL.fullmatch(text.strip())
    near = get_close_matches(found["name"], [tool.name for tool in tools], n=1) if found else []
    return f"There is no tool {found['name']}; did you mean {near[0]}?" if found and near else ""


def examples(tools: Iterable[Offered]) -> str:
    """How to ask for calls of these tools, in a sentence's words."""
    shown = [f"“{example(tool)}”" for tool in tools]
    return ", ".join(shown[:MAX_EXAMPLES]) + ("…" if len(shown) > MAX_EXAMPLES else "")


def example(tool: Offered) -> str:
    """How to ask for a call of this tool."""
    return " ".join(["call", tool.name, *(f"{name}=…" for name in tool.input_schema.get("required", ()))])


def _instead(rest: str, tool: Offered) -> str:
    """How to ask for a call. A shell takes the quotes away from around a value with blanks."""
    if not re.match(r"[\w-]+=", rest):
        return f"“{example(tool)}”, or with a JSON object."
    call = " ".join(["call", tool.name, *(f"{name}={_quoted(text)}" for name, text in _PAIR.findall(rest))])
    return f"“{call}”, or with a JSON object. In a terminal: send {shlex.quote(call)}"


def _quoted(text: str) -> str:
    plain = re.sub(r'["\\]', "", text)
    return plain if re.fullmatch(r"[\w.,:/@+-]+", plain) else f'"{plain}"'


def _input(rest: str, tool: Offered) -> Mapping[str, Any] | None:
    try:
        if rest.startswith("{"):
            given = json.loads(rest)
            return given if isinstance(given, dict) else None
        pairs = [word.partition("=") for word in shlex.split(rest)]
    except (ValueError, RecursionError):
        return None
    if not all(name and sign for name, sign, _ in pairs):
        return None
    return {name: _value(text, tool.input_schema.get("properties", {}).get(name, {})) for name, _, text in pairs}


def _value(text: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
