"""Tries again while an agent that is the loop cannot be reached."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import Sleep
from a2a_canvas.server.tool_sources.remote_agents.remote_task import DELAYS, RESENDS

T = TypeVar("T")


async def retry(call: Callable[[], Awaitable[T]], turn: Turn, sleep: Sleep, *, persistent: bool) -> T:
    """The result of a call, which is made again after a fault that is retryable.

    Args:
        persistent: tries for as long as a task of the agent is followed (`DELAYS`), not only `RESENDS` times.

    Raises:
        AgentFault: of the last try.
    """
    for delay in DELAYS if persistent else DELAYS[:RESENDS]:
        try:
            return await call()
        except AgentFault as fault:
            if not fault.retryable:
                raise
        await turn.progress("Waiting for the agent…")
        await sleep(delay)
    return await call()
