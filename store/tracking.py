"""Tracks a passage of an old version to its place in a later version.

Rule 1: the path leads from parent to parent up to the nearest common ancestor, and down to the later version.
Rule 2: an edit (`Version.edits`) moves the text behind it and changes nothing else, so the new place is certain. A
        passage that overlaps the edited range was edited by others: it is lost, even if its quote still occurs.
Rule 3: across any other change the two texts are compared. An untouched passage is where the comparison puts it, if
        that is certain (`text/text_change.py`), and the characters next to it are unchanged, too.
Rule 4: else the passage is found by its quote (`text/spans.py`, rule 3). If one of the texts was pruned, it is lost.
Rule 5: pure, except that long texts are compared in a thread (`text/comparing.py`). Their ropes are read before, two
        versions at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile

from a2a_canvas.store.models import TextEdit, Version
from a2a_canvas.store.text.comparing import run_comparison
from a2a_canvas.store.text.spans import Span, find_again, neighbours
from a2a_canvas.store.text.text_change import TextChange


class _PassageEdited(Exception):
    pass


async def track(versions: Sequence[Version], base: int, current: int, span: Span, quote: str) -> Span | None:
    """The position of a passage of version `base` in version `current`; None if it is not certain.

    Args:
        versions: all versions of the artifact, oldest first.
        quote: the text of the passage, which may differ from `base` there.
    """
    old, new = (versions[number - 1].content.text for number in (base, current))
    if span.extract(old) == quote and old != new:
        try:
            found = await _follow(versions, base, current, span, quote)
        except _PassageEdited:
            return None
        if found and found.extract(new) == quote:
            return found
    return await run_comparison(lambda old, new: find_again(old, span, quote, new), old, new)


async def _follow(versions: Sequence[Version], base: int, current: int, span: Span, quote: str) -> Span | None:
    """The position, tracked version by version; None if a change other than an edit lost it."""
    found: Span | None = span
    for number, back in _path(versions, base, current):
        version = versions[number - 1]
        if version.edits:
            for edit in reversed(inverse(version.edits) if back else version.edits):
                found = found and _shift(found, edit)
        elif found:
            sides = [versions[version.parent - 1], version]
            before, after = reversed(sides) if back else sides
            kept = not (before.pruned or after.pruned)
            texts = before.content.text, after.content.text
            found = await run_comparison(partial(_compare, found, quote), *texts) if kept else None
    return found


def _compare(span: Span, quote: str, old: str, new: str) -> Span | None:
    return _find_unchanged(span, old, new) or find_again(old, span, quote, new)


def _find_unchanged(span: Span, old: str, new: str) -> Span | None:
    found = TextChange(old, new).find_unchanged(span)
    return found if found and neighbours(old, span) == neighbours(new, found) else None


def _path(versions: Sequence[Version], base: int, current: int) -> Iterator[tuple[int, bool]]:
    """The versions to apply (False) or to reverse (True) to get from one version to the other."""
    up, down = list(ancestors(versions, base)), list(ancestors(versions, current))
    shared = set(up) & set(down)
    yield from ((number, True) for number in takewhile(lambda number: number not in shared, up))
    yield from ((number, False) for number in reversed([number for number in down if number not in shared]))


def ancestors(versions: Sequence[Version], number: int) -> Iterator[int]:
    """A version, its parent and so on, ending with 0."""
    while number:
        yield number
        number = versions[number - 1].parent
    yield 0


def inverse(edits: Sequence[TextEdit]) -> tuple[TextEdit, ...]:
    """The edits that reverse these, which are those of one version (`Version.edits`)."""
    reverse, by = [], 0
    for each in edits:
        start, removed = each.span.start + by, each.span.end - each.span.start
        reverse.append(TextEdit(Span(start, start + each.length), removed))
        by += each.length - removed
    return tuple(reverse)


def _shift(span: Span, edited: TextEdit) -> Span:
    taken = edited.span
    same_point = span.start == span.end == taken.start == taken.end
    if same_point or (span.start < taken.end and taken.start < span.end):
        raise _PassageEdited
    if span.end <= taken.start:
        return span
    by = edited.length - (taken.end - taken.start)
    return Span(span.start + by, span.end + by)
