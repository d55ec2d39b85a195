"""The first call is made at once, those that follow it as one, and none is lost."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.backend.spaced_call import SpacedCall
from tests.server.tasks.presence.timers import FakeTimers

INTERVAL = 1.0


@given(st.lists(st.floats(0, 2)))
def test_calls_are_made_once_in_an_interval_and_each_soon_after_it_was_asked_for(pauses: list[float]) -> None:
    timers, made, asked = FakeTimers(), list[float](), list[float]()
    call = SpacedCall(lambda: made.append(timers.now), INTERVAL, timers.call_later)
    for pause in pauses:
        asked.append(timers.now)
        call()
        timers.move(pause)
    timers.move(3 * INTERVAL)
    assert made[:1] == asked[:1]
    assert all(later - earlier >= 0.99 * INTERVAL for earlier, later in pairwise(made))
    assert all(any(0 <= at - when <= 1.01 * INTERVAL for at in made) for when in asked)
    assert timers.waiting == 0
