"""Where code is in Markdown that streams in: fenced blocks and inline spans, for a reader without foresight.

Rule 1: a fence opens with a run of 3 or more ` or ~ at the start of a line, after at most 3 spaces (a tab
        counts as 4). It closes with a line of nothing but such a run, of its character and at least as long.
Rule 2: a line that opens a ` fence holds no other `. If one comes, the run had opened a code span.
Rule 3: any other run of ` opens a code span. The span ends with the next run of the same length, with a blank
        line or where a fence opens. A stream cannot be read ahead, so a run that is never closed counts as
        opened until the paragraph ends; and a run at the start of a line that closes a span opens no fence.
Rule 4: nothing else counts: no indented blocks, no fences in quotes or deep in lists, no escaped backticks.

The rules are those of CommonMark (https://spec.commonmark.org/0.31.2/) but for rules 3 and 4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

_PIECES: Final = re.compile(r"`+|~+|\n|[^`~\n]+")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the next character stands."""

    fence: str = ""  # the character of the open fence
    size: int = 0  # the length of the run that opened it
    span: int = 0  # the length of the run that opened the code span; 0 outside one
    info: bool = False  # on the line that opens the fence; `span` is what it was before
    closing: bool = False  # on a line that closes the fence if nothing else comes
    blank: bool = True  # the line has only whitespace so far
    indent: int = 0  # how much of it

    def after_line(self) -> _Place:
        if self.closing:
            return _Place()
        if self.fence:
            return _Place(self.fence, self.size)
        return _Place(span=0 if self.blank else self.span)

    def after_text(self, text: str) -> _Place:
        if text.strip(" \t\r"):
            return replace(self, blank=False, closing=False)
        return replace(self, indent=self.indent + len(text) + 3 * text.count("\t"))

    def after_run(self, mark: str, size: int) -> _Place:
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
    """Reads Markdown in pieces cut anywhere, and knows whether its end is in code."""

    __slots__ = ("_before", "_mark", "_place", "_size")

    def __init__(self) -> None:
        self._place = self._before = _Place()
        self._mark, self._size = "", 0  # the run that the text ends with; `_before` is where it began

    @property
    def code(self) -> bool:
        """Whether something other than a backtick or tilde that came now would stand in code."""
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
        # A run may go on in the next piece: it is judged again as a whole.
        self._size += len(run)
        self._place = self._before.after_run(self._mark, self._size)
