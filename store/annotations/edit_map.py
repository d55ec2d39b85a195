"""Where passages are after edits, by arithmetic: without any text. Pure.

Rule 1: a passage begins with its first character and ends with its last one, wherever these go. So what is inserted
        next to it is not part of it, and an edit inside changes its length.
Rule 2: if an edit deletes its first or its last character, the passage is lost, whatever the edit inserts.
Rule 3: an empty passage is before the character after it. So what several authors insert at one point comes in the
        order of the insertions.
These are the rules of a CRDT's sticky indices.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from a2a_canvas.store.models import TextEdit
from a2a_canvas.store.text.spans import Span

_DELETED = -1


def move(span: Span, edited: TextEdit) -> Span | None:
    """The passage after one edit; None if it is lost."""
    taken = edited.span
    by = edited.length - (taken.end - taken.start)
    return _move_ends(span, lambda at: at if at < taken.start else at + by if at >= taken.end else None)


def _move_ends(span: Span, find: Callable[[int], int | None]) -> Span | None:
    first = find(span.start)
    if span.start == span.end:
        return None if first is None else Span(first, first)
    last = find(span.end - 1)
    return None if first is None or last is None else Span(first, last + 1)


class EditMap:
    """The characters of a text after a sequence of edits, in segments that were moved or deleted as a whole."""

    def __init__(self) -> None:
        self._starts = [0]
        self._targets = [0]

    def prepend(self, edited: TextEdit) -> None:
        """Let an edit come before the others."""
        start, end, after = edited.span.start, edited.span.end, edited.span.start + edited.length
        by = end - after
        head, tail = bisect_left(self._starts, start), bisect_right(self._starts, after)
        target = self._targets[tail - 1]
        if target != _DELETED:
            target += after - self._starts[tail - 1]
        deleted = [start] if start < end else []
        self._starts = [*self._starts[:head], *deleted, end, *(each + by for each in self._starts[tail:])]
        self._targets = [*self._targets[:head], *(_DELETED for _ in deleted), target, *self._targets[tail:]]

    def move(self, span: Span) -> Span | None:
        """The passage after the edits; None if it is lost."""
        return _move_ends(span, self._find)

    def _find(self, at: int) -> int | None:
        segment = bisect_right(self._starts, at) - 1
        target = self._targets[segment]
        return None if target == _DELETED else target + at - self._starts[segment]
