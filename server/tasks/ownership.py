"""Who runs a task. A task has one owner; with several replicas of the server that may be another one.

Rule 1: only the owner writes a task's journal. Who wants something of a task that runs elsewhere asks its owner.
Rule 2: a task that nobody runs (it waits for input, or its owner has gone) may be acquired by anybody.
Rule 3: what an owner that has lost a task still tries to say is not heard: it is told `Detached`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.tasks.record import TaskRecord


class Detached(asyncio.CancelledError):
    """The task is not this replica's any more: stop at once, and say nothing.

    It is a cancel, because whoever runs is to end as it does then; but nothing of what it still does is kept.
    """


class DuplicateMessage(Exception):
    """Another replica has accepted the same message.

    Args:
        task_id: the task that the message went to.
    """

    def __init__(self, task_id: str) -> None:
        super().__init__(task_id)
        self.task_id = task_id


@dataclass(frozen=True, slots=True)
class Orphan:
    """A task that was taken over.

    Attributes:
        resumptions: how often a crash has made somebody take it up, this time included.
        cancel_requested: somebody asked for it to be cancelled.
        write_failures: how often something of it could not be written; then it is taken over only to fail.
    """

    record: TaskRecord
    resumptions: int
    cancel_requested: bool
    write_failures: int = 0


class TaskRunner(Protocol):
    """What runs the tasks of this replica, as the one who keeps the leases calls it."""

    def resume(self, orphan: Orphan) -> None:
        """Take up a task, which is this replica's now."""
        ...

    async def deliver(self, task_id: str, message: UserMessage) -> bool:
        """A message for a task of this replica came to another one. False: it has ended, or pauses."""
        ...

    def interrupt(self, task_id: str) -> None:
        """Another replica asks for a task of this one to be cancelled."""
        ...

    def detach(self, task_ids: Iterable[str] | None = None) -> None:
        """Nothing that these tasks say is kept, or every task of this replica (None): stop them, and say nothing."""
        ...


class Ownership(Protocol):
    """Who runs which task."""

    async def acquire(self, task_id: str) -> TaskRecord | None:
        """Make a task that nobody runs this replica's. None: somebody else runs it."""
        ...

    async def post(self, task_id: str, message: UserMessage, key: str) -> bool:
        """Give a message to the owner of a task. False: the task ended, or pauses, before it took it.

        Args:
            key: of the message, to be remembered; empty if it is not to be.
        """
        ...

    async def request_cancel(self, task_id: str) -> None:
        """Have the owner of a task cancel it; its journal will say so."""
        ...

    async def resign(self) -> None:
        """Give up every task of this replica, so that others take them up at once: nobody hears what they still say."""
        ...
