"""Suggestions as edits of one text, and where its places are once all of them are made. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from a2a_canvas.store.text.spans import Span, difference


@dataclass(frozen=True, slots=True)
class TextReplacement:
    """A suggestion.

    Attributes:
        key: of the suggestion.
    """

    key: int
    span: Span
    new: str

    def narrow(self, text: str) -> TextReplacement:
        """The same edit of what it really changes."""
        inner, new = difference(self.span.extract(text), self.new)
        return TextReplacement(self.key, Span(self.span.start + inner.start, self.span.start + inner.end), new)


@dataclass(frozen=True, slots=True)
class _EditPlace:
    edit: TextReplacement
    old: tuple[int, int]
    new: tuple[int, int]


class TextEdits:
    """Edits that do not overlap, and the places of a text before and after them.

    Args:
        replacements: in the order in which they count: one that overlaps an earlier one is left out.
    """

    def __init__(self, text: str, replacements: Iterable[TextReplacement]) -> None:
        self._placed: list[_EditPlace] = []
        shift = 0
        for edit in _apart(replacements):
            start, end = edit.span.start, edit.span.end
            self._placed.append(_EditPlace(edit, (start, end), (start + shift, start + shift + len(edit.new))))
            shift += len(edit.new) - (end - start)
        self._olds, self._news = ([getattr(each, side)[0] for each in self._placed] for side in ("old", "new"))
        self.keys = frozenset(each.edit.key for each in self._placed)
        self.text = self._apply(text)

    def _apply(self, text: str) -> str:
        pieces, done = [], 0
        for each in self._placed:
            pieces += [text[done : each.old[0]], each.edit.new]
            done = each.old[1]
        return "".join((*pieces, text[done:]))

    def find_places(self, place: int) -> Iterator[int]:
        """Where a place of the old text may be in the new one: behind what is inserted there, or before it; nowhere if
        it is inside of what is replaced."""
        index = bisect_right(self._olds, place) - 1
        if index < 0:
            yield place
            return
        last = self._placed[index]
        if place >= last.old[1]:
            yield place + last.new[1] - last.old[1]
        first = bisect_left(self._olds, place)
        if first <= index:
            yield self._placed[first].new[0]

    def owners(self, at: tuple[int, int], inserted: bool) -> list[int]:
        """The keys of the edits that a changed range of the old or the new text belongs to, the first before others:
        those that overlap or touch it, or else the nearest."""
        starts = self._news if inserted else self._olds
        near = self._placed[max(0, bisect_left(starts, at[0]) - 1) : bisect_right(starts, at[1]) + 1]

        def distance(each: _EditPlace) -> int:
            start, end = each.new if inserted else each.old
            return max(start - at[1], at[0] - end)

        ranked = sorted(near, key=distance)
        return [each.edit.key for each in ranked if each is ranked[0] or distance(each) <= 0]


def _apart(replacements: Iterable[TextReplacement]) -> list[TextReplacement]:
    kept: list[TextReplacement] = []
    starts: list[tuple[int, int]] = []
    for edit in replacements:
        place = edit.span.start, edit.span.end
        index = bisect_right(starts, place)
        before = index == 0 or starts[index - 1][1] <= place[0]
        if before and (index == len(starts) or place[1] <= starts[index][0]):
            kept.insert(index, edit)
            starts.insert(index, place)
    return kept
