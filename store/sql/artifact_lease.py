"""The artifact leases of this replica (`sql_artifact_store.py`, rule 1), and how it acquires them.

Rule 1: one attempt runs at a time for an artifact, however many callers wait for it, and it finishes even if they are
        cancelled.
Rule 2: if another live replica has the lease, the artifact is busy if another task's draft is open in it. Otherwise
        (no draft, or one of the requesting task) the caller waits: the other replica is about to release it.
Rule 3: a lease that is acquired is pinned for `IDLE_SECONDS`; without a change in that time it is released.
Rule 4: on SQLite no row names the lease of an artifact. Code that removes rows there takes `frozen` first.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store.errors import ArtifactBusy, Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Document, Ref, new_incarnation
from a2a_canvas.store.sql import reading, writing
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.reading import Cache, Key, key_of
from a2a_canvas.store.sql.rows import ArtifactHead, StoredDocument
from a2a_canvas.store.sql.writing import Write

ACQUIRE_SECONDS = 5.0
"""Seconds to wait for a lease that another replica is about to release."""
POLL_SECONDS = 0.05
"""Seconds between two attempts."""
IDLE_SECONDS = 1.0
"""Seconds that an unused lease is retained."""


class LeaseHolder(Protocol):
    """This replica, as the owner of artifact leases.

    Attributes:
        id: its name, which changes after it has lost its own lease.
        exclusive: no other replica exists.
    """

    id: str
    exclusive: bool

    async def alive(self, connection: AsyncConnection, replica_id: str) -> bool:
        """Whether a replica's own lease is valid."""
        ...


@dataclass(slots=True, eq=False)
class ArtifactLease:
    """This replica's lease of an artifact, with the document in memory.

    Attributes:
        newest: the document after its last change.
        saved: the document that is committed.
        changed: the time of the last change, in microseconds since 1970.
        collected: when its last write was collected, by the clock of the event loop.
        releasing: the running transaction releases the lease.
        pins: how many callers may be about to change the artifact (rule 3).
        lost: changes were not committed, and are dropped.
    """

    key: Key
    saved: StoredDocument
    newest: Document = field(init=False)
    changed: int = field(init=False)
    collected: float = float("-inf")
    releasing: bool = False
    pins: int = 0
    lost: bool = False

    def __post_init__(self) -> None:
        self.newest = self.saved.document
        self.changed = self.saved.head.changed

    @property
    def idle(self) -> bool:
        """Whether memory equals the rows, and no draft is open."""
        return self.newest is self.saved.document and self.newest.draft is None

    @property
    def durable(self) -> bool:
        """Whether all closed versions, and the choice of the current one, are committed."""
        return durable_state(self.newest) == durable_state(self.saved.document)

    @property
    def only_shown(self) -> bool:
        """Whether only the output of an unfinished call is uncommitted, which a crash may lose."""
        new, old = self.newest.draft, self.saved.document.draft
        return bool(new and old and self.durable and replace(new, shown=old.shown) == old)


def durable_state(document: Document) -> tuple[int, int]:
    """The part of a document for which readers wait: the number of versions, and the current one."""
    return len(document.versions), document.current


class _HeldByAnotherReplica(Exception):
    """Another live replica has the lease."""

    def __init__(self, draft_task: str | None) -> None:
        self.draft_task = draft_task


