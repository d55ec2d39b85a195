"""What a person sees of a task: events in, text out. Knows neither A2A nor the network.

Rule 1: nothing from a server reaches the screen with control characters in it, newline and tab excepted.
Rule 2: text is printed once. What was printed of an artifact or a reply is remembered; text that extends it
        adds only the rest, text that does not is printed anew, below.
Rule 3: on a terminal Markdown and code are styled. What is written just now is below the rest, with the status line
        under it; both are drawn anew until the text is complete.
Rule 4: an output that is not a terminal gets the same text as it is; statuses are lines on `err` then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePath
from typing import Protocol, assert_never

from markdown_it import MarkdownIt
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner
from rich.syntax import Syntax
from rich.text import Text

from a2a_canvas.server.client.display import (
    ArtifactParts,
    FinalReply,
    PlainLine,
    ReplyText,
    ScreenEvent,
    StatusText,
    TaskFacts,
    clean,
    fit,
    label,
    one_line,
)

_RULE = 40
"""Columns of a horizontal rule."""
_PREVIEW = 8_000
"""Characters of a passage in progress that are drawn: more than any screen shows."""
_REPLY = "reply"
_BLOCKS = MarkdownIt().enable(["table", "strikethrough"])


class Paper(Protocol):
    """Where a screen writes, piece by piece. A piece belongs to the area that was opened last."""

    def open(self, heading: str, name: str) -> None: ...
    def text(self, piece: str) -> None: ...
    def close(self) -> None: ...
    def line(self, text: str, *, dim: bool) -> None: ...
    def status(self, text: str) -> None: ...


@dataclass(slots=True)
class _Shown:
    name: str
    text: str = ""
    labels: list[str] = field(default_factory=list)


class Screen:
    """The screen of one command.

    Args:
        console: for text, with a status line if it is a terminal.
        messages: for statuses if it is none.
        thinking: show the model's thinking in the status line.
    """

    def __init__(self, console: Console, messages: Console, *, thinking: bool = False) -> None:
        styled = console.is_terminal and not console.is_dumb_terminal
        self._paper: Paper = StyledPaper(console, messages) if styled else PlainPaper(console, messages)
        self._thinking = thinking
        self._area = ""
        self._shown: dict[str, _Shown] = {}
        self._said = ""

    def show(self, event: ScreenEvent) -> None:
        """Show one event."""
        match event:
            case StatusText():
                self._status(event)
            case ArtifactParts():
                self._artifact(event)
            case ReplyText():
                self._reply(clean(event.text))
            case FinalReply():
                self._final(clean(event.text).strip())
            case TaskFacts():
                self._lines(_fact_lines(event), dim=True)
            case PlainLine():
                self._lines([one_line(event.text)])
            case _:
                assert_never(event)

    def close(self) -> None:
        """End what is open: the cursor is at the start of a line."""
        self._paper.close()
        self._area = ""

    def _status(self, event: StatusText) -> None:
        text = one_line(event.text)
        if event.thinking and not (self._thinking and text):
            return
        if not text or text != one_line(self._said):
            self._paper.status(text)

    def _lines(self, lines: Sequence[str], *, dim: bool = False) -> None:
        self.close()
        for line in lines:
            self._paper.line(line, dim=dim)

    def _artifact(self, event: ArtifactParts) -> None:
        text = clean("".join(part for part in event.parts if isinstance(part, str)))
        labels = [label(part) for part in event.parts if not isinstance(part, str)]
        shown = self._shown.get(event.artifact_id)
        note = " (continued)"
        if shown is None:
            shown = self._shown[event.artifact_id] = _Shown(one_line(event.name) or one_line(event.artifact_id))
            note, self._area = "", ""
        elif not event.append:
            if not (text.startswith(shown.text) and labels[: len(shown.labels)] == shown.labels):
                shown.text, shown.labels, note, self._area = "", [], " (rewritten)", ""
            text, labels = text[len(shown.text) :], labels[len(shown.labels) :]
        if text or labels or not self._area:
            self._enter(event.artifact_id, f"{shown.name}{note}", shown.name)
            shown.text += text
            shown.labels += labels
            self._paper.text(text)
            for line in labels:
                self._paper.line(line, dim=False)

    def _enter(self, area: str, title: str, name: str) -> None:
        if self._area != area:
            self._paper.close()
            self._paper.open(f"── {title} ", name)
            self._area = area

    def _reply(self, text: str) -> None:
        said, self._said = self._said, text
        self._paper.status("")
        if not text.startswith(said):
            self._paper.close()
            said = ""
        rest = text[len(said) :]
        if rest and self._area != _REPLY:
            self._paper.close()
            self._paper.open("" if not self._area else "─", "")
            self._area = _REPLY
        self._paper.text(rest)

    def _final(self, text: str) -> None:
        if text != self._said.strip():
            self._reply(text)
        self._paper.close()


def _fact_lines(facts: TaskFacts) -> list[str]:
    rows = [("context", one_line(facts.context_id)), ("task", one_line(facts.task_id))]
    rows += [("artifact", f"{one_line(artifact_id)}  {one_line(name)}") for artifact_id, name in facts.artifacts]
    return [f"{word:8}  {value.strip()}" for word, value in rows if value.strip()]


class PlainPaper:
    """Text as it is."""

    def __init__(self, console: Console, messages: Console) -> None:
        self._out, self._messages = console.file, messages
        self._at_start = True
        self._label = ""

    def open(self, heading: str, name: str) -> None:
        if heading:
            self._write(f"{heading:─<{_RULE}}\n")

    def text(self, piece: str) -> None:
        self._write(piece)

    def close(self) -> None:
        if not self._at_start:
            self._write("\n")

    def line(self, text: str, *, dim: bool) -> None:
        self.close()
        self._write(f"{text}\n")

    def status(self, text: str) -> None:
        if text and text != self._label:
            self._messages.print(text, soft_wrap=True)
        self._label = text

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()
            self._at_start = text.endswith("\n")


class StyledPaper:
    """Styled text. Complete blocks are printed; the one in progress and the status are drawn below, and erased."""

    def __init__(self, console: Console, messages: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._open = self._label = self._name = ""
        self._printed = False
        self._drawn = console.file.isatty()

    def open(self, heading: str, name: str) -> None:
        self._name, self._printed = name, False
        if heading:
            width = min(_RULE, self._console.width)
            self._console.print(Text(f"{fit(heading, width - 1):─<{width}}", "dim"))

    def text(self, piece: str) -> None:
        self._open += piece
        if "\n" in piece:
            *complete, self._open = _blocks(self._open, self._name)
            for block in complete:
                self._print(block)
        self._draw()

    def close(self) -> None:
        self._label = ""
        for block in _blocks(self._open, self._name):
            self._print(block)
        self._open = ""
        if self._live:
            self._live.stop()
            self._live = None

    def line(self, text: str, *, dim: bool) -> None:
        self._console.print(Text(text, "dim" if dim else ""), soft_wrap=True)

    def status(self, text: str) -> None:
        self._label = text
        self._draw()

    def _print(self, text: str) -> None:
        if text.strip() or (text and not _is_markdown(self._name)):
            self._console.print(*self._gap(), _StyledLines(text, self._name), sep="\n")
            self._printed = True

    def _gap(self) -> list[RenderableType]:
        """Between blocks that are printed one by one."""
        return [""] if self._printed and _is_markdown(self._name) else []

    def _draw(self) -> None:
        if self._drawn and not self._live and (self._open or self._label):
            self._live = Live(console=self._console, transient=True, get_renderable=self._view, refresh_per_second=10)
            self._live.start(refresh=True)

    def _view(self) -> RenderableType:
        rows: list[RenderableType] = []
        if self._open.strip():
            rows = [*self._gap(), _StyledLines(self._open[-_PREVIEW:], self._name, whole=False)]
        if self._label:
            text = Text(self._label, "dim", no_wrap=True, overflow="ellipsis")
            rows.append(Spinner("dots", text, style="dim"))
        return Group(*rows)


@dataclass(frozen=True, slots=True)
class _StyledLines:
    """A passage without blank lines around it; or its last lines, as many as fit on the screen above the status.

    Its lines end with their text: after spaces up to the margin, a terminal's echo of Ctrl+C would be in the next row.
    """

    text: str
    name: str
    whole: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [_without_end(line) for line in console.render_lines(_styled(self.text, self.name), options, pad=False)]
        filled = [at for at, line in enumerate(lines) if line] if _is_markdown(self.name) else range(len(lines))
        first, end = (filled[0], filled[-1] + 1) if filled else (0, 0)
        for line in lines[first if self.whole else max(first, end - max(1, console.height - 4)) : end]:
            yield from line
            yield Segment.line()


def _without_end(line: list[Segment]) -> list[Segment]:
    """A line without the spaces at its end."""
    text = "".join(segment.text for segment in line).rstrip(" ")
    return next(iter(Segment.divide(line, [cell_len(text)])), []) if text else []


def _styled(text: str, name: str) -> RenderableType:
    """A passage of something with this name; without a suffix it is Markdown."""
    if _is_markdown(name):
        return _markdown(text)
    text, lexer = text.removesuffix("\n"), Syntax.guess_lexer(name)
    if lexer == "default":
        return Text(text)
    return Syntax(text, lexer, theme="ansi_dark", background_color="default", word_wrap=True)


def _markdown(text: str) -> Markdown:
    """With the line breaks that a text has: the lines of a poem are lines."""
    markdown = Markdown(text, code_theme="ansi_dark", hyperlinks=False)
    for child in (child for token in markdown.parsed for child in token.children or ()):
        child.type = "hardbreak" if child.type == "softbreak" else child.type
    return markdown


def _is_markdown(name: str) -> bool:
    return PurePath(name).suffix.lower() in ("", ".md", ".markdown")


def _blocks(text: str, name: str) -> list[str]:
    """A text in pieces; all but the last one look the same whatever follows: the blocks of Markdown, else lines."""
    if not _is_markdown(name):
        end = text.rfind("\n") + 1 if Syntax.guess_lexer(name) in ("default", "text") else 0
        return [text[:end], text[end:]] if end else [text]
    lines = text.splitlines(keepends=True)
    starts = [token.map[0] for token in _BLOCKS.parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    return ["".join(lines[start:end]) for start, end in pairwise([0, *starts[1:], len(lines)])]
