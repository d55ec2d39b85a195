"""The one place where everything is put together: the settings, a model, a backend and the protocols become one app.

Rule 1: what only some servers need is imported when the settings ask for it: gRPC, SQL.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from a2a_canvas.server.accounts.access import ANONYMOUS, Access
from a2a_canvas.server.accounts.api_key import SHARED_USER
from a2a_canvas.server.accounts.quotas import Meter, Quota
from a2a_canvas.server.accounts.server_secrets import SESSIONS
from a2a_canvas.server.accounts.sharing import Sharing
from a2a_canvas.server.agent.model import LLM, SCRIPT_PREFIX, close_llm
from a2a_canvas.server.agent.models.rehearsal import NOTICE, QUICK_ACTIONS
from a2a_canvas.server.agent.models.wrappers import FramedLLM
from a2a_canvas.server.agent.turn.turn import TurnLimits
from a2a_canvas.server.backend.backend import Backend, make_backend
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.outbound.addresses import SystemLookup
from a2a_canvas.server.protocols.a2a_v1.bindings.http_json import rest_route
from a2a_canvas.server.protocols.a2a_v1.bindings.jsonrpc import jsonrpc_route
from a2a_canvas.server.protocols.a2a_v1.card.card import Addresses, CurrentCard, card_route, load_card
from a2a_canvas.server.protocols.a2a_v1.card.card_file import is_off
from a2a_canvas.server.protocols.a2a_v1.card.card_signing import card_keys_route, load_card_key
from a2a_canvas.server.protocols.a2a_v1.operations.handler import A2AHandler
from a2a_canvas.server.protocols.a2a_v1.operations.push_operations import PushOperations
from a2a_canvas.server.protocols.a2a_v1.operations.push_payload import PushPayloads
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ExtensionsEcho, extensions_of
from a2a_canvas.server.protocols.agui.routes import AgUiConfig, agui_routes
from a2a_canvas.server.protocols.artifacts.routes import artifact_routes
from a2a_canvas.server.protocols.edge.answer_headers import AnswerHeaders
from a2a_canvas.server.protocols.edge.availability import health_route, ready_route
from a2a_canvas.server.protocols.edge.http_requests import caller_of
from a2a_canvas.server.protocols.edge.metrics_routes import metrics_route, metrics_server
from a2a_canvas.server.protocols.edge.request_metrics import MetricsMiddleware
from a2a_canvas.server.protocols.edge.shutdown import Shutdown, ShutdownMiddleware, exit_of_plain_uvicorn
from a2a_canvas.server.protocols.guard.bodies import BodyBudget
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.guard.error_forms import method_not_allowed, no_such_path, rest_response
from a2a_canvas.server.protocols.guard.guests import RefuseMessage, refuse_readers
from a2a_canvas.server.protocols.guard.hosts import HostCheck, Hosts, cors_options
from a2a_canvas.server.protocols.guard.http_guard import Guard
from a2a_canvas.server.protocols.guard.parsing import ParsingThread
from a2a_canvas.server.protocols.guard.rest import REST_PATHS
from a2a_canvas.server.protocols.guard.startup import Startup, StartupCheck
from a2a_canvas.server.protocols.identity.attempts import FailedAttempts
from a2a_canvas.server.protocols.identity.authenticator import Authenticator, ConfiguredKeys, JwtVerifier
from a2a_canvas.server.protocols.identity.browser_sessions import BrowserSessions
from a2a_canvas.server.protocols.identity.http_authentication import CALLBACK, Authentication
from a2a_canvas.server.protocols.identity.published import Published
from a2a_canvas.server.protocols.identity.security import discovery_url
from a2a_canvas.server.protocols.page.routes import page_routes
from a2a_canvas.server.protocols.sign_in.open_id_sign_in import Endpoints, OpenIdClient
from a2a_canvas.server.protocols.sign_in.session_routes import SessionRoutes
from a2a_canvas.server.push.delivery import PushDelivery
from a2a_canvas.server.push.outbox import Outbox
from a2a_canvas.server.push.sending import PushSender, TargetCheck
from a2a_canvas.server.push.targets import AllowedTargets
from a2a_canvas.server.settings.model_choice import choose_llm
from a2a_canvas.server.settings.settings import REHEARSAL, Settings, SettingsError, option_name
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.server.wire import AGUI_PATH, KEYS_PATH, REST_PREFIX
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.tools.functions.function_tool import AnyTool, ToolSource
from a2a_canvas.tools.registry import SCRIPT_TOOLS, TOOLS
from a2a_canvas.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Clock:
    """The source of time and ids."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_id: Callable[[], str] = lambda: str(uuid4())

    def seconds(self) -> float:
        """The time, in seconds since 1970."""
        return self.now().timestamp()


