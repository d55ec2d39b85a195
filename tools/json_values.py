"""Values to JSON and back, and what is wrong with one, by the key of the place. Pure."""

from __future__ import annotations

import json
import math
from typing import Any

MAX_LEVELS = 100
"""Levels of nesting; Python's JSON encoder and decoder recurse."""


def json_text(value: object, name: str) -> str:
    """The JSON of a value: None, bool, int, float, str, lists, tuples, and dicts with str keys.

    Args:
        name: of the value, for the error.

    Raises:
        ValueError: it is no JSON value; the message names the key, for example `state["files"][0]`.

    >>> json_text({"files": [b""]}, "state")
    Traceback (most recent call last):
    ValueError: state["files"][0] is bytes, which is no JSON value. Convert it first.
    """
    _check(value, name, MAX_LEVELS)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def value_of_json(text: str, otherwise: Any = None) -> Any:
    """The value of a JSON text that others wrote; `otherwise` if it is not JSON, or nests too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def _check(value: object, place: str, levels: int) -> None:
    match value:
        case dict() | list() | tuple() if not levels:
            raise ValueError(f"{place} nests deeper than {MAX_LEVELS} levels. Make it flatter.")
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ValueError(f"{place} has the key {key!r}, which is no str. Convert it first.")
                _check_text(key, place)
                _check(item, f"{place}[{json.dumps(key, ensure_ascii=False)}]", levels - 1)
        case list() | tuple():
            for number, item in enumerate(value):
                _check(item, f"{place}[{number}]", levels - 1)
        case str():
            _check_text(value, place)
        case float() if not math.isfinite(value):
            raise ValueError(f"{place} is {value}, which JSON has not. Store None or a text in its place.")
        case bool() | int() | float() | None:
            pass
        case _:
            raise ValueError(f"{place} is {type(value).__name__}, which is no JSON value. Convert it first.")


def _check_text(text: str, place: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{place} has a lone surrogate, which UTF-8 cannot encode. Remove it.") from None
