"""What a server keeps tasks and artifacts in: memory, or a database with its lease and its sweep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from a2a_canvas.server.database import make_database, prepare_database
from a2a_canvas.server.settings import Settings
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, Journal
from a2a_canvas.server.tasks.ownership import Ownership, TaskRunner
from a2a_canvas.server.tasks.sql.journal.prune import Retention, prune
from a2a_canvas.server.tasks.sql.replica.sql_backend import SqlBackend
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Limits

logger = logging.getLogger(__name__)

PRUNE_INTERVAL = timedelta(hours=1)
"""From one sweep to the next; the first is made when the server starts."""


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
    return MemoryBackend(now, limits) if settings.database == "memory" else DurableBackend(settings, now, limits)


def retention_of(settings: Settings) -> Retention:
    """How long things are kept."""
    versions, contexts = settings.keep_versions, settings.keep_contexts
    return Retention(
        journals=timedelta(days=settings.keep_journals),
        versions=None if versions is None else timedelta(days=versions),
        contexts=None if contexts is None else timedelta(days=contexts),
    )


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


class DurableBackend:
    """A database."""

    def __init__(self, settings: Settings, now: Callable[[], datetime], limits: Limits) -> None:
        self._database = make_database(settings.database)
        self._backend = SqlBackend(self._database, now, limits, grace=settings.shutdown_grace)
        self._keep = retention_of(settings)
        self._now = now
        self._sweeping: asyncio.Task[None] | None = None
        self.journal: Journal = self._backend.journal
        self.store: ArtifactStore = self._backend.store
        self.ownership: Ownership | None = self._backend

    async def start(self, owner: TaskRunner) -> None:
        await prepare_database(self._database)
        await self._backend.start(owner)
        self._sweeping = asyncio.create_task(self._sweep(), name="sweep")

    async def stop(self) -> None:
        if self._sweeping:
            self._sweeping.cancel()
            await asyncio.wait([self._sweeping])
        await self._backend.stop()

    async def ready(self) -> str | None:
        return await self._backend.ready()

    async def _sweep(self) -> None:
        while True:
            try:
                pruned = await prune(self._database, self._keep, self._now(), self._backend.store.frozen)
                logger.debug("Swept: %s", pruned)
            except Unavailable as error:
                logger.warning("%s The sweep waits for its next turn.", error)
            except Exception:
                logger.exception("The sweep failed")
            await asyncio.sleep(PRUNE_INTERVAL.total_seconds())
