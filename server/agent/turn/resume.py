"""Prepares a turn interrupted by a crash for continuation: undoes what it had begun and not completed.

Completed work needs nothing: the change of a call, its result and its transcript were committed together or not at
all (`call.py`), and so were an operation's change and status (`edit/run.py`), and a turn's last text and status
(`turn.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from a2a_canvas.server.agent.events import Emit, LlmCallCompleted
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.agent.model import Usage
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.edit_events import EditAborted, EditMode, Selection
from a2a_canvas.store.errors import ArtifactNotFound, ArtifactUnreadable
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Ref


@dataclass(frozen=True, slots=True)
class InterruptedTurn:
    """A turn that no process runs, as found in its task's journal and the artifacts of its context.

    Attributes:
        round: of the unfinished model call; None if there is none.
        open_edits: (edit id, artifact id, selection, mode) of the unfinished edits.
        drafts: see `open_drafts`.
    """

    task_id: str
    context_id: ContextKey
    round: int | None
    open_edits: tuple[tuple[str, str, Selection, EditMode], ...]
    drafts: tuple[str, ...]


async def open_drafts(store: ArtifactStore, context_id: ContextKey, task_id: str) -> tuple[str, ...]:
    """The ids of the artifacts with an open draft of the task."""
    artifacts = await store.list(context_id)
    return tuple(each.artifact_id for each in artifacts if each.open and each.changed_by == task_id)


async def roll_back_drafts(
    interrupted: InterruptedTurn, store: ArtifactStore, emit: Emit, changed: Iterable[str]
) -> None:
    """Emit the end of the model call, and each artifact as of the last completed call.

    Drafts written by completed calls stay open for the turn (`TurnRequest.drafts`). After a crash in this function, the
    next `InterruptedTurn` contains the rest.

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
    for edit_id, artifact_id, selection, mode in interrupted.open_edits:
        await evented.report_edit(EditAborted(edit_id, artifact_id, selection))
        if mode == "apply":  # clients show a suggestion beside the text, and a task that suggests changes no artifact
            with suppress(ArtifactNotFound, ArtifactUnreadable):
                await evented.resend(Ref(interrupted.context_id, artifact_id, interrupted.task_id))
