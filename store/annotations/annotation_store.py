"""The protocol of what stores annotations, and the one in memory.

Rule 1: the journal writes annotations: an entry with an `AnnotationsChanged` and the rows that it changes are committed
        together. Nothing else writes them.
Rule 2: a task that is about to change annotations of a context holds them until that entry is committed, and other
        tasks wait for it, on every replica. So what a task decides by what it has read is what counts when it is
        committed: of two that accept one suggestion, one finds it accepted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from a2a_canvas.store.annotations.annotation import Annotation, AnnotationsChanged
from a2a_canvas.store.holds import Holds
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.retrying import retry_while_unavailable


class AnnotationStore(Protocol):
    """The annotations of all contexts. Every method may raise `Unavailable`."""

    async def list(
        self, context_id: ContextKey, artifact_id: str, accepted_into: int | None = None
    ) -> tuple[Annotation, ...]:
        """The annotations of an artifact, oldest first, as they are committed.

        Args:
            accepted_into: only the suggestions whose acceptance made this version. The cost is that of these.
        """
        ...

    async def find(self, context_id: ContextKey, artifact_id: str, annotation_id: str) -> Annotation | None:
        """One of them, as it is committed; None if there is none with this id. The cost is that of one."""
        ...

    async def last_number(self, context_id: ContextKey, artifact_id: str) -> int:
        """The highest number of an annotation of an artifact; 0 for none. The cost is that of one."""
        ...

    async def count_open(self, context_id: ContextKey, artifact_id: str) -> int:
        """How many annotations of an artifact are open, without decoding them."""
        ...

    async def hold(self, context_id: ContextKey, task_id: str) -> None:
        """Wait until no other task holds the annotations of the context, and hold them."""
        ...

    async def release(self, context_id: ContextKey, task_id: str) -> None:
        """End the hold of a task that changes nothing. A hold that a change follows ends with its commit.

        It does not fail: what cannot be released now ends with the task.
        """
        ...

    def abandon(self, context_id: ContextKey, task_id: str) -> None:
        """The task no longer runs here: end its hold, if it has one."""
        ...


class RetryingAnnotations:
    """Wraps any `AnnotationStore` and retries while it is unavailable, for turns. Arguments as in `RetryingStore`."""

    def __init__(
        self, annotations: AnnotationStore, pause: Callable[[], Awaitable[None]], check: Callable[[], None]
    ) -> None:
        self._annotations = annotations
        self._retry = partial(retry_while_unavailable, pause=pause, check=check)

    async def list(
        self, context_id: ContextKey, artifact_id: str, accepted_into: int | None = None
    ) -> tuple[Annotation, ...]:
        return await self._retry(partial(self._annotations.list, context_id, artifact_id, accepted_into))

    async def find(self, context_id: ContextKey, artifact_id: str, annotation_id: str) -> Annotation | None:
        return await self._retry(partial(self._annotations.find, context_id, artifact_id, annotation_id))

    async def last_number(self, context_id: ContextKey, artifact_id: str) -> int:
        return await self._retry(partial(self._annotations.last_number, context_id, artifact_id))

    async def count_open(self, context_id: ContextKey, artifact_id: str) -> int:
        return await self._retry(partial(self._annotations.count_open, context_id, artifact_id))

    async def hold(self, context_id: ContextKey, task_id: str) -> None:
        await self._retry(partial(self._annotations.hold, context_id, task_id))

    async def release(self, context_id: ContextKey, task_id: str) -> None:
        await self._annotations.release(context_id, task_id)

    def abandon(self, context_id: ContextKey, task_id: str) -> None:
        self._annotations.abandon(context_id, task_id)


class InMemoryAnnotations:
    """An `AnnotationStore` in dictionaries."""

    def __init__(self) -> None:
        self._contexts: dict[ContextKey, dict[str, dict[str, Annotation]]] = {}
        self._holds = Holds()

    async def list(
        self, context_id: ContextKey, artifact_id: str, accepted_into: int | None = None
    ) -> tuple[Annotation, ...]:
        existing = self._by_id(context_id, artifact_id).values()
        return tuple(each for each in existing if accepted_into in (None, each.accepted_into))

    async def find(self, context_id: ContextKey, artifact_id: str, annotation_id: str) -> Annotation | None:
        return self._by_id(context_id, artifact_id).get(annotation_id)

    async def last_number(self, context_id: ContextKey, artifact_id: str) -> int:
        return next((each.number for each in reversed(self._by_id(context_id, artifact_id).values())), 0)

    async def count_open(self, context_id: ContextKey, artifact_id: str) -> int:
        return sum(each.state == "open" for each in self._by_id(context_id, artifact_id).values())

    async def hold(self, context_id: ContextKey, task_id: str) -> None:
        await self._holds.take(context_id, task_id)

    async def release(self, context_id: ContextKey, task_id: str) -> None:
        self.abandon(context_id, task_id)

    def abandon(self, context_id: ContextKey, task_id: str) -> None:
        self._holds.release(context_id, task_id)

    def _by_id(self, context_id: ContextKey, artifact_id: str) -> dict[str, Annotation]:
        """Those of an artifact, oldest first: one that is changed keeps its place."""
        return self._contexts.get(context_id, {}).get(artifact_id, {})

    # ------------------------------------------------------------------- for the journal

    def write(self, context_id: ContextKey, task_id: str, event: AnnotationsChanged) -> None:
        """The event was appended: store what it changes, and end the hold."""
        annotations = self._contexts.setdefault(context_id, defaultdict(dict))[event.artifact_id]
        annotations.update({each.annotation_id: each for each in event.changed})
        for annotation_id in event.removed:
            annotations.pop(annotation_id, None)
        self._holds.release(context_id, task_id)

    def remove(self, context_id: ContextKey) -> None:
        """Remove all annotations of a context."""
        self._contexts.pop(context_id, None)
