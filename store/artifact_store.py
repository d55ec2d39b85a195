"""The protocol of a store, and the base of its wrappers.

A task changes an artifact only by `apply`, `complete_call`, `close` and `discard`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from a2a_canvas.store.changes import Change
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import AppliedChange, Artifact, Ref, Version

T = TypeVar("T")
_Args = ParamSpec("_Args")


class ArtifactStore(Protocol):
    """The artifacts of all contexts. The rules are in `changes.py` (parts) and `mutation.py` (drafts, versions).

    A method that changes an artifact awaits only before it changes anything. Every method may raise `Unavailable`;
    then nothing has changed.
    """

    async def prepare(self, ref: Ref) -> None:
        """Acquire the artifact's lease, so that a change within the next second does not wait."""
        ...

    async def get(self, ref: Ref) -> Artifact:
        """The artifact with its draft.

        Raises:
            ArtifactNotFound: there is no such artifact.
        """
        ...

    async def list(self, context_id: ContextKey) -> tuple[Artifact, ...]:
        """All artifacts of a context, the one changed last at the end."""
        ...

    async def current_versions(self, context_id: ContextKey) -> Mapping[str, tuple[int, str]]:
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

    async def version_times(self, ref: Ref) -> Mapping[int, datetime]:
        """The UTC time at which each closed version was made. A database uses its own clock, in seconds.

        Raises:
            ArtifactNotFound: there is no such artifact.
        """
        ...

    async def apply(self, ref: Ref, change: Change) -> AppliedChange:
        """Change an artifact. An update creates a missing one; a step needs an existing one.

        Raises:
            ArtifactNotFound, ArtifactBusy, VersionNotFound, VersionPruned, VersionConflict, InvalidChange,
                LimitReached: nothing has changed.
        """
        ...

    async def complete_call(self, ref: Ref) -> None:
        """Complete the call whose changes were applied with `done=False`."""
        ...

    async def close(self, ref: Ref) -> AppliedChange | None:
        """Close the task's draft into a version; None if the task has no draft."""
        ...

    async def discard(self, ref: Ref) -> AppliedChange | None:
        """Undo the call being written; None if subscribers need no event."""
        ...


def _forward(
    method: Callable[Concatenate[ArtifactStore, _Args], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[StoreWrapper, _Args], Coroutine[Any, Any, T]]:
    def call(wrapper: StoreWrapper, /, *args: _Args.args, **options: _Args.kwargs) -> Coroutine[Any, Any, T]:
        return wrapper._call(lambda: getattr(wrapper._store, method.__name__)(*args, **options))

    return call


class StoreWrapper:
    """A store that forwards every call to another one. Override `_call` to act on all calls."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    def _call(self, step: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        return step()

    prepare = _forward(ArtifactStore.prepare)
    get = _forward(ArtifactStore.get)
    list = _forward(ArtifactStore.list)
    current_versions = _forward(ArtifactStore.current_versions)
    versions = _forward(ArtifactStore.versions)
    version = _forward(ArtifactStore.version)
    version_times = _forward(ArtifactStore.version_times)
    apply = _forward(ArtifactStore.apply)
    complete_call = _forward(ArtifactStore.complete_call)
    close = _forward(ArtifactStore.close)
    discard = _forward(ArtifactStore.discard)
