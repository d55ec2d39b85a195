"""What follows from the end of a model call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.blocks import BlockError
from a2a_canvas.server.agent.endings import MAX_ATTEMPTS, MAX_RETRY_DELAY, retry_delay
from a2a_canvas.server.agent.model import ModelError

BROKEN = ModelError("broken", retryable=True)


@pytest.mark.parametrize("error", [BROKEN, BlockError(1, "never started")])
@pytest.mark.parametrize(("attempts_left", "about"), [(2, 0.5), (1, 2.0)])
def test_the_model_is_asked_again_after_about_half_a_second_and_then_two(error, attempts_left, about) -> None:
    pauses = [retry_delay(attempts_left, error, jitter) for jitter in (0, 0.5, 1)]
    assert pauses == [about * 0.75, about, about * 1.25]


@pytest.mark.parametrize(("asked_for", "pause"), [(7, 7), (0.1, 0.5), (0, 0.5), (3600, MAX_RETRY_DELAY)])
def test_a_provider_may_ask_for_longer_within_bounds(asked_for, pause) -> None:
    assert retry_delay(2, ModelError("busy", retryable=True, retry_after=asked_for), 0.5) == pause


@given(st.integers(1, MAX_ATTEMPTS - 1), st.none() | st.floats(), st.floats(0, 1))
def test_no_pause_is_too_short_or_too_long(attempts_left, retry_after, jitter) -> None:
    pause = retry_delay(attempts_left, ModelError("busy", retryable=True, retry_after=retry_after), jitter)
    assert 0.3 < pause <= MAX_RETRY_DELAY
