"""What of a model's reply to an edit is document text, while it streams in. Pure.

The code fence around a reply:

Rule 1: a reply that begins with a fence (3 or more ` or ~, with or without an info string; blanks and blank lines
        before it do not count) is wrapped in it. The fence is taken off, with the line break before the closing one.
Rule 2: but it is text where it may well be: if the selection itself begins with a fence; and in Markdown, outside of a
        fenced block, if its info string names something other than Markdown or plain text.
Rule 3: within the wrapper a fence with an info string opens another one, and a bare one of the same character, at least
        as long, closes the newest that is open. A line indented by more than 3 columns beyond the wrapper is no fence.
Rule 4: a wrapper that is never closed is taken off all the same, and all that follows is text.
Rule 5: what follows the closing fence is no document text. If it is not blank it is kept apart, as `remarks`.
Rule 6: a fence stands within the first `FENCE_LINE` characters of its line or, for the first, of the reply. So no more
        than that is ever held back but blanks at the beginning and line breaks at the end.

The ends of the text:

Rule 7: where it replaces a selection that ended in a line break, it ends in the very same one; where it replaces one
        that did not, line breaks at its very end are left off.
Rule 8: where it replaces a selection and is empty or blank, it deletes it whole, its line break included.
Rule 9: an insertion stands as it is. But a wrapper cannot tell whether its text ends in a line break: if one was taken
        off, and the insertion begins a line on which more text follows, it ends in one.

Law: the joined results of `feed` and `flush` do not depend on how the reply is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from server.agent.language import is_markdown
from server.agent.model import Passage

FENCE_LINE: Final = 256
"""Characters within which a fence must stand."""

_FENCE: Final = re.compile(r"(?P<indent>[ \t]*)(?P<run>`{3,}|~{3,})(?P<info>[^\n]*)")
_OPENING: Final = re.compile(r"(?:[ \t]*\r?\n)*(?P<line>[ \t]*(?:`{3,}[^`\n]*|~{3,}[^\n]*))\n")
_MAY_BE_FENCE: Final = re.compile(r"[ \t\r\n]*(?:`{0,2}|`{3,}[^`\n]*|~{0,2}|~{3,}[^\n]*)")
_LINES: Final = re.compile(r"(?P<text>[^\n]*?)(?P<end>\r?\n)|(?P<rest>[^\n]+)")
_FENCE_LINES: Final = re.compile(r"^[ \t]*(?:```|~~~).*", re.MULTILINE)
_LINE_END: Final = re.compile(r"\r?\n\Z")
_OF_MARKDOWN: Final = ("markdown", "md", "text")


@dataclass(frozen=True, slots=True)
class _Fence:
    mark: str
    size: int
    info: str
    indent: int

    @classmethod
    def read(cls, line: str) -> _Fence | None:
        """The fence that a line is."""
        found = _FENCE.fullmatch(line)
        if found is None or len(line) > FENCE_LINE:
            return None
        mark, info = found["run"][0], found["info"].strip()
        if mark == "`" and mark in info:
            return None
        return cls(mark, len(found["run"]), info, len(found["indent"].expandtabs(4)))

    def closes(self, other: _Fence) -> bool:
        return not self.info and self.mark == other.mark and self.size >= other.size


def inside_fence(before: str) -> bool:
    """Whether what follows `before` in a Markdown text stands in a fenced block. Fences in lists count, too."""
    opened: _Fence | None = None
    for line in _FENCE_LINES.findall(before):
        fence = _Fence.read(line)
        if fence and opened is None:
            opened = fence
        elif fence and opened and fence.closes(opened):
            opened = None
    return opened is not None


class Rewritten:
    """Takes a reply in pieces, and gives the text that it makes of them.

    Args:
        passage: what the model was asked to edit.
        inside_fence: whether the selection stands in a fenced block, by the whole text before it.
    """

    def __init__(self, passage: Passage, *, inside_fence: bool) -> None:
        self._fences = _Fences(_wrappers(passage, inside_fence))
        replaces = passage.strategy == "replace" and passage.selected
        self._ends = _Ends(passage.selected) if replaces else None
        self._begins_line = not replaces and _begins_line(passage)
        self._held = ""  # "\r", for as long as "\n" may follow

    @property
    def remarks(self) -> str:
        """What the model said after its text, without the blanks around it; known after `flush`."""
        return self._fences.remarks.strip()

    def feed(self, delta: str) -> str:
        """The text that is certain once `delta` has come."""
        reply = self._held + delta
        self._held = "\r" if reply.endswith("\r") else ""
        return self._ended(self._fences.feed(reply.removesuffix("\r")))

    def flush(self) -> str:
        """The rest of the text. Nothing may come after it."""
        rest = self._ended(self._fences.feed(self._held) + self._fences.flush())
        if self._begins_line and self._fences.wrapped:
            return f"{rest}\n"
        return rest + (self._ends.flush() if self._ends else "")

    def _ended(self, text: str) -> str:
        return self._ends.feed(text) if self._ends else text


def _begins_line(passage: Passage) -> bool:
    """Whether an insertion comes between a line's beginning and the text of that line."""
    around = (passage.before, passage.selected + passage.after)
    if passage.strategy == "insert_after":
        around = (passage.before + passage.selected, passage.after)
    left, right = around
    return (not left or left.endswith("\n")) and bool(right) and not right.startswith(("\n", "\r\n"))