def create_app(settings: Settings, llm: LLM | None = None, clock: Clock | None = None) -> Starlette:
    """An ASGI application that serves A2A, AG-UI and the artifacts as `settings` say.

    Run it with any ASGI server that supports lifespan, on the host and port of `settings`: the card names them. With
    `grpc_port` it also serves gRPC while it runs. Nothing is opened before the lifespan starts.

    Args:
        settings: `Settings()` reads the environment; every field is also a keyword argument.
        llm: the model; the one that `settings` name if it is None.
        clock: the source of time and ids, for tests.

    Returns:
        The application. Its `state.shutdown` is a `Shutdown`: `a2a-canvas serve` runs it before uvicorn closes the
        connections, and under another uvicorn it runs soon after that is told to stop. Under any other server it runs
        when the lifespan ends, which is after the last stream.

    Raises:
        SettingsError: the model, the instructions or the tools cannot be used.
        CardError: the agent card cannot be served.

    >>> app = create_app(Settings(model="rehearsal", database="memory"))
    >>> app.state.shutdown.begun
    False
    """
    llm, clock = llm or choose_llm(settings, os.environ), clock or Clock()
    rehearses = llm.name == REHEARSAL
    grpc = settings.grpc_port, settings.public_grpc or ""
    addresses = Addresses.of(settings.url, *grpc, advertise_grpc=settings.advertise_grpc)
    name = settings.agent.resolve().name if settings.agent else ""
    sources = tool_sources(settings)
    loaded = load_card(
        settings.agent_card,
        addresses,
        advertise_0_3=settings.advertise_0_3,
        note=NOTICE if rehearses else "",
        name=name,
        quick_actions=QUICK_ACTIONS if rehearses else (),
    )
    card = loaded.content
    metrics = Metrics(clock.now)
    backend = make_backend(settings, clock.now, metrics)
    runtime = build_runtime(settings, llm, clock, backend, sources, metrics)
    attempts = FailedAttempts(time.monotonic)
    authenticator = make_authenticator(settings, backend, runtime.meter, clock, attempts)
    card_key = load_card_key(settings.card_signing_key) if settings.card_signing_key else None
    sign = partial(card_key.sign, keys_url=settings.url + KEYS_PATH) if card_key else None
    current_card = CurrentCard(loaded, partial(_tools_from, sources), authenticator.security, sign)
    startup, shutdown = Startup(), Shutdown(runtime.close, settings.shutdown_grace)
    limits = body_limits(settings)
    budget = BodyBudget(max(limits.max_bodies_bytes, limits.max_body_bytes))
    parsing, refuse_message = ParsingThread(), partial(refuse_readers, runtime.access)
    check = TargetCheck(AllowedTargets.of(settings.push_targets), SystemLookup())
    page = settings.url if settings.page else ""
    sharing = Sharing(runtime.access, backend.shares, clock.now, clock.new_id, page, runtime.meter)
    handler = A2AHandler(
        runtime,
        card,
        PushOperations(backend.push, check),
        limits,
        sharing=sharing,
        expose_thinking=settings.expose_thinking,
        current_card=current_card,
        metrics=metrics,
    )
    push = PushDelivery(backend.push, PushPayloads(runtime), PushSender(check), clock.now, metrics)
    metrics.refreshers.append(partial(_count_outbox, backend.push, metrics, clock.now))
    sessions = BrowserSessions(
        partial(backend.secrets.secret, SESSIONS), backend.ended_sessions, settings.url, clock.seconds
    )
    session_routes = SessionRoutes(sessions, settings.url, attempts, _open_id_client(settings), limits)
    app = Starlette(
        routes=[
            card_route(current_card, clock.now),
            *([card_keys_route(card_key)] if card_key else []),
            health_route(),
            ready_route(startup.readiness(backend.ready)),
            *([] if settings.metrics_port else [metrics_route(metrics, metrics_readers(settings))]),
            jsonrpc_route(handler),
            *artifact_routes(
                backend.store,
                runtime.journal,
                backend.contexts,
                runtime.access,
                sharing,
                limits,
                metrics,
                runtime.meter,
            ),
            *agui_routes(_agui(settings, runtime, backend.store, clock, metrics, parsing)),
            rest_route(handler, REST_PREFIX),
            *session_routes.routes(),
            *page_routes(_about(settings, card), settings.page_origins, page=settings.page),
        ],
        middleware=[
            Middleware(AnswerHeaders),
            Middleware(MetricsMiddleware, metrics=metrics),
            *([Middleware(CORSMiddleware, **cors_options(settings.cors_origins))] if settings.cors_origins else []),
            Middleware(HostCheck, hosts=hosts_of(settings)),
            Middleware(StartupCheck, startup=startup),
            Middleware(Authentication, authenticator=authenticator, sessions=sessions),
            Middleware(Guard, limits=limits, budget=budget, parsing=parsing, refuse_message=refuse_message),
            Middleware(ShutdownMiddleware, shutdown=shutdown),
            Middleware(ExtensionsEcho, supported=extensions_of(card)),
        ],
        exception_handlers={HTTPException: _router_error},
        lifespan=_lifespan(
            settings,
            startup,
            shutdown,
            handler,
            budget,
            parsing,
            refuse_message,
            backend,
            runtime,
            llm,
            sources,
            authenticator,
            metrics,
            push,
        ),
    )
    app.state.shutdown, app.state.metrics = shutdown, metrics
    app.state.tool_sources = sources
    app.router.redirect_slashes = False  # an unknown path is 404
    return app


