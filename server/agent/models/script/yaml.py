"""A YAML file as JSON values, and the line of each of them.

Rule 1: keys are their literal text (`on` is "on", `1` is "1"), unique in their mapping.
Rule 2: a date stays its literal text; `.nan`, `.inf` and all other tags are rejected.
Rule 3: every error is a `ScriptError` with file and line.
Rule 4: libyaml, if PyYAML has it, reads in an eighth of the time. A file that it rejects is read again without it, so
        that error messages are the same everywhere.
"""

from __future__ import annotations

import contextlib
import math
import pathlib
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.composer import Composer

YamlPath = tuple[int | str, ...]
"""Keys and indices from the root to a value."""

_TAG = "tag:yaml.org,2002:"
_PLAIN = frozenset({_TAG + "null", _TAG + "bool", _TAG + "int", _TAG + "float"})
_AS_WRITTEN = frozenset({_TAG + "str", _TAG + "timestamp", _TAG + "value"})


class ScriptError(Exception):
    """An invalid script: `FILE:LINE: reason`. `line` counts from 1; 0 if the error has no line."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}:{line}: {reason}" if line else f"{file}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed file: its value, and the line where each value (or its key) begins."""

    file: str
    tree: object
    lines: dict[YamlPath, int]

    @classmethod
    def read(cls, file: str) -> Source:
        """Read and parse `file`.

        Raises:
            ScriptError: it cannot be read, or is not YAML with a JSON value.
        """
        text = _text(file)
        try:
            with contextlib.suppress(yaml.YAMLError):
                return cls._parse(file, _FastLoader(text))
            return cls._parse(file, yaml.SafeLoader(text))
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise ScriptError(file, line, f"not YAML: {error.reason}") from error
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise ScriptError(file, line, f"not YAML: {error.problem or error.context}") from error
        except RecursionError as error:
            raise ScriptError(file, 1, "nested too deeply") from error

    @classmethod
    def _parse(cls, file: str, loader: yaml.SafeLoader | yaml.CSafeLoader) -> Source:
        reader = _Reader(file, loader)
        return cls(file, reader.tree(), reader.lines)

    def known_part(self, path: YamlPath) -> YamlPath:
        """The steps of `path` that exist in the file."""
        at: YamlPath = ()
        for step in path:
            at = (*at, step) if (*at, step) in self.lines else at
        return at


def _text(file: str) -> str:
    try:
        content = pathlib.Path(file).read_bytes()
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise ScriptError(file, 0, f"cannot be read: {reason}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScriptError(file, content.count(b"\n", 0, error.start) + 1, "not UTF-8") from error


if yaml.__with_libyaml__:

    class _FastLoader(Composer, yaml.CSafeLoader):
        """libyaml parses, Python composes: libyaml's own composer overflows the stack on deep nesting."""

        def __init__(self, text: str) -> None:
            Composer.__init__(self)
            yaml.CSafeLoader.__init__(self, text)

else:
    _FastLoader = yaml.SafeLoader  # type: ignore[assignment,misc]


class _Reader:
    def __init__(self, file: str, loader: yaml.SafeLoader | yaml.CSafeLoader) -> None:
        self.lines: dict[YamlPath, int] = {}
        self._file = file
        self._loader = loader
        self._open: set[int] = set()

    def tree(self) -> object:
        try:
            root = self._loader.get_single_node()
            self.lines[()] = 1
            return None if root is None else self._value(root, ())
        finally:
            self._loader.dispose()

    def _value(self, node: yaml.Node, at: YamlPath) -> object:
        self.lines.setdefault(at, node.start_mark.line + 1)
        if id(node) in self._open:
            raise self._error(node, "a value that contains itself")
        self._open.add(id(node))
        try:
            return self._inside(node, at)
        finally:
            self._open.discard(id(node))

    def _inside(self, node: yaml.Node, at: YamlPath) -> object:
        match node:
            case yaml.ScalarNode():
                return self._scalar(node)
            case yaml.SequenceNode(tag="tag:yaml.org,2002:seq"):
                return [self._value(item, (*at, number)) for number, item in enumerate(node.value)]
            case yaml.MappingNode(tag="tag:yaml.org,2002:map"):
                return self._mapping(node, at)
            case _:
                raise self._error(node, f"the tag {node.tag} is not for scripts")

    def _mapping(self, node: yaml.MappingNode, at: YamlPath) -> dict[str, object]:
        self._check_keys([key for key, _ in node.value])
        self._loader.flatten_mapping(node)
        entries: dict[str, object] = {}
        for key, value in node.value:
            name = self._join_surrogates(key)
            self.lines[(*at, name)] = key.start_mark.line + 1
            entries[name] = self._value(value, (*at, name))
        return entries

    def _check_keys(self, keys: list[yaml.Node]) -> None:
        seen: set[str] = set()
        for key in keys:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key must be a string")
            if key.value in seen:
                raise self._error(key, f"the key `{key.value}` is there twice")
            seen.add(key.value)

    def _scalar(self, node: yaml.ScalarNode) -> object:
        if node.tag in _AS_WRITTEN:
            return self._join_surrogates(node)
        if node.tag not in _PLAIN:
            raise self._error(node, f"the tag {node.tag} is not for scripts")
        try:
            value: Any = self._loader.construct_object(node)
        except (ValueError, KeyError) as error:
            raise self._error(node, f"not a {node.tag.removeprefix(_TAG)}: {node.value[:60]}") from error
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error(node, f"{node.value} is not a number in JSON")
        return value

    def _join_surrogates(self, node: yaml.ScalarNode) -> str:
        """The text with surrogate pairs joined: JSON escapes one above U+FFFF as a pair, which YAML keeps apart."""
        text: str = node.value
        if text.isascii():
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise self._error(node, "half a surrogate pair is not a character") from error

    def _error(self, node: yaml.Node, reason: str) -> ScriptError:
        return ScriptError(self._file, node.start_mark.line + 1, reason)
