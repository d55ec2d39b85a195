"""The waist that every mutation of an artifact passes: `store.apply(ref, change)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from a2a_canvas.store.changes import AppendParts, Change, ReplaceParts
from a2a_canvas.store.document import Applied
from a2a_canvas.store.models import Artifact, Parts, Ref, Version


class ArtifactStore(Protocol):
    """Keeps the artifacts of all contexts. The rules: `changes.py` (parts), `mutation.py` (drafts, versions).

    What changes an artifact waits, if at all, before it changes anything. All of it may raise `Unavailable`, and then
    nothing has changed.
    """

    async def prepare(self, ref: Ref) -> None:
        """Get hold of an artifact, so that the next change of it waits for nothing, if it comes within a second.

        Raises:
            Unavailable: the database cannot be used just now.
        """
        ...

    async def get(self, ref: Ref) -> Artifact:
        """The artifact as it stands, with its draft.

        Raises:
            ArtifactNotFound: there is none.
        """
        ...

    async def list(self, context_id: str) -> tuple[Artifact, ...]:
        """All artifacts of a context, in the order they were last changed, newest last."""
        ...

    async def current_versions(self, context_id: str) -> Mapping[str, tuple[int, str]]:
        """Of each artifact of a context: the number of its current version, and the task that changed it last."""
        ...

    async def versions(self, ref: Ref) -> tuple[Version, ...]:
        """All closed versions, oldest first, those among them that are `pruned` without their content.

        Raises:
            ArtifactNotFound: there is no such artifact.
        """
        ...

    async def version(self, ref: Ref, number: int) -> Version:
        """One closed version.

        Raises:
            ArtifactNotFound, VersionNotFound: there is no such artifact, or no such version of it.
            VersionPruned: its content is no longer kept.
        """
        ...

    async def apply(self, ref: Ref, change: Change) -> Applied:
        """Change an artifact. One that does not exist is made by an update; a step needs one.

        Raises:
            ArtifactNotFound, ArtifactBusy, VersionNotFound, VersionPruned, VersionConflict, InvalidChange,
                LimitReached: nothing has changed.
        """
        ...

    async def complete_call(self, ref: Ref) -> None:
        """The call whose changes were applied with `done=False` is complete."""
        ...

    async def close(self, ref: Ref) -> Applied | None:
        """Make the task's draft a version; None if it has none."""
        ...

    async def discard(self, ref: Ref) -> Applied | None:
        """Take back the call that is being written; None if there is nothing to tell a watcher."""
        ...


async def replace_parts(store: ArtifactStore, ref: Ref, parts: Parts, last_chunk: bool = False) -> Applied:
    """Shorthand for `store.apply(ref, ReplaceParts(...))`."""
    return await store.apply(ref, ReplaceParts(parts, last_chunk=last_chunk))


async def append_parts(store: ArtifactStore, ref: Ref, parts: Parts, last_chunk: bool = False) -> Applied:
    """Shorthand for `store.apply(ref, AppendParts(...))`."""
    return await store.apply(ref, AppendParts(parts, last_chunk=last_chunk))
