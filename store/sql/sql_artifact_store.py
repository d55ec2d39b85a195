"""Artifacts in a database.

Rule 1: one replica has the lease of an artifact from the artifact's first change until no draft is open and everything
        is committed. Meanwhile that replica's memory is ahead of the rows; other replicas read the rows.
Rule 2: acquiring a lease may wait. The change that follows does not wait. The group commit writes it, together with
        everything else that was staged in the same step.
Rule 3: visible means durable: reads wait until the closed versions are committed. A draft is visible at once.
        `current_versions` does not wait: it is a hint that a turn asks for before every model call.
        (The journal differs: its readers see the last committed entries, because they can follow what comes next.)
Rule 4: the output of a draft's unfinished call is written once per `shown_interval`: after a crash it is dropped
        anyway, and until then only readers on other replicas miss it. The journal has it sooner.
Rule 5: a replica that has lost its lease cannot write: the transaction raises `LeaseLost`, and memory is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store import mutation
from a2a_canvas.store.changes import Change
from a2a_canvas.store.errors import ArtifactBusy, ArtifactNotFound, ArtifactUnreadable, StoreError, Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import AppliedChange, Artifact, Document, Limits, Ref, Version
from a2a_canvas.store.sql import reading
from a2a_canvas.store.sql.artifact_lease import (
    ACQUIRE_SECONDS,
    ArtifactLease,
    ArtifactWork,
    LeaseHolder,
    Leases,
    durable_state,
)
from a2a_canvas.store.sql.commit import COMMIT_TIMEOUT, GroupCommit
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.reading import Cache, key_of
from a2a_canvas.store.sql.rows import ArtifactHead
from a2a_canvas.store.sql.version_contents import VersionContents
from a2a_canvas.store.sql.writing import Write
from a2a_canvas.store.text.unicode import replace_unstorable

SHOWN_INTERVAL = 1.0
"""Seconds between two writes of the output of an unfinished call (rule 4)."""


class SqlArtifactStore:
    """An `ArtifactStore` on a database. The group commit writes its changes.

    Args:
        holder: this replica.
        shown_interval: see rule 4.

    Attributes:
        version_contents: for rows that refer to versions.
    """

    def __init__(
        self,
        database: Database,
        commits: GroupCommit,
        holder: LeaseHolder,
        limits: Limits | None = None,
        shown_interval: float = SHOWN_INTERVAL,
    ) -> None:
        self._shown_interval = shown_interval
        self._due: asyncio.Handle | None = None
        self._database = database
        self._commits = commits
        self._holder = holder
        self._limits = limits or Limits()
        self._cache = Cache()
        self._leases = Leases(database, holder, self._cache, self._release_if_idle)
        self.version_contents = VersionContents(self._leases, self._cache)
        self._touched: set[ArtifactLease] = set()

    def forget(self) -> None:
        """Drop everything in memory, including staged changes: this replica has lost its lease."""
        self._leases.forget()
        self._cache.clear()
        self._touched.clear()

    def frozen(self, context_id: ContextKey) -> AbstractContextManager[bool]:
        """Block changes in a context on this replica; yields False if a change is under way."""
        return self._leases.frozen(replace_unstorable(context_id))

    def drop(self, context_id: ContextKey) -> None:
        """Drop the staged changes of a context: memory returns to the rows."""
        self._touched = {lease for lease in self._touched if lease.key[0] != context_id}
        self._leases.drop(context_id)

    # ------------------------------------------------------------------------ reading

    async def get(self, ref: Ref) -> Artifact:
        seen = await self._visible_document(ref)
        if seen:
            return seen.artifact
        context_id, artifact_id = key = key_of(ref)
        async with self._database.read() as connection:
            found = await self._head(connection, ref)
            known = self._cache.fresh(key, found)
            if known:
                return known.document.artifact
            read = await reading.read_artifacts(connection, context_id, {artifact_id: found})
            if not read:
                raise ArtifactUnreadable(artifact_id)
            return read[0]

    async def list(self, context_id: ContextKey) -> tuple[Artifact, ...]:
        context_id = replace_unstorable(context_id)
        leases = [*self._leases.in_context(context_id)]
        leased = {each.key[1]: (each.changed, each.newest) for each in leases}
        if not all(each.durable for each in leases):
            await self._wait_committed(*leases)
        async with self._database.read() as connection:
            found = await reading.read_heads(connection, context_id)
            for head in found.values():
                self._leases.observe(head)
            others = {artifact_id: head for artifact_id, head in found.items() if artifact_id not in leased}
            listed = await self._read_artifacts(connection, context_id, others)
        ours = [(changed, document.artifact) for changed, document in leased.values() if document.exists]
        in_order = sorted([*listed, *ours], key=lambda each: (each[0], each[1].artifact_id))
        return tuple(artifact for _, artifact in in_order)

    async def _read_artifacts(
        self, connection: AsyncConnection, context_id: ContextKey, heads: Mapping[str, ArtifactHead]
    ) -> Sequence[tuple[int, Artifact]]:
        known = {each: self._cache.fresh((context_id, each), head) for each, head in heads.items()}
        unknown = {each: head for each, head in heads.items() if known[each] is None}
        read = await reading.read_artifacts(connection, context_id, unknown)
        cached = [each.document.artifact for each in known.values() if each]
        return [(heads[artifact.artifact_id].changed, artifact) for artifact in (*read, *cached)]

    async def current_versions(self, context_id: ContextKey) -> Mapping[str, tuple[int, str]]:
        context_id = replace_unstorable(context_id)
        # Before the rows are read: a lease that is committed and released meanwhile would be in neither.
        ours = {each.key[1]: each.newest for each in self._leases.in_context(context_id) if each.newest.exists}
        async with self._database.read() as connection:
            found = await reading.read_heads(connection, context_id)
        rows = {artifact_id: (head.current, head.changed_by) for artifact_id, head in found.items()}
        return rows | {each: (document.current, document.changed_by) for each, document in ours.items()}

    async def versions(self, ref: Ref) -> tuple[Version, ...]:
        return (await self._document(ref)).versions

    async def version(self, ref: Ref, number: int) -> Version:
        return (await self._document(ref)).version(number)

    async def version_times(self, ref: Ref) -> Mapping[int, datetime]:
        await self._visible_document(ref)
        async with self._database.read() as connection:
            await self._head(connection, ref)
            return await reading.read_version_times(connection, key_of(ref))

    async def _document(self, ref: Ref) -> Document:
        seen = await self._visible_document(ref)
        if seen:
            return seen
        async with self._database.read() as connection:
            found = await self._head(connection, ref)
            return (await self._cache.read(connection, key_of(ref), found)).document

    async def _visible_document(self, ref: Ref) -> Document | None:
        """The document in memory, if this replica has the lease, as soon as it is visible (rule 3)."""
        lease = self._leases.find(key_of(ref))
        if lease is None:
            return None
        document = _existing(lease)
        if not lease.durable:
            await self._wait_committed(lease)
        return document

    async def _head(self, connection: AsyncConnection, ref: Ref) -> ArtifactHead:
        found = await reading.read_head(connection, key_of(ref))
        if found is None or not found.exists:
            raise ArtifactNotFound(ref.artifact_id)
        self._leases.observe(found)
        return found

    async def _wait_committed(self, *leases: ArtifactLease) -> None:
        """Wait until all changes so far, including those under `leases`, are committed."""
        if self._commits.failing:
            raise Unavailable(self._commits.failing.reason)
        await self._commits.flushed(COMMIT_TIMEOUT)
        if any(lease.lost for lease in leases):
            raise Unavailable("the last change could not be written")

    # ----------------------------------------------------------------------- changing

    async def prepare(self, ref: Ref) -> None:
        with suppress(ArtifactBusy):  # the change itself will raise it
            self._leases.pin(await self._lease(ref))

    async def apply(self, ref: Ref, change: Change) -> AppliedChange:
        lease = await self._lease(ref)
        try:
            document, applied = mutation.apply_change(lease.newest, ref, change, self._limits)
        except StoreError:
            lease.pins = 0
            self._release_if_idle(lease)
            raise
        self._save(lease, document)
        return applied

    async def complete_call(self, ref: Ref) -> None:
        lease = await self._writer(ref)
        if isinstance(lease, ArtifactLease):
            self._save(lease, mutation.complete_call(_existing(lease), ref))
        elif lease.draft_task is not None:
            raise ArtifactBusy(ref.artifact_id, lease.draft_task)

    async def close(self, ref: Ref) -> AppliedChange | None:
        lease = await self._writer(ref)
        if isinstance(lease, ArtifactHead):
            return None
        document, applied = mutation.close_draft(_existing(lease), ref)
        self._save(lease, document)
        return applied

    async def discard(self, ref: Ref) -> AppliedChange | None:
        try:
            lease = await self._writer(ref)
        except ArtifactNotFound:
            return None
        if isinstance(lease, ArtifactHead):
            return None
        document, applied = mutation.discard_call(lease.newest, ref)
        self._save(lease, document)
        return applied

    async def remove_drafts(self, context_id: ContextKey, task_id: str) -> None:
        """Remove the drafts of a task, so that other tasks can change the artifacts."""
        for artifact in await self.list(context_id):
            if artifact.open and artifact.changed_by == task_id:
                lease = await self._lease(Ref(context_id, artifact.artifact_id, task_id))
                self._save(lease, replace(lease.newest, draft=None))

    async def _writer(self, ref: Ref) -> ArtifactLease | ArtifactHead:
        """The lease of the artifact; or its row, if no draft of `ref`'s task is open."""
        lease = self._leases.find(key_of(ref))
        if lease:
            return lease
        async with self._database.read() as connection:
            found = await self._head(connection, ref)
        return await self._lease(ref) if found.draft_task == ref.task_id else found

    async def _lease(self, ref: Ref) -> ArtifactLease:
        key, loop = key_of(ref), asyncio.get_running_loop()
        end = loop.time() + ACQUIRE_SECONDS
        while (lease := self._leases.find(key)) is None or lease.releasing:
            if loop.time() > end:
                raise Unavailable(f"the lease of artifact {ref.artifact_id!r} keeps changing")
            await (self._wait_committed() if lease else self._leases.acquire(ref))
            await asyncio.sleep(0)  # both may have returned without waiting
        return lease

    def _save(self, lease: ArtifactLease, document: Document) -> None:
        if document is lease.newest:
            return
        has_new_version = durable_state(document) != durable_state(lease.newest)
        lease.newest, lease.changed = document, self._leases.next_time()
        self._touched.add(lease)
        if has_new_version:
            self._commits.flush_now()
        else:
            self._commits.flush_soon()

    def _release_if_idle(self, lease: ArtifactLease) -> None:
        if lease.releasing or not lease.idle or self._leases.find(lease.key) is not lease:
            return
        if self._holder.exclusive:
            self._leases.release(lease)
        else:
            self._touched.add(lease)
            self._commits.flush_soon()

    # ------------------------------------------------------------------------ writing

    def collect(self, contexts: Collection[ContextKey] | None = None) -> ArtifactWork | None:
        """The staged changes, for the group commit."""
        now = asyncio.get_running_loop().time()
        later = {lease for lease in self._touched if lease.only_shown and now < lease.collected + self._shown_interval}
        others = {lease for lease in self._touched - later if contexts is not None and lease.key[0] not in contexts}
        touched = sorted(self._touched - later - others, key=lambda lease: lease.key)
        self._touched = later | others
        self._write_later()
        for lease in touched:
            lease.collected = now
        writes = {lease: self._write(lease) for lease in touched if not (lease.idle and lease.pins)}
        return ArtifactWork(self._leases, writes) if writes else None

    def _write_later(self) -> None:
        if self._due:
            self._due.cancel()
        times = [lease.collected + self._shown_interval for lease in self._touched if lease.only_shown]
        self._due = asyncio.get_running_loop().call_at(min(times), self._commits.flush_soon) if times else None

    def _write(self, lease: ArtifactLease) -> Write:
        releases = lease.newest.draft is None
        me, holder = (None if self._holder.exclusive else self._holder.id), (None if releases else self._holder.id)
        lease.releasing = releases and not self._holder.exclusive
        return Write(lease.key, me, lease.saved, lease.newest, lease.changed, holder)


def _existing(lease: ArtifactLease) -> Document:
    if not lease.newest.exists:
        raise ArtifactNotFound(lease.key[1])
    return lease.newest
