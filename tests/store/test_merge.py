"""Two changes of one text, together: kept where they do not touch, refused with all places where they do."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store.merge import Conflict, Conflicts, MergeResult, merge
from a2a_canvas.store.text.hunks import Hunk, apply_hunks, hunks
from tests.property_examples import examples
from tests.store.text.test_hunks import TEXTS

# ------------------------------------------------------------------------------ examples

POOLS = "# Pools\n\nThe sea forgets a pool twice a day.\n\n- crabs\n- snails\n"


@pytest.mark.parametrize(
    ("base", "current", "yours", "merged"),
    [
        ("one\ntwo\nthree\n", "1\ntwo\nthree\n", "one\ntwo\n3\n", "1\ntwo\n3\n"),
        ("the quick brown fox", "the fast brown fox", "the quick red fox", "the fast red fox"),
        ("one two three", "one three", "one two three four", "one three four"),
        ("one, two, three", "zero, one, two, three", "one, two, 3", "zero, one, two, 3"),
        ("one\r\ntwo\r\nthree\r\n", "1\r\ntwo\r\nthree\r\n", "one\r\ntwo\r\n3\r\n", "1\r\ntwo\r\n3\r\n"),
        ("これは古い文書です", "これは新しい文書です", "それは古い文書です", "それは新しい文書です"),
        ("a 😀 b 👍 c", "a 😎 b 👍 c", "a 😀 b 👎 c", "a 😎 b 👎 c"),
        ("one two three", "1 two three", "1 two 3", "1 two 3"),
        ("one two three", "1 2 three", "1 two three", "1 2 three"),
        ("one two", "", "", ""),
        # What both have added, though each of them has changed something else beside it, too.
        ("one\n", "number one\nmine\n", "one\nmine\n", "number one\nmine\n"),
        ("- old\n", "- new\n- old\n", "- older\n", "- new\n- older\n"),
        ("", "new", "new", "new"),
        ("", "new", "", "new"),
    ],
)
def test_changes_that_do_not_touch_are_both_kept(base: str, current: str, yours: str, merged: str) -> None:
    assert merge(base, current, yours) == MergeResult(merged)


@pytest.mark.parametrize(
    ("base", "current", "yours", "places"),
    [
        ("one two three", "one 2 three", "one deux three", [Conflict(4, "two", "2", "deux")]),
        ("one two three", "one three", "one 2 three", [Conflict(4, "two ", "", "2 ")]),
        ("one two", "one and two", "one or two", [Conflict(4, "", "and ", "or ")]),
        ("one two", "one, two", "1 two", [Conflict(0, "one", "one,", "1")]),
        ("", "this", "that", [Conflict(0, "", "this", "that")]),
        ("old", "", "new", [Conflict(0, "old", "", "new")]),
        ("a\n\nb\n", "x\n\nx\n", "y\n\ny\n", [Conflict(0, "a", "x", "y"), Conflict(3, "b", "x", "y")]),
        # One side has what the other has added before, and something else.
        ("one\n", "number one\nmine\n", "one\nmine\nmore\n", [Conflict(4, "", "mine\n", "mine\nmore\n")]),
        ("one\n", "1\nmine\n", "one\nmine\nmore\n", [Conflict(0, "one\n", "1\nmine\n", "one\nmine\nmore\n")]),
        (
            "a quick fox",
            "a quick brown fox",
            "a slow brown fox",
            [Conflict(2, "quick ", "quick brown ", "slow brown ")],
        ),
        # A change of one side that touches two of the other.
        ("a, b, c, d", "a, 1, 2, d", "a x d", [Conflict(1, ", b, c,", ", 1, 2,", " x")]),
    ],
)
def test_every_place_that_both_have_changed_is_named(
    base: str, current: str, yours: str, places: Sequence[Conflict]
) -> None:
    assert merge(base, current, yours) == Conflicts(tuple(places))


def test_a_person_types_while_the_agent_rewrites_another_paragraph() -> None:
    rewritten = POOLS.replace("The sea forgets a pool twice a day.", "Twice a day the tide leaves a pool behind.")
    typed = POOLS.replace("- snails\n", "- snails\n- anemones\n")
    assert merge(POOLS, rewritten, typed) == MergeResult(rewritten + "- anemones\n")


# ------------------------------------------------------------------------------ properties


def may_touch(base: str, one: Hunk, other: Hunk) -> bool:
    """Whether two changes touch, or would if what is between them were found in one of them."""
    between = base[min(one.span.end, other.span.end) : max(one.span.start, other.span.start)]
    return any(between in text for text in (one.text, other.text)) or not between


@given(TEXTS, TEXTS, TEXTS)
@settings(max_examples=examples(1000))
def test_all_changes_of_both_are_in_the_text_or_none(base: str, current: str, yours: str) -> None:
    theirs, ours = hunks(base, current), hunks(base, yours)
    merged = merge(base, current, yours)
    shared = set(theirs) & set(ours)
    if not any(may_touch(base, one, other) for one in theirs for other in ours if {one, other} - shared):
        together: set[Hunk] = {*theirs, *ours}
        assert merged == MergeResult(apply_hunks(base, sorted(together, key=lambda hunk: hunk.span.start)))
    elif isinstance(merged, Conflicts):
        assert merged.places


@given(TEXTS, TEXTS, TEXTS)
@settings(max_examples=examples(1000))
def test_merging_in_either_order_gives_the_same(base: str, current: str, yours: str) -> None:
    one, other = merge(base, current, yours), merge(base, yours, current)
    if isinstance(one, Conflicts) and isinstance(other, Conflicts):
        swapped = [Conflict(each.start, each.base, each.yours, each.current) for each in other.places]
        assert list(one.places) == swapped
    else:
        assert one == other


@given(TEXTS, TEXTS)
@settings(max_examples=examples(500))
def test_a_side_that_changed_nothing_or_the_same_adds_nothing(base: str, changed: str) -> None:
    assert (
        merge(base, changed, base)
        == merge(base, base, changed)
        == merge(base, changed, changed)
        == MergeResult(changed)
    )


@given(TEXTS, TEXTS, TEXTS)
@settings(max_examples=examples(500))
def test_conflicts_say_what_each_text_says_there_in_order(base: str, current: str, yours: str) -> None:
    merged = merge(base, current, yours)
    at = -1
    for place in merged.places if isinstance(merged, Conflicts) else ():
        assert place.start > at
        at = place.start + len(place.base)
        assert base[place.start : at] == place.base
        assert place.current in current
        assert place.yours in yours
        assert len({place.base, place.current, place.yours}) == 3


@given(st.randoms(use_true_random=False), st.sampled_from([" ", "\n", ". ", "\r\n"]), st.integers(2, 40))
@settings(max_examples=examples(300))
def test_of_words_that_each_of_two_people_changes_all_arrive(dice: random.Random, end: str, count: int) -> None:
    """A word in between is left alone, so that no two changes touch."""
    base, current, yours, both = [], [], [], []
    for number in range(count):
        new = dice.choice([f"new{number}", f"new{number}{end}more{number}", ""])
        changed = [dice.choice([f"w{number}", new]) if number % 2 else f"w{number}"] * 2
        if dice.random() < 0.5:
            changed[0] = f"w{number}"
        else:
            changed[1] = f"w{number}"
        base.append(f"w{number}")
        current.append(changed[0])
        yours.append(changed[1])
        both.append(changed[0] if changed[1] == f"w{number}" else changed[1])
    assert merge(*(end.join(words) for words in (base, current, yours))) == MergeResult(end.join(both))


@pytest.mark.parametrize("end", [".\n", ", ", " "])
def test_small_changes_of_two_megabytes(end: str) -> None:
    base = "".join(f"Sentence {number} of a long text{end}" for number in range(70_000))
    current = base.replace("Sentence 7 ", "Sentence seven ").replace("Sentence 69999 ", "")
    yours = base.replace("Sentence 400 ", "My ").replace("Sentence 35000 ", "Sentence 35000 and a half ")
    both = current.replace("Sentence 400 ", "My ").replace("Sentence 35000 ", "Sentence 35000 and a half ")
    assert merge(base, current, yours) == MergeResult(both)
