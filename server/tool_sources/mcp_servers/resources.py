"""The resources of an MCP server, described to the model. Pure; its input is JSON as MCP has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DESCRIBED = 4_000
"""The maximum length of the resources in the description of `read_resource`, part of every request to the model."""
LISTED = 20_000
"""The maximum length of an answer of `list_resources`."""

READ_INPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "The URI of the resource."}},
    "required": ["uri"],
}
LIST_INPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"contains": {"type": "string", "description": "Only those with this text; all if left out."}},
}


def resource_lines(resources: Sequence[Mapping[str, Any]], templates: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each: its URI or URI template, its name and its description."""
    return [_line(str(each.get("uri") or each.get("uriTemplate")), each) for each in (*resources, *templates)]


def _line(uri: str, resource: Mapping[str, Any]) -> str:
    name = resource.get("title") or resource.get("name") or ""
    about = [name if name != uri else "", resource.get("description") or ""]
    return " ".join(" – ".join((uri, *filter(None, map(str, about)))).split())[:300]


def read_description(server: str, lines: Sequence[str], list_tool: str) -> str:
    """The description of `read_resource`, with as many resources as fit."""
    shown = fitting(lines, DESCRIBED)
    text = f"Read a resource of the MCP server {server}. {{…}} in a URI stand for values. There are:\n" + "\n".join(
        shown
    )
    return (
        text if len(shown) == len(lines) else f"{text}\n… and {len(lines) - len(shown)} more: {list_tool} lists them."
    )


def listing(lines: Sequence[str], contains: str) -> str:
    """The answer of `list_resources`."""
    found = [line for line in lines if contains.lower() in line.lower()]
    shown = fitting(found, LISTED)
    more = f"\n… and {len(found) - len(shown)} more: say what they must contain." if len(shown) < len(found) else ""
    return ("\n".join(shown) or "There is none.") + more


def fitting(lines: Sequence[str], room: int) -> Sequence[str]:
    """The first lines that fit."""
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return lines[:number]
    return lines
