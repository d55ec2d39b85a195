"""The metrics in Prometheus' text form, or in OpenMetrics' if the scraper prefers it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from a2a_canvas.server.metrics import PREFIX, AnySeries, CountSeries, DurationSeries, Metrics


def exposition(metrics: Metrics, accept: str) -> tuple[bytes, str]:
    """The body and the media type for a scraper with this Accept header."""
    registry = CollectorRegistry()
    registry.register(_SeriesCollector(metrics))
    ProcessCollector(registry=registry)
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type


class _SeriesCollector(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        info = InfoMetricFamily(PREFIX.rstrip("_"), "The version of this server.")
        info.add_metric([], {"version": version("a2a-canvas")})
        yield info
        yield from map(_family, self._metrics.all)


def _family(series: AnySeries) -> Metric:
    if isinstance(series, DurationSeries):
        histogram = HistogramMetricFamily(series.name, series.about)
        buckets = [(f"{bound:g}".replace("inf", "+Inf"), count) for bound, count in series.cumulative]
        histogram.add_metric([], buckets, series.total)
        return histogram
    kind = CounterMetricFamily if isinstance(series, CountSeries) else GaugeMetricFamily
    family = kind(series.name, series.about, labels=series.labels)
    for labels, value in tuple(series.values.items()):
        family.add_metric(labels, value)
    return family
