"""“call high_water port=Brest”: how a user has the rehearsal model call a tool, because it chooses none itself. Pure.

Rule: the name is followed by a JSON object, or by pairs of a name and a value.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from a2a_canvas.server.agent.model import ToolSpec
from a2a_canvas.tools.functions.function_tool import AnyTool
from a2a_canvas.tools.json_values import value_of_json

CallableTool = ToolSpec | AnyTool

MAX_EXAMPLES = 5

_CALL = re.compile(r"\W*(?:please\s+)?call\s+(?P<name>[\w-]+)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)

_PAIR = re.compile(r"([\w-]+)=(.*?)(?=\s+[\w-]+=|\s*$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call requested by a message.

    Attributes:
        input: None if unreadable.
        instead: a correct form of the request, if `input` is None.
    """

    tool: CallableTool
    input: Mapping[str, Any] | None
    instead: str = ""


def parse_call(text: str, tools: Iterable[CallableTool]) -> RequestedCall | None:
    """The call requested by a message; None if it names none of these tools."""
    found = _CALL.fullmatch(text.strip())
    tool = next((each for each in tools if found and each.name == found["name"]), None)
    if not found or not tool:
        return None
    rest = found["rest"].strip()
    given = _input(rest, tool)
    return RequestedCall(tool, given, "" if given is not None else _corrected_call(rest, tool))


def no_such_tool(text: str, tools: Iterable[CallableTool]) -> str:
    """The reply to a message with a misspelt tool name; empty if none is close."""
    found = _CALL.fullmatch(text.strip())
    near = get_close_matches(found["name"], [tool.name for tool in tools], n=1) if found else []
    return f"There is no tool {found['name']}; did you mean {near[0]}?" if found and near else ""


def examples(tools: Iterable[CallableTool]) -> str:
    """Examples of requests for these tools, as a list in a sentence."""
    shown = [f"“{example(tool)}”" for tool in tools]
    return ", ".join(shown[:MAX_EXAMPLES]) + ("…" if len(shown) > MAX_EXAMPLES else "")


def example(tool: CallableTool) -> str:
    """An example of a request for this tool."""
    return " ".join(["call", tool.name, *(f"{name}=…" for name in tool.input_schema.get("required", ()))])


def _corrected_call(rest: str, tool: CallableTool) -> str:
    """A correct form of a request. A shell removes the quotes around a value with blanks."""
    if not re.match(r"[\w-]+=", rest):
        return f"“{example(tool)}”, or with a JSON object."
    call = " ".join(["call", tool.name, *(f"{name}={_quote(text)}" for name, text in _PAIR.findall(rest))])
    return f"“{call}”, or with a JSON object. In a terminal: send {shlex.quote(call)}"


def _quote(text: str) -> str:
    plain = re.sub(r'["\\]', "", text)
    return plain if re.fullmatch(r"[\w.,:/@+-]+", plain) else f'"{plain}"'


def _input(rest: str, tool: CallableTool) -> Mapping[str, Any] | None:
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
    return value_of_json(text, text)
