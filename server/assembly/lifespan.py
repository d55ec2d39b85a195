"""How a server starts and stops.

Rule 1: what only some servers need is imported when the settings ask for it: gRPC.
Rule 2: tools start before the turns that continue after a restart, which may need them at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from starlette.applications import Starlette

from a2a_canvas.server.agent.model import EDITS_ARE_OFF, close_llm
from a2a_canvas.server.assembly.components import Components
from a2a_canvas.server.protocols.a2a_v1.card.card_file import is_off
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import extensions_of
from a2a_canvas.server.protocols.edge.metrics_routes import metrics_server
from a2a_canvas.server.protocols.edge.shutdown import Shutdown, exit_of_plain_uvicorn
from a2a_canvas.server.protocols.identity.configuration import check_open

logger = logging.getLogger(__name__)


def lifespan_of(components: Components) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    """The lifespan of the application. It starts the components, and stops them in the opposite order."""
    settings, metrics = components.engine.settings, components.engine.metrics

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await _start(components)
        watch = asyncio.create_task(_shut_down_with_uvicorn(components.shutdown))
        port = settings.metrics_port
        try:
            async with metrics_server(metrics, settings.host, port) if port else nullcontext():
                components.startup.done = True
                yield
        finally:
            watch.cancel()
            await _stop(components)

    return lifespan


async def _start(components: Components) -> None:
    engine = components.engine
    if not engine.runtime.edits:
        logger.info(EDITS_ARE_OFF)
    await asyncio.gather(*(source.start() for source in engine.sources))
    await engine.backend.start(engine.runtime)
    await engine.backend.share_usage(engine.runtime.meter, engine.runtime.admit)
    if not is_off(components.handler.card, "push_notifications"):
        components.push.start()
    if engine.settings.grpc_port:
        await _start_grpc(components, engine.settings.grpc_port)


async def _start_grpc(components: Components, port: int) -> None:
    settings, bodies = components.engine.settings, components.bodies
    # `serve` has looked before; here this may be any program's server, but gRPC's address is the settings'.
    check_open(settings, keys=(await components.authenticator.security()).required)
    from a2a_canvas.server.protocols.a2a_v1.bindings.grpc_server import grpc_server
    from a2a_canvas.server.protocols.edge.origins import GrpcOrigins
    from a2a_canvas.server.protocols.pipeline.grpc_pipeline import GrpcPipeline

    pipeline = GrpcPipeline(
        bodies.limits,
        bodies.budget,
        bodies.parsing,
        bodies.refuse_message,
        components.authenticator,
        GrpcOrigins(os.environ),
        components.engine.metrics,
        extensions_of(components.handler.card),
    )
    components.shutdown.grpc_server = grpc_server(
        components.handler,
        settings.host,
        port,
        bodies.limits,
        pipeline,
        settings.of_worker(settings.max_connections),
        shared=settings.workers > 1,
    )
    await components.shutdown.grpc_server.start()


async def _stop(components: Components) -> None:
    engine = components.engine
    await components.shutdown()
    await components.push.stop()
    await engine.backend.stop()
    await asyncio.gather(*(source.stop() for source in engine.sources))
    await close_llm(engine.llm)


async def _shut_down_with_uvicorn(shutdown: Shutdown) -> None:
    await exit_of_plain_uvicorn()
    await shutdown()
