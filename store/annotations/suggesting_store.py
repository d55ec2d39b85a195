"""A store for tasks that suggest: it turns the agent's edits into suggestions, and changes no artifact.

Rule 1: an edit streams as any other; it ends with a suggestion on the version it was written for.
Rule 2: an edit that is aborted leaves nothing, so subscribers need no artifact again.
Rule 3: it waits for nobody: drafts of other tasks are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from a2a_canvas.store.annotations.annotation import Annotation
from a2a_canvas.store.annotations.review import Review
from a2a_canvas.store.changes import EditText
from a2a_canvas.store.edits import EditAborted, EditChunk, EditCompleted, EditStarted, EditSuggested
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.models import AppliedChange, Artifact, Ref
from a2a_canvas.store.text.hunks import Hunk


class SuggestingStore(EventedArtifactStore):
    """An evented store whose edits become suggestions.

    Args:
        evented: the store of the turn.
        review: the agent's.
    """

    def __init__(self, evented: EventedArtifactStore, review: Review) -> None:
        vars(self).update(vars(evented))  # what the turn has read, written and reported is the same for both
        self._review = review

    async def at_version(self, ref: Ref) -> Artifact:
        """The artifact as of its current version, which is the task's own draft if it has one (rule 3)."""
        artifact = await self.get(ref)
        if not artifact.open or not artifact.version or artifact.changed_by == ref.task_id:
            return await super().at_version(ref)
        return replace(artifact, content=(await self.version(ref, artifact.version)).content, open=False)

    async def report_edit(self, event: EditStarted | EditChunk | EditSuggested | EditAborted) -> None:
        if isinstance(event, EditStarted):
            event = replace(event, mode="suggest")
        await super().report_edit(event)

    async def complete_edit(self, ref: Ref, change: EditText, completed: EditCompleted) -> AppliedChange:
        artifact = await self.get(ref)
        (made,) = await self._review.suggest(ref.artifact_id, change.base, [Hunk(change.span, change.text)])
        of = completed.edit_id, completed.artifact_id, completed.selection
        await self.report_edit(EditSuggested(*of, made.annotation_id))
        return _to_unchanged(ref, artifact, [made])

    async def resend(self, ref: Ref) -> None:
        """Nothing: subscribers have the artifact as it is (rule 2)."""


def _to_unchanged(ref: Ref, artifact: Artifact, made: Iterable[Annotation]) -> AppliedChange:
    numbers = tuple(each.number for each in made)
    return AppliedChange(artifact, False, (), True, artifact.version, ref.author, artifact.version, None, numbers)
