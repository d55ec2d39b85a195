"""What the metrics count of a turn, from its events."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    LlmCallCompleted,
    StatusChanged,
    ToolFailed,
    ToolSucceeded,
    ToolUseStarted,
    TurnEvent,
)
from a2a_canvas.server.metrics import OTHER, Metrics


class TurnMetrics:
    """Counts the events of one run of a turn.

    Args:
        conversation: the model may write an artifact in it; an operation writes at once, or one passage.
        tools: the names of the tools that there are. A model may call others, which no label shall have.
        elapsed: since the message that began it.
    """

    def __init__(
        self,
        metrics: Metrics,
        tools: Callable[[], Collection[str]],
        elapsed: Callable[[], timedelta],
        *,
        conversation: bool,
    ) -> None:
        self._metrics = metrics
        self._tools = tools
        self._elapsed = elapsed
        self._names: dict[str, str] = {}
        # By kind: most events are pieces of text, which cost one look here.
        self._by_kind: dict[type[Any], Callable[[Any], None]] = {
            StatusChanged: self._status,
            LlmCallCompleted: self._model_call,
            ToolUseStarted: self._tool_began,
            ToolSucceeded: self._tool_succeeded,
            ToolFailed: self._tool_failed,
        }
        if conversation:
            self._by_kind[ArtifactChanged] = self._artifact

    def count(self, event: TurnEvent) -> None:
        if found := self._by_kind.get(type(event)):
            found(event)

    def _status(self, event: StatusChanged) -> None:
        if event.state.settled:
            self._metrics.turns.labels(event.state.value).inc()

    def _artifact(self, event: ArtifactChanged) -> None:
        if event.parts:
            del self._by_kind[ArtifactChanged]
            self._metrics.first_byte.observe(max(self._elapsed().total_seconds(), 0))

    def _model_call(self, event: LlmCallCompleted) -> None:
        self._metrics.model_calls.labels(event.stop_reason).inc()
        self._metrics.tokens.labels("in").inc(event.usage.total_input)
        self._metrics.tokens.labels("out").inc(event.usage.output_tokens)

    def _tool_began(self, event: ToolUseStarted) -> None:
        self._names[event.tool_use_id] = event.name

    def _tool_succeeded(self, event: ToolSucceeded) -> None:
        self._tool(event.tool_use_id, "succeeded")

    def _tool_failed(self, event: ToolFailed) -> None:
        self._tool(event.tool_use_id, "failed")

    def _tool(self, tool_use_id: str, outcome: str) -> None:
        name = self._names.pop(tool_use_id, OTHER)
        self._metrics.tool_calls.labels(name if name in self._tools() else OTHER, outcome).inc()
