"""What the rehearsal model says in a round: words, and calls. Calls have no id yet."""

from __future__ import annotations

from typing import Any

from a2a_canvas.server.agent.model import Text, ToolUse
from a2a_canvas.server.agent.models.playback import Block

LISTING = "Let me see which documents there are."


def say(text: str) -> tuple[Block, ...]:
    """The last words of a turn."""
    return (Text(text),)


def call(name: str, **given: Any) -> ToolUse:
    """A call of a tool, its input in this order."""
    return ToolUse("", name, given)


def listing() -> tuple[Block, ...]:
    """A look at the documents, which comes first where one is needed."""
    return Text(LISTING), call("artifact_list")
