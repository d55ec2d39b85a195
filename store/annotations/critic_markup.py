"""A text with its open suggestions and comments as CriticMarkup, and back. Pure.

    {++new++}   {--old--}   {~~old~>new~~}   {==passage==}{>>comment<<}   {>>comment<<}

Rule 1: remarks directly behind a mark are its thread, the comment first. A comment on a place between two characters is
        a remark alone.
Rule 2: what is written reads back as the same text, suggestions and comments. What could not, is refused with its line:
        a text with openings of marks of its own, passages that overlap, a remark alone behind another mark.
Rule 3: a mark that is not closed is an error: only a text that is said to have marks is read as one.
Rule 4: CriticMarkup has no authors, dates or states: they are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from a2a_canvas.store.text.spans import Span

_OPENING = re.compile(r"\{(?:\+\+|--|~~|==|>>)")
_CLOSINGS = {"{++": "++}", "{--": "--}", "{~~": "~~}", "{==": "==}", "{>>": "<<}"}
_ARROW = "~>"
_WORDLESS = "has a comment without words"


@dataclass(frozen=True, slots=True)
class CriticMark:
    """A suggestion or a comment.

    Attributes:
        span: the passage, in the text without marks.
        replacement: of a suggestion; None for a comment.
        thread: the remarks, of a comment at least one.
    """

    span: Span
    replacement: str | None = None
    thread: tuple[str, ...] = ()


class CriticMarkupError(ValueError):
    """`line`: counted from 1, in what was given. `reason`: the rest of a sentence that begins with the line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"Line {line} {reason}.")
        self.line, self.reason = line, reason


# ----------------------------------------------------------------------------- writing


def write_critic_markup(text: str, marks: Iterable[CriticMark]) -> str:
    """The text with marks.

    Raises:
        CriticMarkupError: it could not be read back (rule 2).
    """
    pieces: list[str] = []
    done, follows_mark = 0, False
    for mark in sorted(marks, key=_order):
        span = mark.span
        if span.start < done:
            raise CriticMarkupError(line_at(text, span.start), "has a suggestion or a comment that overlaps another")
        pieces.append(_check_plain(text, Span(done, span.start)))
        follows_mark = follows_mark and done == span.start
        if follows_mark and _is_remark_alone(mark):
            reason = "has a comment between two characters, directly behind another mark"
            raise CriticMarkupError(line_at(text, span.start), reason)
        try:
            pieces += _write_mark(mark, span.extract(text))
        except ValueError as error:
            raise CriticMarkupError(line_at(text, span.start), str(error)) from None
        done, follows_mark = span.end, True
    pieces.append(_check_plain(text, Span(done, len(text))))
    return "".join(pieces)


def line_at(text: str, offset: int) -> int:
    """The line of a character, counted from 1."""
    return text.count("\n", 0, offset) + 1


def _order(mark: CriticMark) -> tuple[int, int, bool]:
    """A remark alone precedes what else is at its place, so that it is not taken for the thread of that."""
    return mark.span.start, mark.span.end, not _is_remark_alone(mark)


def _is_remark_alone(mark: CriticMark) -> bool:
    return mark.replacement is None and mark.span.start == mark.span.end


def _check_plain(text: str, span: Span) -> str:
    piece = span.extract(text)
    if opening := _OPENING.search(piece):
        reason = f"has {opening[0]!r} in its own text, which would be read as a mark"
        raise CriticMarkupError(line_at(text, span.start + opening.start()), reason)
    return piece


def _write_mark(mark: CriticMark, passage: str) -> Iterator[str]:
    """The pieces of a mark and its thread. A `ValueError` has the reason why there are none."""
    new = mark.replacement
    if new is None:
        if passage:
            yield _enclose("{==", passage)
    elif not passage:
        yield _enclose("{++", new)
    elif not new:
        yield _enclose("{--", passage)
    elif _ARROW in passage:
        raise ValueError(f"has {_ARROW!r} in a passage that a suggestion replaces")
    else:
        # The passage ends at the arrow, so both texts are checked for themselves.
        yield _enclose("{~~", passage).removesuffix("~~}") + _ARROW + _enclose("{~~", new).removeprefix("{~~")
    for remark in mark.thread:
        if not remark.strip():
            raise ValueError(_WORDLESS)
        yield _enclose("{>>", remark)


def _enclose(opening: str, content: str) -> str:
    closing = _CLOSINGS[opening]
    if found := _OPENING.search(content):
        raise ValueError(f"has {found[0]!r} in a suggestion, a comment or its passage")
    if closing in content:
        raise ValueError(f"has {closing!r} in a suggestion, a comment or its passage")
    return f"{opening}{content}{closing}"


# ----------------------------------------------------------------------------- reading


def read_critic_markup(markup: str) -> tuple[str, tuple[CriticMark, ...]]:
    """The text without marks, and the marks in their order.

    Raises:
        CriticMarkupError: a mark is not closed, or a highlighted passage has no comment (rule 3).
    """
    text: list[str] = []
    marks: list[CriticMark] = []
    length = at = 0
    while opening := _OPENING.search(markup, at):
        text.append(markup[at : opening.start()])
        length += opening.start() - at
        mark, passage, at = _read_mark(markup, opening.start(), length)
        text.append(passage)
        length += len(passage)
        marks.append(mark)
    return "".join((*text, markup[at:])), tuple(marks)


def _read_mark(markup: str, start: int, at: int) -> tuple[CriticMark, str, int]:
    """A mark that opens at `start`, its passage, and where the markup continues. `at`: characters of text so far."""
    kind = markup[start : start + 3]
    end, new = start, None
    passage = ""
    match kind:
        case "{++":
            new, end = _content(markup, start)
        case "{--":
            passage, end = _content(markup, start)
            new = ""
        case "{~~":
            passage, _ = _content(markup, start, _ARROW)
            replacement = start + 3 + len(passage) + len(_ARROW)
            new, end = _content(markup, start, begin=replacement)
        case "{==":
            passage, end = _content(markup, start)
    thread = []
    while markup.startswith("{>>", end):
        begin = end
        remark, end = _content(markup, begin)
        if not remark.strip():
            raise CriticMarkupError(line_at(markup, begin), _WORDLESS)
        thread.append(remark)
    if new is None and not thread:
        reason = "has a highlighted passage without a comment: write {>>comment<<} directly behind it"
        raise CriticMarkupError(line_at(markup, start), reason)
    return CriticMark(Span(at, at + len(passage)), new, tuple(thread)), passage, end


def _content(markup: str, start: int, closing: str = "", begin: int = 0) -> tuple[str, int]:
    """What stands between the opening at `start`, or `begin`, and its closing; and where the markup continues."""
    opening = markup[start : start + 3]
    closing, begin = closing or _CLOSINGS[opening], begin or start + 3
    end = markup.find(closing, begin)
    if end < 0:
        raise CriticMarkupError(line_at(markup, start), f"has {opening!r} without a {closing!r} after it")
    return markup[begin:end], end + len(closing)