def _about(settings: Settings, card: pb.AgentCard) -> dict[str, Any]:
    """What `GET /` says of a server to programs."""
    about = {"name": card.name, "version": card.version, "agentCard": settings.url + AGENT_CARD_WELL_KNOWN_PATH}
    return about | ({"page": f"{settings.url}/", "servers": settings.page_origins} if settings.page else {})


async def _count_outbox(outbox: Outbox, metrics: Metrics, now: Callable[[], datetime]) -> None:
    backlog = await outbox.backlog()
    metrics.outbox_depth.set(backlog.depth)
    metrics.outbox_age.set((now() - backlog.oldest).total_seconds() if backlog.oldest else 0)


BINDINGS = {"/": " (JSON-RPC)", f"{REST_PREFIX}/…": " (HTTP+JSON)", AGUI_PATH: " (AG-UI)"}
"""What a message says of a path."""


async def _router_error(request: Request, error: Exception) -> Response:
    """What the router refuses, in REST's form, with what there is; the guard knows JSON-RPC's."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 405:
        allowed = _allowed(request)
        headers = {"Allow": ", ".join(allowed)}
        if path == "/":
            return Response(status_code=405, headers=headers)
        return rest_response(method_not_allowed(request.method, path, allowed), headers)
    known = [re.sub("{.*}", "…", route.path) for route in request.app.routes]
    paths = {each: BINDINGS.get(each, "") for each in known if f"{each}/…" not in known}
    return rest_response(no_such_path(path, paths, more=[f"{REST_PREFIX}/{below}" for below in REST_PATHS]))


def _allowed(request: Request) -> list[str]:
    """The methods of all routes of a path: the router names those of the first one."""
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] is Match.PARTIAL]
    return sorted({method for route in routes for method in route.methods})


def metrics_readers(settings: Settings) -> Callable[[Request], bool]:
    """Who may read `/metrics` on the port for everybody: users; without credentials whoever is on this machine."""
    allowed = () if settings.reachable_by or settings.allow_anonymous else (ANONYMOUS,)
    return lambda request: bool(caller_of(request).name) or caller_of(request) in allowed


def make_authenticator(
    settings: Settings, backend: Backend, meter: Meter, clock: Clock, attempts: FailedAttempts
) -> Authenticator:
    """Who is let in, and how often."""
    stored = (backend.api_keys,) if backend.api_keys else ()
    discovered = settings.jwt_issuer if not settings.jwt_jwks_url else None
    return Authenticator(
        attempts,
        token=settings.shared_token or "",
        keys=(ConfiguredKeys(settings.keys), *stored),
        jwts=_jwts(settings),
        openid_url=discovery_url(discovered) if discovered else "",
        links=backend.shares,
        anonymous=settings.allow_anonymous,
        count=meter.count_request,
        ended=backend.ended_sessions,
        clock=clock.seconds,
    )


def _jwts(settings: Settings) -> JwtVerifier | None:
    given = [field for field in ("jwt_audience", "jwt_jwks_url") if getattr(settings, field)]
    if not settings.jwt_issuer:
        if given:
            raise SettingsError(f"{option_name(given[0])} needs {option_name('jwt_issuer')}: who issues the tokens.")
        return None
    if not settings.jwt_audience:
        raise SettingsError(
            f"{option_name('jwt_issuer')} needs {option_name('jwt_audience')}: otherwise tokens that it issues for "
            "other services would be taken, too."
        )
    from a2a_canvas.server.protocols.identity.issuer import IssuedTokens, Issuer

    issuer = Issuer(settings.jwt_issuer, settings.jwt_jwks_url or "")
    return IssuedTokens(
        issuer, settings.jwt_audience, settings.jwt_user_claim, time.monotonic, _reserved_users(settings)
    )


def _reserved_users(settings: Settings) -> frozenset[str]:
    """Whom no token of the issuer may name: people may choose their names there."""
    return frozenset((SHARED_USER,)) if settings.shared_token else frozenset()


def check_open(settings: Settings, *, keys: bool) -> None:
    """Raises `SettingsError` if others could reach the server, and it could not tell who they are.

    Args:
        keys: the database has API keys, or had some.
    """
    if not settings.reachable_by or settings.authenticates or keys or settings.allow_anonymous:
        return
    raise SettingsError(
        f"{settings.reachable_by} lets others in, and there is no authentication: set A2A_CANVAS_SHARED_TOKEN to a "
        "secret (openssl rand -hex 16), or make a key with a2a-canvas key new NAME; --allow-anonymous serves everybody."
    )


def _open_id_client(settings: Settings) -> OpenIdClient | None:
    if not settings.oidc_client_id:
        return None
    if not settings.jwt_issuer or settings.jwt_jwks_url:
        raise SettingsError(
            f"{option_name('oidc_client_id')} needs {option_name('jwt_issuer')}, and an issuer that describes itself, "
            f"so without {option_name('jwt_jwks_url')}."
        )
    from a2a_canvas.server.protocols.identity.issuer import IssuedTokens, Issuer

    issuer = Issuer(settings.jwt_issuer)

    async def read_endpoints() -> Endpoints:
        return Endpoints.of(await issuer.description())

    endpoints = Published("endpoints", read_endpoints, time.monotonic)
    reserved = _reserved_users(settings)
    id_tokens = IssuedTokens(issuer, settings.oidc_client_id, settings.jwt_user_claim, time.monotonic, reserved)
    redirect_uri = f"{settings.url}{CALLBACK}"
    return OpenIdClient(endpoints, id_tokens, settings.oidc_client_id, redirect_uri, settings.oidc_client_secret or "")


def make_meter(settings: Settings, now: Callable[[], datetime]) -> Meter:
    """How much users may use."""
    of_user = Quota(
        settings.max_requests_per_user,
        settings.max_streams_per_user,
        settings.max_turns_per_user,
        settings.max_tokens_per_user,
        settings.max_bytes_per_user,
    )
    of_all = Quota(settings.max_requests, settings.max_streams, tokens=settings.max_tokens, bytes=settings.max_bytes)
    return Meter(now, of_user, of_all, settings.max_tokens_per_turn, settings.adopt_anonymous or "")


def hosts_of(settings: Settings) -> Hosts:
    return Hosts.of(settings.host, settings.public_url, settings.hosts, settings.cors_origins)


def body_limits(settings: Settings) -> BodyLimits:
    return BodyLimits(settings.max_body_bytes, settings.max_bodies_bytes, settings.max_text_bytes)


def _agui(
    settings: Settings,
    runtime: Runtime,
    store: ArtifactStore,
    clock: Clock,
    metrics: Metrics,
    parsing: ParsingThread,
) -> AgUiConfig:
    return AgUiConfig(
        runtime,
        store,
        body_limits(settings),
        clock.new_id,
        parsing,
        expose_thinking=settings.expose_thinking,
        cancel_on_disconnect=settings.on_disconnect == "cancel",
        metrics=metrics,
    )


def tool_sources(settings: Settings) -> tuple[ToolSource, ...]:
    """Where the agent's own tools come from.

    Raises:
        SettingsError: one of them cannot be used.
    """
    files = _python_files(settings.tools) if settings.tools else ()
    servers = _mcp_servers(settings.mcp_config) if settings.mcp_config else ()
    agents = _other_agents(settings) if settings.agents else ()
    return (*files, *servers, *agents)


def _python_files(paths: Sequence[Path]) -> Iterator[ToolSource]:
    from a2a_canvas.server.tool_sources.python_file import ToolFileError, load_python_file

    taken = {tool.name: "the agent itself" for tool in SCRIPT_TOOLS}
    for path in paths:
        try:
            source = load_python_file(path)
        except ToolFileError as error:
            raise SettingsError(str(error)) from error
        for tool in source.tools():
            if tool.name in taken:
                raise SettingsError(
                    f'{path} has a tool {tool.name}, as {taken[tool.name]} has: give it another name, @tool(name="…").'
                )
            taken[tool.name] = str(path)
        yield source


def _mcp_servers(config: Path) -> Sequence[ToolSource]:
    from a2a_canvas.server.tool_sources.mcp_servers.config import McpConfigError, load_mcp_config
    from a2a_canvas.server.tool_sources.mcp_servers.source import mcp_sources

    try:
        return mcp_sources(load_mcp_config(config))
    except McpConfigError as error:
        raise SettingsError(str(error)) from None


def check_programs(config: Path) -> None:
    """Whether the programs of MCP servers are there. Without `--reload` an agent is served without one, and tries it
    again.

    Raises:
        SettingsError: one is not.
    """
    from a2a_canvas.server.tool_sources.mcp_servers.config import load_mcp_config
    from a2a_canvas.server.tool_sources.mcp_servers.transports import missing_program, no_program

    for server in load_mcp_config(config):
        if program := missing_program(server):
            place = f"{config}: mcpServers.{server.name}.command"
            raise SettingsError(f"{place}: {no_program(program)}.")


def _other_agents(settings: Settings) -> Sequence[ToolSource]:
    from a2a_canvas.server.tool_sources.remote_agents.agents_source import RemoteAgents

    return (RemoteAgents(settings.agents, settings.tokens),)


def _all_tools(own: Sequence[Tool], sources: Sequence[ToolSource]) -> list[AnyTool]:
    """The tools that there are now; of two with the same name, the first."""
    names = {tool.name for tool in own}
    return [*own, *(tool for tool in _tools_from(sources) if tool.name not in names)]


def _tools_from(sources: Sequence[ToolSource]) -> list[AnyTool]:
    found: dict[str, AnyTool] = {}
    for tool in (tool for source in sources for tool in source.tools()):
        found.setdefault(tool.name, tool)
    return list(found.values())


async def _find_tool(sources: Sequence[ToolSource], name: str) -> AnyTool | str:
    """A tool, when its source has it; or why it is not there."""
    reasons = await asyncio.gather(*(source.wait_for(name) for source in sources))
    found = (tool for tool in _tools_from(sources) if tool.name == name)
    return next(found, " and ".join(filter(None, reasons)))


def build_runtime(
    settings: Settings,
    llm: LLM,
    clock: Clock,
    backend: Backend | None = None,
    sources: Sequence[ToolSource] = (),
    metrics: Metrics | None = None,
) -> Runtime:
    backend = backend or make_backend(settings, clock.now)
    own = SCRIPT_TOOLS if llm.name.startswith(SCRIPT_PREFIX) else TOOLS
    return Runtime(
        journal=backend.journal,
        store=backend.store,
        ownership=backend.ownership,
        llm=FramedLLM(llm, settings.frame_ms / 1000),
        tools=lambda: _all_tools(own, sources),
        find_tool=partial(_find_tool, sources),
        now=clock.now,
        new_id=clock.new_id,
        limits=TurnLimits(settings.max_rounds, settings.max_tool_errors),
        admission=Admission(settings.max_turns, settings.max_queued, meter=make_meter(settings, clock.now)),
        instructions=_instructions(settings),
        push=backend.push,
        access=Access(backend.journal, backend.shares, settings.adopt_anonymous or ""),
        metrics=metrics,
    )


def _instructions(settings: Settings) -> str:
    if not settings.instructions:
        return ""
    try:
        return settings.instructions.read_text(encoding="utf-8-sig").strip()
    except OSError as error:
        raise SettingsError(f"The instructions {settings.instructions} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The instructions {settings.instructions} are not UTF-8.") from None


def _lifespan(
    settings: Settings,
    startup: Startup,
    shutdown: Shutdown,
    handler: A2AHandler,
    budget: BodyBudget,
    parsing: ParsingThread,
    refuse_message: RefuseMessage,
    backend: Backend,
    runtime: Runtime,
    llm: LLM,
    sources: Sequence[ToolSource],
    authenticator: Authenticator,
    metrics: Metrics,
    push: PushDelivery,
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # Before the turns that go on after a restart, which may need their tools at once.
        await asyncio.gather(*(source.start() for source in sources))
        await backend.start(runtime)
        await backend.share_usage(runtime.meter, runtime.admit)
        if not is_off(handler.card, "push_notifications"):
            push.start()
        if settings.grpc_port:
            # `serve` has looked before; here this may be any program's server, but gRPC's address is the settings'.
            check_open(settings, keys=(await authenticator.security()).required)
            from a2a_canvas.server.protocols.a2a_v1.bindings.grpc_server import grpc_server
            from a2a_canvas.server.protocols.edge.origins import GrpcOrigins
            from a2a_canvas.server.protocols.identity.grpc_authentication import GrpcAuthentication

            shutdown.grpc_server = grpc_server(
                handler,
                settings.host,
                settings.grpc_port,
                body_limits(settings),
                budget,
                settings.max_connections,
                GrpcAuthentication(authenticator, GrpcOrigins(os.environ)),
                metrics,
                extensions_of(handler.card),
                parsing,
                refuse_message,
            )
            await shutdown.grpc_server.start()
        watch = asyncio.create_task(_shut_down_with_uvicorn(shutdown))
        port = settings.metrics_port
        try:
            async with metrics_server(metrics, settings.host, port) if port else nullcontext():
                startup.done = True
                yield
        finally:
            watch.cancel()
            await shutdown()
            await push.stop()
            await backend.stop()
            await asyncio.gather(*(source.stop() for source in sources))
            await close_llm(llm)

    return lifespan


async def _shut_down_with_uvicorn(shutdown: Shutdown) -> None:
    await exit_of_plain_uvicorn()
    await shutdown()
