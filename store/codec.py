"""Converts frozen values to JSON and back. A decoded value equals the encoded one.

Rule 1: a member of a union has the name of its class under `_type`.
Rule 2: a field with its default value is omitted. So a value written before a field existed is read with the default.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar, get_args, get_origin
from uuid import uuid4

from cattrs import Converter
from cattrs.strategies import configure_tagged_union

from a2a_canvas.store.models import JsonValue, Part
from a2a_canvas.store.text.rope import Rope

T = TypeVar("T")

NameOf = Callable[[bytes], object]
"""Returns the name to write instead of some bytes; None to write the bytes themselves."""


def _identity(value: T) -> T:
    return value


def make_converter(
    write_bytes: Callable[[bytes], object] = _identity, read_bytes: Callable[[Any], bytes] = b64decode
) -> Converter:
    """A converter for everything in an artifact.

    Args:
        write_bytes: the value written for bytes; `to_json` accepts bytes unchanged.
        read_bytes: the bytes of a value written by `to_json`.
    """
    converter = Converter(omit_if_default=True)
    converter.register_structure_hook(Rope, lambda value, _: Rope(value))
    converter.register_unstructure_hook(Rope, str)
    converter.register_structure_hook(bytes, lambda value, _: read_bytes(value))
    converter.register_unstructure_hook(bytes, write_bytes)
    converter.register_structure_hook(datetime, lambda value, _: datetime.fromisoformat(value))
    converter.register_unstructure_hook(datetime, datetime.isoformat)
    # JSON values pass unchanged.
    converter.register_structure_hook_func(_is_json, lambda value, _: value)
    converter.register_unstructure_hook_func(_is_json, lambda value: value)
    configure_tagged_union(Part, converter)
    return converter


def _is_json(kind: Any) -> bool:
    """Whether values of a type are already JSON: `Any`, `JsonValue`, and mappings to them."""
    if get_origin(kind) is Mapping:
        return _is_json(get_args(kind)[1])
    return kind is Any or kind is JsonValue


CONVERTER = make_converter()


def _name_nothing(content: bytes) -> None:
    return None


def encode(value: object, kind: Any, converter: Converter = CONVERTER, name_of: NameOf = _name_nothing) -> str:
    """`value`, of the type `kind`, as JSON."""
    return to_json(converter.unstructure(value, unstructure_as=kind), name_of)


def to_json(unstructured: Any, name_of: NameOf = _name_nothing) -> str:
    """The output of a `make_converter` converter as JSON: bytes are Base64, unless they have a name.

    `json` would scan 10 MB of Base64 for characters to escape, which takes 50 ms. So it writes a marker, which is then
    replaced.
    """
    files: list[bytes] = []
    marker = ""

    def take(value: object) -> object:
        nonlocal marker
        if not isinstance(value, bytes):
            raise TypeError(f"{type(value).__name__} is not JSON")
        if (name := name_of(value)) is not None:
            return name
        files.append(value)
        marker = marker or uuid4().hex  # occurs in no earlier text
        return marker

    text = json.dumps(unstructured, ensure_ascii=False, separators=(",", ":"), default=take)
    if not files:
        return text
    before, *after = text.split(marker)
    return before + "".join(
        chain.from_iterable((b64encode(file).decode(), rest) for file, rest in zip(files, after, strict=True))
    )


def decode(text: str, kind: Any, converter: Converter = CONVERTER) -> Any:
    """The value of the type `kind` that was encoded."""
    return converter.structure(json.loads(text), kind)
