"""What a person sees of a task: events in, text out. Knows neither A2A nor the network.

Rule 1: nothing a server says reaches the screen with control characters in it, newline and tab excepted.
Rule 2: text comes out once. What was printed of an artifact or a reply is remembered; text that extends it
adds only the rest, text that does not is printed anew, below.
Rule 3: a status line stands on a terminal only, below the text, and is wiped before anything else is written.
Rule 4: what is not a terminal gets the same text without escape codes; there the statuses are lines on `err`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TextIO, assert_never

from a2a_canvas.server.client.shown import (
    ArtifactUpdate,
    Event,
    Facts,
    Failure,
    FinalReply,
    Line,
    Reply,
    Status,
    advance,
    cells,
    clean,
    fit,
    label,
    one_line,
)
from a2a_canvas.server.client.status import StatusLine

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
_RULE = 40
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
    """The screen of one `send`.

    Args:
        out: where text goes; a status line is shown when it is a terminal.
        err: where failures go, and statuses when `out` is no terminal.
        columns: the width of the terminal, asked whenever something is written.
    """

    def __init__(self, out: TextIO, err: TextIO, columns: Callable[[], int]) -> None:
        self._out, self._err, self._columns = out, err, columns
        self._tty = out.isatty()
        self._status = StatusLine()
        self._at_start, self._column = True, 0
        self._area: tuple[str, str] | None = None
        self._printed: dict[str, _Printed] = {}
        self._typed = ""

    def show(self, event: Event) -> None:
        """Show one event; everything is written when this returns."""
        text = self._body(event)
        if self._tty:
            place = {"column": self._column, "columns": self._columns()}
            text = self._status.around(text, at_start=self._at_start, **place)
        if text:
            _write(self._out, text)
        if isinstance(event, Failure):
            _write(self._err, "".join(f"{one_line(line)}\n" for line in (event.text, *event.advice)))

    def _body(self, event: Event) -> str:
        match event:
            case Status():
                self._note(event)
                return ""
            case ArtifactUpdate():
                return self._artifact(event)
            case Reply():
                return self._reply(event.text)
            case FinalReply():
                return self._final(event.text)
            case Facts():
                return self._lines(_fact_lines(event), dim=True)
            case Line():
                return self._lines([one_line(event.text)])
            case Failure():
                return self._lines([])
            case _:
                assert_never(event)

    def _note(self, event: Status) -> None:
        if event.thinking:
            self._status.think(event.text)
            return
        text = one_line(event.text)
        if text and text == one_line(self._typed):
            return
        if text and text != self._status.label and not self._tty:
            _write(self._err, text + "\n")
        self._status.say(text)

    # -------------------------------------------------------------- text area

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

    # --------------------------------------------------------------- artifacts

    def _artifact(self, event: ArtifactUpdate) -> str:
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
        if self._area == ("artifact", artifact_id):
            return ""
        return self._open(artifact_id, name, " (continued)")

    def _add(self, known: _Printed, text: str, labels: list[str]) -> str:
        known.pieces.append(text)
        known.labels += labels
        return self._text(text) + "".join(self._fresh() + self._text(f"{line}\n") for line in labels)

    # ------------------------------------------------------------------ reply

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


def _fact_lines(facts: Facts) -> list[str]:
    rows = [("context", one_line(facts.context_id)), ("task", one_line(facts.task_id))]
    rows += [("artifact", f"{one_line(artifact_id)}  {one_line(name)}") for artifact_id, name in facts.artifacts]
    return [f"{word:8}  {value.strip()}" for word, value in rows if value.strip()]
