"""What one author does with the annotations of a context: comment, suggest, reply, resolve, reject, accept, withdraw.

Rule 1: each step holds the annotations of the context (`annotation_store.py`, rule 2), decides by what it reads, and
        reports one `AnnotationsChanged`. A step that is refused changes nothing.
Rule 2: nothing waits between the change of the artifact and that report, so both are committed together.
Rule 3: accepting several is one version (`merging.py`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial, reduce
from typing import TypeVar

from a2a_canvas.store.annotations import annotation_steps as steps
from a2a_canvas.store.annotations.annotation import (
    MAX_ACCEPTED,
    MAX_OPEN,
    Annotation,
    AnnotationsChanged,
    Decision,
    PlacedAnnotation,
    Quote,
    Remark,
    ShownState,
    Writer,
)
from a2a_canvas.store.annotations.annotation_marks import MarkedAnnotation, find_new_marks, mark_annotation
from a2a_canvas.store.annotations.annotation_places import place_annotations
from a2a_canvas.store.annotations.annotation_store import AnnotationStore
from a2a_canvas.store.annotations.critic_markup import CriticMark, CriticMarkupError
from a2a_canvas.store.annotations.merging import ConflictingSuggestion, MergedSuggestions, merge_suggestions
from a2a_canvas.store.changes import EditText
from a2a_canvas.store.errors import (
    AnnotationNotFound,
    ArtifactBusy,
    NotItsAuthor,
    OutsideText,
    TooManyAnnotations,
    VersionConflict,
)
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import AppliedChange, Author, Ref, TextEdit
from a2a_canvas.store.text.comparing import run_comparison
from a2a_canvas.store.text.hunks import Hunk
from a2a_canvas.store.text.spans import Span, difference

T = TypeVar("T")
Report = Callable[[AnnotationsChanged], Awaitable[None]]
MakeReview = Callable[[Author, EventedArtifactStore, Report], "Review"]
"""Makes the review of a task: that of the sender of its message, or the agent's."""
Chosen = Callable[[PlacedAnnotation], bool]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What accepting has done.

    Attributes:
        applied: the version it made; None if there was nothing to change.
        stale: those whose passage is gone. They stay as they are.
    """

    accepted: tuple[Annotation, ...]
    stale: tuple[Annotation, ...]
    conflicts: tuple[ConflictingSuggestion, ...]
    applied: AppliedChange | None


class Review:
    """The annotations of one context, for one task and one author. Methods raise `StoreError`, and `Unavailable`.

    Args:
        store: gets the versions that accepting makes.
        report: gets each change of annotations.
        writer: who comments, suggests and decides.
        new_id: makes an id for an annotation.
    """

    def __init__(
        self,
        store: EventedArtifactStore,
        annotations: AnnotationStore,
        report: Report,
        context_id: ContextKey,
        task_id: str,
        writer: Writer,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        self._store = store
        self._annotations = annotations
        self._report = report
        self._context_id = context_id
        self._task_id = task_id
        self.writer = writer
        self._now = now
        self.new_id = new_id
        self._lock = asyncio.Lock()

    async def list(self, artifact_id: str) -> tuple[PlacedAnnotation, ...]:
        """The annotations of an artifact at its current version, oldest first."""
        return await self._place(artifact_id, await self._existing(artifact_id))

    async def find(self, artifact_id: str, annotation_id: str) -> PlacedAnnotation | None:
        """One of them; None if there is none with this id."""
        found = await self._annotations.find(self._context_id, artifact_id, annotation_id)
        return (await self._place(artifact_id, (found,)))[0] if found else None

    async def annotate(
        self, artifact_id: str, version: int, span: Span, text: str = "", replacement: str | None = None
    ) -> Annotation:
        """Comment on a passage of a version, or suggest a replacement for it.

        Args:
            text: the comment; a suggestion may have none.

        Raises:
            RemarkTooLong, TooManyAnnotations, OutsideText, VersionNotFound: nothing was changed.
        """
        steps.check_thread([text])
        (made,) = await self._add(artifact_id, version, [(span, replacement)], text)
        return made

    async def suggest(self, artifact_id: str, version: int, changes: Sequence[Hunk]) -> tuple[Annotation, ...]:
        """Suggest several changes of one version, each for itself. Raises as `annotate`."""
        return await self._add(artifact_id, version, [(each.span, each.text) for each in changes])

    async def suggest_append(self, artifact_id: str, version: int, text: str) -> Annotation:
        """Suggest to add text at the end of a version; it continues what this task has suggested there."""
        end = len((await self._store.version(self._ref(artifact_id), version)).content.text)
        async with self._hold():
            for each in await self._existing(artifact_id):
                mine = (each.task_id, each.writer, each.state) == (self._task_id, self.writer, "open")
                if mine and each.replacement is not None and (each.version, each.span.end) == (version, end):
                    return await self._change(replace(each, replacement=each.replacement + text))
        (made,) = await self._add(artifact_id, version, [(Span(end, end), text)])
        return made

    async def _add(
        self, artifact_id: str, version: int, passages: Sequence[tuple[Span, str | None]], text: str = ""
    ) -> tuple[Annotation, ...]:
        content = (await self._store.version(self._ref(artifact_id), version)).content.text
        for span, _ in passages:
            if not 0 <= span.start <= span.end <= len(content):
                raise OutsideText(span.start, span.end, len(content))
        marks = [CriticMark(span, replacement, (text,) if text else ()) for span, replacement in passages]
        async with self._hold():
            last = await self._check_room(artifact_id, len(marks))
            made = self._make(artifact_id, version, content, marks, last)
            await self._report(AnnotationsChanged(artifact_id, made))
        return made

    async def save_marked(
        self,
        artifact_id: str,
        text: str,
        marks: Sequence[CriticMark],
        save: Callable[[], Awaitable[T]],
        version_of: Callable[[T], int],
    ) -> tuple[T, tuple[Annotation, ...]]:
        """Save a text, and add what its marks add to the annotations that are open (`annotation_marks.py`, rule 2).

        Args:
            save: makes the version with this text, or finds that it is the current one.
            version_of: the number of that version.

        Returns:
            What `save` returned, and the annotations that are new or have new remarks.

        Raises:
            RemarkTooLong, ThreadFull, TooManyAnnotations, StoreError: nothing was changed.
        """
        for mark in marks:
            steps.check_thread(mark.thread)
        async with self._hold():
            new = find_new_marks(text, marks, await self._marks(artifact_id))
            last = await self._check_room(artifact_id, len(new.added))
            replied = tuple(reduce(steps.add_reply, self._remarks(more), each) for each, more in new.replies)
            saved = await save()
            made = self._make(artifact_id, version_of(saved), text, new.added, last)
            if changed := replied + made:
                await self._report(AnnotationsChanged(artifact_id, changed))
        return saved, changed

    async def _marks(self, artifact_id: str) -> tuple[MarkedAnnotation, ...]:
        existing = await self._existing(artifact_id)
        if not existing:
            return ()
        ref = self._ref(artifact_id)
        version = await self._store.version(ref, (await self._store.get(ref)).version)
        text, found = version.content.text, []
        for each in await place_annotations(existing, await self._store.versions(ref), version.number):
            with suppress(CriticMarkupError):  # what is in conflict was not written
                if known := mark_annotation(each, text):
                    found.append(known)
        return tuple(found)

    def _make(
        self,
        artifact_id: str,
        version: int,
        content: str,
        marks: Iterable[CriticMark],
        last: int,
    ) -> tuple[Annotation, ...]:
        return tuple(
            Annotation(
                self.new_id(),
                artifact_id,
                number,
                version,
                mark.span,
                Quote.from_text(content, mark.span),
                self.writer,
                self._now(),
                self._task_id,
                self._remarks(mark.thread),
                mark.replacement,
            )
            for number, mark in enumerate(marks, last + 1)
        )

    def _remarks(self, texts: Iterable[str]) -> tuple[Remark, ...]:
        return tuple(Remark(self.writer, self._now(), text, self._task_id) for text in texts)

    async def reply(self, artifact_id: str, annotation_id: str, text: str) -> Annotation:
        """Add to the thread of an annotation; a resolved comment is open again."""
        async with self._hold():
            found = await self._get(artifact_id, annotation_id)
            if found.state == "resolved":
                await self._check_room(artifact_id, 1)
            return await self._change(steps.add_reply(found, Remark(self.writer, self._now(), text, self._task_id)))

    async def resolve(self, artifact_id: str, annotation_id: str) -> Annotation:
        """Resolve a comment."""
        return await self._decide(artifact_id, annotation_id, steps.resolve)

    async def reject(self, artifact_id: str, annotation_id: str) -> Annotation:
        """Reject a suggestion."""
        return await self._decide(artifact_id, annotation_id, steps.reject)

    async def withdraw(self, artifact_id: str, annotation_id: str, *, others: bool = False) -> Annotation:
        """Remove an annotation.

        Args:
            others: the author may remove those of others, too.

        Raises:
            NotItsAuthor: it is someone else's.
        """
        async with self._hold():
            found = await self._get(artifact_id, annotation_id)
            if not others and found.writer != self.writer:
                raise NotItsAuthor(annotation_id)
            await self._report(AnnotationsChanged(artifact_id, removed=(annotation_id,)))
        return found

    async def accept(self, artifact_id: str, annotation_id: str) -> Acceptance:
        """Accept one suggestion: one version.

        Raises:
            ArtifactBusy: a task is writing the artifact.
            AnnotationStale, AnnotationClosed, WrongAnnotationKind, AnnotationNotFound: nothing was changed.
        """
        async with self._hold():
            found = await self._get(artifact_id, annotation_id)
            (placed,) = await self._place(artifact_id, (found,))
            steps.check_acceptable(found, placed.state)
            return await self._accept(artifact_id, (found,))

    async def accept_all(self, artifact_id: str, chosen: Chosen = lambda _: True) -> Acceptance:
        """Accept all open suggestions, or those `chosen`: one version. What does not fit stays (`Acceptance`).

        They are the oldest `MAX_ACCEPTED`.
        """
        async with self._hold():
            existing = await self._existing(artifact_id)
            placed = await self._place(artifact_id, [each for each in existing if each.kind == "suggestion"])
            wanted = [each.annotation for each in placed if each.state in ("open", "stale") and chosen(each)]
            return await self._accept(artifact_id, wanted[:MAX_ACCEPTED])

    # ------------------------------------------------------------------------ accepting

    async def _accept(self, artifact_id: str, suggestions: Sequence[Annotation]) -> Acceptance:
        ref = self._ref(artifact_id)
        while True:
            await self._store.prepare(ref)
            artifact = await self._store.get(ref)
            if artifact.open:
                raise ArtifactBusy(artifact_id, artifact.changed_by)
            versions = await self._store.versions(ref)
            placed = await place_annotations(suggestions, versions, artifact.version)
            merged = await run_comparison(partial(merge_suggestions, placed), artifact.text, times=len(placed))
            try:
                return await self._apply(ref, artifact.version, artifact.text, merged)
            except VersionConflict:
                continue

    async def _apply(self, ref: Ref, base: int, text: str, merged: MergedSuggestions) -> Acceptance:
        """Make the version, and report what it accepts (rule 2)."""
        applied = None
        if merged.text != text:
            applied = await self._store.apply(ref, _edit(text, merged, base))
        decision = Decision(self.writer, self._now(), applied.version if applied else base)
        accepted = tuple(replace(each, state="accepted", decision=decision) for each in merged.accepted)
        if accepted:
            await self._report(AnnotationsChanged(ref.artifact_id, accepted))
        return Acceptance(accepted, merged.stale, merged.conflicts, applied)

    # ----------------------------------------------------------------------------- steps

    async def _decide(
        self,
        artifact_id: str,
        annotation_id: str,
        step: Callable[[Annotation, ShownState, Decision], Annotation],
    ) -> Annotation:
        async with self._hold():
            found = await self._get(artifact_id, annotation_id)
            (placed,) = await self._place(artifact_id, (found,))
            return await self._change(step(found, placed.state, Decision(self.writer, self._now())))

    async def _change(self, changed: Annotation) -> Annotation:
        await self._report(AnnotationsChanged(changed.artifact_id, (changed,)))
        return changed

    async def _place(self, artifact_id: str, annotations: Iterable[Annotation]) -> tuple[PlacedAnnotation, ...]:
        ref = self._ref(artifact_id)
        current = (await self._store.get(ref)).version
        return await place_annotations(annotations, await self._store.versions(ref), current)

    async def _existing(self, artifact_id: str) -> tuple[Annotation, ...]:
        return await self._annotations.list(self._context_id, artifact_id)

    async def _get(self, artifact_id: str, annotation_id: str) -> Annotation:
        if found := await self._annotations.find(self._context_id, artifact_id, annotation_id):
            return found
        raise AnnotationNotFound(artifact_id, annotation_id)

    async def _check_room(self, artifact_id: str, more: int) -> int:
        """The highest number. There are no more annotations than that, so those that are open are seldom counted.

        Raises:
            TooManyAnnotations: with these, more than `MAX_OPEN` would be open.
        """
        last = await self._annotations.last_number(self._context_id, artifact_id)
        open_ = last if last + more <= MAX_OPEN else await self._annotations.count_open(self._context_id, artifact_id)
        if open_ + more > MAX_OPEN:
            raise TooManyAnnotations(artifact_id, MAX_OPEN)
        return last

    @asynccontextmanager
    async def _hold(self) -> AsyncGenerator[None, None]:
        # A task that holds a context takes it again at once, and steps of an own loop can run at the same time.
        async with self._lock:
            await self._annotations.hold(self._context_id, self._task_id)
            try:
                yield
            finally:
                await self._annotations.release(self._context_id, self._task_id)

    def _ref(self, artifact_id: str) -> Ref:
        return Ref(self._context_id, artifact_id, self._task_id, self.writer.author)


def _edit(text: str, merged: MergedSuggestions, base: int) -> EditText:
    if len(merged.edits) == 1:
        return EditText(*merged.edits[0], base)
    edits = tuple(TextEdit(span, len(new)) for span, new in merged.edits)
    return EditText(*difference(text, merged.text), base, passage=False, edits=edits)


def suggested_by(annotations: Iterable[Annotation]) -> Mapping[int, Sequence[Writer]]:
    """Whose suggestions each version has accepted, by the number of the version."""
    found: defaultdict[int, dict[Writer, None]] = defaultdict(dict)
    for each in annotations:
        if each.accepted_into is not None:
            found[each.accepted_into][each.writer] = None
    return {number: tuple(writers) for number, writers in found.items()}
