"""A question of an MCP server to the user (elicitation): its text, and the parsing of the answer. Pure.

Rule 1: a question with one field is answered by its value, one with several by JSON or by lines of `name: value`.
        Optional values may be omitted.
Rule 2: `decline` and `cancel` answer any question; as values they need quotation marks.
Rule 3: after an invalid answer the question is repeated, with the reason (`UnclearAnswer`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from a2a_canvas.tools.json_values import value_of_json

Value = str | int | float | bool | list[str] | None


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """The reply to the server."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Value] | None = None


@dataclass(frozen=True, slots=True)
class UnclearAnswer:
    """The answer is not valid for the form."""

    reason: str


class _InvalidAnswer(Exception):
    pass


DECLINE = "If you do not want to say, answer “decline”."
YES = frozenset(("yes", "y", "true", "1", "ok", "okay", "on"))
NO = frozenset(("no", "n", "false", "0", "off"))
MAX_MESSAGE = 4_000
"""The maximum length of a server's message to the user."""


def question(server: str, request: Mapping[str, Any]) -> str:
    """The text of the question for the user.

    Args:
        request: the parameters of `elicitation/create`.
    """
    message = str(request.get("message", ""))[:MAX_MESSAGE]
    asked = f"{server} asks: {message}"
    if request.get("mode") == "url":
        return f"{asked}\n\nOpen {request.get('url')} and answer “done” after that. {DECLINE}"
    properties, required = _form(request)
    if not properties:
        return f"{asked}\n\nAnswer “yes”, or “decline”."
    fields = [f"- {_describe_field(name, field, name in required)}" for name, field in properties.items()]
    if len(fields) == 1:
        return f"{asked}\n\n{fields[0][2:]}\n\n{DECLINE}"
    how = "Answer with one line for each, such as:"
    example = "\n".join(f"{name}: …" for name in list(properties)[:2])
    return "\n\n".join((asked, "\n".join(fields), f"{how}\n\n{example}", DECLINE))


def answer(request: Mapping[str, Any], text: str) -> ElicitationAnswer | UnclearAnswer:
    """Parse the user's answer to a question."""
    stripped = text.strip()
    plain = stripped.rstrip(".!").lower()
    if plain in ("decline", "cancel"):
        return ElicitationAnswer("decline" if plain == "decline" else "cancel")
    if request.get("mode") == "url":
        return ElicitationAnswer("decline") if plain in NO else ElicitationAnswer("accept")
    properties, required = _form(request)
    if not properties:
        return ElicitationAnswer("decline") if plain in NO else ElicitationAnswer("accept", {})
    try:
        return ElicitationAnswer("accept", _content(properties, required, stripped))
    except _InvalidAnswer as wrong:
        return UnclearAnswer(str(wrong))


def _form(request: Mapping[str, Any]) -> tuple[Mapping[str, Mapping[str, Any]], Sequence[str]]:
    schema = request.get("requestedSchema")
    schema = schema if isinstance(schema, dict) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    fields = {name: field if isinstance(field, dict) else {} for name, field in properties.items()}
    return fields, required if isinstance(required, list) else ()


def _describe_field(name: str, field: Mapping[str, Any], required: bool) -> str:
    title = field.get("title")
    words = [f"{name} ({title})" if title and str(title).lower() != name.lower() else name]
    words += [f": {field['description']}"] if field.get("description") else []
    allowed = _allowed_values(field)
    kind = f"one of {', '.join(_labels(allowed))}" if allowed else _KINDS.get(str(field.get("type")), "text")
    if field.get("type") == "array":
        kind = f"any of {', '.join(_labels(allowed))}, separated by commas" if allowed else "values separated by commas"
    notes = [kind, *(() if required else ("may be left out",))]
    if "default" in field:
        notes.append(f"otherwise {json.dumps(field['default'], ensure_ascii=False)}")
    return f"{''.join(words)} [{'; '.join(notes)}]"


_KINDS = {"boolean": "yes or no", "integer": "a whole number", "number": "a number", "string": "text"}


def _labels(allowed: Mapping[str, str]) -> list[str]:
    return [value if value == title else f"{value} ({title})" for value, title in allowed.items()]


