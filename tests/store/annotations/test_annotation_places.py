"""Where comments and suggestions are, after whatever happened to the text: as a CRDT has it, or nowhere."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycrdt import StickyIndex

from a2a_canvas.store.annotations.annotation import Annotation, PlacedAnnotation, Quote, Writer
from a2a_canvas.store.annotations.annotation_places import place_annotations
from a2a_canvas.store.changes import Redo, Undo
from a2a_canvas.store.models import Content
from a2a_canvas.store.text import text_change
from a2a_canvas.store.text.hunks import Hunk, hunks
from a2a_canvas.store.text.spans import Span, find_in_context
from tests.property_examples import examples
from tests.store.annotations.crdt_history import CrdtHistory, Typed, random_span, random_step, random_text
from tests.store.artifact_builders import result

AT = datetime(2026, 1, 1, tzinfo=UTC)
HISTORIES = 10_000
CHUNKS = 4


def annotation(number: int, version: int, text: str, span: Span, replacement: str | None = None) -> Annotation:
    quote = Quote.from_text(text, span)
    return Annotation(
        f"n-{number}", "a", number, version, span, quote, Writer("user"), AT, "t", replacement=replacement
    )


@dataclass(frozen=True)
class Followed:
    """An annotation, and the characters of the CRDT: its first and last one, and those beside it."""

    annotation: Annotation
    first: StickyIndex
    last: StickyIndex
    before: StickyIndex
    after: StickyIndex

    def place(self, it: CrdtHistory) -> Span | None:
        first, last = (it.find(each, it.document.current) for each in (self.first, self.last))
        if first is None or last is None:
            return None
        empty = self.annotation.span.start == self.annotation.span.end
        return Span(first, first if empty else last + 1)

    def is_quoted_once(self, it: CrdtHistory) -> bool:
        text = it.document.version(self.annotation.version).content.text
        return find_in_context(text, self.annotation.span, it.text) is not None

    def is_untouched(self, it: CrdtHistory) -> bool:
        """Whether no change on the path has touched the passage, or what is beside it."""
        size = max(1, self.annotation.span.end - self.annotation.span.start)
        beside = -1, 0, size - 1, self.annotation.span.end - self.annotation.span.start
        for version in it.on_path(self.annotation.version):
            found = [it.find(each, version) for each in (self.before, self.first, self.last, self.after)]
            if found[1] is None or found != [found[1] + offset for offset in beside]:
                return False
            if not it.document.version(version).content.text.startswith(self.annotation.quote.exact, found[1]):
                return False
        return True


def follow(it: CrdtHistory, number: int, span: Span) -> Followed:
    made = annotation(number, it.document.current, it.text, span)
    ends = span.start, max(span.start, span.end - 1), span.start - 1, span.end
    return Followed(made, *map(it.stick, ends))


def random_history(seed: int) -> tuple[CrdtHistory, list[Followed]]:
    rng = random.Random(seed)
    it, followed = CrdtHistory(), list[Followed]()
    it.write(random_text(rng))
    for _ in range(rng.randint(1, 6)):
        for _ in range(3):
            followed.append(follow(it, len(followed) + 1, random_span(rng, it.text)))
        random_step(rng, it)
    return it, followed


def check(seed: int, counts: Counter[str]) -> None:
    it, followed = random_history(seed)
    versions, current = it.document.versions, it.document.current
    placed = result(place_annotations([each.annotation for each in followed], versions, current))
    for each, found in zip(followed, placed, strict=True):
        expected = each.place(it)
        if expected is None:
            counts["deleted"] += 1
            counts["deleted, found"] += found.span is not None
            assert found.span is None or found.span.extract(it.text) == each.annotation.quote.exact, seed
            continue
        assert found.span in (None, expected), (seed, each.annotation)
        kind = "untouched" if each.is_untouched(it) else "touched"
        counts[kind] += 1
        counts[f"{kind}, stale"] += found.span is None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_place_is_that_of_a_crdt_or_none_and_an_untouched_passage_has_one(chunk: int) -> None:
    counts: Counter[str] = Counter()
    size = HISTORIES // CHUNKS
    for seed in range(chunk * size, chunk * size + examples(size)):
        check(seed, counts)
    assert counts["untouched"] > 2 * examples(size)
    assert counts["untouched, stale"] <= 0.01 * counts["untouched"], counts


@given(st.data())
@settings(max_examples=examples(500))
def test_over_edits_acceptances_undo_and_redo_a_place_is_exactly_that_of_a_crdt(data: st.DataObject) -> None:
    """Few different characters, so that equal ones are everywhere."""
    it = CrdtHistory()
    it.write(data.draw(st.text("ab", max_size=6)))
    followed = []
    for _ in range(data.draw(st.integers(1, 6))):
        followed.append(follow(it, len(followed) + 1, data.draw(spans(it.text))))
        kind = data.draw(st.sampled_from(("edit", "accept", "move")))
        if kind == "accept":
            it.accept(data.draw(several_typed(it.text)))
        elif kind == "edit":
            it.edit(data.draw(spans(it.text)), data.draw(st.text("ab", max_size=3)), typed_again=True)
        else:
            it.move(data.draw(st.sampled_from((Undo(), Redo()))))
    for each, found in zip(followed, place(it, [each.annotation for each in followed]), strict=True):
        expected = each.place(it)
        if expected or not each.is_quoted_once(it):
            assert found.span == expected or it.text == it.document.version(each.annotation.version).content.text


# ------------------------------------------------------------------------------ examples


def spans(text: str) -> st.SearchStrategy[Span]:
    return st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(lambda ends: Span(*sorted(ends)))


@st.composite
def several_typed(draw: st.DrawFn, text: str) -> list[Typed]:
    ends = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    places = dict.fromkeys(Span(*pair) for pair in zip(ends[::2], ends[1::2], strict=False))
    return [(place, draw(st.text("ab", max_size=3))) for place in places]


def place(it: CrdtHistory, annotations: Sequence[Annotation]) -> tuple[PlacedAnnotation, ...]:
    return result(place_annotations(annotations, it.document.versions, it.document.current))


def written(text: str) -> CrdtHistory:
    it = CrdtHistory()
    it.write(text)
    return it


def found(it: CrdtHistory, quote: str, version: int = 1) -> str | None:
    """What is now where the first `quote` of a version was; None if that is not certain."""
    text = it.document.versions[version - 1].content.text
    at = text.index(quote)
    (placed,) = place(it, [annotation(1, version, text, Span(at, at + len(quote)))])
    return placed.span and placed.span.extract(it.text)


def replace_first(it: CrdtHistory, old: str, new: str, *, put: bool = False) -> None:
    at = it.text.index(old)
    typed = Span(at, at + len(old)), new
    it.put([typed]) if put else it.edit(*typed)


PROSE = "A line that begins the text.\nThe colour of the house is red.\nA line that ends it.\n"


@pytest.mark.parametrize(
    ("old", "new", "passage"),
    [
        ("colour of", "colour, red, of", "The colour, red, of the house is red."),
        ("house is", "house was once", "The colour of the house was once red."),
        ("text.", "text.\nA new line.", "The colour of the house is red."),
        ("A line that ends", "Another line.\nA line that ends", "The colour of the house is red."),
        ("colour", "color", "The color of the house is red."),
        ("The colour of the house is red.", "Nothing like that", None),
    ],
)
@pytest.mark.parametrize("put", [False, True])
def test_a_passage_grows_and_shrinks_with_what_is_changed_inside(
    put: bool, old: str, new: str, passage: str | None
) -> None:
    it = written(PROSE)
    replace_first(it, old, new, put=put)
    assert found(it, "The colour of the house is red.") == passage


def test_a_comment_on_a_word_stays_while_its_spelling_is_corrected_in_the_whole_text() -> None:
    it = written(PROSE.replace("colour", "cxlour"))
    replace_first(it, "cxlour", "colour", put=True)
    assert found(it, "cxlour") == "colour"


def test_what_is_inserted_at_one_point_comes_in_the_order_of_the_insertions() -> None:
    it = written("ab")
    point = annotation(1, 1, "ab", Span(1, 1))
    it.edit(Span(1, 1), "1")
    (placed,) = place(it, [point])
    assert placed.span == Span(2, 2)


def test_a_passage_that_was_deleted_is_found_by_its_quote_only_with_what_surrounds_it() -> None:
    it = written(PROSE)
    replace_first(it, "The colour of the house is red.", "")
    assert found(it, "The colour of the house is red.") is None
    replace_first(it, "\n\n", "\nThe colour of the house is red.\n")
    assert found(it, "The colour of the house is red.") == "The colour of the house is red."
    replace_first(it, "text.\n", "text.\nMore.\n")
    assert found(it, "The colour of the house is red.") is None


def test_on_another_branch_a_passage_is_where_the_common_version_has_it() -> None:
    it = written(PROSE)
    replace_first(it, "A line that begins", "This begins", put=True)
    it.move(Undo())
    replace_first(it, "begins", "starts")
    assert (it.document.current, found(it, "house", 2), found(it, "This", 2)) == (3, "house", None)


def test_over_edits_of_versions_that_were_pruned_places_are_known() -> None:
    it = written(PROSE)
    replace_first(it, "begins", "starts")
    replace_first(it, "house", "new house")
    *gone, last = it.document.versions
    pruned = [dataclasses.replace(each, content=Content(), pruned=True) for each in gone]
    it.document = dataclasses.replace(it.document, versions=(*pruned, last))
    at = PROSE.index("red")
    (placed,) = place(it, [annotation(1, 1, PROSE, Span(at, at + 3))])
    assert placed.span
    assert placed.span.extract(it.text) == "red"


def test_all_annotations_share_one_comparison_of_each_two_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    it = written(PROSE)
    for word in ("begins", "colour", "ends"):
        replace_first(it, word, f"{word} and more", put=True)
    compared: list[str] = []

    def count(old: str, new: str) -> tuple[Hunk, ...]:
        compared.append(old)
        return hunks(old, new)

    monkeypatch.setattr(text_change, "hunks", count)
    ends = [(version, Span(at, at + 5)) for version in (1, 2, 3) for at in range(0, 60, 3)]
    texts = [each.content.text for each in it.document.versions]
    place(it, [annotation(n, version, texts[version - 1], span) for n, (version, span) in enumerate(ends)])
    assert compared == texts[:3]
