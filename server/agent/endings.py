"""Maps outcomes of tool calls and ends of model calls to results, endings and retries. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from a2a_canvas.server.agent.events import AgentMessage, State, StatusChanged, ToolFailed, ToolSucceeded
from a2a_canvas.server.agent.model import ModelError, StopReason, ToolResult
from a2a_canvas.server.agent.text.visible import visible
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.models import NO_METADATA, AppliedChange, JsonValue, Metadata
from a2a_canvas.store.text.unicode import replace_unstorable
from a2a_canvas.tools.tool import Ask, Decline, Done, Failed, Outcome

INTERNAL_ERROR = "Something went wrong in this server; the operator's log has the details."

NOTHING_VISIBLE = "The user would see no text: all of it is in tags. Nothing was done. Call it again, with plain text."


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends, or pauses. `metadata` is that of the message with the text."""

    state: State
    text: str = ""
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)

    def status(self, new_id: Callable[[], str]) -> StatusChanged:
        """The status event."""
        text = replace_unstorable(self.text)
        message = AgentMessage(new_id(), text, metadata=self.metadata) if text else None
        return StatusChanged(self.state, message)


def with_closing_text(ending: Ending, rounds: int, saved: Iterable[AppliedChange]) -> Ending:
    """`ending`, with a text of this server if the model called tools and its last answer has none.

    Args:
        rounds: the number of model calls.
        saved: the artifacts that the turn has written.
    """
    if ending.state is not State.COMPLETED or ending.text or rounds < 2:
        return ending
    written = [f"{applied.artifact.title}, version {applied.version}" for applied in saved]
    return replace(ending, text=f"Wrote {'; '.join(written)}." if written else "Done; no artifact was changed.")


def visible_outcome(outcome: Outcome) -> Outcome:
    """`outcome`, with tags removed from its text for the user (`text/visible.py`). A failure if no text remains."""
    match outcome:
        case Ask(question=question):
            shown = visible(question).strip()
            return replace(outcome, question=shown) if shown else Failed(NOTHING_VISIBLE)
        case Decline(reason=reason):
            shown = visible(reason).strip()
            return Decline(shown) if shown else Failed(NOTHING_VISIBLE)
        case Done() | Failed():
            return outcome
        case _:
            assert_never(outcome)


def to_tool_result(
    index: int, tool_use_id: str, outcome: Outcome
) -> tuple[ToolResult | None, ToolSucceeded | ToolFailed]:
    """The result for the model, and the event. A question has no result yet: the user's answer becomes its result."""
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


def ending_from_tools(outcomes: Iterable[Outcome]) -> Ending | None:
    """The ending or pause that tools requested: declining wins over asking."""
    questions: list[Ask] = []
    for outcome in outcomes:
        match outcome:
            case Decline(reason=reason):
                return Ending(State.REJECTED, reason)
            case Ask():
                questions.append(outcome)
            case Done() | Failed():
                pass
            case _:
                assert_never(outcome)
    if not questions:
        return None
    state = State.AUTH_REQUIRED if any(each.authentication for each in questions) else State.INPUT_REQUIRED
    approvals: list[JsonValue] = [dict(each.approval) for each in questions if each.approval]
    metadata: Metadata = {CANVAS: {"approvals": approvals}} if approvals else NO_METADATA
    return Ending(state, "\n".join(each.question for each in questions), metadata)


def approvals_of(message: AgentMessage | None) -> Sequence[JsonValue]:
    """The calls that a message of the agent asks the user to approve."""
    asked = message.metadata.get(CANVAS) if message else None
    approvals = asked.get("approvals", ()) if isinstance(asked, Mapping) else ()
    return approvals if isinstance(approvals, Sequence) else ()


def ending_from_stop_reason(reason: StopReason) -> Ending | None:
    """The ending that follows from the model's stop reason, if any."""
    match reason:
        case "max_tokens":
            return Ending(State.FAILED, "The answer was cut off at the model's output limit. Ask for less at a time.")
        case "refusal":
            return Ending(State.REJECTED, "The model declined to answer this request.")
        case _:
            return None


MAX_ATTEMPTS = 3
"""Attempts of a model call, the first one included."""
RETRY_DELAYS = (0.5, 2.0)
"""Seconds before the second and the third attempt, before jitter."""
MAX_RETRY_DELAY = 30.0
"""The limit for a provider's `retry-after`, in seconds."""


def retry_delay(attempts_left: int, error: ModelError, jitter: float) -> float:
    """The seconds to wait before a retry.

    Args:
        attempts_left: the attempts that are left, the next one included.
        jitter: random, from 0 to 1: turns that failed together must not retry together.
    """
    return min(max(RETRY_DELAYS[-attempts_left] * (0.75 + jitter / 2), error.retry_after or 0), MAX_RETRY_DELAY)
