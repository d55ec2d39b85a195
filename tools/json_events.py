"""What an incremental JSON decoder says of a text: values that begin, grow and are complete; and its one error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a2a_canvas.store.models import JsonValue

Path = tuple[str | int, ...]
"""Keys and list indices from the top; `()` is the top-level value."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A container or a string value has begun; keys and other scalars do not begin."""

    path: Path
    kind: Literal["object", "array", "string"]


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of the string at `path`, decoded and never empty; at most one per string and feed."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """The value at `path` is complete. Containers hold their children's values themselves: read only."""

    path: Path
    value: JsonValue


JsonEvent = Begin | Delta | Value


class DuplicateCheck:
    """Sees to it that every field is given once: of two the whole input would keep the last, but the first has been
    acted on.

    Args:
        depth: how many steps deep fields are looked at.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._begun: set[Path] = set()

    def check(self, event: JsonEvent) -> None:
        """Raises `ValueError` for the second beginning of a field."""
        begins = isinstance(event, Begin) or (
            isinstance(event, Value) and not isinstance(event.value, str | list | dict)
        )
        if begins and len(event.path) <= self._depth:
            if event.path in self._begun:
                raise ValueError("is given twice; give every field once")
            self._begun.add(event.path)


class JsonError(ValueError):
    """The text is not JSON, or not within the limits.

    Args:
        position: 0-based offset in the whole text, in characters. For a bad number, literal or escape it is
            where that begins; for an unfinished text its length. It does not depend on the cut.
        reason: what is wrong, in words that can be shown to whoever wrote the text.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"{reason} at character {position}")
        self.position = position
        self.reason = reason
