"""Retries while the database is unavailable. Turns work with it: a turn has no caller to return an error to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.changes import Change
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.models import Applied, Artifact, Ref, Version

T = TypeVar("T")


def _no_check() -> None:
    pass


async def retry_while_unavailable(
    step: Callable[[], Awaitable[T]], pause: Callable[[], Awaitable[None]], check: Callable[[], None] = _no_check
) -> T:
    """The result of `step`, which is repeated, after a pause, as long as it raises `Unavailable`.

    Args:
        check: called before every attempt, in the same step of the event loop.
    """
    while True:
        check()
        try:
            return await step()
        except Unavailable:
            await pause()


class RetryingStore:
    """Wraps any store and repeats what raises `Unavailable`. A store raises it only if nothing has changed.

    Args:
        pause: waits for a moment. An exception from it ends the retries.
        check: called before every attempt, in the same step of the event loop. It raises if this replica has lost the
            task, so that nothing is read or changed for a task that another replica has taken over.
    """

    def __init__(
        self, store: ArtifactStore, pause: Callable[[], Awaitable[None]], check: Callable[[], None] = _no_check
    ) -> None:
        self._store = store
        self._pause = pause
        self._check = check

    async def get(self, ref: Ref) -> Artifact:
        return await self._retry(lambda: self._store.get(ref))

    async def list(self, context_id: str) -> tuple[Artifact, ...]:
        return await self._retry(lambda: self._store.list(context_id))

    async def current_versions(self, context_id: str) -> Mapping[str, tuple[int, str]]:
        return await self._retry(lambda: self._store.current_versions(context_id))

    async def versions(self, ref: Ref) -> tuple[Version, ...]:
        return await self._retry(lambda: self._store.versions(ref))

    async def version(self, ref: Ref, number: int) -> Version:
        return await self._retry(lambda: self._store.version(ref, number))

    async def prepare(self, ref: Ref) -> None:
        await self._retry(lambda: self._store.prepare(ref))

    async def apply(self, ref: Ref, change: Change) -> Applied:
        return await self._retry(lambda: self._store.apply(ref, change))

    async def complete_call(self, ref: Ref) -> None:
        await self._retry(lambda: self._store.complete_call(ref))

    async def close(self, ref: Ref) -> Applied | None:
        return await self._retry(lambda: self._store.close(ref))

    async def discard(self, ref: Ref) -> Applied | None:
        return await self._retry(lambda: self._store.discard(ref))

    async def _retry(self, step: Callable[[], Awaitable[T]]) -> T:
        return await retry_while_unavailable(step, self._pause, self._check)
