"""The three-way merge of texts. Pure.

Rule 1: a change of one side is kept if the other side has not changed the same place. Changes that overlap or touch,
        and two insertions at the same point, are at the same place. So are changes that could also touch, because one
        of them contains the unchanged text between them, if both add the same word: one side may contain what the
        other side added before.
Rule 2: identical changes of both sides count once.
Rule 3: everything else is a conflict, and then there is no merged text: the conflicts name all such places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from a2a_canvas.store.text.hunks import Hunk, apply_hunks, hunks, words
from a2a_canvas.store.text.spans import Span


@dataclass(frozen=True, slots=True)
class Conflict:
    """A place changed by both sides: its offset in the base, and its text in each of the three versions."""

    start: int
    base: str
    current: str
    yours: str


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The text with the changes of both sides."""

    text: str


@dataclass(frozen=True, slots=True)
class Conflicts:
    """The conflicting places; at least one."""

    places: tuple[Conflict, ...]


def merge(base: str, current: str, yours: str) -> MergeResult | Conflicts:
    """Merge the changes of `current` and `yours` to `base`."""
    if yours == base:
        return MergeResult(current)
    if current in (base, yours):
        return MergeResult(yours)
    merged, conflicts = [], []
    for place in _places(base, hunks(base, current), hunks(base, yours)):
        span = place.span
        ours, theirs = apply_hunks(base, place.current, span), apply_hunks(base, place.yours, span)
        if place.current and place.yours and ours != theirs:
            conflicts.append(Conflict(span.start, span.extract(base), ours, theirs))
        merged.append(Hunk(span, ours if place.current else theirs))
    return Conflicts(tuple(conflicts)) if conflicts else MergeResult(apply_hunks(base, merged))


@dataclass(slots=True)
class _Place:
    """A range of the base, and the changes of each side in it."""

    span: Span
    current: list[Hunk] = field(default_factory=list)
    yours: list[Hunk] = field(default_factory=list)


def _places(base: str, current: Sequence[Hunk], yours: Sequence[Hunk]) -> Iterator[_Place]:
    """The changed ranges (rule 1)."""
    place: _Place | None = None
    for following in _touching(current, yours):
        if place and _may_touch(base, place, following):
            span = Span(place.span.start, following.span.end)
            place = _Place(span, place.current + following.current, place.yours + following.yours)
            continue
        if place:
            yield place
        place = following
    if place:
        yield place


def _touching(current: Sequence[Hunk], yours: Sequence[Hunk]) -> Iterator[_Place]:
    """The changed ranges; those that overlap or touch are one."""
    sides = [*((hunk, True) for hunk in current), *((hunk, False) for hunk in yours)]
    place: _Place | None = None
    for hunk, is_current in sorted(sides, key=lambda each: (each[0].span.start, each[0].span.end)):
        if place is None or hunk.span.start > place.span.end:
            if place:
                yield place
            place = _Place(hunk.span)
        place.span = Span(place.span.start, max(place.span.end, hunk.span.end))
        (place.current if is_current else place.yours).append(hunk)
    if place:
        yield place


def _may_touch(base: str, place: _Place, following: _Place) -> bool:
    """Whether the nearest changes of both sides could also touch, and add the same word."""
    pairs = (place.current[-1:], following.yours[:1]), (place.yours[-1:], following.current[:1])
    return any(_same_added(base, *last, *first) for last, first in pairs if last and first)


def _same_added(base: str, last: Hunk, first: Hunk) -> bool:
    between = base[last.span.end : first.span.start]
    return (between in last.text or between in first.text) and not words(last.text).isdisjoint(words(first.text))
