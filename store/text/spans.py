"""Ranges of a text: units, lines, splicing, and finding a quoted passage again. Pure.

Rule 1: our code uses a `Span` of code points. Senders count in UTF-16 code units or in code points; their offsets are
        converted once, here.
Rule 2: a line ends with "\\n" or "\\r\\n". A range of lines excludes the end of its last line.
Rule 3 (finding again): after a text has changed, a passage is found
        - at its old place, if the text is unchanged;
        - otherwise where its quote occurs, if it occurs once now and occurred once before, and the adjacent character
          on either side is the same: an edit from "def f" to "async def f" makes "def f" a different passage (the end
          of a line and the end of the text count as the same character);
        - otherwise at the one occurrence with the same `QUOTE_CONTEXT` characters before and after it, if there was
          only one before, too;
        - otherwise not at all. It is never guessed. An empty passage has no quote: only its context decides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Unit = Literal["utf16", "codepoint"]

QUOTE_CONTEXT = 32
"""Characters before and after a quote that distinguish equal quotes."""
EDGE = "\ud800"
"""Marks the beginning and the end of a text. No text contains it (`replace_surrogates`)."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a text in code points, `end` exclusive."""

    start: int
    end: int

    def extract(self, text: str) -> str:
        return text[self.start : self.end]


# ------------------------------------------------------------------------- units


def length(text: str, unit: Unit) -> int:
    """The length of `text` in `unit`s."""
    if unit == "codepoint" or text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def to_codepoints(text: str, offset: int, unit: Unit) -> int:
    """An offset in `unit`s as one in code points.

    Raises:
        ValueError: it is outside the text, or in the middle of a character.
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


class Utf16Offsets:
    """Converts many offsets of one text from code points to UTF-16 code units: the text is read once."""

    def __init__(self, text: str) -> None:
        is_narrow = text.isascii() or max(text) <= "\uffff"
        self._wide = [] if is_narrow else [place for place, character in enumerate(text) if character > "\uffff"]

    def convert(self, offset: int) -> int:
        """The offset in UTF-16 code units."""
        return offset + bisect_left(self._wide, offset)


# ------------------------------------------------------------------------- lines


def line_count(text: str) -> int:
    """The number of lines: one more than line ends."""
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
    """The first and last line of a range. An end just after a line end does not include the next line."""
    last = max(span.start, span.end - 1)
    return text.count("\n", 0, span.start) + 1, text.count("\n", 0, last) + 1


def format_lines(text: str, span: Span) -> str:
    """The lines of a range, as text: `line 3`, `lines 3-5`."""
    first, last = lines_of(text, span)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _after_line(text: str, number: int) -> int:
    """The offset at which the line after line `number` begins."""
    return len(text) - len(text.split("\n", number)[-1])


# ---------------------------------------------------------------------- splicing


def splice(text: str, span: Span, new: str) -> str:
    """`text` with `span` replaced by `new`."""
    return text[: span.start] + new + text[span.end :]


def difference(old: str, new: str) -> tuple[Span, str]:
    """The smallest range of `old`, and its replacement, that `splice` needs to make `new`."""
    most = min(len(old), len(new))
    start = _bisect(most, lambda low, high: old[low:high] == new[low:high])
    end = _bisect(most - start, lambda low, high: _back(old, low, high) == _back(new, low, high))
    return Span(start, len(old) - end), new[start : len(new) - end]


def _bisect(most: int, same: Callable[[int, int], bool]) -> int:
    """The length over which two texts agree, by bisection, because a loop over characters is slow."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if same(low, middle) else (low, middle - 1)
    return low


def _back(text: str, low: int, high: int) -> str:
    """The characters `low` to `high`, counted from the end."""
    return text[len(text) - high : len(text) - low]


# ----------------------------------------------------------------- finding again


def find_again(base: str, span: Span, quote: str, current: str) -> Span | None:
    """The position of a passage in a changed text (rule 3); None if it is not certain.

    Args:
        base: the text in which the passage was `span`.
        quote: the text of the passage, which may differ from `base` there.
    """
    quoted_right = span.extract(base) == quote
    if base == current and quoted_right:
        return span
    if quote and once(current, quote) and not _twice(base, quote):
        found = Span(current.find(quote), current.find(quote) + len(quote))
        if not quoted_right or neighbours(base, span) == neighbours(current, found):
            return found
    return find_in_context(base, span, current) if quoted_right else None


def find_in_context(base: str, span: Span, current: str) -> Span | None:
    """The position of a passage that occurs once in both texts with the same `QUOTE_CONTEXT` characters around it."""
    now, passage = EDGE + current + EDGE, in_context(base, span)
    if not once(now, passage) or _twice(EDGE + base + EDGE, passage):
        return None
    at = now.find(passage) + min(span.start, QUOTE_CONTEXT - 1)
    return Span(at, at + span.end - span.start)


def in_context(base: str, span: Span) -> str:
    """A passage with `QUOTE_CONTEXT` characters before and after it; each end of the text counts as one."""
    begin, end = span.start + 1 - QUOTE_CONTEXT, span.end + QUOTE_CONTEXT
    before, after = EDGE if begin <= 0 else "", EDGE if end > len(base) else ""
    return before + base[max(0, begin - 1) : end] + after


def neighbours(text: str, span: Span) -> tuple[str, str]:
    """The adjacent characters; the end of the text counts as a line end."""
    before, after = text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
    return before.strip("\r\n") or "\n", after.strip("\r\n") or "\n"


def once(text: str, quote: str) -> bool:
    """Whether `quote` occurs exactly once."""
    return quote in text and not _twice(text, quote)


def _twice(text: str, quote: str) -> bool:
    """Whether `quote` occurs at least twice; occurrences may overlap."""
    return text.find(quote, text.find(quote) + 1) >= 0
