"""What an agent's function sends to AG-UI clients: each event once, however often the function runs.

Rule 1: a rerun that sends what the run before had sent since the last record, in the same order, shows nothing. Each
        step, and what is outside of steps, has an order of its own.
Rule 2: at the first event that differs, clients first get back the state and the activities as this run knows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from a2a_canvas.server.agent.agui_log import AguiLog, digest_of
from a2a_canvas.server.agent.events import AguiSent, Emit, TurnEvent


class AguiTask:
    """Follows what the turn of a task emits.

    Args:
        log: what earlier runs have sent.
    """

    def __init__(self, log: AguiLog, emit: Emit) -> None:
        self.log = log
        self._emit = emit

    async def emit(self, event: TurnEvent) -> None:
        self.log = self.log.fold(event)
        await self._emit(event)


@dataclass(slots=True)
class _Repetition:
    """The unrecorded events of a step in the run before, and how many of them this run has sent."""

    digests: list[str]
    count: int = 0


class AguiStream:
    """The events of one run of the function."""

    def __init__(self, task: AguiTask) -> None:
        self._task = task
        self._view = task.log.recorded or task.log.view  # as this run knows it
        self._repeated = {step: _Repetition(task.log.digests(step)) for step in task.log.unrecorded}

    @property
    def has_unrecorded(self) -> bool:
        """Whether something was sent outside of steps since the last record."""
        return self._task.log.count("") > 0

    async def send(self, event: Mapping[str, Any], step: str) -> None:
        """Send a checked event.

        Raises:
            AguiEventError: it is a delta that does not fit.
        """
        before, self._view = self._view, self._view.after(event)
        repeated = self._repeated.get(step)
        if repeated is None:
            await self._task.emit(AguiSent(event, step, self._task.log.count(step)))
        elif digest_of(event) == repeated.digests[repeated.count]:
            repeated.count += 1
            if repeated.count == len(repeated.digests):
                del self._repeated[step]
        else:
            del self._repeated[step]
            for restored in before.events_from(self._task.log.view):
                await self._task.emit(AguiSent(restored))
            await self._task.emit(AguiSent(event, step, repeated.count))
