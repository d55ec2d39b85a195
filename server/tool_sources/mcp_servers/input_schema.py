"""The schema of an MCP tool's input, normalised for model providers. Pure.

Rule 1: the root is an object with properties, without `$ref`, `anyOf`, `oneOf`, `allOf` and the like.
Rule 2: property names are ones that providers accept; a call's input gets the original ones back (`Schema.original`).
Rule 3: an invalid or oversized schema is replaced by one for any object: then the server validates the input.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from a2a_canvas.server.tool_sources.mcp_servers.tool_names import unique_names
from a2a_canvas.store.text.wording import choice, format_value
from a2a_canvas.tools.tool import invalid_input_message

MAX_SCHEMA = 50_000
"""The maximum length of a schema's JSON, which is part of every request to the model."""

ANYTHING: Mapping[str, Any] = {"type": "object", "properties": {}}

MAX_FAULTS = 10
"""The most faults of one input that the model reads."""

_WORDS: Mapping[str, str] = {
    "string": "a string",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
"""The types of a schema in words."""

_COMBINED = ("allOf", "anyOf", "oneOf")
_DROPPED = ("$schema", "$id", "$ref", "not", "if", "then", "else", "enum", "const", *_COMBINED)
"""Keys of a root that providers reject."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema for the model.

    Attributes:
        renamed: property names that differ for the model: ours → the server's.
    """

    json: Mapping[str, Any]
    renamed: Mapping[str, str] = field(default_factory=dict)

    def original(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The model's input with the server's names."""
        return {self.renamed.get(name, name): value for name, value in arguments.items()}

    def fault(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The faults in the names and value types of an input; empty if there are none."""
        faults = [f"{name}: is missing" for name in self.json.get("required", ()) if name not in arguments]
        for name, value in arguments.items():
            wanted = self.json.get("properties", {}).get(name)
            kinds = wanted.get("type") if isinstance(wanted, Mapping) else None
            known = [kinds] if isinstance(kinds, str) else kinds or []
            if known and not any(_has_type(kind, value) for kind in known):
                faults.append(f"{name}: is {format_value(value)} and must be {choice(_WORDS[kind] for kind in known)}")
        return invalid_input_message(tool, faults[:MAX_FAULTS]) if faults else ""


def _has_type(kind: str, value: Any) -> bool:
    """Whether a value has this JSON schema type."""
    match value:
        case bool():
            return kind == "boolean"
        case int():
            return kind in ("number", "integer")
        case float():
            return kind == "number" or (kind == "integer" and value.is_integer())
        case str():
            return kind == "string"
        case None:
            return kind == "null"
        case list():
            return kind == "array"
        case _:
            return kind == "object"


def normalise(schema: object) -> Schema:
    """Convert a server's schema to one that providers accept."""
    if not isinstance(schema, dict) or not _is_sound(schema):
        return Schema(ANYTHING)
    try:
        found = _with_own_root(schema)
    except (TypeError, AttributeError):
        return Schema(ANYTHING)
    # A reference may lead outside the checked parts of the schema.
    return found if _is_sound(found.json) else Schema(ANYTHING)


def _with_own_root(schema: dict[str, Any]) -> Schema:
    root = _flatten(schema, schema, depth=0)
    kept = {key: value for key, value in root.items() if key not in _DROPPED}
    properties = root.get("properties", {})
    names = unique_names({name: (name,) for name in properties})
    required = [names[name] for name in root.get("required", ()) if name in names]
    kept |= {"type": "object", "properties": {names[name]: value for name, value in properties.items()}}
    kept = {key: value for key, value in kept.items() if key != "required"} | (
        {"required": required} if required else {}
    )
    return Schema(kept, {ours: theirs for theirs, ours in names.items() if ours != theirs})


def _is_sound(schema: Mapping[str, Any]) -> bool:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        if len(json.dumps(schema)) > MAX_SCHEMA:
            return False
        Draft202012Validator.check_schema(schema)
    except (SchemaError, ValueError, RecursionError):
        return False
    return True


def _flatten(node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """A node, with its references and combinations merged into one object."""
    if depth > 8:
        return dict(node)
    parts = [_resolve(node["$ref"], root)] if "$ref" in node else []
    merged = dict(node)
    merged.setdefault("properties", {})
    for part in (*parts, *_list(node.get("allOf"))):
        other = _flatten(part, root, depth + 1)
        merged = _merge(merged, other, [*merged.get("required", ()), *other.get("required", ())])
    for key in ("anyOf", "oneOf"):
        choices = [_flatten(part, root, depth + 1) for part in _list(node.get(key))]
        needed = set.intersection(*(set(each.get("required", ())) for each in choices)) if choices else set()
        for other in choices:
            merged = _merge(merged, other, merged.get("required", ()))
        merged["required"] = [*merged.get("required", ()), *sorted(needed)]
    merged["required"] = list(dict.fromkeys(merged.get("required", ())))
    return merged


def _merge(one: Mapping[str, Any], other: Mapping[str, Any], required: Iterable[str]) -> dict[str, Any]:
    properties = {**other.get("properties", {}), **one.get("properties", {})}
    return {**other, **one, "properties": properties, "required": list(required)}


def _resolve(reference: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    node: Any = root
    for step in str(reference).removeprefix("#").split("/")[1:]:
        node = node.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(node, dict) else {}
    return node if isinstance(node, dict) and node is not root else {}


def _list(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
