"""A store that reports every change to a listener. Each turn wraps the shared store in one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from a2a_canvas.store.artifact_store import ArtifactStore, StoreWrapper
from a2a_canvas.store.changes import Change, EditText
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditEvent, EditStarted, EditSuggested
from a2a_canvas.store.errors import ArtifactBusy
from a2a_canvas.store.models import AppliedChange, Artifact, Ref
from a2a_canvas.store.text.hunks import Hunk

Listen = Callable[[AppliedChange | EditEvent], Awaitable[None]]


class EventedArtifactStore(StoreWrapper):
    """Wraps any store and passes every applied change, and every event of an edit, to `listen`, in order.

    The first change of an artifact in a task is reported as a replacement with all parts, because a stock client cannot
    append to an artifact that it has not seen (docs/a2a.md, "How parts are combined").

    It also records the version at which the turn's model last read or wrote an artifact (`known_version`). If another
    version is current, someone else has changed the artifact since.

    Args:
        seen: ids of the artifacts that the task has already changed, for a turn that is resumed.

    Attributes:
        touched: ids of the artifacts that the task's model has read or written.
        saved: the artifacts of which this turn has made a version, after its last change.
    """

    def __init__(self, store: ArtifactStore, listen: Listen, seen: Iterable[str] = ()) -> None:
        super().__init__(store)
        self._listen = listen
        self._seen = set(seen)
        self._drafts: dict[str, Ref] = {}
        self._known: dict[str, tuple[int, ...]] = {}
        self.touched = set(self._seen)
        self.saved: dict[str, AppliedChange] = {}

    def known_version(self, artifact_id: str) -> int | None:
        """The version that was current when the model last read or wrote the artifact; None if it never did."""
        return self._known.get(artifact_id, (None,))[0]

    def model_read(self, artifact_id: str, version: int) -> None:
        """The model has read the artifact, of which `version` is the current one."""
        self.touched.add(artifact_id)
        self.model_knows(artifact_id, version)

    def model_knows(self, artifact_id: str, version: int) -> None:
        """When the turn begins, the conversation contains the artifact at `version`."""
        if artifact_id not in self._drafts:  # no one else can change an artifact with a draft of this turn
            self._known[artifact_id] = (version,)

    async def apply(self, ref: Ref, change: Change) -> AppliedChange:
        applied = await self._apply(ref, change)
        self._drafts[ref.artifact_id] = ref
        return await self._report_change(applied)

    def adopt_draft(self, ref: Ref) -> None:
        """Continue a draft that the task left open because its turn crashed."""
        self._drafts[ref.artifact_id] = ref

    async def close(self, ref: Ref) -> AppliedChange | None:
        applied = await self._store.close(ref)
        return await self._report_change(applied) if applied else None

    async def discard(self, ref: Ref) -> AppliedChange | None:
        applied = await self._store.discard(ref)
        if applied and applied.last_chunk and ref.artifact_id in self._known:
            self._known[ref.artifact_id] = self._known[ref.artifact_id][:1]
        return await self._notify(applied) if applied else None

    async def at_version(self, ref: Ref) -> Artifact:
        """The artifact without a draft: the task's own is closed first.

        Raises:
            ArtifactNotFound, ArtifactBusy: there is none; another task is writing it.
        """
        artifact = await self.get(ref)
        if not artifact.open:
            return artifact
        closed = await self.close(ref)
        if closed is None:
            raise ArtifactBusy(artifact.artifact_id, artifact.changed_by)
        return closed.artifact

    async def report_edit(self, event: EditStarted | EditChunk | EditSuggested | EditAborted) -> None:
        """Report the progress of an edit. Nothing has been changed yet."""
        await self._listen(event)

    async def complete_edit(self, ref: Ref, change: EditText, completed: EditCompleted) -> AppliedChange:
        """Applies an edit, then reports `completed`, then the change.

        Raises:
            StoreError: nothing has changed, and nothing was reported.
        """
        return await self.complete_edits(ref, change, [Hunk(change.span, change.text)], [completed])

    async def complete_edits(
        self, ref: Ref, change: EditText, hunks: Sequence[Hunk], completed: Sequence[EditCompleted]
    ) -> AppliedChange:
        """Applies several edits of one text as one change, then reports each as completed, then the change.

        Args:
            change: all of them together; `hunks` are the single ones.

        Raises:
            StoreError: nothing has changed, and nothing was reported.
        """
        applied = await self._apply(ref, change)
        for each in completed:
            await self._listen(each)
        return await self._report_change(applied)

    async def end_call(self, ref: Ref, *, close: bool) -> AppliedChange | None:
        """Complete the call being written, and close the draft if asked to."""
        if close:
            return await self.close(ref)
        await self.complete_call(ref)
        return None

    async def resend(self, ref: Ref) -> None:
        """Report the whole artifact again, after subscribers saw an edit that was aborted.

        A draft of another task is not reported if there is a version, because that task may still discard it.

        Raises:
            ArtifactNotFound: there is no such artifact.
        """
        artifact, versions = await self._store.get(ref), await self._store.versions(ref)
        writer = self._drafts.get(ref.artifact_id)
        if artifact.open and (writer or not versions):
            author = writer.author if writer else ref.author
            draft = AppliedChange(artifact, False, (), False, len(versions) + 1, author, artifact.version, resent=True)
            await self._notify(draft)
            return
        version = versions[artifact.version - 1]
        closed = replace(artifact, content=version.content, open=False)
        number, parent = version.number, version.parent
        await self._notify(AppliedChange(closed, False, (), True, number, version.author, parent, resent=True))

    async def prepare_all(self) -> None:
        """Acquire the lease of every draft of this turn, so that `close_all` does not wait."""
        for ref in tuple(self._drafts.values()):
            await self._store.prepare(ref)

    async def close_all(self) -> None:
        """Close every draft of this turn: before the task asks for input, and when it ends.

        A call that is still being written is discarded first.
        """
        for ref in tuple(self._drafts.values()):
            await self.discard(ref)
            await self.close(ref)

    async def _apply(self, ref: Ref, change: Change) -> AppliedChange:
        """Apply a change, after reporting the draft that it closed."""
        applied = await self._store.apply(ref, change)
        if applied.closed:
            await self._report_change(applied.closed)
        return applied

    async def _report_change(self, applied: AppliedChange) -> AppliedChange:
        """Report a change by the model. If the model has not seen the version below it, the known version stays."""
        artifact_id = applied.artifact.artifact_id
        self.touched.add(artifact_id)
        if artifact_id not in self._known or applied.parent in self._known[artifact_id]:
            # While a draft is open, its parent is the current version. A change that closes the draft has the draft's
            # own number as its parent.
            is_draft = not applied.last_chunk
            self._known[artifact_id] = (applied.parent, applied.version) if is_draft else (applied.version,)
        if applied.last_chunk:
            self.saved[artifact_id] = applied
        return await self._notify(applied)

    async def _notify(self, applied: AppliedChange) -> AppliedChange:
        artifact_id = applied.artifact.artifact_id
        if artifact_id not in self._seen:
            self._seen.add(artifact_id)
            applied = replace(applied, append=False, new=())
        if applied.last_chunk:
            self._drafts.pop(artifact_id, None)
        await self._listen(applied)
        return applied
