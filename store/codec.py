"""Frozen values to JSON and back. What is decoded equals what was encoded.

Rule 1: a member of a union has the name of its class under `_type`.
Rule 2: a field that has its default is not written. So a value written before a field existed is read with the default.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args, get_origin

from cattrs import Converter
from cattrs.strategies import configure_tagged_union

from a2a_canvas.store.models import JsonValue, Part
from a2a_canvas.store.text.rope import Rope


def make_converter() -> Converter:
    """A converter for all that an artifact consists of."""
    converter = Converter(omit_if_default=True)
    converter.register_structure_hook(Rope, lambda value, _: Rope(value))
    converter.register_unstructure_hook(Rope, str)
    converter.register_structure_hook(bytes, lambda value, _: b64decode(value))
    converter.register_unstructure_hook(bytes, lambda value: b64encode(value).decode())
    converter.register_structure_hook(datetime, lambda value, _: datetime.fromisoformat(value))
    converter.register_unstructure_hook(datetime, datetime.isoformat)
    # JSON values pass unchanged.
    converter.register_structure_hook_func(_is_json, lambda value, _: value)
    converter.register_unstructure_hook_func(_is_json, lambda value: value)
    configure_tagged_union(Part, converter)
    return converter


def _is_json(kind: Any) -> bool:
    """Whether a type's values are JSON already: `Any`, `JsonValue`, and mappings to them."""
    if get_origin(kind) is Mapping:
        return _is_json(get_args(kind)[1])
    return kind is Any or kind is JsonValue


CONVERTER = make_converter()


def encode(value: object, kind: Any, converter: Converter = CONVERTER) -> str:
    """`value`, of the type `kind`, as JSON."""
    return json.dumps(converter.unstructure(value, unstructure_as=kind), ensure_ascii=False, separators=(",", ":"))


def decode(text: str, kind: Any, converter: Converter = CONVERTER) -> Any:
    """The value of the type `kind` that was encoded."""
    return converter.structure(json.loads(text), kind)