class Leases:
    """The artifact leases of this replica.

    Args:
        unused: called with a lease whose last pin has expired (rule 3).
    """

    def __init__(
        self, database: Database, holder: LeaseHolder, cache: Cache, unused: Callable[[ArtifactLease], None]
    ) -> None:
        self._database = database
        self._holder = holder
        self._cache = cache
        self._unused = unused
        self._leases: dict[Key, ArtifactLease] = {}
        self._attempts: dict[Key, asyncio.Task[None]] = {}
        self._frozen: dict[ContextKey, asyncio.Event] = {}
        self._clock = 0

    def find(self, key: Key) -> ArtifactLease | None:
        return self._leases.get(key)

    def in_context(self, context_id: ContextKey) -> Iterator[ArtifactLease]:
        """The leases in a context."""
        return (lease for lease in self._leases.values() if lease.key[0] == context_id)

    async def acquire(self, ref: Ref) -> None:
        """Acquire the lease of an artifact, which need not exist yet.

        Raises:
            ArtifactBusy: another replica's task has a draft of it open.
            Unavailable: another replica does not release it, or the database cannot be used.
        """
        key = key_of(ref)
        end = asyncio.get_running_loop().time() + ACQUIRE_SECONDS
        while key not in self._leases:  # another waiting caller may have acquired and changed it
            try:
                await self._attempt(key)
            except _HeldByAnotherReplica as other:
                if other.draft_task not in (None, ref.task_id):
                    raise ArtifactBusy(ref.artifact_id, other.draft_task) from None
                if asyncio.get_running_loop().time() > end:
                    raise Unavailable(f"another server does not release artifact {ref.artifact_id!r}") from None
                await asyncio.sleep(POLL_SECONDS)

    @contextmanager
    def frozen(self, context_id: ContextKey) -> Iterator[bool]:
        """Block acquiring leases in a context; yields False if there is a lease or an attempt already (rule 4)."""
        if context_id in self._frozen or any(key[0] == context_id for key in (*self._leases, *self._attempts)):
            yield False
            return
        opened = self._frozen[context_id] = asyncio.Event()
        try:
            yield True
        finally:
            del self._frozen[context_id]
            opened.set()

    def pin(self, lease: ArtifactLease) -> None:
        """Keep a lease for `IDLE_SECONDS` (rule 3)."""
        lease.pins += 1
        asyncio.get_running_loop().call_later(IDLE_SECONDS, self._unpin, lease)

    def release(self, lease: ArtifactLease) -> None:
        """Remove a lease. The committed document goes to the cache."""
        if self._leases.get(lease.key) is lease:
            del self._leases[lease.key]
            self._cache.put(lease.key, lease.saved)

    def forget(self) -> None:
        """Drop all leases and running attempts."""
        self._leases = {}
        self._attempts = {}

    def drop(self, context_id: ContextKey) -> None:
        """Drop the uncommitted changes of a context: memory returns to the rows."""
        for lease in tuple(self.in_context(context_id)):
            if lease.lost:  # `ArtifactWork.release` has cleared it in the rows
                del self._leases[lease.key]
            else:
                lease.lost = True
                self._leases[lease.key] = ArtifactLease(lease.key, lease.saved)
                self.pin(self._leases[lease.key])

    def next_time(self) -> int:
        """The time in microseconds since 1970, later than every time that this replica has seen."""
        self._clock = max(self._clock + 1, time.time_ns() // 1000)
        return self._clock

    def observe(self, found: ArtifactHead) -> None:
        self._clock = max(self._clock, found.changed)

    def _unpin(self, lease: ArtifactLease) -> None:
        lease.pins = max(0, lease.pins - 1)
        if not lease.pins:
            self._unused(lease)

    # ------------------------------------------------------------------ acquiring

    async def _attempt(self, key: Key) -> None:
        attempt = self._attempts.get(key)
        if attempt is None or attempt.done():  # a finished attempt is no answer to a later caller
            attempt = self._attempts[key] = asyncio.create_task(self._acquire(key, self._leases))
            attempt.add_done_callback(lambda done: self._end_attempt(key, done))
        await asyncio.shield(attempt)

    def _end_attempt(self, key: Key, attempt: asyncio.Task[None]) -> None:
        if self._attempts.get(key) is attempt:
            del self._attempts[key]
        if not attempt.cancelled():
            attempt.exception()  # the caller may have been cancelled

    async def _acquire(self, key: Key, into: dict[Key, ArtifactLease]) -> None:
        """Acquire the lease into `into`; `forget` may replace that dictionary in the meantime."""
        if opened := self._frozen.get(key[0]):
            await opened.wait()
        if self._holder.exclusive:
            async with self._database.read() as connection:
                found = await reading.read_head(connection, key) or ArtifactHead(incarnation=new_incarnation())
                stored = await self._cache.read(connection, key, found)
        else:
            async with self._database.write() as connection:
                stored = await self._acquire_row(connection, key)
        self.observe(stored.head)
        into[key] = ArtifactLease(key, stored)
        self.pin(into[key])

    async def _acquire_row(self, connection: AsyncConnection, key: Key) -> StoredDocument:
        me = self._holder.id
        found = await reading.read_head(connection, key, lock=True)
        if found is None:
            new = ArtifactHead(holder=me, incarnation=new_incarnation())
            if await connection.run_sync(writing.insert_head, key, new):
                return StoredDocument(Document(key[1]), new)
            found = await reading.read_head(connection, key, lock=True) or ArtifactHead()
        if found.holder not in (None, me) and await self._holder.alive(connection, found.holder):
            raise _HeldByAnotherReplica(found.draft_task)
        await connection.run_sync(writing.set_holder, key, me)
        return await self._cache.read(connection, key, found)


class ArtifactWork:
    """The staged writes of leased artifacts, for the group commit."""

    def __init__(self, leases: Leases, writes: dict[ArtifactLease, Write]) -> None:
        self._leases = leases
        self._writes = writes
        self._after: list[StoredDocument] = []

    def write(self, connection: Connection) -> None:
        self._after = writing.write(connection, [*self._writes.values()])

    def done(self) -> None:
        for lease, after in zip(self._writes, self._after, strict=True):
            lease.saved = after
            if lease.idle:
                self._leases.release(lease)

    def by_context(self) -> dict[ContextKey, ArtifactWork]:
        by_context: defaultdict[ContextKey, dict[ArtifactLease, Write]] = defaultdict(dict)
        for lease, write in self._writes.items():
            by_context[lease.key[0]][lease] = write
        return {context_id: ArtifactWork(self._leases, writes) for context_id, writes in by_context.items()}

    def release(self, connection: Connection) -> None:
        writing.clear_holder(connection, [*self._writes.values()])

    def failed(self) -> None:
        for lease in self._writes:
            lease.lost = True
