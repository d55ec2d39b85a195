"""What a user wants done to an artifact, and the message that asks for it (docs/extensions.md). Pure.

Rule 1: a text to be matched is looked for in what the user saw, and must stand there exactly once. It is sent with its
        range, as a quote and with the version it was found in, so that the server finds it again if others write.
        Its line breaks match those of the text, because on a screen "\\r\\n" and "\\n" are the same.
Rule 2: lines are sent as lines. They are those of the current version, unless the user says of which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any
from uuid import uuid4

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.client.connection import CannotBeDone
from a2a_canvas.server.client.shown import fit, one_line
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.edits import Strategy
from a2a_canvas.store.text.spans import Span

_MOST = 10
"""Lines that are named of a text that stands in many places."""
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Lines:
    """A range of lines, counted from 1, the last one included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Match:
    """A text that stands in the artifact exactly once."""

    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Have a passage rewritten, or something written before or after it. `base` is the version the user saw."""

    instruction: str
    place: Lines | Match
    strategy: Strategy = "replace"
    base: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """What the server is to do: the words of the message, and its metadata besides the artifact."""

    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)


UNDO = Operation("Undo", {"op": "undo", "group": True})
REDO = Operation("Redo", {"op": "redo", "group": True})
UNDO_STEP = Operation("Undo", {"op": "undo"})
REDO_STEP = Operation("Redo", {"op": "redo"})


def restore(version: int) -> Operation:
    """Make a new version with the content of an old one."""
    return Operation(f"Restore version {version}", {"op": "restore", "version": version})


def put(text: str, base: int | None) -> Operation:
    """Make `text` the artifact's text, if `base` is still the current version."""
    return Operation("Save this text", {"op": "put", "text": text, **_base(base)})


def edit_lines(edit: Edit, lines: Lines) -> Operation:
    """An edit of lines."""
    return _edit(edit, {"lineStart": lines.first, "lineEnd": lines.last}, edit.base)


def edit_match(edit: Edit, match: Match, text: str, version: int) -> Operation:
    """An edit of where `match` stands in `text`, which is that of `version`.

    Raises:
        CannotBeDone: it stands there more than once or not at all.
    """
    span = find(match, text, f"version {version}")
    selection = {"start": span.start, "end": span.end, "unit": "codepoint", "text": span.of(text)}
    return _edit(edit, selection, version)


def find(match: Match, text: str, name: str) -> Span:
    """Where a text stands in another one, called `name`. Raises `CannotBeDone` if that is not one place."""
    needle = match.text if match.text in text else re.sub("\r?\n", "\r\n", match.text)
    starts = _starts(needle, text)
    if len(starts) == 1:
        return Span(starts[0], starts[0] + len(needle))
    if not starts:
        raise CannotBeDone(f"{_shown(match.text)} does not occur in {name}")
    lines = _lines_at(starts, text)
    named = ", ".join(map(str, lines[:_MOST])) + (", …" if len(lines) > _MOST else "")
    where = f"on line{'s' if len(lines) > 1 else ''} {named}"
    times = f"{_shown(match.text)} occurs {len(starts)} times in {name}"
    raise CannotBeDone(f"{times}, {where}. Match more of the text, or give --lines")


def message(operation: Operation, context: str, artifact: str) -> pb.Message:
    """The message that asks for an operation."""
    asks = pb.Message(
        message_id=str(uuid4()), role=pb.ROLE_USER, parts=[pb.Part(text=operation.text)], context_id=context
    )
    asks.metadata.update({CANVAS: {"artifactId": artifact, **operation.fields}})
    return asks


def _edit(edit: Edit, selection: Mapping[str, Any], base: int | None) -> Operation:
    fields = {"op": "edit", "selection": dict(selection), "strategy": edit.strategy, **_base(base)}
    return Operation(edit.instruction, fields)


def _base(base: int | None) -> dict[str, int]:
    return {} if base is None else {"baseVersion": base}


def _starts(needle: str, text: str) -> list[int]:
    """Where `needle` begins in `text`, overlapping ones included."""
    starts, at = [], text.find(needle)
    while at >= 0:
        starts.append(at)
        at = text.find(needle, at + 1)
    return starts


def _lines_at(places: Sequence[int], text: str) -> list[int]:
    """The lines of places that are in order, each line once."""
    ends = (text.count("\n", before, place) for before, place in zip((0, *places), places, strict=False))
    return list(dict.fromkeys(islice(accumulate(ends, initial=1), 1, None)))


def _shown(text: str) -> str:
    return f'"{fit(one_line(text), _WIDTH)}"' if text.strip() else repr(text)
