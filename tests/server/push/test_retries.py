"""When what was not accepted is tried again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from a2a_canvas.server.push.retries import MAX_ATTEMPTS, DeliveryAccepted, DeliveryFailed, delay_after, outcome_of

FAILED = DeliveryFailed("it failed")


def seconds(failed: int, chance: float = 1.0, outcome: DeliveryFailed = FAILED) -> float:
    delay = delay_after(failed, outcome, chance)
    assert delay is not None
    return delay.total_seconds()


def test_the_delay_doubles_up_to_an_hour() -> None:
    assert [seconds(failed) for failed in range(1, 14)] == [*(2.0**n for n in range(12)), 3600.0]


def test_chance_takes_up_to_a_half_of_it() -> None:
    assert [seconds(4, chance) for chance in (0.0, 0.5, 1.0)] == [4.0, 6.0, 8.0]


def test_it_ends_after_about_nine_hours() -> None:
    assert delay_after(MAX_ATTEMPTS, FAILED, 1.0) is None
    longest = sum(seconds(failed) for failed in range(1, MAX_ATTEMPTS))
    assert timedelta(hours=8) < timedelta(seconds=longest) < timedelta(hours=10)


def test_a_receiver_that_is_gone_is_not_tried_again() -> None:
    outcome = outcome_of(410, "")
    assert isinstance(outcome, DeliveryFailed)
    assert delay_after(1, outcome, 1.0) is None


def test_a_receiver_may_ask_for_a_pause_of_up_to_an_hour() -> None:
    for said, expected in (
        ("30", 30.0),
        ("0", 1.0),
        ("99999999", 3600.0),
        ("Wed, 21 Oct", 1.0),
        ("-5", 1.0),
        ("9" * 99, 1.0),
    ):
        outcome = outcome_of(503, said)
        assert isinstance(outcome, DeliveryFailed)
        assert seconds(1, outcome=outcome) == expected


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_2xx_is_accepted(status: int) -> None:
    assert outcome_of(status, "") == DeliveryAccepted()


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 429, 500, 503])
def test_nothing_else_is(status: int) -> None:
    assert outcome_of(status, "") == DeliveryFailed(f"the receiver answered {status}")
