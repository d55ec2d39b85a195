"""A rope is a `str` that is cheap to append to and to edit: rule 1 (it never changes), rule 2 (an append costs the
append) and rule 3 (of edited ropes only some are whole)."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.store.text.rope import FULL_EVERY, Rope
from a2a_canvas.store.text.spans import Span

STEPS = st.lists(
    st.tuples(
        st.integers(0, 1000),
        st.one_of(
            st.text(max_size=4).map(lambda text: ("append", text)),
            st.integers(0, 1000).map(lambda index: ("join", index)),
            st.tuples(st.integers(0, 1000), st.integers(0, 3), st.text(max_size=3)).map(lambda edit: ("splice", edit)),
            st.sampled_from([("read", ""), ("compact", "")]),
        ),
    ),
    max_size=40,
)


@given(st.text(max_size=3), STEPS)
def test_ropes_equal_strings_under_any_appends_edits_branches_joins_and_reads(
    start: str, steps: list[tuple[int, tuple[str, Any]]]
) -> None:
    ropes, texts = [Rope(start)], [start]
    for at, (step, what) in steps:
        rope, text = ropes[at % len(ropes)], texts[at % len(ropes)]
        match step:
            case "append":
                grown = (rope + Rope(what), text + what)
            case "join":
                grown = (rope + ropes[what % len(ropes)], text + texts[what % len(ropes)])
            case "splice":
                start = what[0] % (len(text) + 1)
                span = Span(start, min(start + what[1], len(text)))
                grown = (rope.splice(span, what[2]), text[: span.start] + what[2] + text[span.end :])
            case "compact":
                grown = (rope.compact(), text)
            case _:
                assert str(rope) == text
                continue
        ropes, texts = [*ropes, grown[0]], [*texts, grown[1]]
        if sum(map(len, texts)) > 10_000:
            break
    assert [str(rope) for rope in ropes] == texts
    assert [len(rope) for rope in ropes] == [len(text) for text in texts]
    assert [rope.size for rope in ropes] == [len(text.encode()) for text in texts]
    for (one, text), (other, another) in pairwise(zip(ropes, texts, strict=True)):
        assert (one == other) == (text == another)


def test_an_older_rope_reads_as_it_did_after_newer_ones_grew_from_it() -> None:
    old = Rope("Hello ")
    one, two = old + Rope("World"), old + Rope("there")
    assert [str(old), str(one), str(two)] == ["Hello ", "Hello World", "Hello there"]


def test_a_rope_can_be_appended_to_itself() -> None:
    twice = Rope("a") + Rope("b")
    assert str(twice + twice) == "abab"


def test_the_length_counts_code_points_and_the_size_bytes() -> None:
    rope = Rope("é") + Rope("😀")
    assert (len(rope), rope.size) == (2, 6)


def test_an_empty_rope_is_false_and_any_other_is_true() -> None:
    assert not Rope()
    assert not Rope("") + Rope("")
    assert Rope() + Rope("x")


def test_ropes_are_equal_and_hash_alike_however_they_were_put_together() -> None:
    whole, joined = Rope("abc"), Rope("a") + Rope("") + Rope("bc")
    assert whole == joined
    assert hash(whole) == hash(joined)
    assert whole != Rope("abd")
    assert whole != "abc"
    assert repr(joined) == "Rope('abc')"


def test_text_that_has_no_bytes_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        Rope("\ud83d")


# --------------------------------------------------------------------------------------- what was appended


@given(st.text(max_size=5), STEPS)
def test_what_a_rope_says_was_appended_makes_it_of_the_older_one(
    start: str, steps: list[tuple[int, tuple[str, Any]]]
) -> None:
    ropes = [Rope(start)]
    for at, (step, what) in steps:
        rope = ropes[at % len(ropes)]
        match step:
            case "append":
                ropes.append(rope + Rope(what))
                assert ropes[-1].since(rope) == what
            case "splice":
                begin = what[0] % (len(rope) + 1)
                ropes.append(rope.splice(Span(begin, min(begin + what[1], len(rope))), what[2]))
            case "compact":
                ropes.append(rope.compact())
            case "read":
                str(rope)
    for newer in ropes[-10:]:
        for older in ropes:
            more = newer.since(older)
            assert more is None or str(older) + more == str(newer)


def test_what_was_appended_since_is_known_however_much_came_between_and_whoever_read_it() -> None:
    first = Rope("begun ")
    second = first + Rope("a")
    third = second + Rope("b")
    str(third)
    fourth = third + Rope("c")
    assert [fourth.since(each) for each in (first, second, third, fourth)] == ["abc", "bc", "c", ""]
    assert third.since(second) == "b"
    assert second.since(third) is None
    assert Rope("begun a").since(first) is None


def test_what_was_appended_is_known_to_whoever_has_the_rope_it_began_with_and_holds_that_no_longer() -> None:
    first = Rope("x" * 1000)
    branch = first.splice(Span(0, 1), "y") + Rope("z")
    grown = first + Rope("a")
    assert (grown.since(first), branch.since(first)) == ("a", None)
    del first
    assert grown.since(Rope("x" * 1000)) is None


def test_finding_what_was_appended_copies_that_alone(allocated: Callable[[], int]) -> None:
    older = grow(PIECES)[-1]
    str(older)
    newer = older + Rope("more")
    str(newer)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    assert newer.since(older) == "more"
    assert tracemalloc.get_traced_memory()[1] - before < len(TEXT) / 10


# ---------------------------------------------------------------------------------------- linear work

PIECES = [f"piece {number:04}, " * 8 for number in range(2000)]
TEXT = "".join(PIECES)
BYTES_OF_A_ROPE = 500
"""More than a rope takes beside its text, and far less than the 96,000 bytes of one that is a copy, on average."""


def grow(pieces: list[str]) -> list[Rope]:
    """The ropes of all lengths, each grown from the one before."""
    return list(accumulate(map(Rope, pieces[1:]), Rope.__add__, initial=Rope(pieces[0])))


@pytest.fixture
def allocated() -> Iterator[Callable[[], int]]:
    """The bytes that are held now and were not when the test began."""
    gc.collect()
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()


def test_appends_to_the_newest_rope_copy_nothing(allocated: Callable[[], int]) -> None:
    ropes = grow(PIECES)
    assert allocated() < BYTES_OF_A_ROPE * len(ropes)
    assert str(ropes[-1]) == TEXT


def test_a_rope_that_was_read_can_grow_without_copies(allocated: Callable[[], int]) -> None:
    newest = grow(PIECES)[-1]
    text = str(newest)
    assert str(newest) is text, "it was joined once more"
    ropes = list(accumulate(map(Rope, PIECES), Rope.__add__, initial=newest))
    assert allocated() < BYTES_OF_A_ROPE * len(ropes) + len(text)
    assert (str(ropes[-1]), str(newest)) == (TEXT * 2, TEXT)


def test_an_append_to_an_older_rope_copies_it_once(allocated: Callable[[], int]) -> None:
    ropes = grow(PIECES)
    before = allocated()
    branches = list(accumulate(map(Rope, PIECES), Rope.__add__, initial=ropes[-2]))
    assert allocated() - before < BYTES_OF_A_ROPE * len(branches) + 3 * len(TEXT)
    assert str(branches[-1]) == "".join(PIECES[:-1]) + TEXT


def test_a_compact_rope_holds_its_own_text_alone(allocated: Callable[[], int]) -> None:
    older = grow(PIECES)[1]
    compact = older.compact()
    assert compact == older
    assert allocated() > len(TEXT)
    del older
    assert allocated() < len(TEXT) / 4
    assert str(compact) == "".join(PIECES[:2])


def test_compact_ropes_that_grew_from_one_another_share_one_text(allocated: Callable[[], int]) -> None:
    rope, versions = Rope(""), []
    for _ in range(100):
        rope = (rope + Rope("x" * 10_000)).compact()
        versions.append(rope)
    assert allocated() < 3_000_000
    assert [len(str(version)) for version in versions[::33]] == [10_000, 340_000, 670_000, 1_000_000]


# ---------------------------------------------------------------------------------------- rule 3

BODY = "".join(f"line {number:05} of a text that is edited\n" for number in range(2500))
"""100,000 characters."""
EDIT = "x" * 100


def edited(count: int, start: Rope | None = None) -> tuple[list[Rope], list[str]]:
    """The ropes that so many edits make one from the other, all over the text, and what they must read."""
    ropes, texts = [start or Rope(BODY)], [BODY]
    for number in range(count):
        at = number * 7919 % (len(BODY) - 100)
        ropes.append(ropes[-1].splice(Span(at, at + 100), EDIT))
        texts.append(texts[-1][:at] + EDIT + texts[-1][at + 100 :])
    return ropes, texts


def held(objects: list[Any]) -> int:
    """Characters of all the text that can be reached from `objects`, each string once."""
    strings: dict[int, str] = {}
    seen: set[int] = set()
    while objects:
        one = objects.pop()
        if isinstance(one, str):
            strings[id(one)] = one
        elif id(one) not in seen and not isinstance(one, type):
            seen.add(id(one))
            objects += gc.get_referents(one)
    return sum(map(len, strings.values()))


def test_every_older_rope_reads_as_it_did_before_the_edits() -> None:
    ropes, texts = edited(3 * FULL_EVERY)
    assert all(str(rope) == text for rope, text in zip(ropes, texts, strict=True))


def test_of_many_edits_only_every_so_manieth_text_is_held_whole() -> None:
    ropes, _ = edited(10 * FULL_EVERY)
    wholes = 10 + 2  # and the newest
    assert held([*ropes]) < wholes * len(BODY) + 2 * len(EDIT) * len(ropes)


def test_reading_an_older_rope_takes_no_more_texts_than_the_bound() -> None:
    """What a rope can reach: the parts it takes back, and one whole text."""
    ropes, _ = edited(3 * FULL_EVERY)
    for rope in ropes:
        assert held([rope]) <= len(BODY) + FULL_EVERY * len(EDIT)


def test_reading_does_not_make_an_older_rope_whole_again() -> None:
    ropes, _ = edited(FULL_EVERY)
    before = held([*ropes])
    assert [len(str(rope)) for rope in ropes] == [len(BODY)] * len(ropes)
    assert held([*ropes]) == before


def test_an_edit_that_takes_most_of_a_text_leaves_the_older_one_whole() -> None:
    first = Rope("-").splice(Span(0, 1), BODY)
    second = first.splice(Span(0, len(BODY) - 1), "short")
    assert (str(first), str(second)) == (BODY, "short\n")
    assert held([second]) == len("short\n")


def test_a_rope_that_grew_piece_by_piece_is_edited_without_its_buffer_being_held() -> None:
    grown = sum((Rope(BODY[at : at + 1000]) for at in range(1000, len(BODY), 1000)), Rope(BODY[:1000])).compact()
    ropes, texts = edited(FULL_EVERY, grown)
    assert [str(rope) for rope in ropes] == texts
    assert held([*ropes]) < 3 * len(BODY) + 2 * len(EDIT) * len(ropes)


def test_branches_from_an_older_rope_do_not_disturb_each_other() -> None:
    ropes, texts = edited(5)
    branches = [rope.splice(Span(0, 4), "head") + Rope("tail") for rope in ropes]
    assert [str(branch) for branch in branches] == ["head" + text[4:] + "tail" for text in texts]
    assert [str(rope) for rope in ropes] == texts
