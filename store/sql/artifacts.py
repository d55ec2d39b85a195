"""Artifacts in a database.

Rule 1: an artifact is *held* by one replica from its first change until no draft of it is open and everything is
        committed. Meanwhile its document is in that replica's memory, ahead of the rows; others read the rows.
Rule 2: getting hold may wait. The change that follows does not, and it is written, together with all that was said in
        the same step, by the group commit.
Rule 3: visible means durable: who reads waits until closed versions are committed. A draft is visible at once.
        `current` does not wait: it is a hint, which a turn asks for before every model call.
Rule 4: a replica that has lost its hold cannot write: it is `LeaseLost`, and must forget what it has in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store import mutation
from a2a_canvas.store.changes import Change
from a2a_canvas.store.document import Applied, Document
from a2a_canvas.store.errors import ArtifactBusy, ArtifactNotFound, StoreError, Unavailable
from a2a_canvas.store.models import Artifact, Limits, Ref, Version
from a2a_canvas.store.sql import reading
from a2a_canvas.store.sql.artifact_lease import COMMIT_TIMEOUT, ArtifactLease, LeaseHolder, Leases, Work, durable_state
from a2a_canvas.store.sql.commit import GroupCommit, LeaseLost
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.reading import ArtifactRow, Cache, key_of, read_artifacts
from a2a_canvas.store.sql.rows import ArtifactHead
from a2a_canvas.store.sql.tables import replace_unstorable
from a2a_canvas.store.sql.writing import Write

_NOT_COMMITTED = "what was written last is not committed"

__all__ = ["ArtifactRow", "LeaseHolder", "SqlArtifactStore", "read_artifacts"]


class SqlArtifactStore:
    """An `ArtifactStore` on a database. It joins the group commit, and has it write what it changes.

    Args:
        holder: this replica.
        limits: bounds of one artifact.
    """

    def __init__(
        self, database: Database, commits: GroupCommit, holder: LeaseHolder, limits: Limits | None = None
    ) -> None:
        self._database = database
        self._commits = commits
        self._holder = holder
        self._limits = limits or Limits()
        self._cache = Cache()
        self._leases = Leases(database, holder, self._cache, self._release_if_idle)
        self._touched: set[ArtifactLease] = set()
        commits.join(self)

    def forget(self) -> None:
        """This replica has lost its lease: everything in memory is dropped, and what is staged with it."""
        self._leases.forget()
        self._cache.clear()
        self._touched.clear()

    def frozen(self, context_id: str) -> AbstractContextManager[bool]:
        """Nobody changes a context's artifacts here meanwhile; False if somebody does, or is about to."""
        return self._leases.frozen(replace_unstorable(context_id))

    def drop(self, context_id: str) -> None:
        """What is staged in a context is not written: memory goes back to the rows."""
        self._touched = {held for held in self._touched if held.key[0] != context_id}
        self._leases.drop(context_id)

    # ------------------------------------------------------------------------ reading

    async def get(self, ref: Ref) -> Artifact:
        seen = await self._seen(ref)
        if seen:
            return seen.artifact
        context_id, artifact_id = key = key_of(ref)
        async with self._database.read() as connection:
            found = await self._head(connection, ref)
            known = self._cache.fresh(key, found)
            if known:
                return known.document.artifact
            return _artifact(*await reading.read_shown(connection, context_id, {artifact_id: found}))

    async def list(self, context_id: str) -> tuple[Artifact, ...]:
        context_id = replace_unstorable(context_id)
        holds = [*self._leases.of(context_id)]
        held = {each.key[1]: (each.changed, each.newest) for each in holds}
        if not all(each.durable for each in holds):
            await self._settled(*holds)
        async with self._database.read() as connection:
            found = await reading.read_heads(connection, context_id)
            for head in found.values():
                self._leases.saw(head)
            others = {artifact_id: head for artifact_id, head in found.items() if artifact_id not in held}
            listed = await self._listed(connection, context_id, others)
        ours = [(changed, document.artifact) for changed, document in held.values() if document.exists]
        return tuple(artifact for _, artifact in sorted([*listed, *ours], key=_changed))

    async def _listed(
        self, connection: AsyncConnection, context_id: str, heads: Mapping[str, ArtifactHead]
    ) -> Sequence[tuple[int, Artifact]]:
        known = {each: self._cache.fresh((context_id, each), head) for each, head in heads.items()}
        unknown = {each: head for each, head in heads.items() if known[each] is None}
        read = [
            (each.head.changed, _artifact(each)) for each in await reading.read_shown(connection, context_id, unknown)
        ]
        return [*read, *((each.head.changed, each.document.artifact) for each in known.values() if each)]

    async def current_versions(self, context_id: str) -> Mapping[str, tuple[int, str]]:
        context_id = replace_unstorable(context_id)
        async with self._database.read() as connection:
            found = await reading.read_heads(connection, context_id)
        ours = {each.key[1]: each.newest for each in self._leases.of(context_id) if each.newest.exists}
        rows = {artifact_id: (head.current, head.changed_by) for artifact_id, head in found.items()}
        return rows | {each: (document.current, document.changed_by) for each, document in ours.items()}

    async def versions(self, ref: Ref) -> tuple[Version, ...]:
        return (await self._document(ref)).versions

    async def version(self, ref: Ref, number: int) -> Version:
        return (await self._document(ref)).version(number)

    async def _document(self, ref: Ref) -> Document:
        seen = await self._seen(ref)
        if seen:
            return seen
        async with self._database.read() as connection:
            found = await self._head(connection, ref)
            return (await self._cache.read(connection, key_of(ref), found)).document

    async def _seen(self, ref: Ref) -> Document | None:
        """The document, if it is held, as soon as it may be seen (rule 3)."""
        held = self._leases.find(key_of(ref))
        if held is None:
            return None
        document = _existing(held)
        if not held.durable:
            await self._settled(held)
        return document

    async def _head(self, connection: AsyncConnection, ref: Ref) -> ArtifactHead:
        found = await reading.read_head(connection, key_of(ref))
        if found is None or not found.exists:
            raise ArtifactNotFound(ref.artifact_id)
        self._leases.saw(found)
        return found

    async def _settled(self, *holds: ArtifactLease) -> None:
        """Wait until what was changed so far, of `holds` too, is committed."""
        if self._commits.failing:
            raise Unavailable(self._commits.failing.reason)
        try:
            async with asyncio.timeout(COMMIT_TIMEOUT):
                await self._commits.flushed()
        except (TimeoutError, LeaseLost) as error:
            raise Unavailable(_NOT_COMMITTED) from error
        if any(held.lost for held in holds):
            raise Unavailable(_NOT_COMMITTED)

    # ----------------------------------------------------------------------- changing

    async def prepare(self, ref: Ref) -> None:
        with suppress(ArtifactBusy):  # the change will say so
            self._leases.pin(await self._hold(ref))

    async def apply(self, ref: Ref, change: Change) -> Applied:
        held = await self._hold(ref)
        try:
            document, applied = mutation.apply_change(held.newest, ref, change, self._limits)
        except StoreError:
            held.pins = 0
            self._release_if_idle(held)
            raise
        self._save(held, document)
        return applied

    async def complete_call(self, ref: Ref) -> None:
        held = await self._writer(ref)
        if isinstance(held, ArtifactLease):
            self._save(held, mutation.complete_call(_existing(held), ref))
        elif held.draft_task is not None:
            raise ArtifactBusy(ref.artifact_id, held.draft_task)

    async def close(self, ref: Ref) -> Applied | None:
        held = await self._writer(ref)
        if isinstance(held, ArtifactHead):
            return None
        document, applied = mutation.close_draft(_existing(held), ref)
        self._save(held, document)
        return applied

    async def discard(self, ref: Ref) -> Applied | None:
        try:
            held = await self._writer(ref)
        except ArtifactNotFound:
            return None
        if isinstance(held, ArtifactHead):
            return None
        document, applied = mutation.discard_call(held.newest, ref)
        self._save(held, document)
        return applied

    async def remove_drafts(self, context_id: str, task_id: str) -> None:
        """Take away the drafts of a task that cannot become versions: others are to change these artifacts."""
        for artifact in await self.list(context_id):
            if artifact.open and artifact.changed_by == task_id:
                held = await self._hold(Ref(context_id, artifact.artifact_id, task_id))
                self._save(held, replace(held.newest, draft=None))

    async def _writer(self, ref: Ref) -> ArtifactLease | ArtifactHead:
        """The artifact to be changed; or its row, if no draft of `ref`'s task is open."""
        held = self._leases.find(key_of(ref))
        if held:
            return held
        async with self._database.read() as connection:
            found = await self._head(connection, ref)
        return await self._hold(ref) if found.draft_task == ref.task_id else found

    async def _hold(self, ref: Ref) -> ArtifactLease:
        key, loop = key_of(ref), asyncio.get_running_loop()
        end = loop.time() + COMMIT_TIMEOUT
        while (held := self._leases.find(key)) is None or held.releasing:
            if loop.time() > end:
                raise Unavailable(f"artifact {ref.artifact_id!r} is taken and let go of all the time")
            await (self._settled() if held else self._leases.take(ref))
            await asyncio.sleep(0)  # neither has waited, if it found that there was nothing to wait for
        return held

    def _save(self, held: ArtifactLease, document: Document) -> None:
        if document is held.newest:
            return
        lasts = durable_state(document) != durable_state(held.newest)
        held.newest, held.changed = document, self._leases.tick()
        self._touched.add(held)
        if lasts:
            self._commits.flush_now()
        else:
            self._commits.flush_soon()

    def _release_if_idle(self, held: ArtifactLease) -> None:
        if held.releasing or not held.idle or self._leases.find(held.key) is not held:
            return
        if self._holder.exclusive:
            self._leases.release(held)
        else:
            self._touched.add(held)
            self._commits.flush_soon()

    # ------------------------------------------------------------------------ writing

    def collect(self) -> Work | None:
        """What the group commit is to write now."""
        touched, self._touched = sorted(self._touched, key=lambda held: held.key), set()
        writes = {held: self._write(held) for held in touched if not (held.idle and held.pins)}
        return Work(self._leases, writes) if writes else None

    def _write(self, held: ArtifactLease) -> Write:
        goes = held.newest.draft is None
        me, holder = (None if self._holder.exclusive else self._holder.id), (None if goes else self._holder.id)
        held.releasing = goes and not self._holder.exclusive
        return Write(held.key, me, held.saved, held.newest, held.changed, holder)


def _existing(held: ArtifactLease) -> Document:
    if not held.newest.exists:
        raise ArtifactNotFound(held.key[1])
    return held.newest


def _artifact(shown: ArtifactRow) -> Artifact:
    head = shown.head
    never_completed = shown.open and head.draft_kept is None and not head.draft_dirty
    return Artifact(shown.artifact_id, shown.content, head.current, shown.open, head.changed_by, never_completed)


def _changed(listed: tuple[int, Artifact]) -> tuple[int, str]:
    return listed[0], listed[1].artifact_id
