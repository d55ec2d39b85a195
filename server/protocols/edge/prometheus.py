"""`GET /metrics`: the metrics of this server in Prometheus' text form, or in OpenMetrics' if the scraper prefers it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version

import uvicorn
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
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a2a_canvas.server.metrics import PREFIX, AnySeries, CountSeries, DurationSeries, Metrics
from a2a_canvas.server.protocols.edge.availability import NO_STORE
from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

PATH = "/metrics"
NOT_FOR_ALL = "Metrics are shown to callers with credentials alone. To have them without, start with --metrics-port."


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


def metrics_route(metrics: Metrics, may_read: Callable[[Request], bool] = lambda request: True) -> Route:
    """The route.

    Args:
        may_read: whether the metrics are shown to who asks for them.
    """
    registry = CollectorRegistry()
    registry.register(_SeriesCollector(metrics))
    ProcessCollector(registry=registry)

    async def read(request: Request) -> Response:
        if not may_read(request):
            refusal = {"code": 403, "status": "PERMISSION_DENIED", "message": NOT_FOR_ALL}
            return JSONResponse({"error": refusal}, 403, NO_STORE)
        await _refresh(metrics)
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": media_type, **NO_STORE})

    return Route(PATH, read, methods=["GET"])


async def _refresh(metrics: Metrics) -> None:
    """A database that does not answer is no reason not to show the rest."""
    found = await asyncio.gather(*(refresh() for refresh in metrics.refreshers), return_exceptions=True)
    for error in found:
        if isinstance(error, Exception) and not isinstance(error, Unavailable):
            logger.error("A metric could not be read", exc_info=error)


class _MetricsServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # signals are for the server beside it


@asynccontextmanager
async def metrics_server(metrics: Metrics, host: str, port: int) -> AsyncIterator[None]:
    """Serves the metrics alone on a port of their own.

    Raises:
        OSError: the port is not free.
    """
    listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    app = Starlette(routes=[metrics_route(metrics)])
    config = uvicorn.Config(app, lifespan="off", ws="none", log_config=None, limit_concurrency=16)
    server = _MetricsServer(config)
    serving = asyncio.create_task(server.serve([listening]), name="metrics")
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        await asyncio.wait([serving])
        listening.close()
