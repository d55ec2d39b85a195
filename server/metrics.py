"""What a server counts and measures of itself. Imports nothing of the server, and nothing that knows a form of it.

Rule 1: counting costs an addition. It happens once for an entry, a commit, a call or a request, never for a character.
Rule 2: labels have few values, which this server or its operator has chosen: no names of users, no ids, no texts.
Rule 3: the one who counts knows these classes alone; `protocols/edge/prometheus.py` gives them the form that is read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate

PREFIX = "a2a_canvas_"
"""The beginning of the name of every metric."""

MAX_SERIES = 200
"""Values of the labels of one metric; what is beyond is counted under `OTHER`."""
OTHER = "other"

COMMIT_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
DELAY_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
FIRST_BYTE_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 120.0, 300.0)
"""Seconds: the upper bounds of the buckets."""

Labels = tuple[str, ...]


class Series:
    """A metric: a number for each value of its labels.

    Args:
        name: without the prefix, and in Prometheus' form: with the unit, and with `total` for what only grows.
        about: one sentence.
    """

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name = PREFIX + name
        self.about = about
        self.labels = labels
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    @property
    def values(self) -> Mapping[Labels, float]:
        return self._values

    def set(self, value: float, *labels: str) -> None:
        self._values[labels] = value

    def add(self, *labels: str, amount: float = 1) -> None:
        if labels not in self._values:
            labels = self._placed(labels)
        self._values[labels] = self._values.get(labels, 0) + amount

    def _placed(self, labels: Labels) -> Labels:
        return labels if len(self._values) < MAX_SERIES else (OTHER,) * len(labels)


class CountSeries(Series):
    """Counts what only grows."""


class GaugeSeries(Series):
    """What rises and falls."""


class DurationSeries:
    """Durations in seconds, counted in buckets.

    Args:
        bounds: the upper bounds of the buckets; the last bucket has none.
    """

    labels: Labels = ()

    def __init__(self, name: str, about: str, bounds: Sequence[float]) -> None:
        self.name = PREFIX + name
        self.about = about
        self.bounds = bounds
        self.total = 0.0
        self._counts = [0] * (len(bounds) + 1)

    def add(self, seconds: float) -> None:
        """Count a duration; one below zero, which two clocks can make, counts as zero."""
        self._counts[bisect_left(self.bounds, seconds)] += 1
        self.total += max(seconds, 0.0)

    @property
    def count(self) -> int:
        return sum(self._counts)

    @property
    def cumulative(self) -> Sequence[tuple[float, int]]:
        """How many durations were at most so long, for each bound and for infinity."""
        return [*zip((*self.bounds, float("inf")), accumulate(self._counts), strict=True)]


AnySeries = CountSeries | GaugeSeries | DurationSeries


class Metrics:
    """All metrics of one server.

    Args:
        now: the clock of the entries.

    Attributes:
        refreshers: called before the metrics are read, to set what nobody counts.
    """

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self.refreshers: list[Callable[[], Awaitable[None]]] = []
        self.turns_running = GaugeSeries("turns_running", "Turns running on this server.")
        self.turns_waiting = GaugeSeries("turns_waiting", "Turns in the queue of this server.")
        self.turns = CountSeries(
            "turns_total", "Turns that have ended or wait for the user, by the state of their task.", "state"
        )
        self.first_byte = DurationSeries(
            "first_artifact_byte_seconds",
            "Time from a message to the first byte of an artifact, including the queue.",
            FIRST_BYTE_BOUNDS,
        )
        self.entry_delay = DurationSeries(
            "entry_delay_seconds",
            "Time from appending an entry to sending it to a stream; of entries sent together, that of the oldest.",
            DELAY_BOUNDS,
        )
        self.open_streams = GaugeSeries("open_streams", "Open streams.", "binding")
        self.commits = DurationSeries("commit_seconds", "Duration of committed transactions.", COMMIT_BOUNDS)
        self.commit_failures = CountSeries(
            "commit_failures_total", "Failed transactions, which are retried if that can help."
        )
        self.written_bytes = CountSeries("written_bytes_total", "Compressed size of the tasks and artifacts written.")
        self.kept_bytes = GaugeSeries("kept_bytes", "Size of all users' stored data, as the storage quotas count it.")
        self.model_calls = CountSeries("model_calls_total", "Model calls, by stop reason.", "stop_reason")
        self.tokens = CountSeries(
            "model_tokens_total",
            "Tokens as the provider counts them: of requests (in, including cached) and answers (out).",
            "direction",
        )
        self.model_errors = CountSeries("model_errors_total", "Failed model calls.", "provider", "kind")
        self.tool_calls = CountSeries(
            "tool_calls_total",
            "Tool calls. Unknown tools are counted as `other`.",
            "tool",
            "outcome",
        )
        self.lease_renewals = CountSeries(
            "lease_renewals_total",
            "Renewals of the lease on PostgreSQL: `renewed`, `lost` or (the database) `unavailable`.",
            "outcome",
        )
        self.outbox_depth = GaugeSeries("outbox_notifications", "Pending push notifications.")
        self.outbox_age = GaugeSeries(
            "outbox_oldest_seconds", "Age of the oldest pending push notification; 0 if there is none."
        )
        self.push_attempts = CountSeries(
            "push_attempts_total",
            "Attempts to send push notifications: `accepted`, `failed` or `given_up`.",
            "outcome",
        )
        self.refused = CountSeries(
            "requests_refused_total",
            "Requests answered with an error, by the name of the HTTP status.",
            "binding",
            "reason",
        )

    def sent(self, at: datetime) -> None:
        """An entry that was appended at this time has been sent to a stream."""
        self.entry_delay.add((self._now() - at).total_seconds())

    @property
    def all(self) -> Sequence[AnySeries]:
        return [each for each in vars(self).values() if isinstance(each, CountSeries | GaugeSeries | DurationSeries)]
