"""A store for tasks that suggest: it turns the agent's edits into suggestions, and changes no artifact.

Rule 1: an edit streams as any other; it ends with a suggestion on the version it was written for.
Rule 2: an edit that is aborted leaves nothing, so subscribers need no artifact again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from a2a_canvas.store.annotations.annotation import Annotation
from a2a_canvas.store.annotations.review import Review
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.changes import EditText
from a2a_canvas.store.edits import EditAborted, EditChunk, EditCompleted, EditStarted, EditSuggested
from a2a_canvas.store.evented import EventedArtifactStore, Listen
from a2a_canvas.store.models import AppliedChange, Artifact, Ref
from a2a_canvas.store.text.hunks import Hunk


class SuggestingStore(EventedArtifactStore):
    """An evented store whose edits become suggestions.

    Args:
        make_review: makes the agent's `Review`, of this store.
    """

    def __init__(
        self,
        store: ArtifactStore,
        listen: Listen,
        make_review: Callable[[EventedArtifactStore], Review],
        seen: Iterable[str] = (),
    ) -> None:
        super().__init__(store, listen, seen)
        self._review = make_review(self)

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
