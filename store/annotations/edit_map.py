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
from collections.abc import Callable, Sequence

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

    def prepend(self, edits: Sequence[TextEdit]) -> None:
        """Let the edits of one version (`Version.edits`) come before the others."""
        starts, targets = list[int](), list[int]()
        begin, by = 0, 0  # of the unchanged text before the next edit, and how far it is moved
        for each in edits:
            self._add_moved(starts, targets, Span(begin, each.span.start), by)
            if each.span.start < each.span.end:
                starts.append(each.span.start)
                targets.append(_DELETED)
            begin, by = each.span.end, by + each.length - (each.span.end - each.span.start)
        self._add_moved(starts, targets, Span(begin, max(begin, self._starts[-1] - by) + 1), by)
        self._starts, self._targets = starts, targets

    def _add_moved(self, starts: list[int], targets: list[int], span: Span, by: int) -> None:
        """Add the segments of a range that the new edits move, and the others after them."""
        if span.start == span.end:
            return
        first = bisect_right(self._starts, span.start + by) - 1
        starts.append(span.start)
        targets.append(self._find_in(first, span.start + by))
        last = bisect_left(self._starts, span.end + by)
        starts += (each - by for each in self._starts[first + 1 : last])
        targets += self._targets[first + 1 : last]

    def move(self, span: Span) -> Span | None:
        """The passage after the edits; None if it is lost."""
        return _move_ends(span, self._find)

    def _find(self, at: int) -> int | None:
        found = self._find_in(bisect_right(self._starts, at) - 1, at)
        return None if found == _DELETED else found

    def _find_in(self, segment: int, at: int) -> int:
        target = self._targets[segment]
        return target if target == _DELETED else target + at - self._starts[segment]
