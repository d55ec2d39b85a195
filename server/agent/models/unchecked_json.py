"""Members of unvalidated JSON objects: a missing or wrongly typed member counts as empty. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


def object_of(of: Json, name: str) -> Json:
    """A member that is an object, else an empty one."""
    value = of.get(name)
    return value if isinstance(value, dict) else {}


def text_of(of: Json, name: str) -> str:
    """A member that is a string, else an empty one."""
    value = of.get(name)
    return value if isinstance(value, str) else ""


MAX_NUMBER = 2**40
"""More tokens than any call has; sums of many calls still fit in 64 bits."""


def number_of(value: object, fallback: int) -> int:
    """A whole number, such as of tokens; `fallback` if it is not one, negative or beyond `MAX_NUMBER`."""
    return value if isinstance(value, int) and 0 <= value < MAX_NUMBER else fallback


def finite(value: Any) -> Any:
    """The value without numbers that JSON does not have. Journals of version 0.1 may contain them."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: finite(inner) for key, inner in value.items()}
        case list():
            return [finite(inner) for inner in value]
        case _:
            return value
