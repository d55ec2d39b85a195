"""Which replica runs a task. One replica at most does; the others ask it. (The owner of a task is its caller.)

Rule 1: only the replica that runs a task writes its journal. Another one that wants something of the task asks it.
Rule 2: any replica may acquire a task that none runs: one that waits for input, or whose replica has died.
Rule 3: a replica that has lost a task cannot write its journal any more: every attempt raises `TaskDetached`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.tasks.journal.journal import Journal
from a2a_canvas.server.tasks.record import TaskRecord


@dataclass(frozen=True, slots=True)
class Orphan:
    """A task that was taken over.

    Attributes:
        resumptions: how often it was taken over after a crash, this time included.
        cancel_requested: the request came before the takeover.
        write_failures: how often something of it could not be written; if any, it is taken over only to fail.
    """

    record: TaskRecord
    resumptions: int
    cancel_requested: bool
    write_failures: int = 0


class TaskRunner(Protocol):
    """What a backend asks of the runtime that runs this replica's tasks."""

    def resume(self, orphan: Orphan) -> None:
        """Resume a task that this replica has taken over."""
        ...

    async def deliver(self, task_id: str, message: UserMessage) -> bool:
        """Give a task the message that another replica received for it. False: it has ended, or pauses."""
        ...

    def cancel_turn(self, task_id: str) -> None:
        """Cancel a task, because another replica was asked to."""
        ...

    @property
    def room(self) -> int:
        """How many more turns it could run at once."""
        ...

    def waiting_tasks(self) -> Sequence[str]:
        """The tasks that only wait for a place among the turns, and that another replica could run as well. Those that
        are served first come first."""
        ...

    async def wait_until_full(self) -> None:
        """Come back when a turn waits for a place."""
        ...

    def detach(self, task_ids: Iterable[str] | None = None) -> None:
        """Stop the turns of these tasks, or all of them (None), and ignore what they still emit: they are lost."""
        ...


class Ownership(Protocol):
    """Which replica runs which task."""

    async def acquire(self, task_id: str, generation: int | None = None) -> TaskRecord | None:
        """Run a task that no replica runs here. None: another replica runs it, or it has changed.

        Args:
            generation: that of the task as the caller knows it; None for any.
        """
        ...

    async def post(self, task_id: str, message: UserMessage, key: str) -> bool:
        """Send a message to the replica that runs a task. False: the task ended, or paused, before it took the message.

        Args:
            key: the message's deduplication key; empty if it has none.
        """
        ...

    async def request_cancel(self, task_id: str) -> None:
        """Ask the replica that runs a task to cancel it. The task's journal tells when it is done."""
        ...

    async def resign(self) -> None:
        """Give up every task of this replica, so that others take them over at once. Nothing more is written."""
        ...


class LocalOwnership:
    """The `Ownership` of a process without other replicas: every task is its own."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def acquire(self, task_id: str, generation: int | None = None) -> TaskRecord | None:
        record = await self._journal.get(task_id)
        return record if generation in (None, record.generation) else None

    async def post(self, task_id: str, message: UserMessage, key: str) -> bool:
        return False

    async def request_cancel(self, task_id: str) -> None:
        pass

    async def resign(self) -> None:
        pass
