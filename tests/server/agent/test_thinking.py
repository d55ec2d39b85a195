"""Thinking: only the newest piece goes on, nothing is dropped, nothing doubled."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.answer import ThinkingDeltas

PIECES = st.lists(st.text("ab ", max_size=4))


def fed(thinking: ThinkingDeltas, contents: list[str]) -> list[str]:
    thinking.begin_block()
    return [thinking.feed(content) for content in contents]


def test_deltas_go_on_as_they_are() -> None:
    assert fed(ThinkingDeltas("delta"), ["ha", "ha"]) == ["ha", "ha"]


def test_accumulated_content_loses_what_was_said_before() -> None:
    assert fed(ThinkingDeltas("accumulated"), ["A", "AB", "ABC"]) == ["A", "B", "C"]


def test_accumulated_content_that_is_repeated_gives_nothing() -> None:
    assert fed(ThinkingDeltas("accumulated"), ["A", "A", "AB"]) == ["A", "", "B"]


def test_accumulated_content_that_begins_otherwise_goes_on_whole() -> None:
    assert fed(ThinkingDeltas("accumulated"), ["AB", "XY", "XYZ"]) == ["AB", "XY", "Z"]


def test_content_shorter_than_the_previous_goes_on_whole() -> None:
    assert fed(ThinkingDeltas("accumulated"), ["AB", "A", "AC"]) == ["AB", "A", "C"]


def test_empty_content_does_not_make_the_next_be_said_twice() -> None:
    assert fed(ThinkingDeltas("accumulated"), ["", "A", "", "AB"]) == ["", "A", "", "B"]


def test_a_new_block_forgets_the_last_one() -> None:
    thinking = ThinkingDeltas("accumulated")
    assert fed(thinking, ["A", "AB"]) == ["A", "B"]
    assert fed(thinking, ["AB", "ABC"]) == ["AB", "C"]


@given(st.lists(PIECES))
def test_deltas_are_neither_dropped_nor_doubled(blocks: list[list[str]]) -> None:
    thinking = ThinkingDeltas("delta")
    for pieces in blocks:
        assert fed(thinking, pieces) == pieces


@given(st.lists(PIECES))
def test_what_was_accumulated_is_neither_dropped_nor_doubled(blocks: list[list[str]]) -> None:
    thinking = ThinkingDeltas("accumulated")
    for pieces in blocks:
        assert fed(thinking, list(accumulate(pieces))) == pieces


@given(st.lists(st.text("ab", min_size=1, max_size=4)))
def test_each_accumulated_content_can_be_rebuilt_from_its_piece_and_the_previous(contents: list[str]) -> None:
    previous = ""
    for content, piece in zip(contents, fed(ThinkingDeltas("accumulated"), contents), strict=True):
        assert piece == content or (previous and content == previous + piece)
        assert piece != content or not (previous and content.startswith(previous))
        previous = content
