"""The backend in a database, with retention: older data is pruned every hour."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from a2a_canvas.server.accounts.api_key import ApiKeys
from a2a_canvas.server.accounts.browser_session import EndedSessions
from a2a_canvas.server.accounts.quotas import Meter
from a2a_canvas.server.accounts.sql.sql_api_keys import SqlApiKeys
from a2a_canvas.server.accounts.sql.sql_sessions import SqlEndedSessions
from a2a_canvas.server.accounts.sql.sql_usage import SharedUsage
from a2a_canvas.server.backend.open_database import make_database, prepare_database
from a2a_canvas.server.backend.sql_backend import SqlBackend
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.server.tasks.runtime.ownership import TaskRunner
from a2a_canvas.server.tasks.sql.journal.prune import Retention, prune
from a2a_canvas.server.tasks.sql.journal.sql_kept import SqlKeptBytes
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.models import Limits
from a2a_canvas.store.sql.database import CONNECTIONS

logger = logging.getLogger(__name__)

PRUNE_INTERVAL = timedelta(hours=1)
"""The interval of prunes; the first runs at the start of the server."""


KEEP_JOURNALS = timedelta(days=1)
"""How long clients can resume the stream of an ended task."""

LAST_EXCHANGE_SECONDS = 1.0
"""The time-out of a stopping server for storing usage."""


def retention_of(settings: Settings) -> Retention:
    """How long rows are stored."""
    versions, contexts = settings.keep_versions, settings.keep_contexts
    return Retention(
        journals=KEEP_JOURNALS,
        versions=None if versions is None else timedelta(days=versions),
        contexts=None if contexts is None else timedelta(days=contexts),
    )


class DurableBackend(SqlBackend):
    """A `Backend` in a database."""

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], datetime],
        limits: Limits,
        metrics: Metrics | None = None,
        connections: int | None = None,
    ) -> None:
        super().__init__(
            make_database(settings.database, connections or CONNECTIONS),
            now,
            limits,
            grace=settings.shutdown_grace,
            metrics=metrics,
            broker=settings.broker,
            takes_over=settings.max_turns > 0,
        )
        self.api_keys: ApiKeys | None = SqlApiKeys(self._database, reads=self._access_reads)
        self.ended_sessions: EndedSessions = SqlEndedSessions(
            self._database, now, reads=self._access_reads, revoked=self._revoke
        )
        self._retention = retention_of(settings)
        self._now = now
        self._beside: list[asyncio.Task[None]] = []
        self._usage: SharedUsage | None = None
        self._kept = SqlKeptBytes(self._database)
        self._metrics.refreshers.append(self._report_stored_bytes)

    async def start(self, runner: TaskRunner) -> None:
        await prepare_database(self._database)
        if self._database.file:
            self._database.file.warn_of_others()
        await super().start(runner)
        self._beside = [asyncio.create_task(self._prune_regularly(), name="prune")]

    async def share_usage(self, meter: Meter, exchanged: Callable[[], None]) -> None:
        meter.kept = self._kept
        self._usage = SharedUsage(self._database, meter, self._now, exchanged)
        with suppress(Unavailable):
            await self._usage.exchange()  # before the first request: the counts from before this start
        self._beside.append(asyncio.create_task(self._usage.run(), name="usage"))

    async def stop(self) -> None:
        for task in self._beside:
            task.cancel()
        if self._beside:
            await asyncio.wait(self._beside)
        if self._usage:
            with suppress(Unavailable, TimeoutError):
                await asyncio.wait_for(self._usage.exchange(), LAST_EXCHANGE_SECONDS)
        await super().stop()

    async def _report_stored_bytes(self) -> None:
        self._metrics.kept_bytes.set(await self._kept.sum_of_all())

    async def _prune_regularly(self) -> None:
        while True:
            try:
                pruned = await prune(self._database, self._retention, self._now(), self.store.frozen)
                logger.debug("Pruned: %s", pruned)
            except Unavailable as error:
                logger.warning("%s Pruning is tried again in an hour.", error)
            except Exception:
                logger.exception("Pruning failed")
            await asyncio.sleep(PRUNE_INTERVAL.total_seconds())
