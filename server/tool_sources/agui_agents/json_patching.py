"""A JSON Patch (RFC 6902) applied to a JSON value. Pure: the value itself stays as it is."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

END = "-"


class PatchError(ValueError):
    """A patch is malformed, or does not fit the value."""


def apply_patch(value: Any, operations: Any) -> Any:
    """The value after a patch.

    Raises:
        PatchError: the patch is malformed or does not fit; `test` failed.
    """
    if not isinstance(operations, list):
        raise PatchError("a patch must be a list")
    root = {"": copy.deepcopy(value)}
    for operation in operations:
        try:
            _apply(root, operation)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise PatchError(f"the operation {str(operation)[:100]} does not fit: {error}") from None
    return root[""]


def _apply(root: dict[str, Any], operation: Any) -> None:
    path = _parse(operation["path"])
    match operation["op"]:
        case "add":
            _add(root, path, copy.deepcopy(operation["value"]))
        case "replace":
            _remove(root, path)
            _add(root, path, copy.deepcopy(operation["value"]))
        case "remove":
            _remove(root, path)
        case "move":
            source = _parse(operation["from"])
            if path[: len(source)] == source and path != source:
                raise PatchError("a value cannot be moved into itself")
            _add(root, path, _remove(root, source))
        case "copy":
            _add(root, path, copy.deepcopy(_get(root, _parse(operation["from"]))))
        case "test":
            if _get(root, path) != operation["value"]:
                raise PatchError("the value differs")
        case other:
            raise PatchError(f"there is no operation {other!r}")


def _parse(pointer: str) -> tuple[str, ...]:
    """The keys of a JSON Pointer (RFC 6901); the first one is that of the whole value."""
    first, *keys = pointer.split("/")
    if first:
        raise PatchError("a path must be empty or begin with a slash")
    return ("", *(key.replace("~1", "/").replace("~0", "~") for key in keys))


def _get(root: Any, path: Sequence[str]) -> Any:
    for key in path:
        root = root[_index(root, key)] if isinstance(root, list) else root[key]
    return root


def _index(items: list[Any], key: str, *, end: int = 0) -> int:
    if not (key.isascii() and key.isdigit()) or int(key) >= len(items) + end:
        raise PatchError(f"there is no element {key[:20]!r}")
    return int(key)


def _add(root: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    parent = _get(root, path[:-1])
    if isinstance(parent, list):
        parent.insert(len(parent) if path[-1] == END else _index(parent, path[-1], end=1), value)
    else:
        parent[path[-1]] = value


def _remove(root: dict[str, Any], path: tuple[str, ...]) -> Any:
    parent = _get(root, path[:-1])
    return parent.pop(_index(parent, path[-1]) if isinstance(parent, list) else path[-1])
