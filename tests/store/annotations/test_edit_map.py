"""Passages after edits, by arithmetic: several at once as one after the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.store.annotations.edit_map import EditMap, move
from a2a_canvas.store.models import TextEdit
from a2a_canvas.store.text.spans import Span
from a2a_canvas.store.tracking import inverse

EDITS = st.builds(
    lambda start, removed, length: TextEdit(Span(start, start + removed), length),
    st.integers(0, 12),
    st.integers(0, 4),
    st.integers(0, 4),
)


@pytest.mark.parametrize(
    ("edited", "length", "passage"),
    [
        (Span(0, 2), 5, Span(7, 10)),  # before it
        (Span(8, 9), 5, Span(4, 7)),  # after it
        (Span(4, 4), 2, Span(6, 9)),  # beside it
        (Span(7, 7), 2, Span(4, 7)),
        (Span(2, 4), 0, Span(2, 5)),
        (Span(5, 5), 3, Span(4, 10)),  # inside
        (Span(5, 6), 0, Span(4, 6)),
        (Span(4, 5), 1, None),  # its first character
        (Span(6, 7), 1, None),  # its last one
        (Span(0, 9), 9, None),
    ],
)
def test_a_passage_has_the_places_of_its_first_and_last_character(
    edited: Span, length: int, passage: Span | None
) -> None:
    assert move(Span(4, 7), TextEdit(edited, length)) == passage


@pytest.mark.parametrize(
    ("edited", "length", "point"), [(Span(4, 4), 2, 6), (Span(3, 4), 0, 3), (Span(4, 5), 1, None), (Span(5, 5), 2, 4)]
)
def test_a_point_is_before_the_character_after_it(edited: Span, length: int, point: int | None) -> None:
    assert move(Span(4, 4), TextEdit(edited, length)) == (None if point is None else Span(point, point))


@given(st.lists(EDITS, max_size=8), st.integers(0, 14), st.integers(0, 6))
def test_all_edits_at_once_move_a_passage_as_one_after_the_other(edits: list[TextEdit], start: int, size: int) -> None:
    at_once = EditMap()
    for edited in reversed(edits):
        at_once.prepend([edited])
    passage: Span | None = Span(start, start + size)
    for edited in edits:
        passage = passage and move(passage, edited)
    assert at_once.move(Span(start, start + size)) == passage


@st.composite
def several(draw: st.DrawFn) -> list[TextEdit]:
    """The edits of one version: disjoint, in order."""
    ends = sorted(draw(st.lists(st.integers(0, 14), max_size=8)))
    spans = dict.fromkeys(Span(*pair) for pair in zip(ends[::2], ends[1::2], strict=False))
    return [TextEdit(span, draw(st.integers(0, 4))) for span in spans]


@given(st.lists(several(), max_size=4), st.integers(0, 14), st.integers(0, 6))
def test_several_edits_of_a_version_move_a_passage_as_from_the_last_to_the_first(
    versions: list[list[TextEdit]], start: int, size: int
) -> None:
    at_once = EditMap()
    for edits in reversed(versions):
        at_once.prepend(edits)
    passage: Span | None = Span(start, start + size)
    for edits in versions:
        for edited in reversed(edits):
            passage = passage and move(passage, edited)
    assert at_once.move(Span(start, start + size)) == passage


@given(several(), st.integers(0, 30))
def test_what_several_edits_have_moved_their_inverse_moves_back(edits: list[TextEdit], start: int) -> None:
    forth_and_back = EditMap()
    forth_and_back.prepend(inverse(edits))
    forth_and_back.prepend(edits)
    kept = not any(each.span.start <= start < each.span.end for each in edits)
    assert forth_and_back.move(Span(start, start + 1)) == (Span(start, start + 1) if kept else None)
    assert inverse(inverse(edits)) == tuple(edits)
