"""What a server keeps tasks and artifacts in: memory, or a database with its lease and its sweep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from a2a_canvas.server.database import database_of, make_ready
from a2a_canvas.server.settings import Settings
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, Journal
from a2a_canvas.server.tasks.ownership import Owner, Ownership
from a2a_canvas.server.tasks.sql.journal.prune import Keep, prune
from a2a_canvas.server.tasks.sql.replica.sql_backend import House
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Limits

logger = logging.getLogger(__name__)

SWEEP = timedelta(hours=1)
"""From one sweep to the next; the first is made when the server starts."""


class Keeping(Protocol):
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

    async def start(self, owner: Owner) -> None:
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


def keeping_of(settings: Settings, now: Callable[[], datetime]) -> Keeping:
    """What the settings name; nothing is opened yet."""
    limits = Limits(settings.max_artifact_bytes, settings.max_parts)
    return Memory(now, limits) if settings.database == "memory" else Durable(settings, now, limits)


def keep_of(settings: Settings) -> Keep:
    """How long things are kept."""
    versions, contexts = settings.keep_versions, settings.keep_contexts
    return Keep(
        journals=timedelta(days=settings.keep_journals),
        versions=None if versions is None else timedelta(days=versions),
        contexts=None if contexts is None else timedelta(days=contexts),
    )


class Memory:
    """Everything is gone when the process ends."""

    def __init__(self, now: Callable[[], datetime], limits: Limits) -> None:
        self.journal: Journal = InMemoryJournal(now)
        self.store: ArtifactStore = InMemoryArtifactStore(limits)
        self.ownership: Ownership | None = None

    async def start(self, owner: Owner) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def ready(self) -> str | None:
        return None


class Durable:
    """A database."""

    def __init__(self, settings: Settings, now: Callable[[], datetime], limits: Limits) -> None:
        self._database = database_of(settings.database)
        self._house = House(self._database, now, limits, grace=settings.shutdown_grace)
        self._keep = keep_of(settings)
        self._now = now
        self._sweeping: asyncio.Task[None] | None = None
        self.journal: Journal = self._house.journal
        self.store: ArtifactStore = self._house.store
        self.ownership: Ownership | None = self._house

    async def start(self, owner: Owner) -> None:
        await make_ready(self._database)
        await self._house.start(owner)
        self._sweeping = asyncio.create_task(self._sweep(), name="sweep")

    async def stop(self) -> None:
        if self._sweeping:
            self._sweeping.cancel()
            await asyncio.wait([self._sweeping])
        await self._house.stop()

    async def ready(self) -> str | None:
        return await self._house.ready()

    async def _sweep(self) -> None:
        while True:
            try:
                pruned = await prune(self._database, self._keep, self._now(), self._house.store.frozen)
                logger.debug("Swept: %s", pruned)
            except Unavailable as error:
                logger.warning("%s The sweep waits for its next turn.", error)
            except Exception:
                logger.exception("The sweep failed")
            await asyncio.sleep(SWEEP.total_seconds())
