"""The code fence that a model puts around its reply, taken off while the reply streams in. Pure.

Rule 1: a reply that begins with a fence (3 or more ` or ~, with or without an info string; blanks and blank lines
        before it do not count) is wrapped in it. The fence is taken off, with the line break before the closing one.
Rule 2: but it is text where it may well be: if the selection itself begins with a fence; and in Markdown, outside of a
        fenced block, if its info string names something other than Markdown or plain text.
Rule 3: within the wrapper a fence with an info string opens another one, and a bare one of the same character, at least
        as long, closes the newest that is open. A line indented by more than 3 columns beyond the wrapper is no fence.
Rule 4: in Markdown, outside of a fenced block, a reply that begins with a bare fence is held back to its end. If
        nothing but blanks follows what closes the fence, it is a wrapper; else the reply stands as it is, all of it.
Rule 5: any other wrapper that is never closed is taken off all the same, and all that follows is text.
Rule 6: what follows the closing fence is no document text. If it is not blank it is kept apart, as `remarks`. If there
        is a fence in it, nobody can tell where the text ends: the model has not returned the passage alone.
Rule 7: a fence stands within the first `FENCE_LINE` characters of its line or, for the first, of the reply. So no more
        than that is ever held back, but for rule 4.
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


Wrappers = Literal["any", "of text", "none"]
"""Which fences at the beginning of a reply are wrappers."""


def wrappers(passage: Passage, *, inside_fence: bool) -> Wrappers:
    """Which fences are wrappers in the reply to a passage (rules 2 and 4)."""
    first = passage.selected.lstrip(" \t\r\n").partition("\n")[0]
    if _Fence.read(first):
        return "none"
    return "of text" if is_markdown(passage.language) and not inside_fence else "any"


class Fences:
    """Takes the wrapper off. No "\\r" may come at the end of a piece but at the very end.

    Attributes:
        remarks: what the model said after its text; known after `flush`.
    """

    def __init__(self, wrappers: Wrappers) -> None:
        self.remarks = ""
        self._wrappers = wrappers
        self._place: Literal["beginning", "wrapper", "text", "remarks", "held"] = (
            "beginning" if wrappers != "none" else "text"
        )
        self._reply: list[str] = []  # all of it, if it is held back
        self._open: list[_Fence] = []  # the wrapper first
        self._end = ""  # the line break before the current line, if that may be a fence
        self._line: str | None = ""  # the current line, for as long as it may be one

    @property
    def wrapped(self) -> bool:
        """Whether the reply was in a wrapper; known after `flush`."""
        return bool(self._place in ("wrapper", "remarks"))

    @property
    def closed(self) -> bool:
        """Whether the wrapper was closed, and nothing but blanks followed; known after `flush`."""
        return bool(self._place == "remarks" and not self.remarks.strip())

    @property
    def alone(self) -> bool:
        """Whether there is no fence in the remarks; known after `flush`."""
        return not any(_Fence.read(line) for line in self.remarks.strip().split("\n"))

    def feed(self, text: str) -> str:
        match self._place:
            case "beginning":
                return self._begin(text)
            case "wrapper":
                return "".join(self._unwrapped(text))
            case "text":
                return text
            case "held":
                self._reply.append(text)
                return ""
            case "remarks":
                self.remarks += text
                return ""

    def flush(self) -> str:
        if self._place == "held":
            return self._whole("".join(self._reply))
        line, self._line = self._line or "", ""
        if self._place != "wrapper":
            return line
        if not self._closes(line):
            return self._end + line
        self._place = "remarks"
        return ""

    def _whole(self, reply: str) -> str:
        inner = Fences("any")
        text = inner.feed(reply) + inner.flush()
        self._place = "remarks" if inner.closed else "text"
        return text if inner.closed else reply

    def _begin(self, text: str) -> str:
        reply = (self._line or "") + text
        opening = _OPENING.match(reply)
        if opening and opening.end() <= FENCE_LINE:
            fence = _Fence.read(opening["line"])
            if fence and self._is_wrapper(fence):
                return self._open_wrapper(fence, reply, opening.end())
        elif len(reply) <= FENCE_LINE and _MAY_BE_FENCE.fullmatch(reply):
            self._line = reply
            return ""
        self._place, self._line = "text", ""
        return reply

    def _open_wrapper(self, fence: _Fence, reply: str, end: int) -> str:
        self._line = ""
        if self._wrappers == "of text" and not fence.info:
            self._place, self._reply = "held", [reply]
            return ""
        self._place, self._open = "wrapper", [fence]
        return self.feed(reply[end:])

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
