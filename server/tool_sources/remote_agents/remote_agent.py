"""Another agent, as the calls of its tasks know it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from a2a_canvas.server.a2a_client.agent_connection import AgentConnection
from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.tools.functions.recorded_call import CallRecord

logger = logging.getLogger(__name__)

TIMEOUT = 1800.0
"""Seconds that a task may take, without waiting for the user."""
CANCEL_TIMEOUT = 3.0

Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class RemoteAgent:
    """The agent of a call.

    Attributes:
        name: for ids, from its tool; `title`: the name in its card.
        url: its address, which marks the artifacts that it wrote.
    """

    name: str
    title: str
    url: str
    connection: AgentConnection
    timeout: float = TIMEOUT
    sleep: Sleep = asyncio.sleep

    async def cancel(self, task_id: str) -> None:
        """Cancel a task, if the agent allows it.

        Raises:
            AgentFault, TimeoutError: it is not cancelled.
        """
        async with asyncio.timeout(CANCEL_TIMEOUT):
            await self.connection.cancel(task_id)

    async def cancel_recorded(self, record: CallRecord) -> None:
        """Cancel the task that a call started, if the agent allows it."""
        message, task = (json.loads(record.kept.get(name, "null")) for name in ("message", "task"))
        if not task or message["agent"] != self.url:
            return
        try:
            await self.cancel(task["id"])
        except (AgentFault, TimeoutError) as fault:
            logger.warning("The task %s of the agent at %s is not cancelled: %s", task["id"], self.url, fault)


def without_secrets(url: str) -> str:
    """An address without parts that may be secret."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"
