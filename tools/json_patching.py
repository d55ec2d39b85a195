"""A JSON Patch (RFC 6902) applied to a JSON value. Pure: the value itself stays as it is.

Rule 1: the new value shares with the old one what the patch does not change.
Rule 2: the values that one patch copies or moves have at most `MAX_MOVED` characters of JSON in all: a patch of a few
        copies could double a value again and again. A path has at most `MAX_DEPTH` keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from a2a_canvas.tools.part_inputs import MAX_DEPTH, require_portable
from a2a_canvas.tools.tool import to_json

END = "-"
MAX_MOVED = 1_000_000
_POINTER = re.compile(r"(/([^/~]|~[01])*)*")


class PatchError(ValueError):
    """A patch is malformed, or does not fit the value."""


def apply_patch(value: Any, operations: Any) -> Any:
    """The value after a patch.

    Raises:
        PatchError: the patch is malformed or does not fit; `test` failed.
    """
    if not isinstance(operations, list):
        raise PatchError("a patch must be a list")
    patch = _Patch({"": value})
    for operation in operations:
        try:
            patch.apply(operation)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise PatchError(f"the operation {str(operation)[:100]} does not fit: {error}") from None
    if "" not in patch.root:
        raise PatchError("the patch removes the whole value")
    return patch.root[""]


class _Patch:
    """A value that is being patched, as the only member of `root`."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root: Any = root
        self._moved = 0

    def apply(self, operation: Any) -> None:
        path = _parse(operation["path"])
        match operation["op"]:
            case "add":
                self._add(path, operation["value"])
            case "replace":
                _get(self.root, path)
                self.root = _change(self.root, path, lambda parent, key: _set(parent, key, operation["value"]))
            case "remove":
                self._remove(path)
            case "move":
                source = _parse(operation["from"])
                if path[: len(source)] == source and path != source:
                    raise PatchError("a value cannot be moved into itself")
                value = self._take(source)
                self._remove(source)
                self._add(path, value)
            case "copy":
                self._add(path, self._take(_parse(operation["from"])))
            case "test":
                if _get(self.root, path) != operation["value"]:
                    raise PatchError("the value differs")
            case other:
                raise PatchError(f"there is no operation {other!r}")

    def _add(self, path: Sequence[str], value: Any) -> None:
        self.root = _change(self.root, path, lambda parent, key: _insert(parent, key, value))

    def _remove(self, path: Sequence[str]) -> None:
        self.root = _change(self.root, path, _pop)

    def _take(self, path: Sequence[str]) -> Any:
        """A value to be copied or moved (rule 2)."""
        value = _get(self.root, path)
        self._moved += len(to_json(value))
        if self._moved > MAX_MOVED:
            raise PatchError(f"the patch copies and moves more than {MAX_MOVED:,} characters")
        return require_portable(value)


def _parse(pointer: str) -> tuple[str, ...]:
    """The keys of a JSON Pointer (RFC 6901); the first one is that of the whole value."""
    if not _POINTER.fullmatch(pointer):
        raise PatchError("a path must be empty or begin with a slash; write ~ as ~0 and / as ~1")
    keys = tuple(key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/"))
    if len(keys) > MAX_DEPTH:
        raise PatchError(f"a path may have {MAX_DEPTH - 1} keys")
    return keys


def _get(root: Any, path: Sequence[str]) -> Any:
    for key in path:
        root = root[_key_in(root, key)]
    return root


def _change(value: Any, path: Sequence[str], change: Callable[[Any, str], None]) -> Any:
    """A copy of `value` with a changed member; what is not on the path is shared."""
    copied = value.copy()
    first, *rest = path
    if rest:
        key = _key_in(copied, first)
        copied[key] = _change(copied[key], rest, change)
    else:
        change(copied, first)
    return copied


def _key_in(parent: Any, key: str) -> Any:
    return _index(parent, key) if isinstance(parent, list) else key


def _index(items: list[Any], key: str, *, end: int = 0) -> int:
    if not (key.isascii() and key.isdigit()) or len(key) > 9 or int(key) >= len(items) + end:
        raise PatchError(f"there is no element {key[:20]!r}")
    return int(key)


def _insert(parent: Any, key: str, value: Any) -> None:
    if isinstance(parent, list):
        parent.insert(len(parent) if key == END else _index(parent, key, end=1), value)
    else:
        parent[key] = value


def _set(parent: Any, key: str, value: Any) -> None:
    parent[_key_in(parent, key)] = value


def _pop(parent: Any, key: str) -> None:
    del parent[_key_in(parent, key)]
