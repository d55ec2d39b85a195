"""Code in Markdown: fences in whole texts (`Fence`), fenced blocks and code spans in a stream (`CodeFinder`).

The rules of `CodeFinder`, which sees a line before it is complete:

Rule 1: a fence opens with a run of 3 or more ` or ~ at the start of a line, after at most 3 spaces (a tab
        counts as 4). It closes with a line of nothing but such a run, of its character and at least as long.
Rule 2: a line that opens a ` fence holds no other `. If one comes, the run had opened a code span.
Rule 3: any other run of ` opens a code span. The span ends with the next run of the same length, with a blank
        line or where a fence opens. A stream cannot be read ahead, so a run that is never closed counts as
        opened until the paragraph ends; and a run at the start of a line that closes a span opens no fence.
Rule 4: nothing else counts: no indented blocks, no fences in quotes or deep in lists, no escaped backticks.

The rules are those of CommonMark (https://spec.commonmark.org/0.31.2/) except rules 3 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

FENCE_LINE: Final = 256
"""The longest line that is a fence, in characters."""

_FENCE: Final = re.compile(r"(?P<indent>[ \t]*)(?P<run>`{3,}|~{3,})(?P<info>[^\n]*)")
_FENCE_LINES: Final = re.compile(r"^[ \t]*(?:```|~~~).*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fence:
    """A line that opens or closes a fenced block."""

    mark: str
    size: int
    info: str
    indent: int

    @classmethod
    def read(cls, line: str) -> Fence | None:
        """Parse a line as a fence, at any indentation; None if it is not one."""
        found = _FENCE.fullmatch(line)
        if found is None or len(line) > FENCE_LINE:
            return None
        mark, info = found["run"][0], found["info"].strip()
        if mark == "`" and mark in info:
            return None
        return cls(mark, len(found["run"]), info, len(found["indent"].expandtabs(4)))

    @property
    def language(self) -> str:
        """The first word of the info string, in lower case; empty for a bare fence."""
        return next(iter(self.info.casefold().split()), "")

    def closes(self, other: Fence) -> bool:
        return not self.info and self.mark == other.mark and self.size >= other.size


def has_fence(text: str) -> bool:
    """Whether a line of the text is a fence."""
    return any(Fence.read(line) for line in text.split("\n"))


def first_fence(text: str) -> Fence | None:
    """The fence that the text begins with, after blanks."""
    return Fence.read(text.lstrip(" \t\r\n").partition("\n")[0])


def inside_fence(before: str) -> bool:
    """Whether what follows `before` is in a fenced block. Fences in lists count, too."""
    opened: Fence | None = None
    for line in _FENCE_LINES.findall(before):
        opened = _fence_after(opened, line)
    return opened is not None


def outside_fences(text: str, line: str) -> Iterator[re.Match[str]]:
    """The lines of a Markdown text that match the pattern `line` and are outside of fenced blocks."""
    opened: Fence | None = None
    for found in re.finditer(rf"{_FENCE_LINES.pattern}|{line}", text, re.MULTILINE):
        before, opened = opened, _fence_after(opened, found[0])
        if not before and not opened:
            yield found


def _fence_after(opened: Fence | None, line: str) -> Fence | None:
    """The fence that is open after `line`."""
    fence = Fence.read(line)
    if opened is None or fence is None:
        return opened or fence
    return None if fence.closes(opened) else opened


_PIECES: Final = re.compile(r"`+|~+|\n|[^`~\n]+")


@dataclass(frozen=True, slots=True)
class _CodeState:
    """The state before the next character."""

    fence: str = ""  # the character of the open fence
    size: int = 0  # the length of the run that opened it
    span: int = 0  # the length of the run that opened the code span; 0 outside one
    info: bool = False  # on the line that opens the fence; `span` is what it was before
    closing: bool = False  # on a line that closes the fence if nothing else comes
    blank: bool = True  # the line has only whitespace so far
    indent: int = 0  # how much of it

    def after_line(self) -> _CodeState:
        if self.closing:
            return _CodeState()
        if self.fence:
            return _CodeState(self.fence, self.size)
        return _CodeState(span=0 if self.blank else self.span)

    def after_text(self, text: str) -> _CodeState:
        if text.strip(" \t\r"):
            return replace(self, blank=False, closing=False)
        return replace(self, indent=self.indent + len(text) + 3 * text.count("\t"))

    def after_run(self, mark: str, size: int) -> _CodeState:
        marker = self.blank and self.indent <= 3 and size >= 3
        here = replace(self, blank=False, closing=False)
        if self.fence and not (self.info and self.fence == mark == "`"):
            return replace(here, closing=marker and mark == self.fence and size >= self.size)
        if marker and not (mark == "`" and size == self.span):
            return replace(here, fence=mark, size=size, info=True)
        if mark == "~":
            return here
        span = self.span or (self.size if self.info else 0)
        return replace(here, fence="", info=False, span=0 if size == span else span or size)


class CodeFinder:
    """Reads Markdown in pieces cut anywhere, and tracks whether its end is in code."""

    __slots__ = ("_before", "_mark", "_place", "_size")

    def __init__(self) -> None:
        self._place = self._before = _CodeState()
        self._mark, self._size = "", 0  # the run that the text ends with; `_before` is where it began

    @property
    def code(self) -> bool:
        """Whether a next character other than a backtick or tilde would be in code."""
        return bool(self._place.fence or self._place.span)

    def read(self, text: str) -> None:
        """Take the next piece of the text."""
        for piece in _PIECES.findall(text):
            if piece[0] in "`~":
                self._read_run(piece)
            else:
                self._mark = ""
                self._place = self._place.after_line() if piece == "\n" else self._place.after_text(piece)

    def _read_run(self, run: str) -> None:
        if run[0] != self._mark:
            self._before, self._mark, self._size = self._place, run[0], 0
        # The run may continue in the next piece: it is judged again as a whole.
        self._size += len(run)
        self._place = self._before.after_run(self._mark, self._size)
