"""What the metrics of a server say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.metrics import MetricWrapperBase

from a2a_canvas.server.metrics import Metrics


@dataclass(frozen=True)
class Series:
    """A metric by its full name. `kind`: counter, gauge or histogram."""

    name: str
    kind: str
    labels: tuple[str, ...]
    about: str
    metric: MetricWrapperBase


def all_series(metrics: Metrics) -> list[Series]:
    return [
        Series(
            f"{each._name}_total" if each._type == "counter" else each._name,
            each._type,
            tuple(each._labelnames),
            each._documentation,
            each,
        )
        for each in vars(metrics).values()
        if isinstance(each, MetricWrapperBase)
    ]


def values(metric: MetricWrapperBase) -> Mapping[tuple[str, ...], float]:
    """By the values of its labels; the `_count` of a histogram."""
    [family] = metric.collect()
    ends = {"counter": "_total", "histogram": "_count"}
    found = (each for each in family.samples if each.name == family.name + ends.get(family.type, ""))
    return {tuple(each.labels.values()): each.value for each in found}
