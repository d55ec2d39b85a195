"""Where a passage of an old version stands in a later one: certain over edits, by its words over anything else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store import tracking
from a2a_canvas.store.changes import EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.errors import InvalidChange
from a2a_canvas.store.models import Content, Document, Limits, Ref, Version, text_part
from a2a_canvas.store.mutation import apply_change
from a2a_canvas.store.text import text_change
from a2a_canvas.store.text.comparing import THREAD_THRESHOLD
from a2a_canvas.store.text.hunks import Hunk, hunks
from a2a_canvas.store.text.spans import Span, difference, find_again, splice
from tests.property_examples import examples
from tests.store.artifact_builders import result

THEY = Ref("c", "a", "others")


def written(text: str) -> Document:
    return apply_change(Document("a"), THEY, ReplaceParts((text_part(text),), last_chunk=True), Limits())[0]


def after(document: Document, *changes: EditText | ReplaceParts | Restore | Undo | Redo) -> Document:
    for change in changes:
        document = apply_change(document, THEY, change, Limits())[0]
    return document


def edit(document: Document, old: str, new: str, *, passage: bool = True) -> Document:
    """`new` in the place of the first `old`."""
    at = document.current_content.text.index(old)
    return after(document, EditText(Span(at, at + len(old)), new, document.current, passage))


def track(versions: Sequence[Version], base: int, current: int, span: Span, quote: str) -> Span | None:
    return result(tracking.track(versions, base, current, span, quote))


def tracked(document: Document, base: int, quote: str) -> Span | None:
    """Where the first `quote` of version `base` stands now."""
    at = document.version(base).content.text.index(quote)
    return track(document.versions, base, document.current, Span(at, at + len(quote)), quote)


# ------------------------------------------------------------------------------ examples

ROWS = "x = 1\n" * 4


def test_of_equal_rows_the_right_one_is_found_over_edits() -> None:
    document = edit(written(ROWS), "x = 1\n", "y = 2\nz = 3\n")
    third = Span(12, 18)
    assert track(document.versions, 1, 2, third, "x = 1\n") == Span(18, 24)
    assert track(document.versions, 1, 2, Span(0, 6), "x = 1\n") is None


def test_over_versions_whose_content_is_no_longer_kept_only_edits_lead() -> None:
    document = edit(edit(written("one five nine"), "one", "first"), "nine", "last")
    gone = replace(document.versions[1], content=Content(), pruned=True)
    versions = (document.versions[0], gone, document.versions[2])
    assert track(versions, 1, 3, Span(4, 8), "five") == Span(6, 10)
    replaced = after(document, *(ReplaceParts((text_part(text),), last_chunk=True) for text in ("one two", "two one")))
    document = edit(replaced, "two", "three")
    gone = [replace(version, content=Content(), pruned=True) for version in document.versions]
    assert track((*gone[:5], document.versions[5]), 4, 6, Span(4, 4), "") is None


@pytest.mark.parametrize("new", ["five of them", "about five of them", "5", ""])
def test_a_passage_that_others_have_edited_is_lost_even_if_its_words_still_stand_there(new: str) -> None:
    assert tracked(edit(written("one five nine"), "five", new), 1, "five") is None


def test_an_edit_that_reaches_into_the_passage_or_around_it_has_edited_it() -> None:
    document = written("one two three four")
    assert tracked(edit(document, "one two", "1 two"), 1, "two three") is None
    assert tracked(edit(document, "one two three", "two"), 1, "two") is None
    assert tracked(edit(document, "w", "W"), 1, "two") is None


def test_an_edit_right_beside_the_passage_has_not() -> None:
    document = written("one two three")
    assert tracked(edit(document, "one ", "1"), 1, "two") == Span(1, 4)
    assert tracked(edit(document, " three", "!"), 1, "two") == Span(4, 7)


def test_two_insertions_at_the_same_point_are_at_the_same_place() -> None:
    document = after(written("ab"), EditText(Span(1, 1), "-", 1))
    assert track(document.versions, 1, 2, Span(1, 1), "") is None
    assert track(document.versions, 1, 2, Span(2, 2), "") == Span(3, 3)
    assert track(document.versions, 1, 2, Span(0, 0), "") == Span(0, 0)


def test_over_any_other_change_a_passage_is_found_by_its_words() -> None:
    document = written("one two three")
    assert tracked(edit(document, "one", "1 and a half", passage=False), 1, "two") == Span(13, 16)
    assert tracked(after(document, ReplaceParts((text_part("a two b"),), last_chunk=True)), 1, "two") == Span(2, 5)
    assert tracked(after(document, ReplaceParts((text_part("nothing"),), last_chunk=True)), 1, "two") is None


TABLE = "# Tasks\n\n- open\n- open\n- open\n\nThe end.\n"
SECOND = Span(TABLE.index("- open") + 7, TABLE.index("- open") + 13)


def put(document: Document, text: str) -> Document:
    """The whole text, as a user types it."""
    return after(document, EditText(*difference(document.current_content.text, text), document.current, passage=False))


@pytest.mark.parametrize(
    ("new", "by"),
    [
        (TABLE.replace("# Tasks", "# All tasks"), 4),
        (TABLE.replace("# Tasks\n", "# Tasks\n\nThree of them.\n"), 16),
        (TABLE.replace("The end", "End"), 0),
        (TABLE.replace("# Tasks", "# T").replace("The end.\n", "That is all.\n"), -4),
        (TABLE.replace("Tasks\n\n", "Tasks\n\n- new\n"), 6),
        (TABLE.replace("open\n\n", "open\n- new\n\n"), 0),
        (TABLE.replace("- open\n", "- open\n- in work\n", 1), 10),
        (TABLE.replace("- open\n\n", "- not open\n\n"), 0),
    ],
)
def test_of_equal_lines_the_right_one_is_found_over_a_text_that_was_put(new: str, by: int) -> None:
    document = put(written(TABLE), new)
    assert track(document.versions, 1, 2, SECOND, "- open") == Span(SECOND.start + by, SECOND.end + by)
    back = after(document, Undo())
    moved = Span(SECOND.start + by, SECOND.end + by)
    assert track(back.versions, 2, 1, moved, "- open") == SECOND
    restored = after(document, Restore(1))
    assert track(restored.versions, 2, 3, moved, "- open") == SECOND


@pytest.mark.parametrize(
    "new",
    [
        TABLE.replace("- open\n\n", "- open\n- open\n\n"),
        TABLE.replace("- open\n\n", "\n"),
        TABLE.replace("- open\n\nThe end.", "- open\n- open\nEnd."),
        TABLE.replace("- open\n- open\n", "- open\n- open!\n", 1),
        "Another text: - open, but\n- open and\n- open\n",
    ],
)
def test_where_it_is_not_certain_which_of_them_it_is_none_is(new: str) -> None:
    assert track(put(written(TABLE), new).versions, 1, 2, SECOND, "- open") is None


def test_a_place_beside_what_was_put_there_is_not_certain() -> None:
    document = put(written("one\ntwo\n"), "one\nmore\ntwo\n")
    assert track(document.versions, 1, 2, Span(4, 4), "") is None
    assert track(document.versions, 1, 2, Span(8, 8), "") == Span(13, 13)
    assert track(document.versions, 1, 2, Span(0, 0), "") == Span(0, 0)


@pytest.mark.parametrize(
    ("old", "new", "start", "found"),
    [
        # Behind the passage "- open" is inserted beside it, "x" is deleted further on.
        ("x\n- open\n- open\nx\n- open\nx\nx\nx\n- open\n", "x\n- open\n- open\n- open\nx\n- open\nx\nx\nx\n", 9, 9),
        # And in front of the passage.
        (
            "- open\ny\ny\n- open\n- open\n- open\n- open\nx\n",
            "- open\n- open\ny\ny\n- open\nx\n- open\n- open\nx\n",
            25,
            27,
        ),
    ],
)
def test_only_the_changes_next_to_a_passage_can_repeat_it(old: str, new: str, start: int, found: int) -> None:
    document = put(written(old), new)
    assert track(document.versions, 1, 2, Span(start, start + 6), "- open") == Span(found, found + 6)


def test_over_what_was_put_and_what_was_edited_in_turn() -> None:
    document = edit(put(written(TABLE), "# My tasks" + TABLE[7:]), "The end", "That is all")
    document = put(document, document.current_content.text + "\nBye.\n")
    assert track(document.versions, 1, 4, SECOND, "- open") == Span(SECOND.start + 3, SECOND.end + 3)


def test_what_was_undone_does_not_stand_in_the_way() -> None:
    document = edit(edit(written("one two three"), "two", "2"), "one", "1")
    assert tracked(document, 1, "two") is None
    assert tracked(after(document, Undo(), Undo()), 1, "two") == Span(4, 7)
    assert tracked(after(document, Undo()), 3, "three") == Span(6, 11)
    assert tracked(after(document, Undo(), Undo()), 3, "three") == Span(8, 13)
    assert tracked(after(document, Restore(1)), 1, "two") == Span(4, 7)


def test_over_to_another_branch() -> None:
    document = after(edit(written("one two three"), "one", "1"), Undo())
    document = edit(document, "three", "3")
    assert (document.current, document.version(3).parent) == (3, 1)
    assert tracked(document, 2, "two") == Span(4, 7)
    assert tracked(document, 2, "three") is None


def test_a_quote_that_did_not_stand_there_is_found_where_it_stands_once() -> None:
    document = edit(written("one two three"), "one", "1")
    assert track(document.versions, 1, 2, Span(0, 3), "two") == Span(2, 5)
    assert track(document.versions, 1, 2, Span(0, 3), "four") is None


# ------------------------------------------------------------------------------ properties


@dataclass
class Followed:
    """A passage of version 1 that was followed by hand; `place` is None once others have edited it."""

    document: Document
    span: Span
    place: Span | None


@st.composite
def spans(draw: st.DrawFn, text: str) -> Span:
    start, end = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    return Span(start, end)


@st.composite
def followed(draw: st.DrawFn) -> Followed:
    """Few characters, so that the words of a passage stand in many places."""
    texts = st.text("ab", max_size=6)
    document = written(draw(texts))
    span = draw(spans(document.current_content.text))
    # What becomes of each character of the passage, and of the points before and after it.
    place: Span | None = span
    for _ in range(draw(st.integers(0, 4))):
        taken, new = draw(spans(document.current_content.text)), draw(texts)
        document = after(document, EditText(taken, new, document.current))
        if place and (touches(place, taken)):
            place = None
        elif place and taken.end <= place.start:
            by = len(new) - (taken.end - taken.start)
            place = Span(place.start + by, place.end + by)
    return Followed(document, span, place)


def touches(place: Span, taken: Span) -> bool:
    inside = any(taken.start < at < taken.end for at in range(place.start, place.end + 1))
    around = any(place.start < at < place.end for at in range(taken.start, taken.end + 1))
    same = place == taken
    return inside or around or same


@given(followed())
@settings(max_examples=examples(500))
def test_over_edits_a_passage_is_where_it_was_followed_to_by_hand(it: Followed) -> None:
    quote = it.span.extract(it.document.version(1).content.text)
    found = track(it.document.versions, 1, it.document.current, it.span, quote)
    if it.document.current_content.text == it.document.version(1).content.text:
        assert found == it.span
    else:
        assert found == it.place


@given(followed(), st.lists(st.sampled_from([Undo(), Redo()]), max_size=6))
@settings(max_examples=examples(300))
def test_what_is_found_says_what_it_said(it: Followed, steps: list[Undo | Redo]) -> None:
    document = it.document
    for step in steps:
        try:
            document = after(document, step)
        except InvalidChange:
            continue
    quote = it.span.extract(document.version(1).content.text)
    found = track(document.versions, 1, document.current, it.span, quote)
    assert found is None or found.extract(document.current_content.text) == quote


ROWS_AND_WORDS = st.lists(st.sampled_from(["a", "b", "a ", "b ", "\n", "a\n"]), max_size=8).map("".join)


def explanations(old: str, new: str, span: Span) -> set[int]:
    """Where a passage would stand, by every replacement of one range beside it that makes `new` of `old`."""
    places = set()
    for start in range(len(old) + 1):
        for end in range(start, len(old) + 1):
            rest = len(new) - start - (len(old) - end)
            if rest < 0 or new[:start] != old[:start] or not new.endswith(old[end:]):
                continue
            if end < span.start or (end == span.start < span.end):
                places.add(span.start + len(new) - len(old))
            elif start > span.end or (start == span.end > span.start):
                places.add(span.start)
    return places


@given(st.data(), ROWS_AND_WORDS, ROWS_AND_WORDS)
@settings(max_examples=examples(500))
def test_over_a_text_that_was_put_a_passage_is_where_every_explanation_has_it(
    data: st.DataObject, old: str, typed: str
) -> None:
    span, replaced = data.draw(spans(old)), data.draw(spans(old))
    new = splice(old, replaced, typed)
    document = put(written(old), new)
    found = track(document.versions, 1, 2, span, span.extract(old))
    if found and find_again(old, span, span.extract(old), new) is None:
        assert explanations(old, new, span) <= {found.start}


# -------------------------------------------------------------------------------- long texts


async def test_the_event_loop_goes_on_while_long_texts_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"Row {number}.\n" for number in range(THREAD_THRESHOLD // 8))
    document = put(written(rows), f"The rows\n\n{rows}The end.\n")
    gone_on = threading.Event()

    def compared(old: str, new: str) -> tuple[Hunk, ...]:
        assert gone_on.wait(60)
        return hunks(old, new)

    monkeypatch.setattr(text_change, "hunks", compared)
    asyncio.get_running_loop().call_soon(gone_on.set)
    place = Span(rows.index("Row 700."), rows.index("Row 700.") + 8)
    found = await tracking.track(document.versions, 1, 2, place, "Row 700.")
    assert found == Span(place.start + 10, place.end + 10)
