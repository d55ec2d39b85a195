"""A store for tasks that suggest: what the agent changes in an artifact with a version becomes suggestions.

Rule 1: an edit streams as any other; it ends with a suggestion for the version that it was written for.
Rule 2: what a call writes is collected, and becomes suggestions when the call is complete: a replaced text one for each
        hunk, an appended one an insertion at the end. Of one that is cut off nothing is left, so subscribers need no
        artifact again.
Rule 3: it waits for nobody: drafts of other tasks are not looked at.
Rule 4: suggestions are about text. Files and data, and an artifact until it has a version, are changed as always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from a2a_canvas.store.annotations.annotation import Annotation
from a2a_canvas.store.annotations.review import Review
from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, ReplaceParts, Restore, Undo, Update
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, EditSuggested
from a2a_canvas.store.errors import ArtifactNotFound, PeopleDecide, VersionConflict
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.models import AppliedChange, Artifact, Ref, TextPart
from a2a_canvas.store.text.comparing import run_comparison
from a2a_canvas.store.text.hunks import Hunk, hunks
from a2a_canvas.store.text.unicode import replace_surrogates


@dataclass(slots=True)
class _WrittenText:
    """What a call has written of an artifact so far.

    Attributes:
        base: the artifact at the version that the call changes.
        replaces: the text replaces all of it; otherwise it is added to its end.
    """

    base: Artifact
    replaces: bool
    pieces: list[str] = field(default_factory=list)


class SuggestingStore(EventedArtifactStore):
    """An evented store whose changes by the agent become suggestions.

    Args:
        evented: the store of the turn.
        review: the agent's.
    """

    def __init__(self, evented: EventedArtifactStore, review: Review) -> None:
        vars(self).update(vars(evented))  # what the turn has read, written and reported is the same for both
        self._review = review
        self._written: dict[str, _WrittenText] = {}

    # ------------------------------------------------------------------------- edits

    async def at_version(self, ref: Ref) -> Artifact:
        """The artifact as of its current version, which is the task's own draft if it has one (rule 3)."""
        artifact = await self.get(ref)
        if not artifact.open or not artifact.version or artifact.changed_by == ref.task_id:
            return await super().at_version(ref)
        return await self._get_closed(ref, artifact)

    async def report_edit(self, event: EditStarted | EditChunk | EditSuggested | EditAborted) -> None:
        if isinstance(event, EditStarted):
            event = replace(event, mode="suggest")
        await super().report_edit(event)

    async def complete_edits(
        self, ref: Ref, change: EditText, hunks: Sequence[Hunk], completed: Sequence[EditCompleted]
    ) -> AppliedChange:
        artifact = await self.get(ref)
        made = await self._review.suggest(ref.artifact_id, change.base, hunks)
        for each, suggestion in zip(completed, made, strict=True):
            await self.report_edit(
                EditSuggested(each.edit_id, each.artifact_id, each.selection, suggestion.annotation_id)
            )
        return _to_unchanged(ref, artifact, made)

    async def resend(self, ref: Ref) -> None:
        """Nothing: subscribers have the artifact as it is (rule 2)."""

    # ----------------------------------------------------------------------- changes

    async def apply(self, ref: Ref, change: Change) -> AppliedChange:
        base = await self._base(ref) if ref.author == "agent" else None
        if base is None:
            return await super().apply(ref, change)
        if not isinstance(change, AppendParts) and change.base not in (None, base.version):
            raise VersionConflict(ref.artifact_id, change.base, base.version)
        match change:
            case ReplaceParts() | AppendParts():
                return await self._update(ref, change, base)
            case EditText():
                hunk = Hunk(change.span, change.text)
                return _to_unchanged(ref, base, await self._review.suggest(ref.artifact_id, base.version, [hunk]))
            case Restore():
                old = (await self.version(ref, change.version)).content.text
                return await self._rewrite(ref, base, old)
            case Undo() | Redo():
                raise PeopleDecide(ref.artifact_id)

    async def complete_call(self, ref: Ref) -> None:
        await self._suggest(ref)
        await super().complete_call(ref)

    async def end_call(self, ref: Ref, *, close: bool) -> AppliedChange | None:
        return _join(await self._suggest(ref), await super().end_call(ref, close=close))

    async def close(self, ref: Ref) -> AppliedChange | None:
        return _join(await self._suggest(ref), await super().close(ref))

    async def discard(self, ref: Ref) -> AppliedChange | None:
        self._written.pop(ref.artifact_id, None)
        return await super().discard(ref)

    async def _update(self, ref: Ref, change: Update, base: Artifact) -> AppliedChange:
        text = "".join(part.text for part in change.parts if isinstance(part, TextPart))
        rest = tuple(part for part in change.parts if not isinstance(part, TextPart))
        applied = await super().apply(ref, replace(change, parts=rest)) if rest else None
        if len(rest) < len(change.parts):
            replaces = isinstance(change, ReplaceParts)
            written = self._written.get(ref.artifact_id)
            if written is None or replaces:
                self._written[ref.artifact_id] = written = _WrittenText(base, replaces)
            written.pieces.append(replace_surrogates(text))
        if change.done or change.last_chunk:
            applied = _join(await self._suggest(ref), applied)
        return applied or _to_unchanged(ref, base, ())

    async def _suggest(self, ref: Ref) -> AppliedChange | None:
        """Make suggestions of what the call has written; None if it has written no text."""
        if not (written := self._written.pop(ref.artifact_id, None)):
            return None
        text = "".join(written.pieces)
        if written.replaces:
            return await self._rewrite(ref, written.base, text)
        made = [await self._review.suggest_append(ref.artifact_id, written.base.version, text)] if text else []
        return _to_unchanged(ref, written.base, made)

    async def _rewrite(self, ref: Ref, base: Artifact, text: str) -> AppliedChange:
        changes = await run_comparison(hunks, base.text, text)
        made = await self._review.suggest(ref.artifact_id, base.version, changes) if changes else ()
        return _to_unchanged(ref, base, made)

    async def _base(self, ref: Ref) -> Artifact | None:
        """The artifact at its current version; None if it has none (rule 4)."""
        if written := self._written.get(ref.artifact_id):
            return written.base
        try:
            artifact = await self.get(ref)
        except ArtifactNotFound:
            return None
        return await self._get_closed(ref, artifact) if artifact.version else None

    async def _get_closed(self, ref: Ref, artifact: Artifact) -> Artifact:
        if not artifact.open:
            return artifact
        return replace(artifact, content=(await self.version(ref, artifact.version)).content, open=False)


def _join(suggested: AppliedChange | None, applied: AppliedChange | None) -> AppliedChange | None:
    """What was suggested, and how files and data have changed."""
    return replace(applied, suggestions=suggested.suggestions) if suggested and applied else applied or suggested


def _to_unchanged(ref: Ref, artifact: Artifact, made: Sequence[Annotation]) -> AppliedChange:
    numbers = tuple(each.number for each in made)
    return AppliedChange(artifact, False, (), True, artifact.version, ref.author, artifact.version, None, numbers)
