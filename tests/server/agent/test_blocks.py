"""The block index allocator: our indices are one sequence, whatever a provider counts."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.blocks import BlockError, Blocks

STEPS = st.tuples(st.sampled_from(["start", "delta", "stop"]), st.integers(0, 3))
CALLS = st.lists(st.lists(STEPS, max_size=20))


def start_all(blocks: Blocks, numbers: list[int]) -> tuple[Blocks, list[int]]:
    indices = []
    for number in numbers:
        blocks, index = blocks.start(number)
        indices.append(index)
    return blocks, indices


def test_the_example_of_the_design() -> None:
    blocks, thinking = Blocks().start(0)
    blocks, _ = blocks.stop(0)
    blocks, tool = blocks.start(1)
    blocks, stopped = blocks.stop(1)
    assert stopped == tool
    blocks, text = blocks.start(0)
    assert (thinking, tool, text) == (0, 1, 2)
    assert blocks.index_of(0) == 2


def test_the_example_over_two_calls() -> None:
    blocks, first = start_all(Blocks(), [0, 1])
    blocks, second = start_all(blocks.next_call(), [0])
    assert (first, second) == ([0, 1], [2])
    assert blocks.index_of(0) == 2


def test_gaps_in_the_providers_numbers_leave_none_in_ours() -> None:
    assert start_all(Blocks(), [7, 3, 100])[1] == [0, 1, 2]


def test_a_number_reused_while_its_block_is_open_means_the_newer_block() -> None:
    blocks, _ = start_all(Blocks(), [0, 0])
    assert blocks.index_of(0) == 1
    blocks, index = blocks.stop(0)
    assert index == 1
    assert blocks.index_of(0) == 0


def test_interleaved_blocks_keep_their_own_indices() -> None:
    blocks, _ = start_all(Blocks(), [0, 1])
    assert (blocks.index_of(0), blocks.index_of(1)) == (0, 1)
    blocks, index = blocks.stop(0)
    assert (index, blocks.index_of(1)) == (0, 1)


def test_a_delta_for_a_block_that_never_started_is_an_error_that_names_it() -> None:
    with pytest.raises(BlockError, match="block 4 never started") as raised:
        Blocks().index_of(4)
    assert (raised.value.llm_index, raised.value.what) == (4, "never started")


def test_a_stop_for_a_block_that_never_started_is_an_error_that_names_it() -> None:
    with pytest.raises(BlockError, match="block 4 never started"):
        Blocks().stop(4)


@pytest.mark.parametrize("again", [Blocks.index_of, Blocks.stop])
def test_a_stopped_block_takes_nothing_more(again) -> None:
    blocks, _ = Blocks().start(2)
    blocks, _ = blocks.stop(2)
    with pytest.raises(BlockError, match="block 2 has already stopped"):
        again(blocks, 2)


def test_a_new_call_does_not_know_the_blocks_of_the_last() -> None:
    blocks, _ = Blocks().start(0)
    with pytest.raises(BlockError, match="block 0 never started"):
        blocks.next_call().index_of(0)


def test_it_is_a_value() -> None:
    blocks = Blocks()
    blocks.start(0)
    assert blocks == Blocks()
    with pytest.raises(FrozenInstanceError):
        blocks.count = 3  # type: ignore[misc]


@given(st.integers(0, 30))
def test_while_a_provider_counts_from_zero_its_numbers_are_ours(count: int) -> None:
    assert start_all(Blocks(), list(range(count)))[1] == list(range(count))


@given(CALLS)
def test_over_any_calls_indices_are_one_sequence_and_deltas_find_their_block(calls) -> None:
    blocks, taken = Blocks(), []
    for call in calls:
        blocks = blocks.next_call()
        open_: dict[int, list[int]] = {}  # number -> its open blocks, newest last
        for what, number in call:
            mine = open_.setdefault(number, [])
            if what == "start":
                blocks, index = blocks.start(number)
                taken.append(index)
                mine.append(index)
            elif not mine:
                with pytest.raises(BlockError) as raised:
                    blocks.index_of(number) if what == "delta" else blocks.stop(number)
                assert raised.value.llm_index == number
            elif what == "delta":
                assert blocks.index_of(number) == mine[-1]
            else:
                blocks, index = blocks.stop(number)
                assert index == mine.pop()
    assert taken == list(range(len(taken)))
