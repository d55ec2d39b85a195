"""The one conversation with an agent that belongs to a context of ours. No message of a client names it.

Rule 1: its id is kept in the context (`turn.values`) as soon as the agent names it, also while that task waits.
Rule 2: the first message of a context is sent alone: those that come meanwhile wait until the agent has named the
        conversation. That holds within one server; messages sent on two of them at once may begin two conversations,
        of which the newest is continued.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from a2a_canvas.server.agent.loops.agent_turn import Turn

NAME = "a2a conversation"


@dataclass(slots=True, weakref_slot=True)
class _Naming:
    """What the running turns of a context share."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    context_id: str = ""


async def kept_conversation(turn: Turn, url: str) -> str:
    """The id of the conversation with the agent; empty if there is none."""
    kept = json.loads(await turn.values.get(NAME) or b"{}")
    return str(kept["context"]) if kept.get("agent") == url else ""


@dataclass(slots=True)
class Conversation:
    """The conversation of a running turn.

    Attributes:
        context_id: the agent's id of it; empty until it is named.
    """

    turn: Turn
    url: str
    context_id: str
    _naming: _Naming
    _holds: bool = False

    async def begin(self) -> None:
        """Wait until another turn's message has named the conversation, if that is under way (rule 2)."""
        if self.context_id:
            return
        await self._naming.lock.acquire()
        self._holds = True
        self.context_id = self._naming.context_id or await kept_conversation(self.turn, self.url)
        if self.context_id:
            self.release()

    async def keep(self, context_id: str) -> None:
        """The agent has named the conversation. It is durable with the next record of the turn."""
        if context_id and context_id != self.context_id:
            kept = {"agent": self.url, "context": context_id}
            await self.turn.values.set(NAME, json.dumps(kept).encode())
            self.context_id = self._naming.context_id = context_id
        self.release()

    def release(self) -> None:
        if self._holds:
            self._holds = False
            self._naming.lock.release()


class Conversations:
    """The conversations with one agent."""

    def __init__(self) -> None:
        self._naming: WeakValueDictionary[str, _Naming] = WeakValueDictionary()

    @asynccontextmanager
    async def open(self, turn: Turn, url: str) -> AsyncIterator[Conversation]:
        """The conversation of a turn, for its message."""
        naming = self._naming.setdefault(turn.thread_id, _Naming())
        conversation = Conversation(turn, url, await kept_conversation(turn, url), naming)
        try:
            await conversation.begin()
            yield conversation
        finally:
            conversation.release()
