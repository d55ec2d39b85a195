"""What a screen can show of a task, and how text from a server is made safe and cut to fit. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from rich.cells import cell_len, set_cell_size

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


ScreenEvent = StatusText | ArtifactParts | ReplyText | FinalReply | TaskFacts | PlainLine


def clean(text: str) -> str:
    """Text without control characters and bidirectional overrides, newline and tab excepted."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """Text cleaned, every run of white space made one space."""
    return clean(" ".join(text.split()))


def fit(text: str, columns: int) -> str:
    """Text cut to at most `columns` cells of a terminal; what is cut ends in `…`."""
    return text if cell_len(text) <= columns else f"{set_cell_size(text, columns - 1).rstrip()}…"


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
