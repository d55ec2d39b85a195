"""Retries while the database is unavailable, for turns, which have no caller to return an error to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from a2a_canvas.store.artifact_store import ArtifactStore, StoreWrapper, T
from a2a_canvas.store.errors import Unavailable


async def retry_while_unavailable(
    step: Callable[[], Awaitable[T]], pause: Callable[[], Awaitable[None]], check: Callable[[], None] | None = None
) -> T:
    """The result of `step`, retried after a pause while it raises `Unavailable`.

    Args:
        check: called before every attempt, in the same step of the event loop.
    """
    while True:
        if check:
            check()
        try:
            return await step()
        except Unavailable:
            await pause()


class RetryingStore(StoreWrapper):
    """Wraps any store and retries calls that raise `Unavailable`. A store raises it only if nothing has changed.

    Args:
        pause: waits for a moment. An exception from it ends the retries.
        check: called before every attempt, in the same step of the event loop. It raises if this replica has lost the
            task, so that it neither reads nor changes anything for a task that another replica has taken over.
    """

    def __init__(
        self, store: ArtifactStore, pause: Callable[[], Awaitable[None]], check: Callable[[], None] | None = None
    ) -> None:
        super().__init__(store)
        self._pause = pause
        self._check = check

    def _call(self, step: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        return retry_while_unavailable(step, self._pause, self._check)
