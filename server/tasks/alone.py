"""Who runs a task when there are no other replicas and nothing outlives the process: this one, always."""

from __future__ import annotations

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.tasks.journal.journal import Journal
from a2a_canvas.server.tasks.record import TaskRecord


class LocalOwnership:
    """An `Ownership` in memory."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def acquire(self, task_id: str) -> TaskRecord | None:
        return await self._journal.get(task_id)

    async def post(self, task_id: str, message: UserMessage, key: str) -> bool:
        return False

    async def request_cancel(self, task_id: str) -> None:
        pass

    async def resign(self) -> None:
        pass
