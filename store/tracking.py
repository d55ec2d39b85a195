"""Where a passage of an old version stands in a later one. Pure.

Rule 1: the way leads from parent to parent, and down again from the nearest version that both have come from.
Rule 2: an edit (`Version.edited`) moves what stands behind it and changes nothing else, so there the place is certain.
        A passage that it reaches into has been edited by others: it is lost, even if its words still stand there.
Rule 3: any other change tells nothing of places: the passage is looked for by its words (`store/text.py`, rule 3),
        unless the words of one of its sides are no longer kept (`Version.pruned`): then it is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from a2a_canvas.store.models import TextEdit, Version
from a2a_canvas.store.text.spans import Span, find_again


class _Edited(Exception):
    """Others have edited the passage."""


def track(versions: Sequence[Version], base: int, current: int, span: Span, quote: str) -> Span | None:
    """Where a passage of the version `base` stands in the version `current`; None if that cannot be told.

    Args:
        versions: all of the artifact, oldest first.
        quote: what the passage says; it need not be what `base` says there.
    """
    old, new = (versions[number - 1].content.text for number in (base, current))
    if span.of(old) == quote and old != new:
        try:
            found = _followed(versions, base, current, span, quote)
        except _Edited:
            return None
        if found and found.of(new) == quote:
            return found
    return find_again(old, span, quote, new)


def _followed(versions: Sequence[Version], base: int, current: int, span: Span, quote: str) -> Span | None:
    """The passage, version by version; None if one that is no edit has lost it."""
    found: Span | None = span
    for number, back in _way(versions, base, current):
        version = versions[number - 1]
        if version.edited:
            found = found and _moved(found, _undone(version.edited) if back else version.edited)
        elif found:
            sides = [versions[version.parent - 1], version]
            before, after = reversed(sides) if back else sides
            kept = not (before.pruned or after.pruned)
            found = find_again(before.content.text, found, quote, after.content.text) if kept else None
    return found


def _way(versions: Sequence[Version], base: int, current: int) -> Iterator[tuple[int, bool]]:
    """The versions whose making, or unmaking (True), leads from one to the other."""
    up, down = list(_line(versions, base)), list(_line(versions, current))
    shared = set(up) & set(down)
    yield from ((number, True) for number in takewhile(lambda number: number not in shared, up))
    yield from ((number, False) for number in reversed([number for number in down if number not in shared]))


def _line(versions: Sequence[Version], number: int) -> Iterator[int]:
    """A version, its parent, and so on; 0 stands before the first."""
    while number:
        yield number
        number = versions[number - 1].parent
    yield 0


def _undone(edited: TextEdit) -> TextEdit:
    span = edited.span
    return TextEdit(Span(span.start, span.start + edited.length), span.end - span.start)


def _moved(span: Span, edited: TextEdit) -> Span:
    taken = edited.span
    same_point = span.start == span.end == taken.start == taken.end
    if same_point or (span.start < taken.end and taken.start < span.end):
        raise _Edited
    if span.end <= taken.start:
        return span
    by = edited.length - (taken.end - taken.start)
    return Span(span.start + by, span.end + by)
