"""The metrics that a server has: their names, and that their labels stay few."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

from prometheus_client import generate_latest

from a2a_canvas.server.metrics import (
    MAX_SERIES,
    NAMESPACE,
    OTHER,
    CollectedMetrics,
    Counter,
    Metrics,
    families_of,
    only_counted,
    sum_families,
)
from tests.metric_values import all_series, values

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_labels_beyond_the_limit_are_counted_together() -> None:
    counter = Counter("things_total", "Things.", ["kind", "outcome"], registry=None)
    for number in range(MAX_SERIES + 50):
        counter.labels(str(number), "done").inc()
    counter.labels("0", "done").inc()
    found = values(counter)
    assert len(found) == MAX_SERIES + 1
    assert (found["0", "done"], found[OTHER, OTHER]) == (2, 50)


def test_the_delay_of_an_entry_is_measured_by_the_clock_of_the_entries_and_never_below_zero() -> None:
    metrics = Metrics(lambda: NOW)
    for seconds in (2, -1):
        metrics.record_sent(NOW - timedelta(seconds=seconds))
    assert values(metrics.entry_delay) == {(): 2}
    assert metrics.registry.get_sample_value("a2a_canvas_entry_delay_seconds_sum") == 2.0


def test_names_say_the_unit_and_what_only_grows() -> None:
    for series in all_series(Metrics()):
        assert re.fullmatch(rf"{NAMESPACE}(_[a-z]+)+", series.name)
        assert (series.kind == "counter") == series.name.endswith("_total")
        assert series.kind != "histogram" or series.name.endswith("_seconds")
        assert series.about.endswith(".")


def test_no_label_can_name_a_user_a_task_or_a_text() -> None:
    labels = {label for series in all_series(Metrics()) for label in series.labels}
    assert labels == {
        *("state", "binding", "stop_reason", "direction", "provider", "kind", "tool", "outcome", "reason", "source")
    }


def test_the_metrics_of_workers_are_added_except_for_what_is_the_same_in_all() -> None:
    one, other = Metrics(), Metrics()
    for metrics, number in ((one, 1), (other, 2)):
        metrics.turns.labels("completed").inc(number)
        metrics.turns_running.set(number)
        metrics.kept_bytes.set(number)
        metrics.broker_connected.set(1)
        metrics.commits.observe(0.002)
    other.turns.labels("failed").inc()
    ended = only_counted(families_of(one.registry))
    both = sum_families([families_of(one.registry), families_of(other.registry), ended])
    shown = generate_latest(CollectedMetrics(json.loads(json.dumps(both)))).decode()
    for line in (
        'turns_total{state="completed"} 4.0',
        'turns_total{state="failed"} 1.0',
        "turns_running 3.0",
        "kept_bytes 2.0",
        "broker_connected 1.0",
        'commit_seconds_bucket{le="0.001"} 0.0',
        'commit_seconds_bucket{le="0.0025"} 3.0',
        "commit_seconds_count 3.0",
        f'info{{version="{version("a2a-canvas")}"}} 1.0',
    ):
        assert f"\n{NAMESPACE}_{line}\n" in shown
    families = families_of(one.registry)  # read once: the seconds of CPU go on
    assert families == sum_families([families])
