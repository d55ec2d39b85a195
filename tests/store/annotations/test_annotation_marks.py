"""Open annotations as CriticMarkup: what is written adds nothing when it is read again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from a2a_canvas.store.annotations.annotation import Annotation, PlacedAnnotation, Quote, Remark, ShownState, Writer
from a2a_canvas.store.annotations.annotation_marks import (
    MarkedAnnotation,
    find_new_marks,
    mark_annotation,
    write_annotations,
)
from a2a_canvas.store.annotations.critic_markup import CriticMark, CriticMarkupError, read_critic_markup
from a2a_canvas.store.text.spans import Span
from tests.property_examples import examples

AT = datetime(2026, 1, 1, tzinfo=UTC)
ANN = Writer("user", "ann", "ann")
TEXT = "Tide pools are small.\nThey are deep.\n"


def placed(
    text: str, span: Span, replacement: str | None, *thread: str, number: int = 1, state: ShownState = "open"
) -> PlacedAnnotation:
    remarks = tuple(Remark(ANN, AT, each) for each in thread)
    words = Quote.from_text(text, span), ANN, AT, "task", remarks, replacement
    return PlacedAnnotation(Annotation(f"n-{number}", "doc", number, 1, span, *words), span, state)


def marked(text: str, *annotations: PlacedAnnotation) -> list[MarkedAnnotation]:
    return [each for each in (mark_annotation(one, text) for one in annotations) if each]


@pytest.mark.parametrize("state", ["accepted", "rejected", "resolved", "stale"])
def test_only_what_is_open_is_written(state: ShownState) -> None:
    assert write_annotations([placed(TEXT, Span(0, 4), "Rock", state=state)], TEXT) == TEXT
    assert write_annotations([replace(placed(TEXT, Span(0, 4), "Rock"), span=None)], TEXT) == TEXT


def test_a_suggestion_whose_passage_has_changed_is_written_merged_or_refused_with_its_line() -> None:
    made = placed(TEXT, Span(22, 36), "They are not deep.").annotation
    now = TEXT.replace("They are deep", "They are very deep")
    moved = PlacedAnnotation(replace(made, quote=Quote("They are deep.")), Span(22, 41), "open")
    with pytest.raises(CriticMarkupError, match="Line 2 has suggestion 1, in conflict with a later change"):
        write_annotations([moved], now)
    elsewhere = replace(moved, annotation=replace(moved.annotation, replacement="These are deep."))
    assert "{~~They are very deep.~>These are very deep.~~}" in write_annotations([elsewhere], now)


def test_a_new_mark_is_new_and_a_new_remark_is_a_reply() -> None:
    existing = marked(TEXT, placed(TEXT, Span(0, 4), "Rock", "shorter"))
    same, longer = CriticMark(Span(0, 4), "Rock", ("shorter",)), CriticMark(Span(0, 4), "Rock", ("shorter", "no"))
    other = CriticMark(Span(0, 4), "Rocks", ("shorter",))
    assert find_new_marks(TEXT, [same], existing) == find_new_marks(TEXT, [], existing)
    assert find_new_marks(TEXT, [longer], existing).replies == ((existing[0].annotation, ("no",)),)
    assert find_new_marks(TEXT, [other], existing).added == (other,)
    assert find_new_marks(TEXT, [same, same], existing).added == (same,)


words = st.lists(st.sampled_from(["a", "b\n", "{", "+", "~", "é", "😀"]), min_size=1, max_size=4).map("".join)


@settings(max_examples=examples(500))
@given(st.data(), words)
def test_what_is_written_and_read_again_is_the_same_and_adds_nothing(data: st.DataObject, text: str) -> None:
    annotations = []
    for number in range(data.draw(st.integers(0, 4))):
        ends = st.integers(0, len(text))
        start, end = sorted((data.draw(ends), data.draw(ends)))
        remarks = data.draw(st.lists(words.filter(str.strip), max_size=2))
        replacement = data.draw(st.none() | words) if remarks else data.draw(words)
        annotations.append(placed(text, Span(start, end), replacement, *remarks, number=number + 1))
    try:
        markup = write_annotations(annotations, text)
    except CriticMarkupError:
        assume(False)
    again, marks = read_critic_markup(markup)
    new = find_new_marks(again, marks, marked(text, *annotations))
    assert (again, new.added, new.replies) == (text, (), ())
