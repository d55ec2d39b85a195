"""How many wrong credentials an address may try."""

from __future__ import annotations

import pytest

from a2a_canvas.server.protocols.edge.origins import Origin
from a2a_canvas.server.protocols.identity import attempts
from a2a_canvas.server.protocols.identity.attempts import (
    BURST,
    LOG_SECONDS,
    PROXY_FACTOR,
    SECONDS_PER_ATTEMPT,
    FailedAttempts,
    network_of,
)

HERE, ELSEWHERE = Origin("192.0.2.1"), Origin("198.51.100.1")


class Attempts(FailedAttempts):
    """With a clock that the test moves."""

    def __init__(self, workers: int = 1) -> None:
        self.now = 0.0
        super().__init__(lambda: self.now, workers)

    def fail(self, count: int, origin: Origin = HERE) -> list[int]:
        waits = []
        for number in range(count):
            waits.append(self.begin(origin, f"wrong {number}"))
            self.record_failure(origin, f"wrong {number}")
        return waits


def test_some_may_fail_at_once_and_then_one_has_to_wait() -> None:
    tried = Attempts()
    assert tried.fail(BURST) == [0] * BURST
    assert tried.fail(2) == [SECONDS_PER_ATTEMPT] * 2


def test_the_log_names_an_address_that_is_slowed_down_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    tried = Attempts()
    tried.fail(BURST)
    assert not caplog.messages
    tried.fail(100)
    line = "Wrong credentials come from 192.0.2.1: its attempts are slowed down"
    assert caplog.messages == [line]
    tried.now += LOG_SECONDS
    tried.fail(100)
    assert caplog.messages == [line, line]


def test_after_the_wait_one_more_may_fail() -> None:
    tried = Attempts()
    tried.fail(BURST)
    tried.now += tried.fail(1)[0]
    assert tried.fail(2) == [0, SECONDS_PER_ATTEMPT]


def test_another_address_does_not_wait() -> None:
    tried = Attempts()
    tried.fail(BURST + 1)
    assert tried.begin(ELSEWHERE, "wrong") == 0


def test_what_was_right_is_no_attempt_and_passes_while_others_of_its_address_wait() -> None:
    tried = Attempts()
    for _ in range(BURST * 2):
        assert tried.begin(HERE, "right") == 0
        tried.record_success(HERE, "right")
    tried.fail(BURST)
    assert tried.fail(1) == [SECONDS_PER_ATTEMPT]
    assert tried.begin(HERE, "right") == 0


def test_what_was_right_at_one_address_is_an_attempt_at_another() -> None:
    tried = Attempts()
    tried.begin(HERE, "right")
    tried.record_success(HERE, "right")
    tried.fail(BURST, ELSEWHERE)
    assert tried.begin(ELSEWHERE, "right") == SECONDS_PER_ATTEMPT


def made_up(number: int) -> Origin:
    return Origin(f"192.0.2.{number}", "127.0.0.1")


def test_who_chooses_an_address_for_each_attempt_is_slowed_down_at_the_connection() -> None:
    tried = Attempts()
    limit = BURST * PROXY_FACTOR
    assert [tried.begin(made_up(number), "wrong") for number in range(limit)] == [0] * limit
    assert tried.begin(made_up(limit), "wrong") == 1
    tried.now += 1
    assert [tried.begin(made_up(limit), "wrong") for _ in range(2)] == [0, 1]


def test_what_is_right_counts_for_the_proxy_as_little_as_for_the_address() -> None:
    tried = Attempts()
    for number in range(BURST * PROXY_FACTOR + 1):
        assert tried.begin(made_up(number), "right") == 0
        tried.record_success(made_up(number), "right")


def test_what_is_not_right_any_more_counts_again() -> None:
    tried = Attempts()
    tried.begin(HERE, "right")
    tried.record_success(HERE, "right")
    tried.record_failure(HERE, "right")
    tried.fail(BURST)
    assert tried.begin(HERE, "right") == SECONDS_PER_ATTEMPT


def test_many_at_once_are_no_way_around() -> None:
    tried = Attempts()
    assert [tried.begin(HERE, str(number)) for number in range(BURST + 1)] == [0] * BURST + [SECONDS_PER_ATTEMPT]


def test_it_remembers_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MAX_REMEMBERED", 3)
    tried = Attempts()
    for number in range(10):
        tried.begin(Origin(f"192.0.2.{number}"), "wrong")
        tried.record_success(HERE, str(number))
    assert len(tried._allowances) == len(tried._known) == 3


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:0db8:0000:0000::/64"),
        ("2001:db8::2:1", "2001:0db8:0000:0000::/64"),
        ("fe80::1%eth0", "fe80:0000:0000:0000::/64"),
        ("unix:", "unix:"),
        ("", ""),
    ],
)
def test_one_network_counts_as_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize("settle", ["record_success", "cancel"])
def test_what_does_not_count_gives_back_its_own_attempt_and_no_other(settle: str) -> None:
    tried = Attempts()
    tried.fail(BURST - 1)
    assert tried.begin(HERE, "right") == 0
    getattr(tried, settle)(HERE, "right")
    assert tried.fail(2) == [0, SECONDS_PER_ATTEMPT]


def test_an_address_never_has_more_attempts_than_at_first() -> None:
    tried = Attempts()
    tried.cancel(HERE, "unchecked")
    assert tried.fail(BURST + 1) == [*[0] * BURST, SECONDS_PER_ATTEMPT]


def test_each_of_several_workers_allows_its_part_and_at_least_one() -> None:
    for workers, most in ((4, 5), (3, 7), (1000, 1)):
        tried = Attempts(workers)
        assert tried.fail(most) == [0] * most
        assert tried.fail(1) == [SECONDS_PER_ATTEMPT * workers]
        assert tried.fail(1, ELSEWHERE) == [0]
