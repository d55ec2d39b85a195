"""The presentation phases: a table, and what it promises for any sequence of signals."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.phases import TABLE, Phase, PhaseError, Signal, advance


def walk(signals: list[Signal]) -> tuple[list[Phase], list[int]]:
    """The phases passed, and at which signals `final_message_start` was due."""
    phase, phases, due = Phase.WORKING, [], []
    for place, signal in enumerate(signals):
        phase, now = advance(phase, signal)
        phases.append(phase)
        due += [place] if now else []
    return phases, due


def test_the_table_is_total_but_for_completed() -> None:
    assert set(TABLE) == set(product(set(Phase) - {Phase.COMPLETED}, Signal))


def test_every_phase_can_be_reached() -> None:
    assert {phase for phase, _ in TABLE.values()} | {Phase.WORKING} == set(Phase)


def test_thinking_then_text_then_the_end() -> None:
    phases, due = walk([Signal.THINKING, Signal.THINKING, Signal.TEXT, Signal.TEXT, Signal.END])
    assert phases == [Phase.THINKING, Phase.THINKING, Phase.ASSISTANT, Phase.ASSISTANT, Phase.COMPLETED]
    assert due == [2]


def test_a_turn_without_thinking_starts_its_message_at_once() -> None:
    assert walk([Signal.TEXT, Signal.END]) == ([Phase.ASSISTANT, Phase.COMPLETED], [0])


def test_thinking_after_text_does_not_start_the_message_again() -> None:
    phases, due = walk([Signal.TEXT, Signal.THINKING, Signal.THINKING, Signal.TEXT])
    assert phases == [Phase.ASSISTANT, Phase.RETHINKING, Phase.RETHINKING, Phase.ASSISTANT]
    assert due == [0]


def test_a_turn_without_text_starts_no_message() -> None:
    assert walk([Signal.THINKING, Signal.END]) == ([Phase.THINKING, Phase.COMPLETED], [])


@pytest.mark.parametrize("signal", list(Signal))
def test_after_the_end_a_signal_is_an_error_that_names_it(signal: Signal) -> None:
    with pytest.raises(PhaseError, match=f"^Signal '{signal.value}' after the turn has ended") as raised:
        advance(Phase.COMPLETED, signal)
    assert (raised.value.phase, raised.value.signal) == (Phase.COMPLETED, signal)


@given(st.lists(st.sampled_from([Signal.THINKING, Signal.TEXT])), st.booleans())
def test_the_message_starts_once_and_before_the_first_text(signals: list[Signal], ended: bool) -> None:
    phases, due = walk([*signals, Signal.END] if ended else signals)
    assert due == ([signals.index(Signal.TEXT)] if Signal.TEXT in signals else [])
    assert (Phase.COMPLETED in phases) == ended


@given(st.lists(st.sampled_from([Signal.THINKING, Signal.TEXT])))
def test_what_is_shown_is_what_was_signalled_last(signals: list[Signal]) -> None:
    phases, _ = walk(signals)
    for signal, phase in zip(signals, phases, strict=True):
        thinking = phase in (Phase.THINKING, Phase.RETHINKING)
        assert (thinking, phase is Phase.ASSISTANT) == (signal is Signal.THINKING, signal is Signal.TEXT)
