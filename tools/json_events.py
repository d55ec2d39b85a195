"""What an incremental JSON decoder says of a text: values that begin, grow and are complete; and its one error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from store.models import JsonValue

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
