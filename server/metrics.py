"""What a server counts and measures of itself, as Prometheus' own metrics. Imports nothing of the server.

Rule 1: counting costs an addition. It happens once for an entry, a commit, a call or a request, never for a character.
Rule 2: labels have few values, which this server or its operator has chosen: no names of users, no ids, no texts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version

import prometheus_client
from prometheus_client import CollectorRegistry, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.metrics_core import Metric

NAMESPACE = "a2a_canvas"
"""The beginning of the name of every metric."""

MAX_SERIES = 200
"""Values of the labels of one metric; what is beyond is counted under `OTHER`."""
OTHER = "other"

COMMIT_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
DELAY_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
FIRST_BYTE_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 120.0, 300.0)
"""Seconds: the upper bounds of the buckets."""


class Counter(prometheus_client.Counter):
    """A counter with at most `MAX_SERIES` values of its labels."""

    def labels(self, *values: str) -> Counter:  # type: ignore[override]  # no values by name
        full = len(self._metrics) >= MAX_SERIES and values not in self._metrics
        return super().labels(*((OTHER,) * len(values) if full else values))


class Registry(CollectorRegistry):
    """All metrics of a server, without the times at which each began to count."""

    def collect(self) -> Iterator[Metric]:
        for family in super().collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


Families = list[tuple[str, str, str, list[tuple[str, dict[str, str], float]]]]
"""Metrics as JSON has them: the name, the text and the type of each, and its samples with their labels and values."""

_LARGEST = {
    NAMESPACE,
    *(f"{NAMESPACE}_{name}" for name in ("kept_bytes", "outbox_notifications", "outbox_oldest_seconds")),
}
"""The version, and what each process reads from the database: equal, apart from the moment."""
_SMALLEST = {"process_start_time_seconds", f"{NAMESPACE}_broker_connected"}
"""Since when there is any process, and whether all can use the broker."""


class CollectedMetrics:
    """Metrics that can be encoded like those of a registry."""

    def __init__(self, families: Families) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for name, about, kind, samples in self._families:
            family = Metric(name, about, kind)
            for sample in samples:
                family.add_sample(*sample)
            yield family


def families_of(registry: CollectorRegistry) -> Families:
    """All metrics of a registry."""
    return [
        (each.name, each.documentation, each.type, [(one.name, dict(one.labels), one.value) for one in each.samples])
        for each in registry.collect()
    ]


def only_counted(families: Families) -> Families:
    """Those that only grow, which count on when a process has ended."""
    return [each for each in families if each[2] in ("counter", "histogram")]


def sum_families(several: Iterable[Families]) -> Families:
    """The metrics of several processes as those of one: sums, except for what is the same in all of them."""
    sums: dict[str, tuple[str, str, dict[tuple[str, tuple[tuple[str, str], ...]], float]]] = {}
    for families in several:
        for name, about, kind, samples in families:
            values = sums.setdefault(name, (about, kind, {}))[2]
            for sample, labels, value in samples:
                key = sample, tuple(labels.items())
                values[key] = _join(name, values[key], value) if key in values else value
    return [
        (name, about, kind, [(sample, dict(labels), value) for (sample, labels), value in values.items()])
        for name, (about, kind, values) in sums.items()
    ]


def _join(name: str, one: float, other: float) -> float:
    if name in _LARGEST:
        return max(one, other)
    return min(one, other) if name in _SMALLEST else one + other


class Metrics:
    """All metrics of one server, or of one of its workers.

    Args:
        now: the clock of the entries.

    Attributes:
        refreshers: called before the metrics are read, to set what nobody counts.
        registry: all of them.
        of_all_workers: gives the sums of all workers; None if this is the only process, or the answer if no other
            process answers.
    """

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self.refreshers: list[Callable[[], Awaitable[None]]] = []
        self.of_all_workers: Callable[[], Awaitable[Families | None]] | None = None
        self.registry = Registry()
        ProcessCollector(registry=self.registry)
        about = Info(NAMESPACE, "The version of this server.", registry=self.registry)
        about.info({"version": version("a2a-canvas")})
        gauge = partial(Gauge, namespace=NAMESPACE, registry=self.registry)
        counter = partial(Counter, namespace=NAMESPACE, registry=self.registry)
        histogram = partial(Histogram, namespace=NAMESPACE, registry=self.registry)
        self.turns_running = gauge("turns_running", "Turns running on this server.")
        self.turns_waiting = gauge("turns_waiting", "Turns in the queue of this server.")
        self.turns = counter(
            "turns_total", "Turns that have ended or wait for the user, by the state of their task.", ["state"]
        )
        self.first_byte = histogram(
            "first_artifact_byte_seconds",
            "Time from a message to the first byte of an artifact, including the queue.",
            buckets=FIRST_BYTE_BOUNDS,
        )
        self.entry_delay = histogram(
            "entry_delay_seconds",
            "Time from appending an entry to sending it to a stream; of entries sent together, that of the oldest.",
            buckets=DELAY_BOUNDS,
        )
        self.open_streams = gauge("open_streams", "Open streams.", ["binding"])
        self.commits = histogram("commit_seconds", "Duration of committed transactions.", buckets=COMMIT_BOUNDS)
        self.commit_failures = counter(
            "commit_failures_total", "Failed transactions, which are retried if that can help."
        )
        self.written_bytes = counter("written_bytes_total", "Compressed size of the tasks and artifacts written.")
        self.kept_bytes = gauge("kept_bytes", "Size of all users' stored data, as the storage quotas count it.")
        self.model_calls = counter("model_calls_total", "Model calls, by stop reason.", ["stop_reason"])
        self.tokens = counter(
            "model_tokens_total",
            "Tokens as the provider counts them: of requests (in, including cached) and answers (out).",
            ["direction"],
        )
        self.model_errors = counter("model_errors_total", "Failed model calls.", ["provider", "kind"])
        self.tool_calls = counter(
            "tool_calls_total",
            "Tool calls. Unknown tools are counted as `other`.",
            ["tool", "outcome"],
        )
        self.lease_renewals = counter(
            "lease_renewals_total",
            "Renewals of the lease on PostgreSQL: `renewed`, `lost` or (the database) `unavailable`.",
            ["outcome"],
        )
        self.followed_pages = counter(
            "followed_pages_total",
            "Pages of other servers for streams here: read from the `database`, or brought by the `broker`.",
            ["source"],
        )
        self.broker_connected = gauge("broker_connected", "1 while the broker can be used; 0 also without a broker.")
        self.broker_messages = counter(
            "broker_messages_total",
            "Messages of the broker: `sent`, `received`, `dropped` (not sent) or `forged` (dropped on arrival).",
            ["outcome"],
        )
        self.outbox_depth = gauge("outbox_notifications", "Pending push notifications.")
        self.outbox_age = gauge(
            "outbox_oldest_seconds", "Age of the oldest pending push notification; 0 if there is none."
        )
        self.push_attempts = counter(
            "push_attempts_total",
            "Attempts to send push notifications: `accepted`, `failed` or `given_up`.",
            ["outcome"],
        )
        self.refused = counter(
            "requests_refused_total",
            "Requests answered with an error, by the name of the HTTP status.",
            ["binding", "reason"],
        )

    def record_sent(self, at: datetime) -> None:
        """An entry that was appended at this time has been sent to a stream."""
        self.entry_delay.observe(max((self._now() - at).total_seconds(), 0))  # the clocks of two servers may differ
