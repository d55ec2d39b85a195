"""From what a store tells of artifacts to the events of a turn, and how a last word is said whole.

Rule: an edit that was announced ends, and its artifact is shown, whenever a cancel comes. A change needs no such care:
it is told in the step that makes it, and there a cancel cannot come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

from a2a_canvas.server.agent.events import ArtifactChanged, Emit
from a2a_canvas.store.edits import EditEvent
from a2a_canvas.store.evented import Listen
from a2a_canvas.store.models import Applied

T = TypeVar("T")


async def shielded(step: Awaitable[T]) -> T:
    """The result of `step`. A cancel that comes meanwhile comes too late: it is not raised.

    The loop runs between the step's end and what the caller does next.

    Raises:
        asyncio.CancelledError: the step itself did.
    """
    task = asyncio.ensure_future(step)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()


def listener(emit: Emit) -> Listen:
    """Passes on to `emit` what an evented store tells."""

    async def listen(told: Applied | EditEvent) -> None:
        await emit(artifact_changed(told) if isinstance(told, Applied) else told)

    return listen


def artifact_changed(applied: Applied) -> ArtifactChanged:
    """What watchers are told of an applied change."""
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
    )
