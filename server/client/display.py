"""What a screen can show of a task, and how text from a server is made safe and cut to fit. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

# C0, DEL and C1; the line and paragraph separators; the bidirectional overrides, embeddings and isolates. The marks
# U+200E, U+200F and U+061C stay: Hebrew and Arabic need them, and they cannot reorder other text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
MAX_DATA_CELLS = 60
"""Of a data part's JSON."""


@dataclass(frozen=True, slots=True)
class FileLabel:
    """A part that is a file: its size in bytes or its address."""

    name: str = ""
    media_type: str = ""
    size: int | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class DataLabel:
    """A part that is data, as compact JSON."""

    json: str


ScreenPart = str | FileLabel | DataLabel


@dataclass(frozen=True, slots=True)
class StatusText:
    """What the agent is doing; empty when there is nothing to say.

    With `thinking` it is the newest piece of the model's thinking, which is shown on a terminal only, and on demand.
    """

    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class ArtifactParts:
    """New parts of an artifact, or with `append=False` all its current parts."""

    artifact_id: str
    parts: tuple[ScreenPart, ...]
    name: str = ""
    append: bool = False


@dataclass(frozen=True, slots=True)
class ReplyText:
    """The whole text of the reply so far; it replaces the previous one."""

    text: str


@dataclass(frozen=True, slots=True)
class FinalReply:
    """The reply at the end of the task; may be empty, may have been shown already."""

    text: str


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The ids a person needs for the next command. `artifacts` are pairs of id and name."""

    context_id: str = ""
    task_id: str = ""
    artifacts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PlainLine:
    """One line of this program's own."""

    text: str


@dataclass(frozen=True, slots=True)
class FailureNotice:
    """One line for `err`, and below it a line for each thing the user can do."""

    text: str
    advice: tuple[str, ...] = ()


ScreenEvent = StatusText | ArtifactParts | ReplyText | FinalReply | TaskFacts | PlainLine | FailureNotice


def clean(text: str) -> str:
    """Text without control characters and bidirectional overrides, newline and tab excepted."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """Text cleaned, every run of white space made one space."""
    return clean(" ".join(text.split()))


def cells(text: str) -> int:
    """How many cells of a terminal a line of text takes."""
    return sum(map(_cells, text))


def fit(text: str, columns: int) -> str:
    """Text cut to at most `columns` cells of a terminal; what is cut ends in `…`."""
    if cells(text) <= columns:
        return text
    used, kept = 1, ""
    for character in text:
        used += _cells(character)
        if used > columns:
            break
        kept += character
    return kept + "…"


def advance(column: int, text: str, columns: int) -> int:
    """The column in which a cursor at `column` ends after a text; `columns` when the row is exactly full."""
    _, newline, last = text.rpartition("\n")
    column = 0 if newline else column
    for character in last:
        width = _cells(character)
        if character == "\t":
            column = max(column, min(column // 8 * 8 + 8, columns - 1))
        else:
            column = column + width if column + width <= columns else width
    return column


def label(part: FileLabel | DataLabel) -> str:
    """The one line that represents a part that is not text."""
    match part:
        case FileLabel():
            size = "" if part.size is None else size_of(part.size)
            words = ["file", part.name, part.media_type, size, part.url]
            return one_line(f"[{' '.join(word for word in words if word)}]")
        case DataLabel():
            return f"[data {fit(one_line(part.json), MAX_DATA_CELLS)}]"
        case _:
            assert_never(part)


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def size_of(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    return f"{size / 1024:.0f} KB" if size < 1024**2 else f"{size / 1024**2:.1f} MB"


def local_time(stamp: str) -> str:
    """A time stamp as a user reads it: the time of this day, or day and time; empty if it cannot be read."""
    try:
        at = datetime.fromisoformat(stamp.replace("Z", "+00:00")).astimezone()
    except ValueError:
        return ""
    now = datetime.now(at.tzinfo)
    return (
        f"{at:%H:%M}" if at.date() == now.date() else f"{at:%d %b %H:%M}" if at.year == now.year else f"{at:%d %b %Y}"
    )
