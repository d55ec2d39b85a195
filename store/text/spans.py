"""Places in a text: units, lines, splicing, and finding a quoted passage again. Pure.

Rule 1: inside the house a place is a `Span` of code points. Senders count in UTF-16 code units or in code points, and
        are converted here, once.
Rule 2: a line ends with "\\n" or "\\r\\n"; a range of lines leaves out the end of its last line.
Rule 3 (finding again): a passage may stand elsewhere once a text has moved on. It is taken to stand
        - where it stood, if the text has not changed at all;
        - else where its quote occurs, if that occurs once now and occurred once then, and what stands next to it on
          either side is the same character: others have not written into it, as who makes "def f" "async def f" has
          (the ends of lines and of the text are alike);
        - else at the one occurrence that has the same `AROUND` characters before and after it as the passage had, if
          there was but one then, too;
        - else nowhere. It is never guessed. An empty passage has no quote: its surroundings alone decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["utf16", "codepoint"]

AROUND = 32
"""Characters of prefix and of suffix that tell equal quotes apart."""
_EDGE = "\ud800"
"""Stands for the beginning and the end of a text. No text has it (`replace_surrogates`)."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a text in code points, `end` exclusive."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


# ------------------------------------------------------------------------- units


def length(text: str, unit: Unit) -> int:
    """How long `text` is."""
    if unit == "codepoint" or text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def to_codepoints(text: str, offset: int, unit: Unit) -> int:
    """An offset in `unit`s as one in code points.

    Raises:
        ValueError: it is outside of the text, or in the middle of a character.
    """
    allowed = f"must be 0 to {length(text, unit)}, the length of the text"
    if not 0 <= offset <= length(text, unit):
        raise ValueError(allowed)
    if unit == "codepoint" or text.isascii():
        return offset
    try:
        return len(text.encode("utf-16-le", "surrogatepass")[: 2 * offset].decode("utf-16-le"))
    except UnicodeDecodeError:
        raise ValueError(f"{allowed}, and not in the middle of a character (a surrogate pair)") from None


def from_codepoints(text: str, offset: int, unit: Unit) -> int:
    """An offset in code points as one in `unit`s."""
    return length(text[:offset], unit) if unit == "utf16" else offset


# ------------------------------------------------------------------------- lines


def line_count(text: str) -> int:
    """How many lines `text` has: one more than it has line ends."""
    return text.count("\n") + 1


def lines_span(text: str, first: int, last: int) -> Span:
    """The range of the lines `first` to `last`, counted from 1.

    Raises:
        ValueError: there are no such lines.
    """
    if not 1 <= first <= last <= line_count(text):
        raise ValueError(f"must be 1 to {line_count(text)}, the number of lines, the first not after the last")
    start = _after_line(text, first - 1)
    if last == line_count(text):
        return Span(start, len(text))
    end = _after_line(text, last) - 1
    return Span(start, end - text.endswith("\r", 0, end))


def lines_of(text: str, span: Span) -> tuple[int, int]:
    """The first and the last line that a range touches. An end just after a line end touches the line that ended."""
    last = max(span.start, span.end - 1)
    return text.count("\n", 0, span.start) + 1, text.count("\n", 0, last) + 1


def lines_named(text: str, span: Span) -> str:
    """The lines that a range touches, in words: `line 3`, `lines 3-5`."""
    first, last = lines_of(text, span)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _after_line(text: str, number: int) -> int:
    """Where the line after line `number` begins."""
    return len(text) - len(text.split("\n", number)[-1])


# ---------------------------------------------------------------------- splicing


def splice(text: str, span: Span, new: str) -> str:
    """`text` with `new` in place of `span`, and nothing else changed."""
    return text[: span.start] + new + text[span.end :]


def difference(old: str, new: str) -> tuple[Span, str]:
    """The smallest range of `old` and what stands in its place, such that `splice` makes `new` of it."""
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    return Span(start, len(old) - end), new[start : len(new) - end]


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike, by comparing halves: character by character takes too long."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


# ----------------------------------------------------------------- finding again


def find_again(base: str, span: Span, quote: str, current: str) -> Span | None:
    """Where a passage stands in a text that has moved on (rule 3); None if that cannot be told.

    Args:
        base: the text in which the passage was `span`.
        quote: what the passage says; it need not be what `base` says there.
    """
    stood_there = span.of(base) == quote
    if base == current and stood_there:
        return span
    if quote and _once(current, quote) and not _twice(base, quote):
        found = Span(current.find(quote), current.find(quote) + len(quote))
        if not stood_there or _next_to(base, span) == _next_to(current, found):
            return found
    if not stood_there:
        return None
    framed, now = _EDGE + base + _EDGE, _EDGE + current + _EDGE
    begin = max(0, span.start + 1 - AROUND)
    passage = framed[begin : span.end + 1 + AROUND]
    if not _once(now, passage) or _twice(framed, passage):
        return None
    at = now.find(passage) + span.start - begin
    return Span(at, at + len(quote))


def _next_to(text: str, span: Span) -> tuple[str, str]:
    """The characters on either side, a line's end standing for that of the text."""
    before, after = text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
    return before.strip("\r\n") or "\n", after.strip("\r\n") or "\n"


def _once(text: str, quote: str) -> bool:
    return quote in text and not _twice(text, quote)


def _twice(text: str, quote: str) -> bool:
    """Whether `quote` occurs more than once; occurrences may overlap."""
    return text.find(quote, text.find(quote) + 1) >= 0
