"""Who looks at a context, and which tasks work in it: told to each stream of the context when it changes.

Rule 1: a stream is a watcher from its first step to its end. The watchers of all replicas count.
Rule 2: the cost is that of the changes: what is watched is read when something says that it may have changed, once for
        all streams of this process. Nothing is read for a context that nobody here watches.
Rule 3: a slow stream gets the newest activity only. It never names a task that began and ended meanwhile, but `tasks`
        and `updated_at` change with each, so that a client reads what it has missed.
Rule 4: whether it can be read delays nothing else: while the database is unavailable the last one stays, and it is read
        again later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from a2a_canvas.server.tasks.journal.cursors import Log
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey

logger = logging.getLogger(__name__)

STOP_SECONDS = 0.5
"""Seconds that a read has left when the server stops."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What goes on in a context.

    Attributes:
        watchers: streams of the context that are open, on all replicas.
        working: ids of the tasks that are not settled, in the order in which they began.
        tasks: how many tasks it has ever had.
        updated_at: when the status of one of them last changed; None before the first task.
    """

    watchers: int
    working: tuple[str, ...]
    tasks: int = 0
    updated_at: datetime | None = None


class ActivitySource(Protocol):
    """What all replicas know together. Both methods may raise `Unavailable`."""

    async def report(self, watchers: Mapping[ContextKey, int]) -> None:
        """Tell the others how many watchers these contexts have here."""
        ...

    async def read(self, context_ids: Collection[ContextKey]) -> Mapping[ContextKey, Activity]:
        """The activity of each of these contexts, with the watchers on other replicas alone."""
        ...


class _WatchedContext(Log[None]):
    """A context that has watchers here. `elsewhere` is None until it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.here = 0
        self.elsewhere: Activity | None = None

    @property
    def activity(self) -> Activity | None:
        known = self.elsewhere
        return None if known is None else replace(known, watchers=self.here + known.watchers)


class WatchedContexts:
    """The contexts that are watched in this process."""

    def __init__(self, source: ActivitySource) -> None:
        self._source = source
        self._watched: dict[ContextKey, _WatchedContext] = {}
        self._stale: set[ContextKey] = set()
        self._unreported: set[ContextKey] = set()
        self._refreshing: asyncio.Task[None] | None = None
        self._stopped = False

    async def watch(self, context_id: ContextKey) -> AsyncGenerator[Activity, None]:
        """The activity of a context, as soon as it is known and whenever it has changed. It never ends."""
        watched = self._watched.get(context_id)
        if watched is None:
            watched = self._watched[context_id] = _WatchedContext()
            self._stale.add(context_id)
        self._count(context_id, watched, 1)
        shown = None
        try:
            while True:
                activity = watched.activity
                if activity is None or activity == shown:
                    await watched.wait()
                else:
                    shown = activity
                    yield activity
        finally:
            self._count(context_id, watched, -1)

    def _count(self, context_id: ContextKey, watched: _WatchedContext, more: int) -> None:
        watched.here += more
        if not watched.here:
            del self._watched[context_id]
        self._unreported.add(context_id)
        watched.wake()
        self.retry()

    def mark_changed(self, context_ids: Iterable[ContextKey]) -> None:
        """The activity of these contexts may have changed."""
        self._stale.update(each for each in context_ids if each in self._watched)
        self.retry()

    def mark_all_changed(self) -> None:
        """That of any context may have."""
        self.mark_changed([*self._watched])

    def report_again(self) -> None:
        """The others do not know how many watchers there are here."""
        self._unreported.update(self._watched)
        self.retry()

    def retry(self) -> None:
        """Read and report what could not be read and reported before, if anything."""
        idle = self._refreshing is None or self._refreshing.done()
        if idle and (self._stale or self._unreported) and not self._stopped:
            self._refreshing = asyncio.create_task(self._refresh(), name="activity of contexts")

    async def stop(self) -> None:
        """Read nothing any more. A read that is cancelled while it connects leaves its connection open: it may end."""
        self._stopped = True
        if self._refreshing:
            await asyncio.wait((self._refreshing,), timeout=STOP_SECONDS)
            self._refreshing.cancel()
            await asyncio.wait((self._refreshing,))

    async def _refresh(self) -> None:
        while self._stale or self._unreported:
            stale, self._stale = self._stale, set()
            unreported, self._unreported = self._unreported, set()
            try:
                await self._source.report({each: self._here(each) for each in unreported})
                self._publish(await self._source.read(stale & self._watched.keys()))
            except Unavailable:
                self._stale |= stale
                self._unreported |= unreported
                return
            except Exception:
                logger.exception("The activity of contexts could not be read")

    def _here(self, context_id: ContextKey) -> int:
        watched = self._watched.get(context_id)
        return watched.here if watched else 0

    def _publish(self, found: Mapping[ContextKey, Activity]) -> None:
        for context_id, elsewhere in found.items():
            if watched := self._watched.get(context_id):
                watched.elsewhere = elsewhere
                watched.wake()
