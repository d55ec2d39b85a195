"""Tracks a passage of an old version to its place in a later version.

Rule 1: the path leads from parent to parent up to the nearest common ancestor, and down to the later version.
Rule 2: an edit (`Version.edited`) moves the text behind it and changes nothing else, so the new place is certain. A
        passage that overlaps the edited range was edited by others: it is lost, even if its quote still occurs.
Rule 3: across any other change the two texts are compared (`text/hunks.py`). An untouched passage is where the
        comparison puts it, if that is certain: it is unchanged, so are the characters next to it, the unchanged text
        around it occurs once in both versions, and an insertion or deletion before or after that does not repeat it,
        as one of several equal lines does.
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
from a2a_canvas.store.text.hunks import Hunk, hunks
from a2a_canvas.store.text.spans import Span, find_again, neighbours, once

_NEAR = 1000
"""Characters before and after a passage that are searched first."""


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
        if version.edited:
            found = found and _shift(found, _inverse(version.edited) if back else version.edited)
        elif found:
            sides = [versions[version.parent - 1], version]
            before, after = reversed(sides) if back else sides
            kept = not (before.pruned or after.pruned)
            texts = before.content.text, after.content.text
            found = await run_comparison(partial(_compare, found, quote), *texts) if kept else None
    return found


def _compare(span: Span, quote: str, old: str, new: str) -> Span | None:
    return _left_alone(old, span, new) or find_again(old, span, quote, new)


def _left_alone(old: str, span: Span, new: str) -> Span | None:
    """The position of a passage that is certainly unchanged (rule 3)."""
    changes = _join_hunks(old, hunks(old, new))
    before = [hunk for hunk in changes if hunk.span.end <= span.start]
    after = [hunk for hunk in changes[len(before) :] if hunk.span.start >= span.end]
    if len(before) + len(after) < len(changes) or _beside_point(span, changes):
        return None
    by = sum(len(hunk.text) - (hunk.span.end - hunk.span.start) for hunk in before)
    found = Span(span.start + by, span.end + by)
    if neighbours(old, span) != neighbours(new, found):
        return None
    around = Span(before[-1].span.end if before else 0, after[0].span.start if after else len(old))
    repeated = any(_repeats(hunk, old, span) for hunk in (*before[-1:], *after[:1]))
    return found if _certain(old, span, around, new) and not repeated else None


def _certain(old: str, span: Span, around: Span, new: str) -> bool:
    """Whether the unchanged text around a passage occurs once in both; a part of it that does is found sooner."""
    near = Span(max(around.start, span.start - _NEAR), min(around.end, span.end + _NEAR))
    return any(once(old, part.extract(old)) and once(new, part.extract(old)) for part in (near, around))


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


def _beside_point(span: Span, changes: Sequence[Hunk]) -> bool:
    """Whether there is a change next to an empty passage, whose side is then uncertain."""
    return span.start == span.end and any(hunk.span.start <= span.start <= hunk.span.end for hunk in changes)


def _repeats(hunk: Hunk, old: str, span: Span) -> bool:
    """Whether a text inserted or deleted next to a passage equals the passage and the text between."""
    texts = hunk.text, hunk.span.extract(old)
    if hunk.span.end <= span.start:
        between = old[hunk.span.end : span.end]
        return any((text + between).rfind(between.lstrip(), 0, -1) >= 0 for text in texts)
    between = old[span.start : hunk.span.start]
    return any((between + text).find(between.rstrip(), 1) >= 0 for text in texts)


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


def _inverse(edited: TextEdit) -> TextEdit:
    span = edited.span
    return TextEdit(Span(span.start, span.start + edited.length), span.end - span.start)


def _shift(span: Span, edited: TextEdit) -> Span:
    taken = edited.span
    same_point = span.start == span.end == taken.start == taken.end
    if same_point or (span.start < taken.end and taken.start < span.end):
        raise _PassageEdited
    if span.end <= taken.start:
        return span
    by = edited.length - (taken.end - taken.start)
    return Span(span.start + by, span.end + by)
