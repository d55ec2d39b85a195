"""What the rehearsal model says in a round: words, and calls. Calls have no id yet."""

from __future__ import annotations

from typing import Any

from a2a_canvas.server.agent.model import ModelText, ToolUse
from a2a_canvas.server.agent.models.playback import AssistantBlock

LISTING = "Let me see which documents there are."


def say(text: str) -> tuple[AssistantBlock, ...]:
    """The last words of a turn."""
    return (ModelText(text),)


def call(name: str, **given: Any) -> ToolUse:
    """A call of a tool, its input in this order."""
    return ToolUse("", name, given)


def listing() -> tuple[AssistantBlock, ...]:
    """A look at the documents, which comes first where one is needed."""
    return ModelText(LISTING), call("artifact_list")
