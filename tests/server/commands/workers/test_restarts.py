"""When a worker that has ended is started again."""

from __future__ import annotations

import pytest

from a2a_canvas.server.commands.workers.restarts import (
    LONGEST_SECONDS,
    REFUSED,
    STEADY_SECONDS,
    Death,
    deaths_in_a_row,
    delay_after,
    is_final,
)


def test_the_delay_doubles_with_each_death_in_a_row_up_to_half_a_minute() -> None:
    assert [delay_after(deaths) for deaths in (1, 2, 3, 4)] == [0.5, 1, 2, 4]
    assert delay_after(10**6) == LONGEST_SECONDS


def test_a_worker_that_was_stopped_in_order_comes_back_at_once() -> None:
    assert delay_after(deaths_in_a_row(2, Death(0))) == 0


@pytest.mark.parametrize(("served_for", "deaths"), [(None, 3), (STEADY_SECONDS - 1, 3), (STEADY_SECONDS, 1)])
def test_a_worker_that_has_served_for_a_minute_does_not_die_in_a_row(served_for: float | None, deaths: int) -> None:
    assert deaths_in_a_row(2, Death(-9, served_for)) == deaths


@pytest.mark.parametrize(
    ("deaths", "code", "served", "final"),
    [(1, 1, False, False), (3, 1, False, True), (3, -9, False, True), (1, REFUSED, False, True), (3, 1, True, False)],
)
def test_three_deaths_or_one_refusal_at_the_start_are_final(deaths: int, code: int, served: bool, final: bool) -> None:
    assert is_final(deaths, Death(code), served=served) is final


@pytest.mark.parametrize(
    ("death", "said"),
    [
        (Death(-9, None, "a line"), "was killed by SIGKILL"),
        (Death(-99), "was killed by signal 99"),
        (Death(3, None, "no room"), "ended with exit code 3 (no room)"),
        (Death(3), "ended with exit code 3"),
    ],
)
def test_a_death_says_how_and_with_which_last_words(death: Death, said: str) -> None:
    assert str(death) == said
