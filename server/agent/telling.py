"""From what a store tells of artifacts to the events of a turn, and how what is done is told of whole.

Rule: a change that has been made is told, and an edit that was announced ends, whenever a cancel comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

from server.agent.events import ArtifactChanged, Emit
from store.document import Applied
from store.edits import EditEvent
from store.evented import Listen

T = TypeVar("T")


async def to_the_end(step: Awaitable[T]) -> T:
    """The result of `step`. A cancel that comes meanwhile comes too late: it is not raised."""
    task = asyncio.ensure_future(step)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()


async def whole(step: Awaitable[T]) -> T:
    """The result of `step`, which is never half done.

    Raises:
        asyncio.CancelledError: the caller has been cancelled, and the step is done.
    """
    result = await to_the_end(step)
    caller = asyncio.current_task()
    if caller and caller.cancelling():
        raise asyncio.CancelledError
    return result


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
