"""The one place where everything is put together: the components of a server become one ASGI application."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from a2a_canvas.server.agent.loops.agent_function import agent_function
from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.assembly.components import Components, make_components
from a2a_canvas.server.assembly.engine import Clock, make_engine
from a2a_canvas.server.assembly.lifespan import lifespan_of
from a2a_canvas.server.protocols.a2a_v1.bindings.http_json import rest_route
from a2a_canvas.server.protocols.a2a_v1.bindings.jsonrpc import jsonrpc_route
from a2a_canvas.server.protocols.a2a_v1.card.card import card_route
from a2a_canvas.server.protocols.a2a_v1.card.card_signing import card_keys_route
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import extensions_of
from a2a_canvas.server.protocols.agui.routes import AgUiConfig, agui_routes
from a2a_canvas.server.protocols.artifacts.routes import artifact_routes
from a2a_canvas.server.protocols.edge.availability import health_route, ready_route
from a2a_canvas.server.protocols.edge.metrics_routes import metrics_readers, metrics_route
from a2a_canvas.server.protocols.edge.shutdown import ShutdownMiddleware
from a2a_canvas.server.protocols.guard.hosts import cors_options, hosts_of
from a2a_canvas.server.protocols.mcp_server.routes import mcp_routes
from a2a_canvas.server.protocols.page.routes import about, page_routes
from a2a_canvas.server.protocols.pipeline.entrance import HttpEntrance
from a2a_canvas.server.protocols.pipeline.http_answers import Answers
from a2a_canvas.server.protocols.pipeline.http_pipeline import HttpPipeline
from a2a_canvas.server.protocols.pipeline.unrouted import refuse_unrouted
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.server.wire import MCP_PATH, RESOURCE_PATH, REST_PREFIX


def create_app(
    settings: Settings,
    llm: LLM | None = None,
    clock: Clock | None = None,
    *,
    loop: Any = None,
    connections: int | None = None,
) -> Starlette:
    """An ASGI application that serves A2A, AG-UI and the artifacts as `settings` say.

    Run it with any ASGI server that supports lifespan, on the host and port of `settings`: the card names them. With
    `grpc_port` it also serves gRPC while it runs. Nothing is opened before the lifespan starts.

    Args:
        settings: `Settings()` reads the environment; every field is also a keyword argument.
        llm: the model; the one that `settings` name if it is None.
        clock: the source of time and ids, for tests.
        loop: an agent's own, `async def agent(turn: Turn)` or an async generator; that of `settings` if it is None.
        connections: to PostgreSQL, 6 to 15; 15 if None.

    Returns:
        The application. Its `state.shutdown` is a `Shutdown`: `a2a-canvas serve` runs it before uvicorn closes the
        connections, and under another uvicorn it runs soon after that is told to stop. Under any other server it runs
        when the lifespan ends, which is after the last stream.

    Raises:
        SettingsError: the model, the loop, the instructions or the tools cannot be used.
        CardError: the agent card cannot be served.
        AgentDefinitionError: `loop` cannot be an agent.

    >>> app = create_app(Settings(model="rehearsal", database="memory"))
    >>> app.state.shutdown.begun
    False
    """
    engine = make_engine(settings, llm, clock, None if loop is None else agent_function(loop), connections)
    return _application(make_components(engine))


def _application(components: Components) -> Starlette:
    app = Starlette(
        routes=_routes(components),
        middleware=_middleware(components),
        exception_handlers={HTTPException: refuse_unrouted},
        lifespan=lifespan_of(components),
    )
    engine = components.engine
    app.state.shutdown, app.state.metrics = components.shutdown, engine.metrics
    app.state.tool_sources, app.state.agent = engine.sources, engine.agent
    app.router.redirect_slashes = False  # an unknown path is 404
    return app


def _routes(components: Components) -> list[BaseRoute]:
    engine, settings = components.engine, components.engine.settings
    return [
        card_route(components.card, engine.clock.now),
        *([card_keys_route(components.card_key)] if components.card_key else []),
        health_route(),
        ready_route(components.startup.readiness(engine.backend.ready)),
        *([] if settings.metrics_port else [metrics_route(engine.metrics, metrics_readers(settings))]),
        jsonrpc_route(components.handler),
        *artifact_routes(
            engine.runtime.contexts,
            components.sharing,
            components.bodies.limits,
            engine.metrics,
            engine.runtime.meter,
            components.pandoc,
            components.encoded,
        ),
        *agui_routes(_agui(components)),
        *mcp_routes(
            engine.runtime,
            components.bodies.limits,
            components.bodies.parsing,
            components.handler.card,
            settings.url,
            settings.jwt_issuer or "",
            components.sessions.signed_address,
            has_page=settings.page is not None,
        ),
        rest_route(components.handler, REST_PREFIX),
        *components.session_routes.routes(),
        *page_routes(about(settings, components.handler.card), settings.page, settings.embed_origins),
    ]


def _agui(components: Components) -> AgUiConfig:
    engine, settings = components.engine, components.engine.settings
    return AgUiConfig(
        engine.runtime,
        components.bodies.limits,
        engine.clock.new_id,
        components.bodies.parsing,
        expose_thinking=settings.expose_thinking,
        cancel_on_disconnect=settings.on_disconnect == "cancel",
        metrics=engine.metrics,
        encoded=components.encoded,
    )


def _middleware(components: Components) -> list[Middleware]:
    """The first one sees a request first."""
    settings, bodies = components.engine.settings, components.bodies
    pipeline = Middleware(
        HttpPipeline,
        limits=bodies.limits,
        budget=bodies.budget,
        parsing=bodies.parsing,
        refuse_message=bodies.refuse_message,
        entrance=HttpEntrance(
            hosts_of(settings),
            components.startup,
            components.authenticator,
            components.sessions,
            settings.url + RESOURCE_PATH + MCP_PATH if settings.jwt_issuer else "",
        ),
        extensions=extensions_of(components.handler.card),
    )
    return [
        Middleware(Answers, metrics=components.engine.metrics),
        *([Middleware(CORSMiddleware, **cors_options(settings.cors_origin))] if settings.cors_origin else []),
        pipeline,
        Middleware(ShutdownMiddleware, shutdown=components.shutdown),
    ]
