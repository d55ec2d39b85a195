"""The operations of a STATE_DELTA: JSON Patch (RFC 6902), with paths as JSON Pointers (RFC 6901). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
Op = dict[str, Any]
"""`{op, path, value}`; a `remove` has no value."""

END = "-"
"""The position after a list's last element."""


def pointer(*keys: str | int) -> str:
    """The path of a value in a document. `~` and `/` in keys are escaped (RFC 6901, section 3)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def add(value: Any, *keys: str | int) -> Op:
    return {"op": "add", "path": pointer(*keys), "value": value}


def replace(value: Any, *keys: str | int) -> Op:
    return {"op": "replace", "path": pointer(*keys), "value": value}


def remove(*keys: str | int) -> Op:
    return {"op": "remove", "path": pointer(*keys)}


def replace_changed(before: Mapping[str, Any], after: Mapping[str, Any], *keys: str | int) -> list[Op]:
    """Operations that turn the fields `before` of the object at `keys` into `after`; both have the same names."""
    return [replace(value, *keys, name) for name, value in after.items() if before[name] != value]