_Wrappers = Literal["any", "of text", "none"]
"""Which fences at the beginning of a reply are wrappers."""


def _wrappers(passage: Passage, inside_fence: bool) -> _Wrappers:
    first = passage.selected.lstrip(" \t\r\n").partition("\n")[0]
    if _Fence.read(first):
        return "none"
    return "of text" if is_markdown(passage.language) and not inside_fence else "any"


class _Fences:
    """Takes the wrapper off. No "\\r" comes at the end of a piece but at the very end."""

    def __init__(self, wrappers: _Wrappers) -> None:
        self.remarks = ""
        self._wrappers = wrappers
        self._place: Literal["beginning", "wrapper", "text", "remarks"] = "beginning" if wrappers != "none" else "text"
        self._open: list[_Fence] = []  # the wrapper first
        self._end = ""  # the line break before the current line, if that may be a fence
        self._line: str | None = ""  # the current line, for as long as it may be one

    @property
    def wrapped(self) -> bool:
        """Whether the reply was in a wrapper."""
        return bool(self._place in ("wrapper", "remarks"))

    def feed(self, text: str) -> str:
        match self._place:
            case "beginning":
                return self._begin(text)
            case "wrapper":
                return "".join(self._unwrapped(text))
            case "text":
                return text
            case "remarks":
                self.remarks += text
                return ""

    def flush(self) -> str:
        line, self._line = self._line or "", ""
        if self._place != "wrapper":
            return line
        return "" if self._closes(line) else self._end + line

    def _begin(self, text: str) -> str:
        reply = (self._line or "") + text
        opening = _OPENING.match(reply)
        if opening and opening.end() <= FENCE_LINE:
            self._line = ""
            fence = _Fence.read(opening["line"])
            if fence and self._is_wrapper(fence):
                self._place, self._open = "wrapper", [fence]
                return self.feed(reply[opening.end() :])
        elif len(reply) <= FENCE_LINE and _MAY_BE_FENCE.fullmatch(reply):
            self._line = reply
            return ""
        self._place, self._line = "text", ""
        return reply

    def _is_wrapper(self, fence: _Fence) -> bool:
        language = fence.info.casefold().split()[:1]
        return self._wrappers == "any" or not language or language[0] in _OF_MARKDOWN

    def _unwrapped(self, text: str) -> Iterator[str]:
        for piece in _LINES.finditer(text):
            if self._place == "remarks":
                self.remarks += piece[0]
            elif piece["end"]:
                yield self._go_on(piece["text"]) + self._end_line(piece["end"])
            else:
                yield self._go_on(piece["rest"])

    def _go_on(self, text: str) -> str:
        if self._line is not None:
            self._line += text
            if len(self._line) <= FENCE_LINE and _MAY_BE_FENCE.fullmatch(self._line):
                return ""
            text, self._line = self._line, None
        elif not text:
            return ""
        held, self._end = self._end, ""
        return held + text

    def _end_line(self, end: str) -> str:
        line = self._line
        if line is not None and self._closes(line):
            self._place, self._line, self._end = "remarks", "", ""
            return ""
        text = self._end + (line or "")
        self._line, self._end = "", end
        return text

    def _closes(self, line: str) -> bool:
        """Whether the line closes the wrapper; what it opens or closes within is remembered."""
        fence = _Fence.read(line)
        if fence is None or fence.indent > self._open[0].indent + 3:
            return False
        if fence.info:
            self._open.append(fence)
        elif fence.closes(self._open[-1]):
            self._open.pop()
        return not self._open


class _Ends:
    """Gives a text that replaces `selected` the end that it must have."""

    def __init__(self, selected: str) -> None:
        end = _LINE_END.search(selected)
        self._line_end = end[0] if end else ""
        self._held: list[str] = []  # blanks at the beginning, else line breaks at the end, as far as it has come
        self._begun = False

    def feed(self, text: str) -> str:
        self._begun = self._begun or bool(text.strip())
        certain = text.rstrip("\r\n") if self._begun else ""
        if not certain:
            self._held.append(text)
            return ""
        held, self._held = "".join(self._held), [text[len(certain) :]]
        return held + certain

    def flush(self) -> str:
        if not self._begun:
            return ""
        held = "".join(self._held)
        return _without_line_end(held) + self._line_end if self._line_end else _without_line_ends(held)


def _without_line_end(text: str) -> str:
    return text[:-1].removesuffix("\r") if text.endswith("\n") else text


def _without_line_ends(text: str) -> str:
    at = len(text)
    while text.endswith("\n", 0, at):
        at -= 2 if text.endswith("\r\n", 0, at) else 1
    return text[:at]
