"""A turn that a crash cut off: what it had begun and not completed is taken back, so that it can go on.

What it had completed needs nothing: the change a call made, its result and its being remembered are kept together or
not at all (`call.py`), and so are an operation's change and its end (`operate.py`), a turn's last words and its status
(`turn.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from a2a_canvas.server.agent.events import Emit, LlmCallCompleted
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.agent.model import Usage
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.edits import EditAborted, Selection
from a2a_canvas.store.errors import ArtifactNotFound
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.models import Ref


@dataclass(frozen=True, slots=True)
class InterruptedTurn:
    """What a task's journal and its context's artifacts say of a turn that nobody runs any more.

    Attributes:
        round: of the model call that is not over; None if none is open.
        open_edits: (edit id, artifact id, selection) of those that were announced and have not ended.
        drafts: see `open_drafts`.
    """

    task_id: str
    context_id: str
    round: int | None
    open_edits: tuple[tuple[str, str, Selection], ...]
    drafts: tuple[str, ...]


async def open_drafts(store: ArtifactStore, context_id: str, task_id: str) -> tuple[str, ...]:
    """The ids of the artifacts of which the task has a draft open."""
    artifacts = await store.list(context_id)
    return tuple(each.artifact_id for each in artifacts if each.open and each.changed_by == task_id)


async def reclaim(interrupted: InterruptedTurn, store: ArtifactStore, emit: Emit, changed: Iterable[str]) -> None:
    """Say that the model call is over, and give watchers back each artifact as the last completed call left it.

    Drafts that completed calls have written stay open, for the turn that goes on (`TurnRequest.drafts`). If a crash
    comes here too, all that is left to do is in the next `InterruptedTurn`.

    Args:
        changed: ids of the artifacts that the task has changed so far.
    """
    evented = EventedArtifactStore(store, listener(emit), changed)
    refs = [Ref(interrupted.context_id, artifact_id, interrupted.task_id) for artifact_id in interrupted.drafts]
    if interrupted.round is not None:
        await emit(LlmCallCompleted(interrupted.round, "error", Usage()))
    for ref in refs:
        evented.adopt_draft(ref)
        await evented.discard(ref)
    for edit_id, artifact_id, selection in interrupted.open_edits:
        await evented.notify(EditAborted(edit_id, artifact_id, selection))
        with suppress(ArtifactNotFound):
            await evented.resend(Ref(interrupted.context_id, artifact_id, interrupted.task_id))
