"""What stands before the engine of a server: the card, the operations of A2A, identity, and how bodies are read."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from a2a_canvas.server.accounts.server_secrets import SESSIONS
from a2a_canvas.server.accounts.sharing import Sharing
from a2a_canvas.server.agent.models.rehearsal import NOTICE, QUICK_ACTIONS
from a2a_canvas.server.assembly.engine import Engine
from a2a_canvas.server.outbound.addresses import SystemLookup
from a2a_canvas.server.protocols.a2a_v1.card.card import Addresses, CurrentCard, LoadedCard, load_card
from a2a_canvas.server.protocols.a2a_v1.card.card_signing import CardKey, load_card_key
from a2a_canvas.server.protocols.a2a_v1.operations.handler import A2AHandler
from a2a_canvas.server.protocols.a2a_v1.operations.push_operations import PushOperations
from a2a_canvas.server.protocols.a2a_v1.operations.push_payload import PushPayloads
from a2a_canvas.server.protocols.artifacts.documents.document_formats import DOCUMENT_FORMATS
from a2a_canvas.server.protocols.artifacts.documents.pandoc import Pandoc
from a2a_canvas.server.protocols.edge.encoded_events import EncodedEvents
from a2a_canvas.server.protocols.edge.shutdown import Shutdown
from a2a_canvas.server.protocols.guard.bodies import BodyBudget
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.guard.guests import RefuseMessage, refuse_readers
from a2a_canvas.server.protocols.guard.parsing import ParsingThread
from a2a_canvas.server.protocols.guard.startup import Startup
from a2a_canvas.server.protocols.identity.attempts import FailedAttempts
from a2a_canvas.server.protocols.identity.authenticator import Authenticator
from a2a_canvas.server.protocols.identity.browser_sessions import BrowserSessions
from a2a_canvas.server.protocols.identity.configuration import make_authenticator
from a2a_canvas.server.protocols.sign_in.open_id_sign_in import open_id_client
from a2a_canvas.server.protocols.sign_in.session_routes import SessionRoutes
from a2a_canvas.server.push.delivery import PushDelivery
from a2a_canvas.server.push.sending import PushSender, TargetCheck
from a2a_canvas.server.push.targets import AllowedTargets
from a2a_canvas.server.settings.settings import REHEARSAL
from a2a_canvas.server.tool_sources.agent_tools import tools_from
from a2a_canvas.server.wire import KEYS_PATH


@dataclass(frozen=True, slots=True)
class Bodies:
    """How the bodies of requests are read, in every binding.

    Attributes:
        budget: of all bodies at once.
        parsing: where large bodies are parsed.
        refuse_message: refuses messages before their body is read.
    """

    limits: BodyLimits
    budget: BodyBudget
    parsing: ParsingThread
    refuse_message: RefuseMessage


@dataclass(frozen=True, slots=True)
class Components:
    """The components of a server. They are made, and not started."""

    engine: Engine
    startup: Startup
    shutdown: Shutdown
    bodies: Bodies
    authenticator: Authenticator
    sessions: BrowserSessions
    session_routes: SessionRoutes
    card_key: CardKey | None
    card: CurrentCard
    sharing: Sharing
    handler: A2AHandler
    encoded: EncodedEvents
    push: PushDelivery
    pandoc: Pandoc


def make_components(engine: Engine) -> Components:
    """The components of a server with this engine.

    Raises:
        SettingsError: tokens of the issuer could not be checked.
        CardError: the agent card cannot be served.
    """
    settings, backend, clock = engine.settings, engine.backend, engine.clock
    bodies = _bodies(engine)
    attempts = FailedAttempts(time.monotonic, settings.workers)
    authenticator = make_authenticator(
        settings,
        attempts,
        backend.api_keys,
        backend.shares,
        backend.ended_sessions,
        engine.runtime.meter.count_request,
        clock.seconds,
    )
    secret = partial(backend.secrets.secret, SESSIONS)
    sessions = BrowserSessions(secret, backend.ended_sessions, settings.url, clock.seconds)
    pandoc = Pandoc()
    loaded = _card(engine, pandoc)
    engine.runtime.agent_name = loaded.content.name
    key = load_card_key(settings.card_signing_key) if settings.card_signing_key else None
    sign = partial(key.sign, keys_url=settings.url + KEYS_PATH) if key else None
    card = CurrentCard(loaded, partial(tools_from, engine.sources), authenticator.security, sign)
    sharing = _sharing(engine)
    check = TargetCheck(AllowedTargets.parse(settings.push_allow), SystemLookup())
    encoded = EncodedEvents()
    handler = A2AHandler(
        engine.runtime,
        loaded.content,
        PushOperations(backend.push, check, engine.runtime.contexts.access.is_owner),
        bodies.limits,
        sharing=sharing,
        expose_thinking=settings.expose_thinking,
        current_card=card,
        metrics=engine.metrics,
        encoded=encoded,
    )
    return Components(
        engine,
        Startup(),
        Shutdown(engine.runtime.close, settings.shutdown_grace),
        bodies,
        authenticator,
        sessions,
        SessionRoutes(sessions, settings.url, attempts, open_id_client(settings), bodies.limits),
        key,
        card,
        sharing,
        handler,
        encoded,
        PushDelivery(backend.push, PushPayloads(engine.runtime), PushSender(check), clock.now, engine.metrics),
        pandoc,
    )


def _bodies(engine: Engine) -> Bodies:
    settings = engine.settings
    limits = BodyLimits(settings.max_body_bytes)
    refuse = partial(refuse_readers, engine.runtime.contexts)
    return Bodies(limits, BodyBudget.for_limits(limits, settings.workers), ParsingThread(), refuse)


def _card(engine: Engine, pandoc: Pandoc) -> LoadedCard:
    settings, agent, rehearses = engine.settings, engine.agent, engine.llm.name == REHEARSAL
    return load_card(
        settings.agent_card,
        Addresses.from_settings(settings.url, settings.grpc_port, settings.public_grpc or ""),
        advertise_0_3=settings.advertise_0_3,
        note=NOTICE if rehearses and not agent else "",
        name=settings.agent.resolve().name if settings.agent else "",
        quick_actions=QUICK_ACTIONS if rehearses and not (agent and agent.editor) else (),
        edits=engine.runtime.edits,
        formats=tuple(DOCUMENT_FORMATS) if pandoc.installed else (),
    )


def _sharing(engine: Engine) -> Sharing:
    runtime, clock = engine.runtime, engine.clock
    page = engine.settings.url if engine.settings.page is not None else ""
    return Sharing(runtime.contexts.access, engine.backend.shares, clock.now, clock.new_id, page, runtime.meter)
