"""Where passages are after a whole text was replaced by another: by the differences, as far as they are certain. Pure.

Rule 1: the differences are those of `hunks.py`; those separated only by blanks are one. If a hunk's old and new text
        begin and end alike for at least half of their length, only what is between has changed: a letter of a word.
Rule 2: a passage that no hunk touches is where the hunks put it, if that is certain: the unchanged text around it
        occurs once in both texts, and the hunks next to it do not repeat it, as one of several equal lines does. An
        insertion or deletion within a line is at all positions that have the same result.
Rule 3: a passage with hunks inside is from where its first unchanged characters are to where its last ones are, if
        both are certain by rule 2, and not between hunks so close that they may be equal by chance.
Rule 4: an empty passage next to a hunk is before or after what was inserted there: that is uncertain.
Rule 5: hunks are computed once, and uniqueness once for each unchanged text, however many passages are asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from a2a_canvas.store.text.hunks import Hunk, hunks, shifts
from a2a_canvas.store.text.spans import Span, difference, once

_NEAR = 1000
"""Characters before and after a passage that are searched first."""
_LONG = 16
"""Characters between two hunks that are not equal by chance."""


class TextChange:
    """A text, and the text that replaces it."""

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new
        self._hunks = [_trim_hunk(old, hunk) for hunk in _join_hunks(old, hunks(old, new))]
        starts, ends = [hunk.span.start for hunk in self._hunks], [hunk.span.end for hunk in self._hunks]
        self._gaps = [Span(*gap) for gap in zip((0, *ends), (*starts, len(old)), strict=True)]
        ranges = list(map(partial(_possible_range, old), self._hunks, self._gaps, self._gaps[1:]))
        self._starts, self._ends = [each.start for each in ranges], [each.end for each in ranges]
        self._shifts = list(accumulate((_growth(hunk) for hunk in self._hunks), initial=0))
        self._unique: dict[int, bool] = {}

    def find_unchanged(self, span: Span) -> Span | None:
        """The position of a passage that is certainly unchanged (rule 2)."""
        first, last = self._hunks_inside(span)
        return self.find(span) if first == last else None

    def find(self, span: Span) -> Span | None:
        """The position of a passage whose ends are certain (rules 2 and 3)."""
        first, last = self._hunks_inside(span)
        if first > last or (span.start == span.end and self._touches(span.start)):
            return None
        found = Span(span.start + self._shifts[first], span.end + self._shifts[last])
        if first == last:
            return found if self._is_certain(span, first) else None
        if self._starts[first] <= span.start or self._ends[last - 1] >= span.end:
            return None
        runs = (Span(span.start, self._gaps[first].end), first), (Span(self._gaps[last].start, span.end), last)
        return found if all(self._is_long(gap) and self._is_certain(run, gap) for run, gap in runs) else None

    def _hunks_inside(self, span: Span) -> tuple[int, int]:
        """The first hunk that is not before the passage, and the first after it."""
        return bisect_right(self._ends, span.start), bisect_left(self._starts, span.end)

    def _touches(self, point: int) -> bool:
        at = bisect_left(self._ends, point)
        return at < len(self._hunks) and self._starts[at] <= point

    def _is_long(self, gap: int) -> bool:
        """Whether an unchanged text is not equal by chance."""
        around = self._gaps[gap]
        return around.end - around.start >= _LONG or gap in (0, len(self._hunks))

    def _is_certain(self, run: Span, gap: int) -> bool:
        """Whether a part of the unchanged text between two hunks is certainly there (rule 2)."""
        beside = self._hunks[max(0, gap - 1) : gap + 1]
        return self._is_unique(run, gap) and not any(_repeats(hunk, self._old, run) for hunk in beside)

    def _is_unique(self, run: Span, gap: int) -> bool:
        """Whether an unchanged text occurs once in both texts; a part of it that does is found sooner."""
        if gap not in self._unique:
            around = self._gaps[gap]
            near = Span(max(around.start, run.start - _NEAR), min(around.end, run.end + _NEAR))
            texts = (part.extract(self._old) for part in (near, around))
            self._unique[gap] = any(once(self._old, text) and once(self._new, text) for text in texts)
        return self._unique[gap]


def _growth(hunk: Hunk) -> int:
    return len(hunk.text) - (hunk.span.end - hunk.span.start)


def _possible_range(old: str, hunk: Hunk, before: Span, after: Span) -> Span:
    """The range of all positions at which an insertion or deletion has the same result; whole lines have one."""
    start, text = hunk.span.start, hunk.text or hunk.span.extract(old)
    at_line = old[max(0, start - 1) : start] in ("", "\n") and text.endswith("\n")
    if at_line or (hunk.text and start < hunk.span.end):
        return hunk.span
    left, right = shifts(hunk, old, before.start, after.end)
    return Span(start - left, hunk.span.end + right)


def _join_hunks(old: str, changes: Sequence[Hunk]) -> list[Hunk]:
    """The changes, with those separated only by blanks joined."""
    joined: list[Hunk] = []
    for hunk in changes:
        between = old[joined[-1].span.end : hunk.span.start] if joined else ""
        if between.isspace():
            last = joined.pop()
            hunk = Hunk(Span(last.span.start, hunk.span.end), last.text + between + hunk.text)
        joined.append(hunk)
    return joined


def _trim_hunk(old: str, hunk: Hunk) -> Hunk:
    size = max(hunk.span.end - hunk.span.start, len(hunk.text))
    span, text = difference(hunk.span.extract(old), hunk.text)
    if 2 * max(span.end - span.start, len(text)) > size:
        return hunk
    return Hunk(Span(hunk.span.start + span.start, hunk.span.start + span.end), text)


def _repeats(hunk: Hunk, old: str, span: Span) -> bool:
    """Whether a text inserted or deleted next to a passage equals the passage and the text between."""
    texts = hunk.text, hunk.span.extract(old)
    if hunk.span.end <= span.start:
        between = old[hunk.span.end : span.end]
        return any((text + between).rfind(between.lstrip(), 0, -1) >= 0 for text in texts)
    between = old[span.start : hunk.span.start]
    return any((between + text).find(between.rstrip(), 1) >= 0 for text in texts)
