"""Where a passage is after a whole text was replaced: only where it is certain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store.text.spans import Span, splice
from a2a_canvas.store.text.text_change import TextChange
from tests.property_examples import examples

OLD = "The first line is here.\nThe colour of the house is red.\nThe last line ends it.\n"
PASSAGE = "The colour of the house is red."


def found(new: str, passage: str = PASSAGE, old: str = OLD) -> str | None:
    at = old.index(passage)
    span = TextChange(old, new).find(Span(at, at + len(passage)))
    return None if span is None else span.extract(new)


@pytest.mark.parametrize(
    "now",
    [
        PASSAGE,
        "The color of the house is red.",
        "The colour of that old house is red.",
        "The colour was red.",
        "The new colour of the house is dark red.",
    ],
)
def test_a_passage_whose_ends_are_certain_keeps_its_place(now: str) -> None:
    assert found(OLD.replace(PASSAGE, now)) == now
    assert found("Before all.\n" + OLD.replace(PASSAGE, now) + "After all.\n") == now


@pytest.mark.parametrize("now", ["", "Another text.", "Colours of the house: red.", f"{PASSAGE}\n{PASSAGE}"])
def test_a_passage_whose_first_or_last_word_was_replaced_or_that_is_there_twice_does_not(now: str) -> None:
    assert found(OLD.replace(PASSAGE, now)) is None


def test_the_unchanged_rest_of_a_word_is_the_same_word_if_it_is_most_of_it() -> None:
    assert found("The collour of it\n", "colour", "The colour of it\n") == "collour"
    assert found("The corridor of it\n", "colour", "The colour of it\n") is None


def test_a_new_line_is_not_in_the_middle_of_the_next_one() -> None:
    rows = "- open\n- done\n"
    assert found("- in work\n- open\n- done\n", "- open", rows) == "- open"
    assert found("- open\n- in work\n- done\n", "- open\n- done", rows) == "- open\n- in work\n- done"


def explanations(old: str, new: str, span: Span) -> set[Span]:
    """Where a passage would be, by every replacement of one range that makes `new` and keeps its ends."""
    places = set()
    for start in range(len(old) + 1):
        for end in range(start, len(old) + 1):
            grown = len(new) - len(old)
            if start > len(old) + grown - (len(old) - end) or new[:start] != old[:start] or not new.endswith(old[end:]):
                continue
            ends = [at if at < start else at + grown for at in (span.start, span.end - 1) if not start <= at < end]
            if len(ends) == 2:
                places.add(Span(ends[0], ends[1] + 1))
    return places


@given(st.data(), st.text("ab ", max_size=8), st.text("ab ", max_size=4))
@settings(max_examples=examples(2000))
def test_a_place_is_that_of_every_explanation(data: st.DataObject, old: str, typed: str) -> None:
    ends = st.tuples(st.integers(0, len(old)), st.integers(0, len(old))).map(sorted)
    span, replaced = (Span(*data.draw(ends)) for _ in range(2))
    new = splice(old, replaced, typed)
    place = TextChange(old, new).find(span)
    if place and span.start < span.end:
        assert explanations(old, new, span) <= {place}
