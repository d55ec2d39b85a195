"""Shows a task to a person: A2A responses in, text out.

Rule 1: control characters from a server never reach the screen, except newline and tab.
Rule 2: text is printed once. The printed text of an artifact or a reply is remembered; of a text that extends it only
        the rest is printed, any other text is printed whole, below.
Rule 3: on a terminal Markdown and code are styled. The text being written is below the rest, with the status line under
        it; both are redrawn until the text is complete.
Rule 4: an output that is not a terminal gets the same text unstyled; statuses are then lines on `err`.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePath
from typing import IO, Any

from a2a.types import a2a_pb2 as pb
from markdown_it import MarkdownIt
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner
from rich.syntax import Syntax
from rich.text import Text

from a2a_canvas.server.client.screen.display import clean, fit, one_line
from a2a_canvas.server.client.screen.fold import OVER, AskedCall, SeenTask, extension_data, is_piece, part_label
from a2a_canvas.server.wire import TURN

MAX_ERROR = 300
"""Characters of a line about a failed tool call."""

_RULE = 40
"""Columns of a horizontal rule."""
_REDRAWN = 0.1
"""Seconds between two redraws of the text in progress."""
_PREVIEW = 8_000
"""The most characters drawn of a passage in progress: more than any screen shows."""
_VALUE = 4_000
"""The most characters shown of a value in the input of a call."""
_REPLY = "reply"
_BLOCKS = MarkdownIt().enable(["table", "strikethrough"])


@dataclass(slots=True)
class _PrintedArtifact:
    name: str
    text: str = ""
    labels: list[str] = field(default_factory=list)


class Screen:
    """The screen of one command.

    Args:
        console: for text, with a status line if it is a terminal.
        messages: for statuses if `console` is not a terminal.
        thinking: show the model's thinking in the status line.
    """

    def __init__(self, console: Console, messages: Console, *, thinking: bool = False) -> None:
        styled = console.is_terminal and not console.is_dumb_terminal
        self._paper = StyledPaper(console) if styled else PlainPaper(console, messages)
        self._thinking = thinking
        self._area = ""
        self._shown: dict[str, _PrintedArtifact] = {}
        self._said = self._asked = ""
        self._calls: dict[str, str] = {}

    def show(self, response: pb.StreamResponse, seen: SeenTask, *, artifacts: bool = True) -> None:
        """Show what one response says, which led to `seen`. The closing message is for `closing_reply`.

        Args:
            artifacts: also show their contents.
        """
        match response.WhichOneof("payload"):
            case "task":
                for artifact in response.task.artifacts if artifacts else ():
                    self.artifact(artifact)
                self._working(seen)
            case "artifact_update" if artifacts:
                self.artifact(response.artifact_update.artifact, append=response.artifact_update.append)
            case "status_update" if is_piece(response.status_update):
                self.reply(seen.reply)
            case "status_update":
                self._update(extension_data(response.status_update.metadata, TURN), seen)

    def _update(self, turn: dict[str, Any], seen: SeenTask) -> None:
        match turn:
            case {"event_type": "text_delta" | "assistant"}:
                self.reply(seen.reply)
            case {"event_type": "thinking", "data": {"content": str(text)}} if self._thinking and text.strip():
                self.status(text)
            case {"event_type": "tool_use_start", "data": {"tool_use_id": str(call), "name": str(name)}}:
                self._calls[call] = name
            case {"event_type": "tool_execution_error", "data": {"tool_use_id": str(call), "error": str(error)}}:
                name = one_line(self._calls.get(call, "A tool"))
                self._paper.remark(fit(_failure(name, one_line(error)), MAX_ERROR))
            case {"event_type": "final_message_start" | "completed"}:
                self.status("")
            case {"event_type": _}:
                pass
            case _ if not turn or turn.get("label") is True:
                self._working(seen)
            case _:
                # Otherwise the text of a finished round, which was shown as it arrived.
                self.status("")

    def _working(self, seen: SeenTask) -> None:
        if "\n" in seen.message.strip() and seen.state not in OVER:  # text, and no label
            self.reply(seen.message)
        elif seen.message and seen.state not in OVER:
            self.status(seen.message)

    def close(self) -> None:
        """End what is open: the cursor is at the start of a line."""
        self._paper.close()
        self._area = ""

    def status(self, text: str) -> None:
        """Show what the agent is doing; empty to clear."""
        text = one_line(text)
        if not text or text != one_line(self._said):
            self._paper.status(text)

    def line(self, text: str) -> None:
        """Print a line of this program itself."""
        self.close()
        self._paper.line(one_line(text), dim=False)

    def artifact(self, artifact: pb.Artifact, *, append: bool = False) -> None:
        """Show an artifact, or what is appended to it."""
        labels = [line for part in artifact.parts if (line := part_label(part))]
        text = clean("".join(part.text for part in artifact.parts))
        shown = self._shown.get(artifact.artifact_id)
        note = " (continued)"
        if shown is None and text and text.strip() == self._said.strip() and not labels:  # it was the reply
            self._shown[artifact.artifact_id] = _PrintedArtifact(
                one_line(artifact.name) or one_line(artifact.artifact_id), text
            )
            return
        if shown is None:
            shown = self._shown[artifact.artifact_id] = _PrintedArtifact(
                one_line(artifact.name) or one_line(artifact.artifact_id)
            )
            note, self._area = "", ""
        elif not append:
            if not (text.startswith(shown.text) and labels[: len(shown.labels)] == shown.labels):
                shown.text, shown.labels, note, self._area = "", [], " (rewritten)", ""
            text, labels = text[len(shown.text) :], labels[len(shown.labels) :]
        if text or labels or not self._area:
            self._open_area(artifact.artifact_id, f"{shown.name}{note}", shown.name)
            shown.text += text
            shown.labels += labels
            self._paper.text(text)
            for line in labels:
                self._paper.line(line, dim=False)

    def _open_area(self, area: str, title: str, name: str) -> None:
        if self._area != area:
            self._paper.close()
            self._paper.open(f"── {title} ", name)
            self._area = area

    def reply(self, text: str) -> None:
        """Show the whole text of the reply so far, which replaces the previous one."""
        text = clean(text)
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

    def closing_reply(self, text: str) -> None:
        """Show the reply at the end of the task, which may be empty, or shown already."""
        if (text := clean(text).strip()) != self._said.strip():
            self.reply(text)
        self._paper.close()

    def approval(self, seen: SeenTask) -> None:
        """Show the calls that wait for the user, with all of their input, once per question."""
        if seen.asked and (key := f"{seen.task_id}\n{seen.message}") != self._asked:
            self._asked = key
            self.close()
            self._paper.line("The agent asks whether it may run:", dim=False)
            for line in (line for call in seen.asked for line in _call_lines(call)):
                self._paper.line(f"  {line}", dim=False)
            for line in filter(None, clean(seen.message).split("\n")):
                if not (line.startswith("May I run ") and line.endswith("Answer yes or no.")):
                    self._paper.line(line, dim=False)

    def print_ids(self, seen: SeenTask) -> None:
        """Print the ids needed for the next command."""
        self.close()
        for word, *values in (
            ("context", seen.context_id),
            ("task", seen.task_id),
            *(("artifact", *each) for each in seen.artifacts),
        ):
            if value := "  ".join(map(one_line, values)).strip():
                self._paper.line(f"{word:8}  {value}", dim=True)


def _call_lines(call: AskedCall) -> list[str]:
    """A call as lines: its tool, then each name with its value."""
    lines = [one_line(call.tool)]
    for name, value in sorted(call.input.items()):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        more = f"… and {len(text) - _VALUE} more characters" if len(text) > _VALUE else ""
        first, *rest = clean(f"{text[:_VALUE]}{more}").split("\n")
        lines += [f"  {one_line(name)}: {first}", *(f"    {line}" for line in rest)]
    return lines


def _same_file(out: IO[str], err: IO[str]) -> bool:
    """Whether both write to the same file or pipe, as after `2>&1`."""
    try:
        return os.path.sameopenfile(out.fileno(), err.fileno())
    except (OSError, ValueError):
        return False


class PlainPaper:
    """Text as it is."""

    def __init__(self, console: Console, messages: Console) -> None:
        self._out, self._messages = console.file, messages
        self._one_file = _same_file(console.file, messages.file)
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
            self.remark(text)
        self._label = text

    def remark(self, text: str) -> None:
        if self._one_file:
            self.close()
        self._messages.print(text, soft_wrap=True)

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()
            self._at_start = text.endswith("\n")


class StyledPaper:
    """Styled text. Complete blocks are printed; the one in progress and the status are drawn below, and erased."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._next: asyncio.TimerHandle | None = None
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
        if self._next:
            self._next.cancel()
            self._next = None

    def line(self, text: str, *, dim: bool) -> None:
        self._console.print(Text(text, "dim" if dim else ""), soft_wrap=True)

    def status(self, text: str) -> None:
        self._label = text
        self._draw()

    def remark(self, text: str) -> None:
        self.close()
        self.line(text, dim=True)

    def _print(self, text: str) -> None:
        if text.strip() or (text and not _is_markdown(self._name)):
            self._console.print(*self._gap(), _StyledLines(text, self._name), sep="\n")
            self._printed = True

    def _gap(self) -> list[RenderableType]:
        """Between blocks that are printed one by one."""
        return [""] if self._printed and _is_markdown(self._name) else []

    def _draw(self) -> None:
        if self._drawn and not self._live and (self._open or self._label):
            # Not by rich's own thread: it would erase what this one prints concurrently.
            self._live = Live(console=self._console, transient=True, get_renderable=self._view, auto_refresh=False)
            self._live.start()
            self._redraw()

    def _redraw(self) -> None:
        if self._live:
            self._live.refresh()
            self._next = asyncio.get_running_loop().call_later(_REDRAWN, self._redraw)

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
        lines = [_strip_end(line) for line in console.render_lines(_style(self.text, self.name), options, pad=False)]
        filled = [at for at, line in enumerate(lines) if line] if _is_markdown(self.name) else range(len(lines))
        first, end = (filled[0], filled[-1] + 1) if filled else (0, 0)
        for line in lines[first if self.whole else max(first, end - max(1, console.height - 4)) : end]:
            yield from line
            yield Segment.line()


