"""Rewords pydantic's errors to follow the name of the field. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from a2a_canvas.store.text.wording import format_value

NEEDED: Final[Mapping[str, str]] = {
    "string_type": "a string",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
}
"""The expected value by pydantic's type of error; the braces refer to the error's context."""

_SENTENCES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "missing": lambda context: "is missing",
    "extra_forbidden": lambda context: "is unknown",
    "value_error": lambda context: str(context["error"]),
    "string_too_short": lambda context: "must not be empty",
    "string_too_long": lambda context: f"must not be longer than {context['max_length']} characters",
    "union_tag_not_found": lambda context: f"has no {context['discriminator'].strip(chr(39))}",
    "union_tag_invalid": lambda context: (
        f"has {context['discriminator'].strip(chr(39))} {context['tag']!r}, which must be one of "
        f"{context['expected_tags']}"
    ),
}


def reason_of(fault: Mapping[str, Any]) -> str:
    """The reason for one of `ValidationError.errors()`: "is 'x' and must be a whole number"."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind in _SENTENCES:
        return _SENTENCES[kind](context)
    if kind in NEEDED:
        return f"is {format_value(fault['input'])} and must be {NEEDED[kind].format(**context)}"
    message: str = fault["msg"]
    return re.sub("^.* should ", "must ", message)
