"""An agent that speaks A2A, as our loop: each message becomes a task of it, whose artifacts and status become ours.

Rule 1: the task is followed as that of a tool's call (`remote_agents/remote_task.py`): it is taken up again after a
        crash, and cancelled with ours.
Rule 2: the agent has one conversation for each of ours (`agent_conversation.py`), and chooses its id. It gets none of
        our users' ids: it takes them all for one client, so equal ids must not meet there.
Rule 3: the card is read for each message, so that the agent may change it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.agent.endings import Ending
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError, AgentFunction
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.loops.conversation import Message
from a2a_canvas.server.outbound.addresses import SystemLookup
from a2a_canvas.server.tool_sources.a2a_agents.a2a_edit import edit_passage
from a2a_canvas.server.tool_sources.a2a_agents.agent_conversation import Conversation, Conversations
from a2a_canvas.server.tool_sources.document_names import document_name
from a2a_canvas.server.tool_sources.remote_agents.agent_card import TOOL_PREFIX, host_of, tool_name
from a2a_canvas.server.tool_sources.remote_agents.agent_client import AgentClient
from a2a_canvas.server.tool_sources.remote_agents.agent_network import AgentNetwork
from a2a_canvas.server.tool_sources.remote_agents.reconnection import retry
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import (
    CANCEL_TIMEOUT,
    TIMEOUT,
    RemoteAgent,
    Sleep,
    without_secrets,
)
from a2a_canvas.server.tool_sources.remote_agents.remote_artifacts import RemoteArtifacts
from a2a_canvas.server.tool_sources.remote_agents.remote_task import (
    MAX_QUESTION,
    RemoteEnd,
    RemoteTask,
)
from a2a_canvas.server.tool_sources.remote_agents.task_parts import data_to_wire, file_to_wire, line
from a2a_canvas.tools.functions.recorded_call import CallRecord
from a2a_canvas.tools.functions.results import RESULT_LIMIT, ToolError

logger = logging.getLogger(__name__)

PREFIX = "a2a:"


def a2a_agent(url: str, *, tokens: Mapping[str, str] | None = None, timeout: float = TIMEOUT) -> AgentFunction:
    """An agent that is served over A2A, for `create_app(loop=…)`.

    Args:
        url: its address, or that of its card.
        tokens: by host, or `host:port`.
        timeout: seconds that one of its tasks may take.

    Raises:
        AgentDefinitionError: the URL cannot be used.

    >>> agent = a2a_agent("http://127.0.0.1:9999")
    """
    if not host_of(url):
        raise AgentDefinitionError(f"{url!r} is not the address of an A2A agent. Write a2a:http://HOST:PORT")
    agent = A2aAgent(url, tokens or {}, timeout)
    name = f"the agent at {host_of(url)}"
    return AgentFunction(name, agent.run, editor=agent.edit, abandon=agent.abandon, probe=agent.probe)


@dataclass(frozen=True, slots=True)
class A2aAgent:
    """The loop."""

    url: str
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = TIMEOUT
    sleep: Sleep = asyncio.sleep
    _network: AgentNetwork = field(init=False)
    _conversations: Conversations = field(default_factory=Conversations)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_network", AgentNetwork(host_of(self.url), SystemLookup()))

    async def run(self, turn: Turn) -> None:
        """Answer one message."""
        async with self._client() as client:
            agent = self._agent(client, await self._reach(client, turn))
            async with self._conversations.open(turn, agent.url) as conversation:
                await answer(agent, turn, conversation)

    async def edit(self, turn: Turn) -> None:
        """Answer one edit of a selection."""
        async with self._client() as client:
            card = await self._reach(client, turn)
            await edit_passage(self._agent(client, card), card, turn)

    async def abandon(self, record: CallRecord) -> None:
        """Cancel the task that a run has started."""
        async with self._client() as client:
            async with asyncio.timeout(CANCEL_TIMEOUT):
                card = await client.read_card()
            await self._agent(client, card).cancel_recorded(record)

    async def probe(self) -> str:
        """See `AgentFunction.probe`."""
        async with self._client() as client:
            try:
                await client.read_card()
            except AgentFault as fault:
                return f"The agent at {without_secrets(self.url)} cannot be asked: {fault}."
        return ""

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[AgentClient]:
        client = AgentClient(self.url, self.tokens, network=self._network)
        try:
            yield client
        finally:
            await client.close()

    async def _reach(self, client: AgentClient, turn: Turn) -> pb.AgentCard:
        """The agent's card. An agent that has a task of ours is tried for as long as the task is followed.

        Raises:
            ToolError: it cannot be reached.
        """
        try:
            return await retry(client.read_card, turn, self.sleep, persistent=bool(turn.recall("task")))
        except AgentFault as fault:
            logger.warning("The agent at %s cannot be asked: %s", without_secrets(self.url), fault)
            raise ToolError(f"The agent cannot be asked: {fault}.") from None

    def _agent(self, client: AgentClient, card: pb.AgentCard) -> RemoteAgent:
        name = tool_name(card.name, ()).removeprefix(TOOL_PREFIX)
        return RemoteAgent(name, line(card.name), without_secrets(self.url), client, self.timeout, self.sleep)


async def answer(agent: RemoteAgent, turn: Turn, conversation: Conversation) -> None:
    """Have the agent answer the turn's message."""

    async def message() -> pb.Message:
        return pb.Message(parts=message_parts(turn.message))

    artifacts = RemoteArtifacts(agent, turn)
    task = RemoteTask(agent, turn, artifacts, named=conversation.keep)
    end = await task.run(message, conversation.context_id)
    await conversation.keep(end.context_id)
    if end.state == pb.TASK_STATE_COMPLETED:
        await _reply(turn, agent, artifacts, end)
    else:
        await _tell_incomplete(turn, artifacts)
        _fail(turn, end)


