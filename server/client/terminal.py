"""What a person sees of a task: events in, text out. Knows neither A2A nor the network.

Rule 1: nothing from a server reaches the screen with control characters in it, newline and tab excepted.
Rule 2: text is printed once. What was printed of an artifact or a reply is remembered; text that extends it
        adds only the rest, text that does not is printed anew, below.
Rule 3: the status line is shown on a terminal only, below the text, and is erased before anything else is written.
Rule 4: an output that is not a terminal gets the same text without escape codes; statuses are lines on `err` then.
Rule 5: at the start of a line the status line is drawn in that line, in mid-line in the row below, and the cursor
        returns to where the text continues. No column is computed for that, so neither a new width nor a wide
        character can misplace it.
Rule 6: where the text has just filled its row the status line is not drawn: the cursor would return to the row's last
        character instead of behind it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO, assert_never

from a2a_canvas.server.client.display import (
    ArtifactParts,
    FailureNotice,
    FinalReply,
    PlainLine,
    ReplyText,
    ScreenEvent,
    StatusText,
    TaskFacts,
    advance,
    cells,
    clean,
    fit,
    label,
    one_line,
)

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
# Down and up again makes room below, even in the last row; only then is the cursor's place a place to come back to.
_TO_BELOW, _BACK = "\x1bD\x1b[A\x1b7\x1b[B\r", "\x1b8"
_ERASE, _ERASE_BELOW = "\r\x1b[K", "\x1b[J"
_RULE = 40
"""Columns of a horizontal rule."""
_REPLY = ("reply", "")


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


@dataclass(slots=True)
class _Printed:
    name: str
    pieces: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


class Terminal:
    """The screen of one command.

    Args:
        out: for text; with a status line if it is a terminal.
        err: for failures, and for statuses if `out` is no terminal.
        columns: the width of the terminal, asked whenever something is written.
        thinking: show the model's thinking in the status line.
    """

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        columns: Callable[[], int] = lambda: shutil.get_terminal_size().columns,
        *,
        thinking: bool = False,
    ) -> None:
        self._out, self._err, self._columns, self._thinking = out, err, columns, thinking
        self._tty = out.isatty()
        self._status = StatusLine()
        self._at_start, self._column = True, 0
        self._area: tuple[str, str] | None = None
        self._printed: dict[str, _Printed] = {}
        self._typed = ""

    def show(self, event: ScreenEvent) -> None:
        """Show one event; everything is written and flushed when this returns."""
        text = self._body(event)
        if self._tty:
            text = self._status.around(text, self._column, self._columns(), at_start=self._at_start)
        if text:
            _write(self._out, text)
        if isinstance(event, FailureNotice):
            _write(self._err, "".join(f"{one_line(line)}\n" for line in (event.text, *event.advice)))

    def _body(self, event: ScreenEvent) -> str:
        match event:
            case StatusText():
                self._note(event)
                return ""
            case ArtifactParts():
                return self._artifact(event)
            case ReplyText():
                return self._reply(event.text)
            case FinalReply():
                return self._final(event.text)
            case TaskFacts():
                return self._lines(_fact_lines(event), dim=True)
            case PlainLine():
                return self._lines([one_line(event.text)])
            case FailureNotice():
                return self._lines([])
            case _:
                assert_never(event)

    def _note(self, event: StatusText) -> None:
        text = one_line(event.text)
        if event.thinking:
            if self._thinking and text:
                self._status.think(text)
            return
        if text and text == one_line(self._typed):
            return
        if text and text != self._status.label and not self._tty:
            _write(self._err, text + "\n")
        self._status.say(text)

    def _text(self, text: str) -> str:
        self._at_start = text.endswith("\n") if text else self._at_start
        if self._tty:
            self._column = advance(self._column, text, self._columns())
        return text

    def _fresh(self) -> str:
        return "" if self._at_start else self._text("\n")

    def _lines(self, lines: Sequence[str], *, dim: bool = False) -> str:
        self._status.say("")
        self._area = None
        shown = [f"{_DIM}{line}{_PLAIN}" if dim and self._tty else line for line in lines]
        return self._fresh() + self._text("".join(f"{line}\n" for line in shown))

    def _header(self, name: str, note: str = "") -> str:
        if self._tty:
            name = fit(name, max(1, self._columns() - cells(f"── {note} ──")))
        title = f"── {name}{note} "
        return self._fresh() + self._text(title + "─" * max(2, self._rule() - cells(title)) + "\n")

    def _rule(self) -> int:
        return min(_RULE, self._columns()) if self._tty else _RULE

    def _artifact(self, event: ArtifactParts) -> str:
        text = clean("".join(part for part in event.parts if isinstance(part, str)))
        labels = [label(part) for part in event.parts if not isinstance(part, str)]
        known = self._printed.get(event.artifact_id)
        if known is None:
            known = _Printed(one_line(event.name) or one_line(event.artifact_id))
            self._printed[event.artifact_id] = known
            return self._open(event.artifact_id, known.name) + self._add(known, text, labels)
        if not event.append:
            old_text, old_labels = "".join(known.pieces), known.labels
            if not (text.startswith(old_text) and labels[: len(old_labels)] == old_labels):
                known.pieces, known.labels = [], []
                heading = self._open(event.artifact_id, known.name, " (rewritten)")
                return heading + self._add(known, text, labels)
            text, labels = text[len(old_text) :], labels[len(old_labels) :]
        if not (text or labels):
            return ""
        return self._resume(event.artifact_id, known.name) + self._add(known, text, labels)

    def _open(self, artifact_id: str, name: str, note: str = "") -> str:
        self._area = ("artifact", artifact_id)
        return self._header(name, note)

    def _resume(self, artifact_id: str, name: str) -> str:
        return "" if self._area == ("artifact", artifact_id) else self._open(artifact_id, name, " (continued)")

    def _add(self, known: _Printed, text: str, labels: list[str]) -> str:
        known.pieces.append(text)
        known.labels += labels
        return self._text(text) + "".join(self._fresh() + self._text(f"{line}\n") for line in labels)

    def _reply(self, text: str) -> str:
        text, typed = clean(text), self._typed
        self._status.say("")
        self._typed = text
        if text.startswith(typed):
            rest, fresh = text[len(typed) :], ""
        else:
            rest, fresh = text, self._fresh()
        return fresh + self._enter_reply() + self._text(rest) if rest else fresh

    def _enter_reply(self) -> str:
        left, self._area = self._area, _REPLY
        if left in (None, _REPLY):
            return ""
        return self._fresh() + self._text("─" * self._rule() + "\n")

    def _final(self, text: str) -> str:
        text = clean(text).strip()
        typed_out = text == self._typed.strip()
        self._status.say("")
        return ("" if typed_out else self._reply(text)) + self._fresh()


def _fact_lines(facts: TaskFacts) -> list[str]:
    rows = [("context", one_line(facts.context_id)), ("task", one_line(facts.task_id))]
    rows += [("artifact", f"{one_line(artifact_id)}  {one_line(name)}") for artifact_id, name in facts.artifacts]
    return [f"{word:8}  {value.strip()}" for word, value in rows if value.strip()]


class StatusLine:
    """What the agent is doing, in one line. Does no IO.

    Each label and each piece of the thinking replaces what was shown.

    Attributes:
        label: the newest label, in one line; may be empty.
    """

    def __init__(self) -> None:
        self.label = ""
        self._text = self._drawn = self._erase = ""

    def say(self, text: str) -> None:
        """Replace everything by a line of text, or by nothing."""
        self.label = self._text = text

    def think(self, piece: str) -> None:
        """Show a piece of the thinking in place of the label, until the next label."""
        self._text = piece

    def around(self, body: str, column: int, columns: int, *, at_start: bool) -> str:
        """What has to be written to print a text with the status line after it.

        Args:
            body: the text; nothing is written if it is empty and the status line has not changed.
            column: the cursor's column after it, `columns` if the row is full.
            columns: the width of the terminal.
            at_start: whether the text ends a line.
        """
        line = fit(self._text, columns - 1) if column < columns else ""
        if not body and line == self._drawn:
            return ""
        before = self._erase if self._drawn else ""
        self._drawn, self._erase = line, _ERASE if at_start else _ERASE_BELOW
        shown = f"{_DIM}{line}{_PLAIN}" if line else ""
        return before + body + (f"{_TO_BELOW}{shown}{_BACK}" if line and not at_start else shown)


def json_line(out: TextIO, value: Any) -> None:
    """Write one line of JSON and flush it."""
    out.write(json.dumps(value) + "\n")
    out.flush()


def exact(out: TextIO, content: str | bytes) -> None:
    """Write content byte for byte, text as UTF-8 whatever the locale is, if `out` has a buffer of bytes."""
    buffer = getattr(out, "buffer", None)
    if buffer is None:
        out.write(content if isinstance(content, str) else content.decode(errors="replace"))
        return
    out.flush()
    buffer.write(content.encode() if isinstance(content, str) else content)
    buffer.flush()
