"""Where a text to be matched stands."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.client.conversation.errors import CannotBeDone
from a2a_canvas.server.client.conversation.passage import match_selection
from tests.property_examples import examples

TEXT = "one\ntwo 🦀 two\nthree\n"


def test_a_match_is_sent_as_a_range_of_code_points_with_its_text() -> None:
    found = match_selection("two\nthree", TEXT, 7)
    assert found == {"start": 10, "end": 19, "unit": "codepoint", "text": "two\nthree"}


@pytest.mark.parametrize(
    ("match", "text", "found"),
    [
        ("two\nthree\n", "one\r\ntwo\r\nthree\r\n", (5, 17)),
        ("a\nb", "a\r\nb, a\nb", (6, 9)),
        ("a\r\nb", "a\r\nb", (0, 4)),
    ],
)
def test_line_breaks_match_those_of_the_text_and_its_own_are_sent(
    match: str, text: str, found: tuple[int, int]
) -> None:
    selection = match_selection(match, text, 1)
    assert (selection["start"], selection["end"], selection["text"]) == (*found, text[slice(*found)])


@pytest.mark.parametrize(
    ("needle", "text", "said"),
    [
        ("four", TEXT, '"four" does not occur in version 1. Copy it from what show prints, or give --lines'),
        ("two", TEXT, '"two" occurs 2 times in version 1, on line 2.'),
        ("o", TEXT, '"o" occurs 3 times in version 1, on lines 1, 2.'),
        ("aa", "\naaa", '"aa" occurs 2 times in version 1, on line 2.'),
        ("x", "x\n" * 12, '"x" occurs 12 times in version 1, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ….'),
        ("\n", TEXT, "'\\n' occurs 3 times in version 1, on lines 1, 2, 3."),
        ("a\nb", "", '"a b" does not occur in version 1. Copy it from what show prints, or give --lines'),
        ("a" * 99, "", f'"{"a" * 59}…" does not occur in version 1. Copy it from what show prints, or give --lines'),
    ],
)
def test_a_text_that_is_not_in_one_place_is_refused_with_how_often_and_where(needle: str, text: str, said: str) -> None:
    with pytest.raises(CannotBeDone) as refused:
        match_selection(needle, text, 1)
    assert str(refused.value).startswith(said)
    assert refused.value.exit_code == 2


@given(st.text("ab\n🦀", max_size=12), st.text("ab\n🦀", min_size=1, max_size=3))
@settings(max_examples=examples(200))
def test_a_text_is_found_exactly_if_it_begins_in_one_place(text: str, needle: str) -> None:
    starts = [at for at in range(len(text)) if text.startswith(needle, at)]
    if len(starts) == 1:
        selection = match_selection(needle, text, 1)
        assert [selection["start"]] == starts
        assert text[selection["start"] : selection["end"]] == needle
    else:
        with pytest.raises(CannotBeDone, match=f"occurs {len(starts)} times" if starts else "does not occur"):
            match_selection(needle, text, 1)
