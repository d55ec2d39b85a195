"""What was changed between two texts: by lines, phrases and words, and never by comparing all with all."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store.text.hunks import Hunk, apply_hunks, hunks
from a2a_canvas.store.text.spans import Span
from tests.property_examples import examples

TOKENS = st.sampled_from(["a", "b", "ab", " ", "\n", "\r\n", ".", "é", "e\u0301", "😀", "本", "語", "_"])
TEXTS = st.lists(TOKENS, max_size=14).map("".join) | st.text(max_size=12)


def told(old: str, new: str) -> list[tuple[str, str]]:
    """Each replaced text with the one in its place."""
    return [(hunk.span.extract(old), hunk.text) for hunk in hunks(old, new)]


# ------------------------------------------------------------------------------ examples


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("", "", []),
        ("same", "same", []),
        ("", "new", [("", "new")]),
        ("old", "", [("old", "")]),
        ("one two three", "one 2 three", [("two", "2")]),
        ("one two three four", "1 two three 4", [("one", "1"), ("four", "4")]),
        ("footing", "footage", [("footing", "footage")]),
        ("f(a, b)\n", "f(a, c, b)\n", [("", "c, ")]),
        ("one\ntwo\nthree\n", "one\nthree\n", [("two\n", "")]),
        ("one\nthree\n", "one\ntwo\nthree\n", [("", "two\n")]),
        ("- a\n- b\n", "- a\n- new\n- b\n", [("", "- new\n")]),
        ("row\nrow\n", "row\nrow\nrow\n", [("", "row\n")]),
        ("one\n", "one\ntwo\n", [("", "two\n")]),
        ("one\n", "two\none\n", [("", "two\n")]),
        ("one two two", "one two two two", [("", " two")]),
        ("one two three", "1 2 three", [("one", "1"), ("two", "2")]),
        # A word that both have by chance, between long changes.
        (
            f"{'x' * 120} the {'y' * 120}",
            f"{'v' * 120} the {'w' * 120}",
            [(f"{'x' * 120} the {'y' * 120}", f"{'v' * 120} the {'w' * 120}")],
        ),
        ("A\nrow\nrow\nB\n", "C\nrow\nrow\nD\n", [("A", "C"), ("B", "D")]),
        ("one\r\ntwo\r\n", "one\r\n2\r\n", [("two", "2")]),
        ("one\ntwo", "one\r\ntwo", [("\n", "\r\n")]),
        ("日本語の文書", "日本国の文書", [("語", "国")]),
        ("a 😀 b", "a 😎 b", [("😀", "😎")]),
    ],
)
def test_the_smallest_whole_lines_and_words(old: str, new: str, changes: list[tuple[str, str]]) -> None:
    assert told(old, new) == changes


def test_a_part_of_what_was_changed() -> None:
    changes = (Hunk(Span(4, 7), "2"), Hunk(Span(8, 8), "and "))
    assert apply_hunks("one two three", changes) == "one 2 and three"
    assert apply_hunks("one two three", changes[:1], Span(3, 8)) == " 2 "


# ------------------------------------------------------------------------------ properties


def check(old: str, new: str) -> None:
    changes = hunks(old, new)
    assert apply_hunks(old, changes) == new
    for hunk in changes:
        assert hunk.span.extract(old) != hunk.text
    for one, other in pairwise(changes):
        assert one.span.end < other.span.start


@given(TEXTS, TEXTS)
@settings(max_examples=examples(1000))
def test_the_changes_make_the_new_text_and_do_not_touch_one_another(old: str, new: str) -> None:
    check(old, new)


@pytest.mark.parametrize("seed", range(examples(40)))
@pytest.mark.parametrize("different", [3, 3000])
@pytest.mark.parametrize("end", ["\n", " ", ", ", ""])
def test_in_long_texts_too(end: str, different: int, seed: int) -> None:
    dice = random.Random(seed)
    old = "".join(f"{dice.randrange(different)}{end}" for _ in range(12_000))
    new = old
    for _ in range(dice.randrange(6)):
        at, length = dice.randrange(len(new)), dice.choice([0, 5, 500])
        new = new[:at] + dice.choice(["", "7 7", f"new{end}" * 60, new[:900]]) + new[at + length :]
    check(old, new)


def test_of_a_long_text_only_what_is_near_a_change_is_compared() -> None:
    old = "".join(f"Line {number} of the text.\n" for number in range(50_000))
    changes = {"Line 100 ": "Line one hundred ", "Line 25000 ": "", "Line 49999 ": "Last "}
    new = old
    for before, after in changes.items():
        new = new.replace(before, after)
    assert told(old, new) == [("100", "one hundred"), ("Line 25000 ", ""), ("Line 49999", "Last")]


LONG = 20_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["same\n", "{}\n", "a {} b\n"], ["same\n", "{}x\n", "a {} c\n"]),
        (["row\n"], ["row\n", "row\n"]),
        (["a\n", "b\n"], ["b\n", "c\n"]),
        (["{}\n"], ["{}\r\n"]),
        (["ab"], ["ba"]),
        (["a "], ["b "]),
        (["{} "], ["{}, "]),
    ],
    ids=str,
)
def test_texts_that_share_much_or_little_take_no_quadratic_time(old: list[str], new: list[str]) -> None:
    """Comparing all with all would take hours."""
    check(*("".join("".join(lines).replace("{}", str(n)) for n in range(LONG)) for lines in (old, new)))


def test_lines_in_another_order_neither() -> None:
    lines = [f"Line {number}.\n" for number in range(LONG)]
    shuffled = random.Random(1).sample(lines, LONG)
    check("".join(lines), "".join(shuffled))
    check("".join(lines), "".join(reversed(lines)))
