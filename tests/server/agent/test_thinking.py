"""Thinking: only the newest piece goes on, nothing is dropped, nothing doubled."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.answer import ThinkingDeltas

PIECES = st.lists(st.text("ab ", max_size=4))


def fed(thinking: ThinkingDeltas, contents: list[str]) -> list[str]:
    thinking.begin_block()
    return [thinking.feed(content) for content in contents]


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        pytest.param(["A", "AB", "ABC"], ["A", "B", "C"], id="what was said before is left out"),
        pytest.param(["A", "A", "AB"], ["A", "", "B"], id="a repetition gives nothing"),
        pytest.param(["AB", "XY", "XYZ"], ["AB", "XY", "Z"], id="another beginning is passed on whole"),
        pytest.param(["AB", "A", "AC"], ["AB", "A", "C"], id="shorter content is passed on whole"),
        pytest.param(["", "A", "", "AB"], ["", "A", "", "B"], id="empty content repeats nothing"),
    ],
)
def test_accumulated_content_becomes_deltas(contents: list[str], told: list[str]) -> None:
    assert fed(ThinkingDeltas("accumulated"), contents) == told


def test_deltas_are_passed_on_as_they_are() -> None:
    assert fed(ThinkingDeltas("delta"), ["ha", "ha"]) == ["ha", "ha"]


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
