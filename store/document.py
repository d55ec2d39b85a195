"""One artifact's versions and its draft, as a frozen value, and everything that can happen to it. Pure.

Rule 1: a draft has one writer, a task. Anyone else gets `ArtifactBusy` while it is open.
Rule 2: a draft closes into a version at `last_chunk`, before a replace by a later call, and when its turn says so.
        The deltas of one call never close it: a replace closes the draft only if the call before it was complete.
Rule 3: a call that is cut off leaves nothing: the draft returns to where the last completed call left it.
Rule 4: a stock client cannot delete an artifact, so where nothing was complete and no version exists, the partial
        content stays visible until the next change starts afresh; if none comes it becomes an incomplete version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from store.changes import Change, ReplaceParts, apply, check, compact, group
from store.errors import ArtifactBusy
from store.models import Artifact, Author, Content, Limits, Parts, Ref, TextPart, Version, text_part


@dataclass(frozen=True, slots=True)
class Applied:
    """What a mutation did, and so what a watcher must do.

    Attributes:
        artifact: as it now stands.
        append: whether a watcher who has the artifact may just add `new` to its parts.
        new: the parts that were added (`append` only).
        last_chunk: the draft is closed; `version` has been made.
        version: the number of the version that this is part of, closed or still a draft.
    """

    artifact: Artifact
    append: bool
    new: Parts
    last_chunk: bool
    version: int
    author: Author

    @property
    def parts(self) -> Parts:
        """What goes to a watcher: only the new parts, or all of them."""
        return self.new if self.append else self.artifact.parts


@dataclass(frozen=True, slots=True)
class Draft:
    """Changes not yet closed.

    Attributes:
        kept: the content the last completed call left; None while none has completed.
        shown: the content including the call that is being written.
        dirty: whether a call is being written.
    """

    task_id: str
    author: Author
    kept: Content | None
    shown: Content
    dirty: bool

    @property
    def abandoned(self) -> bool:
        """Only a cut-off call was ever here (rule 4)."""
        return self.kept is None and not self.dirty


@dataclass(frozen=True, slots=True)
class Document:
    """An artifact with all it has been."""

    artifact_id: str
    versions: tuple[Version, ...] = ()
    draft: Draft | None = None

    @property
    def exists(self) -> bool:
        return bool(self.versions or self.draft)

    @property
    def closed(self) -> Content:
        """The content of the current version, or nothing."""
        return self.versions[-1].content if self.versions else Content()

    @property
    def artifact(self) -> Artifact:
        shown = self.draft.shown if self.draft else self.closed
        return Artifact(self.artifact_id, shown, len(self.versions), self.draft is not None)


def changed(document: Document, ref: Ref, change: Change, limits: Limits) -> tuple[Document, Applied]:
    """`document` after `change` by `ref`'s task.

    Raises:
        ArtifactBusy, EmptyUpdate, MediaTypeConflict, ArtifactTooLarge, TooManyParts: nothing has changed.
    """
    _check_writer(document, ref)
    if document.draft and not document.draft.dirty and not document.draft.abandoned and _replaces(change):
        document = _with_version(document, document.draft)
    draft = document.draft
    base = document.closed if draft is None or draft.abandoned else draft.shown
    content = _content(base, change)
    check(content.parts, limits)
    append = not _replaces(change) and _extends(document, content, ref)
    kept = content if change.done else draft.kept if draft else None
    shown = replace(document, draft=Draft(ref.task_id, ref.author, kept, content, dirty=not change.done))
    if change.last_chunk:
        return _closed(shown, append, group(change.parts))
    return shown, _applied(shown, append, group(change.parts))


def kept(document: Document, ref: Ref) -> Document:
    """The call that was being written is complete: `discarded` will return here."""
    _check_writer(document, ref)
    draft = document.draft
    if draft is None or not draft.dirty:
        return document
    return replace(document, draft=replace(draft, kept=draft.shown, dirty=False))


def discarded(document: Document, ref: Ref) -> tuple[Document, Applied | None]:
    """The call that was being written was cut off (rules 3 and 4). None if watchers need not be told."""
    draft = document.draft
    if draft is None or not draft.dirty or draft.task_id != ref.task_id:
        return document, None
    if draft.kept is None and not document.versions:
        return replace(document, draft=replace(draft, dirty=False)), None
    back = replace(draft, shown=draft.kept, dirty=False) if draft.kept else None
    document = replace(document, draft=back)
    return document, _applied(document, append=False, author=ref.author)


def closed(document: Document, ref: Ref) -> tuple[Document, Applied | None]:
    """The draft becomes a version. None if `ref`'s task has no draft open."""
    if document.draft is None or document.draft.task_id != ref.task_id:
        return document, None
    has_text = any(isinstance(part, TextPart) for part in document.artifact.parts)
    # A2A wants at least one part in every artifact; an empty text adds nothing to the text that is there.
    return _closed(document, append=has_text, new=(text_part(""),) if has_text else ())


def _extends(document: Document, content: Content, ref: Ref) -> bool:
    """Whether a stock client that saw the task's changes may add the new parts to those it has.

    It has not seen what other tasks have changed since, nor the end of an abandoned draft; and when it appends it
    looks at the parts alone, so it learns of a new name by a replacement.
    """
    if not document.exists or (document.draft and document.draft.abandoned):
        return False
    last, before = document.draft or document.versions[-1], document.artifact
    return last.task_id == ref.task_id and (content.name, content.description) == (before.name, before.description)


def _replaces(change: Change) -> bool:
    return isinstance(change, ReplaceParts)


def _check_writer(document: Document, ref: Ref) -> None:
    if document.draft and document.draft.task_id != ref.task_id:
        raise ArtifactBusy(document.artifact_id, document.draft.task_id)


def _content(base: Content, change: Change) -> Content:
    return Content(
        name=base.name if change.name is None else change.name,
        description=base.description if change.description is None else change.description,
        parts=apply(base.parts, change),
    )


def _closed(document: Document, append: bool, new: Parts) -> tuple[Document, Applied]:
    assert document.draft is not None
    author = document.draft.author
    document = _with_version(document, document.draft)
    return document, _applied(document, append, new, last_chunk=True, author=author)


def _with_version(document: Document, draft: Draft) -> Document:
    number = len(document.versions) + 1
    parent = document.versions[-1].number if document.versions else 0
    version = Version(
        number,
        replace(draft.shown, parts=compact(draft.shown.parts)),
        draft.author,
        draft.task_id,
        parent,
        draft.abandoned,
    )
    return replace(document, versions=(*document.versions, version), draft=None)


def _applied(
    document: Document,
    append: bool,
    new: Parts = (),
    *,
    last_chunk: bool = False,
    author: Author | None = None,
) -> Applied:
    draft = document.draft
    version = len(document.versions) + (1 if draft else 0)
    writer = author or (draft.author if draft else "agent")
    return Applied(document.artifact, append, new if append else (), last_chunk, version, writer)
