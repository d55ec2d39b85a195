"""Which artifacts this replica holds (`artifacts.py`, rule 1), and how it gets hold of one.

Rule 1: one attempt is made at a time for an artifact, however many ask, and goes on when they leave.
Rule 2: one that another live replica holds is busy if a draft is open in it; or else, as if the draft is of the very
        task that asks, it is waited for: the other one is about to let go.
Rule 3: what nobody then changes is let go after `IDLE_SECONDS` seconds.
Rule 4: whoever removes rows on SQLite, where no row says who holds an artifact, keeps memory out by `closed`.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store.document import Document
from a2a_canvas.store.errors import ArtifactBusy, Unavailable
from a2a_canvas.store.models import Ref, new_incarnation
from a2a_canvas.store.sql import reading, writing
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.reading import Cache, Key, key_of
from a2a_canvas.store.sql.rows import ArtifactHead, StoredDocument
from a2a_canvas.store.sql.writing import Write

COMMIT_TIMEOUT = 5.0
"""Seconds to wait for what another replica, or the database, is about to finish."""
PAUSE = 0.05
"""Seconds between two attempts."""
IDLE_SECONDS = 1.0


class LeaseHolder(Protocol):
    """This replica, as the one who holds artifacts.

    Attributes:
        id: its name; a new one if it has lost its lease.
        exclusive: nobody else can hold anything.
    """

    id: str
    exclusive: bool

    async def alive(self, connection: AsyncConnection, replica_id: str) -> bool:
        """Whether a replica holds its lease."""
        ...


@dataclass(slots=True, eq=False)
class ArtifactLease:
    """An artifact that this replica holds.

    Attributes:
        newest: the document as it now stands.
        saved: the last that is committed.
        changed: when it was changed last, in microseconds since 1970.
        releasing: the transaction that is on its way lets go of it.
        pins: how many may still be about to change it (rule 3).
        lost: what was changed here was never committed, and is forgotten.
    """

    key: Key
    saved: StoredDocument
    newest: Document = field(init=False)
    changed: int = field(init=False)
    releasing: bool = False
    pins: int = 0
    lost: bool = False

    def __post_init__(self) -> None:
        self.newest = self.saved.document
        self.changed = self.saved.head.changed

    @property
    def idle(self) -> bool:
        """Whether memory is not ahead of the rows, and no draft open."""
        return self.newest is self.saved.document and self.newest.draft is None

    @property
    def durable(self) -> bool:
        """Whether every closed version, and which of them is current, is committed."""
        return durable_state(self.newest) == durable_state(self.saved.document)


def durable_state(document: Document) -> tuple[int, int]:
    """What of a document lasts: how many versions there are, and which is current."""
    return len(document.versions), document.current


class _Elsewhere(Exception):
    """Another live replica holds it."""

    def __init__(self, draft_task: str | None) -> None:
        self.draft_task = draft_task


class Leases:
    """The artifacts that this replica holds.

    Args:
        unused: called with each that may be let go (rule 3).
    """

    def __init__(
        self, database: Database, holder: LeaseHolder, cache: Cache, unused: Callable[[ArtifactLease], None]
    ) -> None:
        self._database = database
        self._holder = holder
        self._cache = cache
        self._unused = unused
        self._held: dict[Key, ArtifactLease] = {}
        self._attempts: dict[Key, asyncio.Task[None]] = {}
        self._closed: dict[str, asyncio.Event] = {}
        self._clock = 0

    def find(self, key: Key) -> ArtifactLease | None:
        return self._held.get(key)

    def of(self, context_id: str) -> Iterator[ArtifactLease]:
        """Those of a context."""
        return (held for held in self._held.values() if held.key[0] == context_id)

    async def take(self, ref: Ref) -> None:
        """Get hold of an artifact, whether there is one or not.

        Raises:
            ArtifactBusy: another replica's task has a draft of it open.
            Unavailable: another replica, or the database, does not finish what it is about.
        """
        key = key_of(ref)
        end = asyncio.get_running_loop().time() + COMMIT_TIMEOUT
        while key not in self._held:  # somebody else who waited may have got it meanwhile, and changed it
            try:
                await self._attempt(key)
            except _Elsewhere as other:
                if other.draft_task not in (None, ref.task_id):
                    raise ArtifactBusy(ref.artifact_id, other.draft_task) from None
                if asyncio.get_running_loop().time() > end:
                    raise Unavailable(f"another server does not let go of artifact {ref.artifact_id!r}") from None
                await asyncio.sleep(PAUSE)

    @contextmanager
    def frozen(self, context_id: str) -> Iterator[bool]:
        """Nobody gets hold of a context's artifacts meanwhile; False if somebody has, or is about to (rule 4)."""
        if context_id in self._closed or any(key[0] == context_id for key in (*self._held, *self._attempts)):
            yield False
            return
        opened = self._closed[context_id] = asyncio.Event()
        try:
            yield True
        finally:
            del self._closed[context_id]
            opened.set()

    def pin(self, held: ArtifactLease) -> None:
        """Somebody is about to change it (rule 3)."""
        held.pins += 1
        asyncio.get_running_loop().call_later(IDLE_SECONDS, self._unwanted, held)

    def release(self, held: ArtifactLease) -> None:
        """It is held no more; what is saved can be read again."""
        if self._held.get(held.key) is held:
            del self._held[held.key]
            self._cache.put(held.key, held.saved)

    def forget(self) -> None:
        """Nothing is held any more, nor will be what is being asked for."""
        self._held = {}
        self._attempts = {}

    def drop(self, context_id: str) -> None:
        """What was changed in a context and is not committed never will be: it is as its rows have it."""
        for held in tuple(self.of(context_id)):
            if held.lost:  # `Work.release` has given it free
                del self._held[held.key]
            else:
                held.lost = True
                self._held[held.key] = ArtifactLease(held.key, held.saved)
                self.pin(self._held[held.key])

    def tick(self) -> int:
        """Now, in microseconds since 1970, and later than whatever this replica has seen."""
        self._clock = max(self._clock + 1, time.time_ns() // 1000)
        return self._clock

    def saw(self, found: ArtifactHead) -> None:
        self._clock = max(self._clock, found.changed)

    def _unwanted(self, held: ArtifactLease) -> None:
        held.pins = max(0, held.pins - 1)
        if not held.pins:
            self._unused(held)

    # ------------------------------------------------------------------ getting hold

    async def _attempt(self, key: Key) -> None:
        attempt = self._attempts.get(key)
        if attempt is None or attempt.done():  # a finished one is no answer to who asks after it
            attempt = self._attempts[key] = asyncio.create_task(self._take(key, self._held))
            attempt.add_done_callback(lambda done: self._ended(key, done))
        await asyncio.shield(attempt)

    def _ended(self, key: Key, attempt: asyncio.Task[None]) -> None:
        if self._attempts.get(key) is attempt:
            del self._attempts[key]
        if not attempt.cancelled():
            attempt.exception()  # whoever asked may have gone

    async def _take(self, key: Key, into: dict[Key, ArtifactLease]) -> None:
        """`into` is no longer looked at if everything was forgotten meanwhile."""
        if closed := self._closed.get(key[0]):
            await closed.wait()
        if self._holder.exclusive:
            async with self._database.read() as connection:
                found = await reading.read_head(connection, key) or ArtifactHead(incarnation=new_incarnation())
                stored = await self._cache.read(connection, key, found)
        else:
            async with self._database.write() as connection:
                stored = await self._taken(connection, key)
        self.saw(stored.head)
        into[key] = ArtifactLease(key, stored)
        self.pin(into[key])

    async def _taken(self, connection: AsyncConnection, key: Key) -> StoredDocument:
        me = self._holder.id
        found = await reading.read_head(connection, key, lock=True)
        if found is None:
            new = ArtifactHead(holder=me, incarnation=new_incarnation())
            if await writing.insert_head(connection, key, new):
                return StoredDocument(Document(key[1]), new)
            found = await reading.read_head(connection, key, lock=True) or ArtifactHead()
        if found.holder not in (None, me) and await self._holder.alive(connection, found.holder):
            raise _Elsewhere(found.draft_task)
        await writing.hold(connection, key, me)
        return await self._cache.read(connection, key, found)


class Work:
    """What the group commit is to write of held artifacts."""

    def __init__(self, holds: Leases, writes: dict[ArtifactLease, Write]) -> None:
        self._leases = holds
        self._writes = writes
        self._after: list[StoredDocument] = []

    async def write(self, connection: AsyncConnection) -> None:
        self._after = await writing.write(connection, [*self._writes.values()])

    def done(self) -> None:
        for held, after in zip(self._writes, self._after, strict=True):
            held.saved = after
            if held.idle:
                self._leases.release(held)

    def by_context(self) -> dict[str, Work]:
        by_context: defaultdict[str, dict[ArtifactLease, Write]] = defaultdict(dict)
        for held, write in self._writes.items():
            by_context[held.key[0]][held] = write
        return {context_id: Work(self._leases, writes) for context_id, writes in by_context.items()}

    async def release(self, connection: AsyncConnection) -> None:
        await writing.release(connection, [*self._writes.values()])

    def failed(self) -> None:
        for held in self._writes:
            held.lost = True
