"""What the log says of a turn when its task has ended, or pauses: one line, made of the turn's events. Pure.

Rule 1: the figures are those of this run of the turn: since the message that it answers, or since this server has taken
        the task over.
Rule 2: a reason is told if it is a text of this server: that of a failure, or of a refusal without a model call. What a
        tool said in it is left out, because that may quote an artifact.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    LlmCallCompleted,
    State,
    StatusChanged,
    ToolFailed,
    TurnEvent,
)
from a2a_canvas.server.log_output import about

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnReport:
    """The fold of a turn's events.

    Attributes:
        rounds: their numbers.
        tokens_in: those of the requests to the model, cached or not; 0 if the provider does not report them.
        artifacts: the last version that was closed, by artifact.
        tool_error: what the last failed tool call said.
    """

    rounds: frozenset[int] = frozenset()
    tokens_in: int = 0
    tokens_out: int = 0
    artifacts: Mapping[str, int] = field(default_factory=dict)
    tool_error: str = ""

    def after(self, event: TurnEvent) -> TurnReport:
        match event:
            case LlmCallCompleted(round=number, usage=usage):
                return replace(
                    self,
                    rounds=self.rounds | {number},
                    tokens_in=self.tokens_in + usage.total_input,
                    tokens_out=self.tokens_out + usage.output_tokens,
                )
            case ArtifactChanged(last_chunk=True, resent=False):
                return replace(self, artifacts={**self.artifacts, event.artifact_id: event.version})
            case ToolFailed(error=error):
                return replace(self, tool_error=error)
            case _:
                return self

    def fields(self, status: StatusChanged, took: timedelta) -> dict[str, Any]:
        """The fields of the line."""
        figures = {
            "state": str(status.state),
            "seconds": round(took.total_seconds(), 3),
            "rounds": len(self.rounds),
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
        }
        reason = self._reason(status)
        return figures | {name: value for name, value in (("artifacts", self.artifacts), ("reason", reason)) if value}

    def _reason(self, status: StatusChanged) -> str:
        text = status.message.text if status.message else ""
        ours = status.state is State.FAILED or (status.state is State.REJECTED and not self.rounds)
        if not ours:
            return ""
        return text.replace(self.tool_error, "…") if self.tool_error else text


NO_TURN = TurnReport()
"""Of a task that ends without a turn."""


def log_call(event: LlmCallCompleted) -> None:
    """Log the end of a model call, at debug."""
    usage = event.usage
    fields = about(
        round=event.round, stop_reason=event.stop_reason, tokens_in=usage.total_input, tokens_out=usage.output_tokens
    )
    logger.debug("Model call ended", extra=fields)


def log_status(
    status: StatusChanged, report: TurnReport = NO_TURN, took: timedelta = timedelta(), ids: tuple[str, str] = ("", "")
) -> None:
    """Log the end of a task, or its pause; nothing else.

    Args:
        ids: of the task and its context, where `set_task` has not named them.
    """
    if status.state.settled:
        became = "waits for an answer" if status.state.paused else status.state.value
        logger.info("Task %s", became, extra=about(*ids, **report.fields(status, took)))
