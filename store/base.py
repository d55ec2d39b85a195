"""The store's protocol. Every mutation of an artifact is a call of `store.apply(ref, change)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from a2a_canvas.store.changes import AppendParts, Change, ReplaceParts
from a2a_canvas.store.models import Applied, Artifact, Parts, Ref, Version


class ArtifactStore(Protocol):
    """The artifacts of all contexts. The rules are in `changes.py` (parts) and `mutation.py` (drafts, versions).

    A method that changes an artifact awaits only before it changes anything. Every method may raise `Unavailable`;
    then nothing has changed.
    """

    async def prepare(self, ref: Ref) -> None:
        """Acquire the artifact's lease: a change within the next second does not wait.

        Raises:
            Unavailable: the database cannot be used just now.
        """
        ...

    async def get(self, ref: Ref) -> Artifact:
        """The artifact with its draft.

        Raises:
            ArtifactNotFound: there is no such artifact.
        """
        ...

    async def list(self, context_id: str) -> tuple[Artifact, ...]:
        """All artifacts of a context, ordered by their last change, newest last."""
        ...

    async def current_versions(self, context_id: str) -> Mapping[str, tuple[int, str]]:
        """For each artifact of a context, the number of its current version and the task that changed it last."""
        ...

    async def versions(self, ref: Ref) -> tuple[Version, ...]:
        """All closed versions, oldest first. Those that are `pruned` have no content.

        Raises:
            ArtifactNotFound: there is no such artifact.
        """
        ...

    async def version(self, ref: Ref, number: int) -> Version:
        """One closed version.

        Raises:
            ArtifactNotFound, VersionNotFound: there is no such artifact, or no such version of it.
            VersionPruned: its content was removed.
        """
        ...

    async def apply(self, ref: Ref, change: Change) -> Applied:
        """Change an artifact. An update creates a missing one; a step needs an existing one.

        Raises:
            ArtifactNotFound, ArtifactBusy, VersionNotFound, VersionPruned, VersionConflict, InvalidChange,
                LimitReached: nothing has changed.
        """
        ...

    async def complete_call(self, ref: Ref) -> None:
        """The call whose changes were applied with `done=False` is complete."""
        ...

    async def close(self, ref: Ref) -> Applied | None:
        """Close the task's draft into a version; None if the task has no draft."""
        ...

    async def discard(self, ref: Ref) -> Applied | None:
        """Undo the call that is being written; None if subscribers need no event."""
        ...


async def replace_parts(store: ArtifactStore, ref: Ref, parts: Parts, last_chunk: bool = False) -> Applied:
    """Shorthand for `store.apply(ref, ReplaceParts(...))`."""
    return await store.apply(ref, ReplaceParts(parts, last_chunk=last_chunk))


async def append_parts(store: ArtifactStore, ref: Ref, parts: Parts, last_chunk: bool = False) -> Applied:
    """Shorthand for `store.apply(ref, AppendParts(...))`."""
    return await store.apply(ref, AppendParts(parts, last_chunk=last_chunk))
