"""Where a server stores tasks and artifacts: in memory, or in a database (`durable_backend.py`)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from a2a_canvas.server.settings import Settings
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, Journal
from a2a_canvas.server.tasks.ownership import Ownership, TaskRunner
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Limits


class Backend(Protocol):
    """Where a server keeps what it has.

    Attributes:
        ownership: None if nothing outlives the process.
    """

    @property
    def journal(self) -> Journal: ...
    @property
    def store(self) -> ArtifactStore: ...
    @property
    def ownership(self) -> Ownership | None: ...

    async def start(self, owner: TaskRunner) -> None:
        """Get ready for use, and take up what was left lying.

        Raises:
            DatabaseError: it cannot be used.
        """
        ...

    async def stop(self) -> None:
        """Let everything go."""
        ...

    async def ready(self) -> str | None:
        """Why it cannot be used just now; None if it can."""
        ...


def make_backend(settings: Settings, now: Callable[[], datetime]) -> Backend:
    """What the settings name; nothing is opened yet."""
    limits = Limits(settings.max_artifact_bytes, settings.max_parts)
    if settings.database == "memory":
        return MemoryBackend(now, limits)
    from a2a_canvas.server.durable_backend import DurableBackend

    return DurableBackend(settings, now, limits)


class MemoryBackend:
    """Everything is gone when the process ends."""

    def __init__(self, now: Callable[[], datetime], limits: Limits) -> None:
        self.journal: Journal = InMemoryJournal(now)
        self.store: ArtifactStore = InMemoryArtifactStore(limits)
        self.ownership: Ownership | None = None

    async def start(self, owner: TaskRunner) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def ready(self) -> str | None:
        return None
