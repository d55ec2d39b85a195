"""One edit of a range of an artifact's text, from its announcement to its one change.

Rule 1: until the edit is complete, only subscribers see it. The store has no draft of it, so no other task has to wait.
Rule 2: a complete edit is applied to the selected passage, even if others have changed the artifact in the meantime:
        the passage is tracked (`store/tracking.py`), or the edit fails. It is never guessed.
Rule 3: every announced edit ends with `complete` or `abort`.
Rule 4: several edits of one artifact can be completed together: one version, and the passages stay apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from a2a_canvas.store.changes import EditText
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, Selection, Strategy
from a2a_canvas.store.errors import PassageLost, VersionConflict
from a2a_canvas.store.models import AppliedChange, Author
from a2a_canvas.store.text.hunks import Hunk
from a2a_canvas.store.text.spans import Span, Unit, difference, from_codepoints, length, splice
from a2a_canvas.store.text.unicode import replace_surrogates
from a2a_canvas.store.tracking import track
from a2a_canvas.tools.tool import Workspace


@dataclass(frozen=True, slots=True)
class EditTarget:
    """A passage of an artifact: `span` of `text`, the artifact's text at `version`.

    Attributes:
        unit: the unit of the sender's offsets.
    """

    artifact_id: str
    version: int
    text: str
    span: Span
    unit: Unit = "utf16"

    @property
    def quote(self) -> str:
        return self.span.extract(self.text)

    @property
    def selection(self) -> Selection:
        start, end = (from_codepoints(self.text, offset, self.unit) for offset in (self.span.start, self.span.end))
        return Selection(start, end, self.unit)


def updated_content(quote: str, written: str, strategy: Strategy) -> str:
    """The whole new text of the passage."""
    return splice(quote, replaced_span(Span(0, len(quote)), strategy), written)


def replaced_span(passage: Span, strategy: Strategy) -> Span:
    """The range replaced by the written text. It is empty for an insertion, so that others can edit the passage."""
    match strategy:
        case "replace":
            return passage
        case "insert_before":
            return Span(passage.start, passage.start)
        case "insert_after":
            return Span(passage.end, passage.end)


class EditStream:
    """An edit that is being written.

    Args:
        strategy: whether the text replaces the passage or is inserted next to it.
        author: the author of the new version.

    Attributes:
        target: the passage; after `complete`, its place in the version that was edited.
    """

    def __init__(self, workspace: Workspace, target: EditTarget, strategy: Strategy, author: Author = "agent") -> None:
        self._store = workspace.store
        self._ref = workspace.ref(target.artifact_id, author)
        self._id = workspace.new_id()
        self.target = target
        self._strategy: Strategy = strategy
        self._selection = target.selection
        self._pieces: list[str] = []

    async def start(self) -> None:
        """Announce the edit."""
        target = self.target
        await self._store.report_edit(
            EditStarted(self._id, target.artifact_id, self._selection, self._strategy, target.version)
        )

    async def feed(self, text: str) -> None:
        """Take the next piece of the new text."""
        text = replace_surrogates(text)
        if text:
            self._pieces.append(text)
            await self._store.report_edit(EditChunk(self._id, self.target.artifact_id, self._selection, text))

    async def complete(self) -> AppliedChange:
        """Make the change: one new version.

        Raises:
            PassageLost: others have changed the artifact, and the position of the passage is no longer certain.
            StoreError: the change was rejected. The edit is still open: `abort` it.
        """
        while True:
            target = self.target
            written = "".join(self._pieces)
            updated = updated_content(target.quote, written, self._strategy)
            change = EditText(replaced_span(target.span, self._strategy), written, target.version)
            try:
                return await self._store.complete_edit(
                    self._ref, change, self._completed_event(target, written, updated)
                )
            except VersionConflict:
                self.target = await self._find_again()

    def _hunk(self) -> Hunk:
        return Hunk(replaced_span(self.target.span, self._strategy), "".join(self._pieces))

    @property
    def changes_nothing(self) -> bool:
        """Whether the written text equals the passage."""
        return updated_content(self.target.quote, "".join(self._pieces), self._strategy) == self.target.quote

    async def abort(self, *, again: bool = False) -> None:
        """End the edit without a change.

        Args:
            again: another attempt follows, so subscribers do not need the whole artifact.
        """
        await self._store.report_edit(EditAborted(self._id, self.target.artifact_id, self._selection))
        if not again:
            await self.show()

    async def show(self) -> None:
        """Send subscribers the whole artifact."""
        await self._store.resend(self._ref)

    def _completed_event(self, target: EditTarget, written: str, updated: str, moved: int = 0) -> EditCompleted:
        """`moved`: by how much the changes before it move its place in the new text."""
        selection = target.selection
        begin = (selection.end if self._strategy == "insert_after" else selection.start) + moved
        place = Selection(begin, begin + length(written, target.unit), target.unit)
        return EditCompleted(self._id, target.artifact_id, selection, updated, place, self._strategy, target.version)

    async def _find_again(self) -> EditTarget:
        target = self.target
        await self._store.close(self._ref)  # the store closes this task's draft before an edit
        current = (await self._store.get(self._ref)).version
        versions = await self._store.versions(self._ref)  # read after `get`: others may make a version in between
        # The version, not the draft: another task may still discard its draft.
        text = versions[current - 1].content.text
        span = await track(versions, target.version, current, target.span, target.quote)
        if span is None:
            raise PassageLost(target.artifact_id, target.version, current)
        return replace(target, version=current, text=text, span=span)


async def complete_together(streams: Sequence[EditStream]) -> AppliedChange:
    """Make the changes of several edits of one artifact, in the order of its text: one new version (rule 4).

    Raises:
        PassageLost: as `EditStream.complete`, or a passage now reaches into another.
        StoreError: the change was rejected. The edits are still open: `abort` them.
    """
    if len(streams) == 1:
        return await streams[0].complete()
    while True:
        target = streams[0].target
        hunks = [stream._hunk() for stream in streams]
        text, moved, completed = target.text, 0, []
        for stream, hunk in zip(streams, hunks, strict=True):
            updated = updated_content(stream.target.quote, hunk.text, stream._strategy)
            completed.append(stream._completed_event(stream.target, hunk.text, updated, moved))
            unit = stream.target.unit
            moved += length(hunk.text, unit) - length(hunk.span.extract(target.text), unit)
        for hunk in reversed(hunks):
            text = splice(text, hunk.span, hunk.text)
        change = EditText(*difference(target.text, text), target.version, passage=False)
        try:
            return await streams[0]._store.complete_edits(streams[0]._ref, change, hunks, completed)
        except VersionConflict:
            await _find_all_again(streams)


async def _find_all_again(streams: Sequence[EditStream]) -> None:
    """Their places in the current version, which is the same for all."""
    versions: set[int] = set()
    while len(versions) != 1:
        for stream in streams:
            stream.target = await stream._find_again()
        versions = {stream.target.version for stream in streams}
    for before, after in pairwise(streams):
        if after.target.span.start < before.target.span.end:
            raise PassageLost(after.target.artifact_id, after.target.version, after.target.version)
