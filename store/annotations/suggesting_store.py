"""A store for tasks that suggest: what the agent changes in an artifact with a version becomes suggestions.

Rule 1: an edit streams as any other; it ends with a suggestion for the version that it was written for.
Rule 2: what a call writes is collected, and becomes suggestions when the call is complete: a replaced text one for each
        hunk, an appended one an insertion at the end. Of one that is cut off nothing is left, so subscribers need no
        artifact again. Until then subscribers see it grow as one edit, which replaces the text from the first line that
        differs, and ends with the first of the suggestions. What is complete at once is not shown before.
Rule 3: it waits for nobody: drafts of other tasks are not looked at.
Rule 4: suggestions are about text. Files and data, and an artifact until it has a version, are changed as always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from a2a_canvas.store.annotations.annotation import Annotation
from a2a_canvas.store.annotations.review import Review
from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, ReplaceParts, Restore, Undo, Update
from a2a_canvas.store.edit_events import (
    EditAborted,
    EditChunk,
    EditCompleted,
    EditStarted,
    EditSuggested,
    Selection,
)
from a2a_canvas.store.errors import ArtifactNotFound, PeopleDecide, VersionConflict
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.models import AppliedChange, Artifact, Ref, TextPart
from a2a_canvas.store.text.comparing import run_comparison
from a2a_canvas.store.text.hunks import Hunk, hunks
from a2a_canvas.store.text.spans import difference, from_codepoints
from a2a_canvas.store.text.unicode import replace_surrogates


@dataclass(slots=True)
class _WrittenText:
    """What a call has written of an artifact so far.

    Attributes:
        base: the artifact at the version that the call changes.
        replaces: the text replaces all of it; otherwise it is added to its end.
        equal: the number of characters that are as in the base, until the edit begins.
        edit: what subscribers see of it (rule 2); None until a character differs.
    """

    base: Artifact
    replaces: bool
    pieces: list[str] = field(default_factory=list)
    equal: int = 0
    edit: EditStarted | None = None

    def begin(self, piece: str) -> int | None:
        """Where the edit begins that shows the newest piece; None if the text does not differ yet."""
        if not self.replaces:
            return len(self.base.text) if piece else None
        old = self.base.text[self.equal : self.equal + len(piece)]
        if old == piece:
            self.equal += len(piece)
            return None
        differs = self.equal + difference(old, piece)[0].start
        return self.base.text.rfind("\n", 0, differs) + 1


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
                return _to_unchanged(ref, base, await self._rewrite(ref, base, old))
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
        if written := self._written.pop(ref.artifact_id, None):
            await self._end(written, ())
        return await super().discard(ref)

    async def _update(self, ref: Ref, change: Update, base: Artifact) -> AppliedChange:
        text = "".join(part.text for part in change.parts if isinstance(part, TextPart))
        rest = tuple(part for part in change.parts if not isinstance(part, TextPart))
        is_whole = change.done or change.last_chunk
        applied = await super().apply(ref, replace(change, parts=rest)) if rest else None
        if len(rest) < len(change.parts):
            replaces = isinstance(change, ReplaceParts)
            written = self._written.get(ref.artifact_id)
            if written and replaces:
                await self._end(written, ())
            if written is None or replaces:
                self._written[ref.artifact_id] = written = _WrittenText(base, replaces)
            written.pieces.append(replace_surrogates(text))
            if written.edit or not is_whole:
                await self._show(written)
        if is_whole:
            applied = _join(await self._suggest(ref), applied)
        return applied or _to_unchanged(ref, base, ())

    async def _suggest(self, ref: Ref) -> AppliedChange | None:
        """Make suggestions of what the call has written; None if it has written no text."""
        if not (written := self._written.pop(ref.artifact_id, None)):
            return None
        text, base = "".join(written.pieces), written.base
        made: Sequence[Annotation] = ()
        try:
            if written.replaces:
                made = await self._rewrite(ref, base, text)
            elif text:
                made = (await self._review.suggest_append(ref.artifact_id, base.version, text),)
        finally:
            await self._end(written, made)
        return _to_unchanged(ref, base, made)

    async def _rewrite(self, ref: Ref, base: Artifact, text: str) -> Sequence[Annotation]:
        changes = await run_comparison(hunks, base.text, text)
        return await self._review.suggest(ref.artifact_id, base.version, changes) if changes else ()

    async def _show(self, written: _WrittenText) -> None:
        """Show the newest piece (rule 2)."""
        base, chunk = written.base, written.pieces[-1]
        if written.edit is None:
            begin = written.begin(chunk)
            if begin is None:
                return
            chunk = "".join(written.pieces)[begin if written.replaces else 0 :]
            start, end = (from_codepoints(base.text, offset, "utf16") for offset in (begin, len(base.text)))
            place = Selection(start, end)
            written.edit = EditStarted(self._review.new_id(), base.artifact_id, place, "replace", base.version)
            await self.report_edit(written.edit)
        if chunk:
            await self.report_edit(EditChunk(written.edit.edit_id, base.artifact_id, written.edit.selection, chunk))

    async def _end(self, written: _WrittenText, made: Sequence[Annotation]) -> None:
        """End the edit that has shown the text: with the first of its suggestions, if it has become any."""
        if edit := written.edit:
            shown = edit.edit_id, edit.artifact_id, edit.selection
            await self.report_edit(EditSuggested(*shown, made[0].annotation_id) if made else EditAborted(*shown))

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