def _allowed_values(field: Mapping[str, Any]) -> Mapping[str, str]:
    """The allowed values of a field, with their titles; empty if any text is."""
    source = field.get("items", {}) if field.get("type") == "array" else field
    if not isinstance(source, dict):
        return {}
    titled = source.get("oneOf") or source.get("anyOf") or ()
    values = {str(each["const"]): str(each.get("title", each["const"])) for each in titled if "const" in each}
    names = source.get("enumNames") or source.get("enum") or ()
    return values or {str(value): str(name) for value, name in zip(source.get("enum") or (), names, strict=False)}


def _content(properties: Mapping[str, Mapping[str, Any]], required: Sequence[str], text: str) -> Mapping[str, Value]:
    found = _values(properties, required, text)
    content = {name: _read(name, properties[name], value) for name, value in found.items()}
    for name, field in properties.items():
        if name not in content and "default" in field:
            content[name] = field["default"]
    if missing := [name for name in required if name in properties and name not in content]:
        raise _InvalidAnswer(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return content


def _values(properties: Mapping[str, Mapping[str, Any]], required: Sequence[str], text: str) -> Mapping[str, object]:
    """The values of an answer, by field."""
    names = {
        spelling.lower(): name for name, field in properties.items() for spelling in (name, str(field.get("title")))
    }
    whole = value_of_json(text)
    if isinstance(whole, dict) and all(key.lower() in names for key in whole):
        return {names[key.lower()]: value for key, value in whole.items() if value is not None}
    lines = _lines(text, names)
    if lines:
        return lines
    needed = [name for name in properties if name in required]
    only = list(properties) if len(properties) == 1 else needed
    if len(only) != 1:
        raise _InvalidAnswer(
            f"the answer needs a line for each of {', '.join(needed or properties)}, such as “{needed[0]}: …”"
        )
    return {only[0]: whole if isinstance(whole, str | list) else text}


def _lines(text: str, names: Mapping[str, str]) -> dict[str, object]:
    """`name: value` or `name = value` lines; a line without a name continues the previous value."""
    values: dict[str, object] = {}
    current = ""
    for line in text.splitlines():
        name, found, value = (part.strip() for part in re.match(r"([^:=]*)([:=]?)(.*)", line.lstrip("-* ")).groups())  # type: ignore[union-attr]
        if found and name.lower() in names:
            current = names[name.lower()]
            values[current] = value
        elif current and line.strip():
            values[current] = f"{values[current]}\n{line.strip()}".strip()
        elif line.strip():
            return {}
    return values


def _read(name: str, field: Mapping[str, Any], value: object) -> Value:
    kind = field.get("type")
    if kind == "array":
        return [_parse_choice(name, field, each) for each in _items(value)]
    if kind == "boolean":
        return _yes_or_no(name, value)
    if kind in ("integer", "number"):
        return _number(name, field, value)
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    text = _parse_choice(name, field, value)
    if not field.get("minLength", 0) <= len(text) <= field.get("maxLength", math.inf):
        shortest, longest = field.get("minLength", 0), field.get("maxLength", "any number of")
        raise _InvalidAnswer(f"{name} must have {shortest} to {longest} characters")
    return text


def _items(value: object) -> list[str]:
    items = value if isinstance(value, list) else re.split(r"[,\n]", str(value))
    return [text for item in items if (text := str(item).strip())]


def _parse_choice(name: str, field: Mapping[str, Any], text: str) -> str:
    allowed = _allowed_values(field)
    if not allowed or text in allowed:
        return text
    for value, title in allowed.items():
        if text.strip().lower() in (value.lower(), title.lower()):
            return value
    raise _InvalidAnswer(f"{name} is “{text[:60]}” and must be one of {', '.join(_labels(allowed))}")


def _yes_or_no(name: str, value: object) -> bool:
    plain = str(value).strip().rstrip(".!").lower()
    if plain not in YES | NO:
        raise _InvalidAnswer(f"{name} must be yes or no")
    return plain in YES


def _number(name: str, field: Mapping[str, Any], value: object) -> int | float:
    whole = field.get("type") == "integer"
    try:
        number = float(str(value).strip())
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (whole and not number.is_integer()):
        raise _InvalidAnswer(f"{name} must be {_KINDS['integer' if whole else 'number']}")
    if not field.get("minimum", -math.inf) <= number <= field.get("maximum", math.inf):
        raise _InvalidAnswer(
            f"{name} must be from {field.get('minimum', 'any number')} to {field.get('maximum', 'any number')}"
        )
    return int(number) if whole else number