def _strip_end(line: list[Segment]) -> list[Segment]:
    """A line without the spaces at its end."""
    text = "".join(segment.text for segment in line).rstrip(" ")
    return next(iter(Segment.divide(line, [cell_len(text)])), []) if text else []


def _style(text: str, name: str) -> RenderableType:
    """A passage of an artifact with this name; without a suffix it is Markdown."""
    if _is_markdown(name):
        return _markdown(text)
    text, lexer = text.removesuffix("\n"), Syntax.guess_lexer(name)
    if lexer == "default":
        return Text(text)
    return Syntax(text, lexer, theme="ansi_dark", background_color="default", word_wrap=True)


def _markdown(text: str) -> Markdown:
    """Markdown that keeps line breaks, as in a poem."""
    markdown = Markdown(text, code_theme="ansi_dark", hyperlinks=False)
    for child in (child for token in markdown.parsed for child in token.children or ()):
        child.type = "hardbreak" if child.type == "softbreak" else child.type
    return markdown


def _is_markdown(name: str) -> bool:
    return PurePath(name).suffix.lower() in ("", ".md", ".markdown")


def _blocks(text: str, name: str) -> list[str]:
    """A text in pieces that do not change when more follows, except the last: Markdown blocks, else lines."""
    if not _is_markdown(name):
        end = text.rfind("\n") + 1 if Syntax.guess_lexer(name) in ("default", "text") else 0
        return [text[:end], text[end:]] if end else [text]
    lines = text.splitlines(keepends=True)
    starts = [token.map[0] for token in _BLOCKS.parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    return ["".join(lines[start:end]) for start, end in pairwise([0, *starts[1:], len(lines)])]


def _failure(tool: str, error: str) -> str:
    """The line about a failed call; many errors begin with the name of their tool."""
    return error if error.startswith(tool) else f"{tool} failed: {error}"
