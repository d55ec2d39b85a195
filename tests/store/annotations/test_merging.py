"""Merging suggestions into a text, without a store: all at once as one after the other."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from a2a_canvas.store.annotations import linked_text
from a2a_canvas.store.annotations.annotation import Annotation, PlacedAnnotation
from a2a_canvas.store.annotations.edit_map import move
from a2a_canvas.store.annotations.merging import ConflictingSuggestion, MergedSuggestions, merge_suggestions
from a2a_canvas.store.merge import MergeResult, merge
from a2a_canvas.store.models import TextEdit
from a2a_canvas.store.text.spans import Span, difference, find_in_context, splice
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
    assert merge_all("one two three", ("one two three", "one 2 three")).edits == ((Span(4, 7), "2"),)
    assert merge_all("one two three", ("two", "2"), ("one", "1")).edits == ((Span(0, 3), "1"), (Span(4, 7), "2"))


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
            for edit in one.edits:
                it.edit(*edit)
        assert (at_once.text, list(at_once.accepted)) == (it.text, accepted), seed


def suggestion(rng: random.Random, text: str, number: int) -> Annotation:
    span = random_span(rng, text)
    new = span.extract(text)
    for changed, typed in random_typed(rng, new, 2):
        new = new[: changed.start] + typed + new[changed.end :]
    return annotation(number, 1, text, span, new)


# ----------------------------------------------------- as a plain implementation has it


Merged = tuple[str, tuple[Annotation, ...], tuple[Annotation, ...], tuple[ConflictingSuggestion, ...]]


def merge_plainly(placed: Sequence[PlacedAnnotation], text: str) -> Merged:
    """The same, by moving each passage over all edits before it, and by searching for each that is lost."""
    before, done = text, list[TextEdit]()
    accepted, stale, conflicts = list[Annotation](), list[Annotation](), list[ConflictingSuggestion]()
    for each in placed:
        suggestion, span = each.annotation, each.span
        for edited in done:
            span = span and move(span, edited)
        span = span or (each.span and find_in_context(before, each.span, text))
        if span is None:
            stale.append(suggestion)
            continue
        now = span.extract(text)
        merged = merge(suggestion.quote.exact, now, suggestion.replacement or "")
        if not isinstance(merged, MergeResult):
            conflicts.append(ConflictingSuggestion(suggestion, now))
            continue
        accepted.append(suggestion)
        inside, new = difference(now, merged.text)
        edit = Span(span.start + inside.start, span.start + inside.end)
        text = splice(text, edit, new)
        done.append(TextEdit(edit, len(new)))
    return text, tuple(accepted), tuple(stale), tuple(conflicts)


def dense_suggestions(rng: random.Random, text: str) -> list[PlacedAnnotation]:
    """Many on few places: beside, inside and across one another; some write again what others delete."""
    edges = sorted(rng.randint(0, len(text)) for _ in range(8))
    placed = []
    for number in range(1, rng.randint(2, 30)):
        start, end = sorted(rng.choices(edges, k=2))
        if rng.random() < 0.3:
            end = start
        span = Span(start, end)
        again = Span(*sorted(rng.choices(edges, k=2))).extract(text)
        new = rng.choice(("", "x", again, span.extract(text) + again, again + span.extract(text)))
        place = None if rng.random() < 0.03 else span
        placed.append(PlacedAnnotation(annotation(number, 1, text, span, new), place, "open"))
    return placed


@pytest.mark.parametrize("most", [0, linked_text._MAX_GRAMS], ids=["searches always", "searches near edits"])
def test_suggestions_merge_as_by_a_plain_implementation(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked_text, "_MAX_GRAMS", most)
    found_again = 0
    for seed in range(examples(3000)):
        rng = random.Random(seed)
        text = rng.choice((random_text(rng), "".join(rng.choices("ab\n", k=rng.randint(0, 200)))))
        start, placed = text, dense_suggestions(rng, text)
        at_once, plainly = merge_suggestions(placed, text), merge_plainly(placed, text)
        assert (at_once.text, at_once.accepted, at_once.stale, at_once.conflicts) == plainly, seed
        for span, new in reversed(at_once.edits):
            text = splice(text, span, new)
        assert text == at_once.text, seed
        found_again += len(merge_without_searching(placed, start).accepted) < len(at_once.accepted)
    assert found_again


def test_the_text_is_not_searched_for_what_is_gone_and_was_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked_text, "find_in_context", None)
    text = "".join(f"Line {number} has a word.\n" for number in range(100))
    places = [Span(at, at + 4) for at in range(len(text)) if text.startswith("word", at)]
    twice = [*enumerate(places), *enumerate(places, 100)]
    placed = [PlacedAnnotation(annotation(number, 1, text, each, "phrase"), each, "open") for number, each in twice]
    merged = merge_suggestions(placed, text)
    assert (len(merged.accepted), len(merged.stale)) == (100, 100)


def merge_without_searching(placed: Sequence[PlacedAnnotation], text: str) -> MergedSuggestions:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linked_text, "find_in_context", lambda *_: None)
        return merge_suggestions(placed, text)