def message_parts(message: Message) -> list[pb.Part]:
    """A user's message for the agent. Its metadata is for this server."""
    texts = [pb.Part(text=message.text)] if message.text else []
    files = [file_to_wire(each.content, each.url, each.name, each.media_type) for each in message.files]
    return [*texts, *files, *map(data_to_wire, message.data)]


async def _reply(turn: Turn, agent: RemoteAgent, artifacts: RemoteArtifacts, end: RemoteEnd) -> None:
    """Show the agent's last message: its files, and a text that is too long for a reply, are artifacts."""
    documents: dict[str, pb.Artifact] = {}
    for file in end.files:
        name = line(file.name) or "file"
        document = documents.setdefault(name, pb.Artifact(artifact_id=name, name=name))
        document.parts.append(file_to_wire(file.content, file.url, file.name, file.media_type))
    text = end.text
    if len(text) > RESULT_LIMIT:
        name = document_name(text, agent.title)
        documents[name] = pb.Artifact(artifact_id=name, name=name, parts=[pb.Part(text=text)])
        text = f"The answer is in the document {name}."
    await artifacts.take_snapshot(list(documents.values()), complete=True)
    await _tell_incomplete(turn, artifacts)
    await turn.say(text)


async def _tell_incomplete(turn: Turn, artifacts: RemoteArtifacts) -> None:
    for artifact_id, reason in artifacts.refused.items():
        await turn.say(f"The document {line(artifact_id)!r} is not complete: {reason}")


def _fail(turn: Turn, end: RemoteEnd) -> None:
    """End the turn as the agent has ended its task."""
    reason = end.text[:MAX_QUESTION]
    match end.state:
        case pb.TASK_STATE_REJECTED:
            turn.end(Ending(State.REJECTED, reason or "The agent rejected this request."))
        case pb.TASK_STATE_CANCELED:
            turn.end(Ending(State.CANCELED, reason or "The agent cancelled its task."))
        case pb.TASK_STATE_FAILED:
            raise ToolError(reason or "The agent's task failed.")
        case _:
            raise ToolError(f"The agent's task {end.failure}.")
