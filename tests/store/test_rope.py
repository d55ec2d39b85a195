"""A rope is a `str` that is cheap to append to: rule 1 (it never changes) and rule 2 (an append costs the append)."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.rope import Rope

STEPS = st.lists(
    st.tuples(
        st.integers(0, 1000),
        st.one_of(
            st.text(max_size=4).map(lambda text: ("append", text)),
            st.integers(0, 1000).map(lambda index: ("join", index)),
            st.sampled_from([("read", ""), ("compact", "")]),
        ),
    ),
    max_size=40,
)


@given(st.text(max_size=3), STEPS)
def test_ropes_equal_strings_under_any_appends_branches_joins_and_reads(
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
