"""Arguments of a call that arrive as values by JSON path, as pieces of the JSON text that they amount to. Pure.

Gemini streams arguments so: `$.artifact.parts[0].text` = "High ", then "and low.".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal

from a2a_canvas.store.models import JsonValue

Step = str | int

_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]")


class UnorderedArguments(ValueError):
    """The values do not arrive in the order of a JSON text, so the call is shown whole."""


def parse_path(path: str) -> tuple[Step, ...]:
    """The steps of a path: `$.parts[0].text` is ("parts", 0, "text").

    Raises:
        UnorderedArguments: it is not a path of names and indexes.
    """
    steps: list[Step] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if not path.startswith("$") or not found:
            raise UnorderedArguments(path[:100])
        name, index, quoted = found.groups()
        steps.append(int(index) if index is not None else name if name is not None else quoted)
        at = found.end()
    return tuple(steps)


@dataclass(slots=True)
class _Container:
    key: Step
    kind: Literal["{", "["]
    members: set[Step] = field(default_factory=set)

    def begin_member(self, key: Step) -> str:
        if (
            key in self.members
            or isinstance(key, int) is (self.kind == "{")
            or (key != len(self.members) and self.kind == "[")
        ):
            raise UnorderedArguments(str(key))
        comma = ", " if self.members else ""
        self.members.add(key)
        return comma + (f"{json.dumps(key, ensure_ascii=False)}: " if self.kind == "{" else "")

    @property
    def end(self) -> str:
        return "}" if self.kind == "{" else "]"


class ArgumentWriter:
    """Writes the arguments of one call.

    >>> writer = ArgumentWriter()
    >>> writer.add(("text",), "High ", more=True) + writer.add(("text",), "and low.") + writer.end()
    '{"text": "High and low."}'
    """

    def __init__(self) -> None:
        self._open = [_Container("", "{")]
        self._string: tuple[Step, ...] | None = None
        self._unwritten = "{"

    @property
    def begun(self) -> bool:
        """Whether a part of the text is written."""
        return not self._unwritten

    def add(self, path: tuple[Step, ...], value: JsonValue, *, more: bool = False) -> str:
        """The text for the next value.

        Args:
            more: it is a string, whose next piece follows.

        Raises:
            UnorderedArguments: its place is written already.
        """
        text = json.dumps(value, ensure_ascii=False)
        continues = isinstance(value, str) and self._string == path
        text = text[1:] if continues else self._move_to(path) + text
        self._string = None
        if more and isinstance(value, str):
            self._string, text = path, text[:-1]
        return text

    def end(self) -> str:
        """The text that closes what is open."""
        return self._begin() + self._close(0)

    def _begin(self) -> str:
        text, self._unwritten = self._unwritten + ('"' if self._string is not None else ""), ""
        self._string = None
        return text

    def _move_to(self, path: tuple[Step, ...]) -> str:
        if not path:
            raise UnorderedArguments("$")
        keys = [each.key for each in self._open[1:]]
        shared = 0
        while shared < min(len(keys), len(path) - 1) and keys[shared] == path[shared]:
            shared += 1
        text = self._begin() + self._close(shared + 1)
        for step, inner in zip(path[shared:], (*path[shared + 1 :], None), strict=True):
            text += self._open[-1].begin_member(step)
            if inner is not None:
                self._open.append(_Container(step, "[" if isinstance(inner, int) else "{"))
                text += self._open[-1].kind
        return text

    def _close(self, depth: int) -> str:
        closed = [each.end for each in reversed(self._open[depth:])]
        del self._open[depth:]
        return "".join(closed)
