"""What runs tasks: a model, tools and a runtime on a backend."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from a2a_canvas.server.accounts.access import Access
from a2a_canvas.server.accounts.quotas import Meter, Quota
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.model import LLM, SCRIPT_PREFIX
from a2a_canvas.server.agent.models.wrappers import FramedLLM
from a2a_canvas.server.agent.turn.turn import TurnLimits
from a2a_canvas.server.backend.backend import Backend, make_backend
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.settings.model_choice import choose_llm
from a2a_canvas.server.settings.settings import Settings, SettingsError
from a2a_canvas.server.tasks.contexts import Contexts
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.server.tool_sources.agent_loop import load_loop
from a2a_canvas.server.tool_sources.agent_tools import all_tools, find_tool, tool_sources
from a2a_canvas.store.ids import NewId, new_id
from a2a_canvas.tools.functions.function_tool import ToolSource
from a2a_canvas.tools.registry import SCRIPT_TOOLS, TOOLS


@dataclass(frozen=True, slots=True)
class Clock:
    """The source of time and ids."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_id: NewId = new_id

    def seconds(self) -> float:
        """The time, in seconds since 1970."""
        return self.now().timestamp()


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs tasks, and what it was made of.

    Attributes:
        agent: the agent's own loop; None if the model's rounds are the loop.
    """

    settings: Settings
    clock: Clock
    llm: LLM
    agent: AgentFunction | None
    sources: Sequence[ToolSource]
    metrics: Metrics
    backend: Backend
    runtime: Runtime


def make_engine(
    settings: Settings,
    llm: LLM | None = None,
    clock: Clock | None = None,
    agent: AgentFunction | None = None,
    connections: int | None = None,
) -> Engine:
    """The engine of a server. Nothing is opened yet.

    Args:
        agent: runs the conversations in place of the model; the one that `settings` name if it is None.
        llm: the model; the one that `settings` name if it is None.
        connections: to PostgreSQL; the usual number if it is None.

    Raises:
        SettingsError: the model, the loop, the instructions or the tools cannot be used.
    """
    agent, sources = agent or load_loop(settings), tool_sources(settings)
    llm, clock = llm or choose_llm(settings, os.environ, own_loop=agent is not None), clock or Clock()
    metrics = Metrics(clock.now)
    backend = make_backend(settings, clock.now, metrics, connections)
    access = Access(backend.journal, backend.shares, settings.adopt_anonymous or "")
    own = SCRIPT_TOOLS if llm.name.startswith(SCRIPT_PREFIX) else TOOLS
    runtime = Runtime(
        contexts=Contexts(access, backend.journal, backend.store, backend.contexts, backend.presence),
        ownership=backend.ownership,
        llm=FramedLLM(llm, settings.frame_ms / 1000),
        tools=lambda: all_tools(own, sources),
        find_tool=partial(find_tool, sources),
        now=clock.now,
        new_id=clock.new_id,
        limits=TurnLimits(settings.max_rounds, state_bytes=settings.max_state_bytes),
        admission=Admission(settings.max_turns, meter=_meter(settings, clock.now)),
        instructions=_instructions(settings),
        push=backend.push,
        metrics=metrics,
        agent=agent,
        frame=settings.frame_ms / 1000,
    )
    return Engine(settings, clock, llm, agent, sources, metrics, backend, runtime)


def _meter(settings: Settings, now: Callable[[], datetime]) -> Meter:
    """How much users may use."""
    of_user = Quota(
        settings.max_requests_per_user,
        settings.max_streams_per_user,
        settings.max_turns_per_user,
        settings.max_tokens_per_user,
        settings.max_bytes_per_user,
    )
    streams = settings.of_worker(settings.max_streams)
    of_all = Quota(settings.max_requests, streams, tokens=settings.max_tokens, bytes=settings.max_bytes)
    return Meter(now, of_user, of_all, settings.adopt_anonymous or "", settings.workers)


def _instructions(settings: Settings) -> str:
    if not settings.instructions:
        return ""
    try:
        return settings.instructions.read_text(encoding="utf-8-sig").strip()
    except OSError as error:
        raise SettingsError(f"The instructions {settings.instructions} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The instructions {settings.instructions} are not UTF-8.") from None
