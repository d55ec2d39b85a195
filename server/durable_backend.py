"""The backend in a database, with retention: what is older than the settings allow is pruned every hour."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from a2a_canvas.server.database import make_database, prepare_database
from a2a_canvas.server.settings import Settings
from a2a_canvas.server.tasks.journal.journal import Journal
from a2a_canvas.server.tasks.ownership import Ownership, TaskRunner
from a2a_canvas.server.tasks.sql.journal.prune import Retention, prune
from a2a_canvas.server.tasks.sql.replica.sql_backend import SqlBackend
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.models import Limits

logger = logging.getLogger(__name__)

PRUNE_INTERVAL = timedelta(hours=1)
"""From one sweep to the next; the first is made when the server starts."""


def retention_of(settings: Settings) -> Retention:
    """How long things are kept."""
    versions, contexts = settings.keep_versions, settings.keep_contexts
    return Retention(
        journals=timedelta(days=settings.keep_journals),
        versions=None if versions is None else timedelta(days=versions),
        contexts=None if contexts is None else timedelta(days=contexts),
    )


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
