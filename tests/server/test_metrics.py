"""The counters that nobody needs Prometheus for: what they add up, and that their labels stay few."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from a2a_canvas.server.metrics import MAX_SERIES, OTHER, PREFIX, CountSeries, DurationSeries, GaugeSeries, Metrics

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_is_counted_adds_up_by_label() -> None:
    series = CountSeries("things_total", "Things.", "kind")
    for kind in ("a", "b", "a"):
        series.add(kind)
    series.add("a", amount=3)
    assert series.values == {("a",): 5, ("b",): 1}


def test_a_series_without_labels_begins_at_zero() -> None:
    assert GaugeSeries("things", "Things.").values == {(): 0}


def test_labels_beyond_the_limit_are_counted_together() -> None:
    series = CountSeries("things_total", "Things.", "kind", "outcome")
    for number in range(MAX_SERIES + 50):
        series.add(str(number), "done")
    series.add("0", "done")
    assert len(series.values) == MAX_SERIES + 1
    assert (series.values["0", "done"], series.values[OTHER, OTHER]) == (2, 50)


def test_durations_are_counted_up_to_each_bound() -> None:
    series = DurationSeries("wait_seconds", "Waits.", (0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0, -0.2):
        series.add(seconds)
    assert series.cumulative == [(0.1, 3), (1.0, 4), (float("inf"), 5)]
    assert (series.count, round(series.total, 2)) == (5, 7.65)


def test_the_delay_of_an_entry_is_measured_by_the_clock_of_the_entries() -> None:
    metrics = Metrics(lambda: NOW)
    metrics.sent(NOW - timedelta(seconds=2))
    assert (metrics.entry_delay.count, metrics.entry_delay.total) == (1, 2.0)


def test_names_say_the_unit_and_what_only_grows() -> None:
    for series in Metrics().all:
        assert re.fullmatch(rf"{PREFIX}[a-z]+(_[a-z]+)*", series.name)
        assert isinstance(series, CountSeries) == series.name.endswith("_total")
        assert not isinstance(series, DurationSeries) or series.name.endswith("_seconds")
        assert series.about.endswith(".")


def test_no_label_can_name_a_user_a_task_or_a_text() -> None:
    labels = {label for series in Metrics().all for label in series.labels}
    assert labels == {"state", "binding", "stop_reason", "direction", "provider", "kind", "tool", "outcome", "reason"}
