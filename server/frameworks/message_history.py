"""The messages of a framework's agent between the tasks of a conversation: in `turn.state`, under the adapter's key."""

from __future__ import annotations

from collections.abc import Sequence

from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.store.models import JsonValue


async def load_messages(turn: Turn, key: str) -> Sequence[JsonValue] | None:
    """The messages that `save_messages` kept; None if there are none yet."""
    state = await turn.state.get() if hasattr(turn, "state") else None
    found = state.get(key) if isinstance(state, dict) else None
    return found if isinstance(found, list) else None


async def save_messages(turn: Turn, key: str, messages: Sequence[JsonValue]) -> None:
    """Keep the messages, with the end of the turn."""
    if hasattr(turn, "state"):
        await turn.state.set({key: list(messages)})
