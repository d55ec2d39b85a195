"""Merging suggestions into a text, without a store: all at once as one after the other."""

from __future__ import annotations

import random

from a2a_canvas.store.annotations.annotation import Annotation, PlacedAnnotation
from a2a_canvas.store.annotations.review import MergedSuggestions, merge_suggestions
from a2a_canvas.store.text.spans import Span
from tests.property_examples import examples
from tests.store.annotations.crdt_history import CrdtHistory, random_span, random_text, random_typed
from tests.store.annotations.test_annotation_places import annotation, place


def merge_all(text: str, *suggested: tuple[str, str]) -> MergedSuggestions:
    """The first occurrence of each text is to be replaced."""
    placed = []
    for number, (old, new) in enumerate(suggested, 1):
        at = text.index(old)
        span = Span(at, at + len(old))
        placed.append(PlacedAnnotation(annotation(number, 1, text, span, new), span, "open"))
    return merge_suggestions(placed, text)


def test_suggestions_are_merged_from_the_oldest_to_the_newest() -> None:
    merged = merge_all("one two three", ("one two", "1 two"), ("three", "3"), ("two", "2"))
    assert (merged.text, len(merged.accepted)) == ("1 2 3", 3)


def test_insertions_at_one_point_are_in_the_order_of_the_suggestions() -> None:
    point = Span(3, 3)
    placed = [
        PlacedAnnotation(annotation(n, 1, "one two", point, new), point, "open") for n, new in ((1, ","), (2, " and"))
    ]
    assert merge_suggestions(placed, "one two").text == "one, and two"


def test_what_an_older_one_has_replaced_is_stale_and_what_it_has_changed_inside_is_in_conflict() -> None:
    merged = merge_all("one two three", ("two", "2"), ("two", "II"), ("one two three", "one II three"))
    assert (merged.text, [each.number for each in merged.stale]) == ("one 2 three", [2])
    assert [(each.annotation.number, each.current) for each in merged.conflicts] == [(3, "one 2 three")]


def test_only_what_one_suggestion_changes_is_edited() -> None:
    assert merge_all("one two three", ("one two three", "one 2 three")).passage == (Span(4, 7), "2")
    assert merge_all("one two three", ("one", "1"), ("two", "2")).passage is None


def test_a_suggestion_of_what_is_already_there_changes_nothing() -> None:
    merged = merge_all("one two three", ("two", "two"))
    assert (merged.text, len(merged.accepted)) == ("one two three", 1)


def test_accepting_all_gives_the_text_of_accepting_one_after_the_other() -> None:
    for seed in range(examples(1000)):
        rng = random.Random(seed)
        it = CrdtHistory()
        it.write(random_text(rng))
        suggestions = [suggestion(rng, it.text, number) for number in range(1, 7)]
        at_once = merge_suggestions(place(it, suggestions), it.text)
        accepted = []
        for each in suggestions:
            one = merge_suggestions(place(it, [each]), it.text)
            accepted += one.accepted
            if one.text != it.text and one.passage:
                it.edit(*one.passage)
        assert (at_once.text, list(at_once.accepted)) == (it.text, accepted), seed


def suggestion(rng: random.Random, text: str, number: int) -> Annotation:
    span = random_span(rng, text)
    new = span.extract(text)
    for changed, typed in random_typed(rng, new, 2):
        new = new[: changed.start] + typed + new[changed.end :]
    return annotation(number, 1, text, span, new)
