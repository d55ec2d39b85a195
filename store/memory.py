"""Artifacts in memory: lost when the process ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from a2a_canvas.store import mutation
from a2a_canvas.store.changes import Change
from a2a_canvas.store.errors import ArtifactNotFound
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import AppliedChange, Artifact, Document, Limits, Ref, Version


class InMemoryArtifactStore:
    """An `ArtifactStore` in a dictionary."""

    def __init__(self, limits: Limits | None = None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._limits = limits or Limits()
        self._now = now
        self._times: dict[tuple[str, str], list[datetime]] = {}
        self._contexts: dict[str, dict[str, Document]] = {}

    async def prepare(self, ref: Ref) -> None:
        pass

    async def get(self, ref: Ref) -> Artifact:
        return self._existing(ref).artifact

    async def list(self, context_id: ContextKey) -> tuple[Artifact, ...]:
        return tuple(document.artifact for document in self._contexts.get(context_id, {}).values())

    async def current_versions(self, context_id: ContextKey) -> Mapping[str, tuple[int, str]]:
        documents = self._contexts.get(context_id, {}).values()
        return {document.artifact_id: (document.current, document.changed_by) for document in documents}

    async def versions(self, ref: Ref) -> tuple[Version, ...]:
        return self._existing(ref).versions

    async def version(self, ref: Ref, number: int) -> Version:
        return self._existing(ref).version(number)

    async def version_times(self, ref: Ref) -> Mapping[int, datetime]:
        self._existing(ref)
        return dict(enumerate(self._times.get((ref.context_id, ref.artifact_id), ()), 1))

    async def apply(self, ref: Ref, change: Change) -> AppliedChange:
        document, applied = mutation.apply_change(self._document(ref), ref, change, self._limits)
        self._save(ref, document)
        return applied

    async def complete_call(self, ref: Ref) -> None:
        self._save(ref, mutation.complete_call(self._existing(ref), ref))

    async def close(self, ref: Ref) -> AppliedChange | None:
        document, applied = mutation.close_draft(self._existing(ref), ref)
        self._save(ref, document)
        return applied

    async def discard(self, ref: Ref) -> AppliedChange | None:
        document, applied = mutation.discard_call(self._document(ref), ref)
        if document.exists:
            self._save(ref, document)
        return applied

    def remove(self, context_id: ContextKey) -> None:
        """Remove all artifacts of a context."""
        for artifact_id in self._contexts.pop(context_id, {}):
            self._times.pop((context_id, artifact_id), None)

    def _document(self, ref: Ref) -> Document:
        return self._contexts.get(ref.context_id, {}).get(ref.artifact_id) or Document(ref.artifact_id)

    def _existing(self, ref: Ref) -> Document:
        document = self._document(ref)
        if not document.exists:
            raise ArtifactNotFound(ref.artifact_id)
        return document

    def _save(self, ref: Ref, document: Document) -> None:
        context = self._contexts.setdefault(ref.context_id, {})
        if context.get(ref.artifact_id) is document:
            return
        context.pop(ref.artifact_id, None)  # the newest change is last
        context[ref.artifact_id] = document
        times = self._times.setdefault((ref.context_id, ref.artifact_id), [])
        times += [self._now()] * (len(document.versions) - len(times))
