"""Finding what the model quotes: taken where it stands once, shown where it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.store.text.spans import Span
from a2a_canvas.tools.find_quote import MAX_COUNT, MAX_EXCERPT, MAX_WIDTH, find_once

TEXTS = st.text("ab \n\r\u2003é😀", max_size=20)


@given(TEXTS, st.text("ab \n\r\u2003é😀", min_size=1, max_size=4))
def test_a_passage_is_taken_exactly_if_it_occurs_once_overlapping_ones_counted(text: str, quote: str) -> None:
    places = [at for at in range(len(text)) if text.startswith(quote, at)]
    found = find_once(text, quote)
    match places:
        case [at]:
            assert found == Span(at, at + len(quote))
        case []:
            assert isinstance(found, str)
            assert "does not occur" in found
        case _:
            assert isinstance(found, str)
            assert f"occurs {len(places)} times" in found


def test_two_occurrences_that_overlap_are_two() -> None:
    assert "occurs 2 times" in str(find_once("baaab", "aa"))


@given(st.lists(st.sampled_from(["a", "bc", "é😀"]), min_size=1, max_size=5), st.data())
def test_a_passage_in_other_whitespace_is_shown_as_it_stands(words: list[str], data: st.DataObject) -> None:
    blanks = st.text(" \n\t\u2003", min_size=1, max_size=3)
    stands, quote = ("".join(word + data.draw(blanks) for word in words).rstrip() for _ in range(2))
    found = find_once(f"x; {stands} ;y", quote)
    if quote in stands:
        assert found == Span(3, 3 + len(quote))
    else:
        assert isinstance(found, str)
        assert "differs only in whitespace: at line 1 " in found


def shown(text: str, quote: str) -> list[str]:
    found = find_once(text, quote)
    assert isinstance(found, str)
    return found.split("\n")[1:]


def test_each_place_is_shown_with_the_lines_around_it() -> None:
    text = "def one():\n    return 1\n\ndef two():\n    return 1\n"
    assert find_once(text, "return 1") == (
        "old_text occurs 2 times, and it must occur exactly once. Nothing was changed. Call artifact_edit again and "
        "quote more of what stands around the place you mean. The places:\n"
        "1.\n"
        "  1: def one():\n"
        ">  2:     return 1\n".replace(">  2", "> 2")
        + "  3: \n"
        "2.\n"
        "  4: def two():\n"
        "> 5:     return 1\n"
        "  6: "
    )


def test_of_a_long_passage_the_first_and_the_last_line_are_shown() -> None:
    text = "top\r\na\r\nb\r\nc\r\nmiddle\r\na\r\nb\r\nc\r\nend"
    assert shown(text, "a\r\nb\r\nc") == [
        "1.",
        *("  1: top", "> 2: a", "> …", "> 4: c", "  5: middle"),
        "2.",
        *("  5: middle", "> 6: a", "> …", "> 8: c", "  9: end"),
    ]


def test_of_many_places_three_are_shown_and_the_count_has_an_end() -> None:
    found = find_once("x\n" * 7, "x")
    assert "occurs 7 times" in str(found)
    assert "The first 3 places:" in str(found)
    assert [line for line in shown("x\n" * 7, "x") if line.startswith(">")] == ["> 1: x", "> 2: x", "> 3: x"]
    assert f"more than {MAX_COUNT} times" in str(find_once("x" * 5000, "x"))


def test_a_long_line_is_cut_around_the_passage() -> None:
    line = "a" * 1000 + "!here!" + "b" * 1000
    marked = [line for line in shown(f"{line}\n{line}", "!here!") if line.startswith(">")]
    assert len(marked) == 2
    for one in marked:
        assert "…a" in one
        assert "!here!" in one
        assert "b…" in one
        assert len(one) < MAX_WIDTH + 10


@pytest.mark.parametrize(
    ("text", "quote", "says"),
    [
        ("one\n\n  two  three\n", "two three", 'whitespace: at line 3 the text says "two  three"'),
        ("a\r\nb", "a\nb", 'whitespace: at line 1 the text says "a\\r\\nb"'),
        ("a\tb", "a b ", 'whitespace: at line 1 the text says "a\\tb"'),
        ("x\ndef total(self, items):\ny", "def total(self, item):", "nearest line is 2: def total(self, items):"),
        ("x\nHelo wrld\ny", "Hello world", "nearest line is 2: Helo wrld"),
        ("first\nsecond\nthird one here", "first\nthird one there", "nearest line is 3: third one here"),
    ],
)
def test_what_does_not_occur_is_answered_with_what_is_nearest(text: str, quote: str, says: str) -> None:
    found = find_once(text, quote)
    assert isinstance(found, str)
    assert found.startswith("old_text does not occur in the artifact's text. Nothing was changed.")
    assert says in found


def test_a_sentence_is_found_in_a_paragraph_on_one_long_line() -> None:
    paragraph = "Some words go before it. " * 30 + "The quick brown fox jumps over a lazy dog." + " More follows." * 30
    found = str(find_once(f"# Title\n\n{paragraph}\n", "The quick brown fox jumped over the lazy dog."))
    assert "nearest line is 3: …" in found
    assert "quick brown fox" in found


@pytest.mark.parametrize(
    ("text", "quote"), [("one\ntwo", "something else"), ("", "x"), ("a", "\n\n"), ("a\nb", "b\na")]
)
def test_where_nothing_is_near_none_is_named(text: str, quote: str) -> None:
    found = find_once(text, quote)
    assert isinstance(found, str)
    assert found.endswith("Read the artifact with artifact_read and quote it exactly as it stands.")


def test_a_long_passage_is_cut() -> None:
    text = "word  " * 1000
    found = str(find_once(text, "word " * 1000))
    assert "… (cut)" in found
    assert len(found) < MAX_EXCERPT + 300
