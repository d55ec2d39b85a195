"""Opens the workspace of a task: what its store and its review notify become events of the turn.

An announced edit must end, and its artifact must be shown, even when cancelled: hence `shield`. A change needs no
shield: its event is emitted in the event-loop step that applies it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from typing import TypeVar

from a2a_canvas.server.agent.events import ArtifactChanged, Emit
from a2a_canvas.store.annotations.review import MakeReview
from a2a_canvas.store.annotations.suggesting_store import SuggestingStore
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.edit_events import EditEvent
from a2a_canvas.store.evented import EventedArtifactStore, Listen
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import AppliedChange
from a2a_canvas.tools.tool import Workspace

T = TypeVar("T")


async def shield(step: Awaitable[T]) -> T:
    """The result of `step`; a cancellation during it is ignored.

    The event loop runs between the end of the step and the caller's next action.

    Raises:
        asyncio.CancelledError: the step itself raised it.
    """
    task = asyncio.ensure_future(step)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()


def listener(emit: Emit) -> Listen:
    """The listener of an evented store that emits its notifications."""

    async def listen(notified: AppliedChange | EditEvent) -> None:
        await emit(artifact_changed(notified) if isinstance(notified, AppliedChange) else notified)

    return listen


def open_workspace(
    store: ArtifactStore,
    emit: Emit,
    context_id: ContextKey,
    task_id: str,
    make_review: MakeReview | None = None,
    changed: Iterable[str] = (),
    *,
    suggests: bool = False,
) -> Workspace:
    """The workspace of a task, with the agent's review.

    Args:
        make_review: None: the agent can make no annotations.
        changed: ids of the artifacts that the task has changed so far.
        suggests: what the agent changes becomes suggestions.
    """
    evented = EventedArtifactStore(store, listener(emit), changed)
    review = make_review("agent", evented, emit) if make_review else None
    if suggests:
        assert review
        evented = SuggestingStore(evented, review)
    return Workspace(evented, context_id, task_id, review=review)


def artifact_changed(applied: AppliedChange) -> ArtifactChanged:
    """The event of an applied change."""
    artifact = applied.artifact
    return ArtifactChanged(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        description=artifact.description,
        append=applied.append,
        parts=applied.parts,
        last_chunk=applied.last_chunk,
        version=applied.version,
        author=applied.author,
        parent=applied.parent,
        resent=applied.resent,
        splice=applied.splice,
        rolled_back=applied.rolled_back,
    )
