"""What follows from a tool call's outcome: for the model, for whoever watches, and for the turn. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from server.agent.events import State, ToolFailed, ToolSucceeded
from server.agent.model import ToolResult
from tools.base import Ask, Decline, Done, Failed, Outcome


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends, or pauses."""

    state: State
    text: str = ""


def told(index: int, tool_use_id: str, outcome: Outcome) -> tuple[ToolResult | None, ToolSucceeded | ToolFailed]:
    """The result that the model is given, and the event. No result yet for a question: it will be the answer."""
    match outcome:
        case Done(content=content):
            return ToolResult(tool_use_id, content), ToolSucceeded(index, tool_use_id, content)
        case Failed(content=content):
            return ToolResult(tool_use_id, content, is_error=True), ToolFailed(index, tool_use_id, content)
        case Ask():
            return None, ToolSucceeded(index, tool_use_id, "The user has been asked.")
        case Decline():
            declined = "The task was declined."
            return ToolResult(tool_use_id, declined), ToolSucceeded(index, tool_use_id, declined)
        case _:
            assert_never(outcome)


def given_back(outcomes: Iterable[Outcome]) -> Ending | None:
    """The ending or pause that tools asked for: to decline wins over to ask."""
    questions: list[str] = []
    for outcome in outcomes:
        match outcome:
            case Decline(reason=reason):
                return Ending(State.REJECTED, reason)
            case Ask(question=question):
                questions.append(question)
            case Done() | Failed():
                pass
            case _:
                assert_never(outcome)
    return Ending(State.INPUT_REQUIRED, "\n".join(questions)) if questions else None
