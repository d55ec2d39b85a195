"""What runs for a task: its `asyncio.Task`, and how it is stopped."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from a2a_canvas.server.agent.events import State, StatusChanged, UserMessage
from a2a_canvas.server.agent.intent import Operation
from a2a_canvas.server.tasks.runtime.admission import Ticket


@dataclass(slots=True)
class TurnHandle:
    """What runs.

    Attributes:
        ticket: its place among the turns; None for what is done at once.
        closed: it takes no more messages.
        detached: its task is not this process's any more, or not for this run.
        ending: what its task becomes if it is stopped.
    """

    operation: Operation | None = None
    ticket: Ticket | None = None
    task: asyncio.Task[None] | None = None
    begun: bool = False
    inbox: list[UserMessage] = field(default_factory=list)
    closed: bool = False
    stopping: bool = False
    detached: bool = False
    ending: StatusChanged = field(default_factory=lambda: StatusChanged(State.CANCELED))

    async def stop(self, ending: StatusChanged | None = None) -> None:
        """Cancel the turn, once, and wait until its task has its status."""
        self.interrupt(ending)
        await self.ended()

    def interrupt(self, ending: StatusChanged | None = None) -> None:
        """Cancel the turn, once."""
        if not self.stopping:
            self.stopping, self.ending = True, ending or self.ending
            self._cancel()

    def detach(self) -> None:
        """Cancel the turn, even if it is being cancelled already; it is not heard any more."""
        self.stopping, self.closed, self.detached = True, True, True
        self._cancel()

    def _cancel(self) -> None:
        if self.task and self.begun:
            self.task.cancel()

    def begin(self) -> None:
        """The turn's first step. An `asyncio.Task` that is cancelled before it never runs, and would say nothing."""
        self.begun = True
        if self.stopping:
            raise asyncio.CancelledError

    async def ended(self) -> None:
        if self.task:
            await asyncio.wait([self.task])

    def take(self, closing: bool) -> tuple[UserMessage, ...]:
        messages, self.inbox = tuple(self.inbox), []
        self.closed = closing and not messages
        return messages
