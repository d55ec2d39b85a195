"""`GET /metrics`, on the public port or on a port of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.listening import listen
from a2a_canvas.server.metrics import CollectedMetrics, Metrics
from a2a_canvas.server.protocols.edge.availability import NO_STORE
from a2a_canvas.server.protocols.edge.http_requests import caller_of
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

PATH = "/metrics"
NOT_FOR_ALL = "Metrics need credentials. To serve them without credentials, start the server with --metrics-port."


def metrics_readers(settings: Settings) -> Callable[[Request], bool]:
    """The check whether a request may read `/metrics` on the public port: users may, and callers without credentials if
    the server is reachable only from this machine.
    """
    allowed = () if settings.reachable_by or settings.allow_anonymous else (ANONYMOUS,)
    return lambda request: bool(caller_of(request).name) or caller_of(request) in allowed


def metrics_route(metrics: Metrics, may_read: Callable[[Request], bool] = lambda request: True) -> Route:
    """The route.

    Args:
        may_read: whether a request may read the metrics.
    """

    async def read(request: Request) -> Response:
        if not may_read(request):
            refusal = {"code": 403, "status": "PERMISSION_DENIED", "message": NOT_FOR_ALL}
            return JSONResponse({"error": refusal}, 403, NO_STORE)
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(await _collect(metrics)), headers={"Content-Type": media_type, **NO_STORE})

    return Route(PATH, read, methods=["GET"])


async def _collect(metrics: Metrics) -> Any:
    if metrics.of_all_workers and (families := await metrics.of_all_workers()):
        return CollectedMetrics(families)
    await refresh(metrics)
    return metrics.registry


async def refresh(metrics: Metrics) -> None:
    """Refresh what is measured on request. The other metrics are shown even if the database does not answer."""
    found = await asyncio.gather(*(refresh() for refresh in metrics.refreshers), return_exceptions=True)
    for error in found:
        if isinstance(error, Exception) and not isinstance(error, Unavailable):
            logger.error("A metric could not be read", exc_info=error)


class _MetricsServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # the main server handles signals


@asynccontextmanager
async def metrics_server(metrics: Metrics, host: str, port: int) -> AsyncIterator[None]:
    """Serves only the metrics, on a port of their own.

    Raises:
        OSError: the port is not free.
    """
    listening = listen(host, port)
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
