"""Other A2A agents as a tool source: one tool for each agent whose card has been read.

Rule 1: the server starts without agents that cannot be reached; their cards are read as soon as they can.
Rule 2: a tool keeps its name while the server runs. If two agents have the same name in their cards at the start, the
        one configured first keeps it.
Rule 3: a call from before a restart waits for its tool as long as for an agent that was lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, repeat
from typing import Any

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.tool_sources.remote_agents.agent_call import AgentCall
from a2a_canvas.server.tool_sources.remote_agents.agent_card import (
    INPUT,
    TOOL_PREFIX,
    tool_description,
    tool_name,
)
from a2a_canvas.server.tool_sources.remote_agents.agent_client import AgentClient
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import TIMEOUT, RemoteAgent, without_secrets
from a2a_canvas.server.tool_sources.remote_agents.task_parts import line
from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.functions.results import Result, ToolError

logger = logging.getLogger(__name__)

RETRIES = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds between attempts to read a card; the last one repeats."""
WAIT = 120.0
"""Seconds that a call waits for the card of its agent (rule 3)."""
MARGIN = 30.0
"""Seconds that a tool may run longer than its agent's task, to cancel it."""


class RemoteAgents:
    """The agents at some addresses.

    Args:
        tokens: by origin (`outbound/token_origin.py`).
        timeout: seconds that one of their tasks may take.
    """

    name = "other agents"

    def __init__(self, urls: Sequence[str], tokens: Mapping[str, str] | None = None, timeout: float = TIMEOUT) -> None:
        self._clients = {url: AgentClient(url, tokens) for url in urls}
        self._timeout = timeout
        self._tools: dict[str, FunctionTool] = {}
        self._trying: dict[str, asyncio.Task[None]] = {}
        self._reasons: dict[str, str] = {}

    def tools(self) -> Sequence[FunctionTool]:
        return tuple(self._tools.values())

    async def wait_for(self, name: str) -> str:
        if not name.startswith(TOOL_PREFIX):
            return ""
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT):
                while name not in self._tools and (trying := self._pending_cards()):
                    await asyncio.wait(trying.values(), return_when=asyncio.FIRST_COMPLETED)
        if name in self._tools:
            return ""
        return " and ".join(
            f"the agent at {without_secrets(url)} cannot be asked ({self._reasons[url]})"
            for url in self._pending_cards()
        )

    def _pending_cards(self) -> dict[str, asyncio.Task[None]]:
        return {url: task for url, task in self._trying.items() if not task.done()}

    async def start(self) -> None:
        cards = await asyncio.gather(*map(self._read_card, self._clients))
        for url, card in zip(self._clients, cards, strict=True):
            if card:
                self._offer(url, card)
            else:
                self._trying[url] = asyncio.create_task(self._try_again(url), name=f"card of {url}")

    async def stop(self) -> None:
        for task in self._trying.values():
            task.cancel()
        if self._trying:
            await asyncio.wait(self._trying.values())
        for client in self._clients.values():
            await client.close()

    async def _try_again(self, url: str) -> None:
        for delay in chain(RETRIES, repeat(RETRIES[-1])):
            await asyncio.sleep(delay)
            if card := await self._read_card(url, log=logging.DEBUG):
                self._offer(url, card)
                return

    async def _read_card(self, url: str, log: int = logging.WARNING) -> pb.AgentCard | None:
        try:
            return await self._clients[url].read_card()
        except AgentFault as fault:
            self._reasons[url] = str(fault)
            logger.log(log, "The agent at %s cannot be asked yet: %s. It is tried again", without_secrets(url), fault)
            return None

    def _offer(self, url: str, card: pb.AgentCard) -> None:
        name = tool_name(card.name, self._tools)
        agent = RemoteAgent(
            name.removeprefix(TOOL_PREFIX), line(card.name), without_secrets(url), self._clients[url], self._timeout
        )

        async def ask(arguments: Mapping[str, Any], canvas: Canvas) -> Result:
            message, artifact_ids, context_id = _parse_input(name, arguments)
            return await AgentCall(agent, canvas, artifact_ids).run(message, context_id)

        self._tools[name] = FunctionTool(
            name,
            tool_description(card),
            INPUT,
            ask,
            self._timeout + MARGIN,
            parallel=True,
            abandon=agent.cancel_recorded,
        )
        logger.info("The agent %s at %s can be asked as the tool %s", agent.title, agent.url, name)


def _parse_input(name: str, arguments: Mapping[str, Any]) -> tuple[str, tuple[str, ...], str]:
    """A call's message, artifact ids and context id.

    Raises:
        ToolError: it has other fields.
    """
    match arguments:
        case {"message": str(message), **rest} if message.strip():
            match {"artifact_ids": [], "context_id": "", **rest}:
                case {"artifact_ids": [*ids], "context_id": str(context_id), **more} if not more and all(
                    isinstance(each, str) for each in ids
                ):
                    return message, tuple(ids), context_id
    raise ToolError(f"{name} needs a message; artifact_ids (a list of strings) and context_id (a string) may follow.")
