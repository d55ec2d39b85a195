"""The report of the failover test; `test_scenarios.py` runs its short form."""

from collections import Counter

from bench import failover
from tests.server.faults.failover_harness import Failovers


def test_a_report_misses_its_target_if_anything_is_wrong_or_late_or_nothing_was_tried() -> None:
    good = Failovers(rounds=2, at_work=2, seconds=[1.0, 9.0])
    bad = Failovers(rounds=2, at_work=1, seconds=[11.0], faults=Counter({"old primary": 1}))
    assert all(check.holds for check in failover.report(good, [30, 0]).checks)
    missed = [check.name for check in failover.report(bad, [30, 0]).checks if not check.holds]
    assert missed == ["rounds", "at work", "goes on", "old primary"]
