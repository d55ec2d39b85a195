"""What a user asks for on the command line, as values, and the commands that are suggested next. Pure, no A2A.

Rule 1: a text to be matched is looked for in what the user saw, and must occur there exactly once. It is sent with its
        range, as a quote and with the version it was found in, so that the server finds it again if others write.
        Its line breaks match those of the text, because on a screen "\\r\\n" and "\\n" are the same.
Rule 2: lines are sent as lines. They are those of the current version, unless the user names one.
Rule 3: an id that comes from a server is quoted in a suggested command, because the line is copied into a shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, Literal

from a2a_canvas.server.client.address import DEFAULT_URL, RequestHeaders
from a2a_canvas.server.client.display import fit, one_line
from a2a_canvas.server.client.errors import CannotBeDone

MAX_LINES_NAMED = 10
"""Line numbers that are listed when a text occurs in many places."""
MAX_QUOTE_CELLS = 60


# ------------------------------------------------------------------------------- requests


@dataclass(frozen=True, slots=True)
class SendRequest:
    """A message to send.

    `headers` go with every request, `context` continues a conversation, `task` answers a task that
    asked, `json` prints the events as they came, `thinking` shows the model's thinking on a terminal, `program` is how
    this program was called, as it is to be typed into a shell.
    """

    text: str
    url: str = DEFAULT_URL
    context: str = ""
    task: str = ""
    json: bool = False
    program: str = "a2a-canvas"
    thinking: bool = False
    headers: RequestHeaders = ()

    def command(self, option: str, value: str) -> str:
        """The command that sends a further message to the same server."""
        return f'{self.program} send {option} {shlex.quote(value)}{_server_options(self)} "…"'

    def how_to_answer(self, task_id: str) -> str:
        """The line below a question."""
        return f"Answer with: {self.command('--task', task_id)}"

    def how_to_continue(self, task_id: str, context_id: str) -> tuple[str, ...]:
        """The lines below the message that a task is out of sight, as far as its ids are known."""
        lines = (("Add to the task", "--task", task_id), ("Go on with the conversation", "--context", context_id))
        return tuple(f"{text}: {self.command(option, id_)}" for text, option, id_ in lines if id_)

    def instead_of_task(self) -> str:
        """The line for a task that accepts no message."""
        context = shlex.quote(self.context or "CONTEXT")
        return f"Leave out --task. Use --context {context} to go on with the conversation."


@dataclass(frozen=True, slots=True)
class ArtifactTarget:
    """The artifacts of a conversation on a server, or one of them.

    `json` prints what the server says as it came, `headers`, `thinking` and `program` are as in `SendRequest`.
    """

    context: str
    artifact: str = ""
    url: str = DEFAULT_URL
    json: bool = False
    program: str = "a2a-canvas"
    thinking: bool = False
    headers: RequestHeaders = ()

    def how_to_look(self) -> str:
        """The line below the message that a task is out of sight."""
        artifact, context = shlex.quote(self.artifact), shlex.quote(self.context)
        return f"See what became of it: {self.program} versions {artifact} --context {context}{_server_options(self)}"


def _server_options(request: SendRequest | ArtifactTarget) -> str:
    url = "" if request.url == DEFAULT_URL else f" --url {shlex.quote(request.url)}"
    return url + "".join(f" {header.option}" for header in request.headers if header.option)


# ----------------------------------------------------------------------------- operations


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines, counted from 1, the last one included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A text that occurs in the artifact exactly once."""

    text: str


@dataclass(frozen=True, slots=True)
class EditRequest:
    """Have a passage rewritten, or something written before or after it. `base` is the version the user saw."""

    instruction: str
    place: LineRange | TextMatch
    strategy: Literal["replace", "insert_before", "insert_after"] = "replace"
    base: int | None = None


@dataclass(frozen=True, slots=True)
class ArtifactOperation:
    """What the server is to do: the text of the message, and its metadata besides the artifact's id."""

    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)


UNDO = ArtifactOperation("Undo", {"op": "undo", "group": True})
REDO = ArtifactOperation("Redo", {"op": "redo", "group": True})
UNDO_STEP = ArtifactOperation("Undo", {"op": "undo"})
REDO_STEP = ArtifactOperation("Redo", {"op": "redo"})


def restore(version: int) -> ArtifactOperation:
    """Make a new version with the content of an old one."""
    return ArtifactOperation(f"Restore version {version}", {"op": "restore", "version": version})


def put(text: str, base: int | None) -> ArtifactOperation:
    """Make `text` the artifact's text, if `base` is still the current version."""
    return ArtifactOperation("Save this text", {"op": "put", "text": text, **_base(base)})


def edit_lines(edit: EditRequest, lines: LineRange) -> ArtifactOperation:
    """An edit of lines."""
    return _edit(edit, {"lineStart": lines.first, "lineEnd": lines.last}, edit.base)


def edit_match(edit: EditRequest, match: TextMatch, text: str, version: int) -> ArtifactOperation:
    """An edit of the place where `match` occurs in `text`, which is that of `version`.

    Raises:
        CannotBeDone: it occurs there more than once or not at all.
    """
    start, end = find(match, text, f"version {version}")
    selection = {"start": start, "end": end, "unit": "codepoint", "text": text[start:end]}
    return _edit(edit, selection, version)


def find(match: TextMatch, text: str, name: str) -> tuple[int, int]:
    """Where a text starts and ends in another one, which is called `name`.

    Raises:
        CannotBeDone: it occurs there more than once or not at all.
    """
    needle = match.text if match.text in text else re.sub("\r?\n", "\r\n", match.text)
    starts = _starts(needle, text)
    if len(starts) == 1:
        return starts[0], starts[0] + len(needle)
    if not starts:
        raise CannotBeDone(f"{_quoted(match.text)} does not occur in {name}")
    lines = _lines_at(starts, text)
    named = ", ".join(map(str, lines[:MAX_LINES_NAMED])) + (", …" if len(lines) > MAX_LINES_NAMED else "")
    where = f"on line{'s' if len(lines) > 1 else ''} {named}"
    times = f"{_quoted(match.text)} occurs {len(starts)} times in {name}"
    raise CannotBeDone(f"{times}, {where}. Match more of the text, or give --lines")


def _edit(edit: EditRequest, selection: Mapping[str, Any], base: int | None) -> ArtifactOperation:
    fields = {"op": "edit", "selection": dict(selection), "strategy": edit.strategy, **_base(base)}
    return ArtifactOperation(edit.instruction, fields)


def _base(base: int | None) -> dict[str, int]:
    return {} if base is None else {"baseVersion": base}


def _starts(needle: str, text: str) -> list[int]:
    """Where `needle` begins in `text`, overlapping occurrences included."""
    starts, at = [], text.find(needle)
    while at >= 0:
        starts.append(at)
        at = text.find(needle, at + 1)
    return starts


def _lines_at(places: Sequence[int], text: str) -> list[int]:
    """The line numbers of places that are in order, each line once."""
    ends = (text.count("\n", before, place) for before, place in zip((0, *places), places, strict=False))
    return list(dict.fromkeys(islice(accumulate(ends, initial=1), 1, None)))


def _quoted(text: str) -> str:
    return f'"{fit(one_line(text), MAX_QUOTE_CELLS)}"' if text.strip() else repr(text)
