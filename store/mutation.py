"""Everything that can happen to one artifact. Pure.

Rule 1: a draft has one writer, a task. Anyone else gets `ArtifactBusy` while it is open.
Rule 2: a draft closes into a version at `last_chunk`, before a replace by a later call, and when its turn says so.
        The deltas of one call never close it: a replace closes the draft only if the call before it was complete.
Rule 3: a call that is cut off leaves nothing: the draft returns to where the last completed call left it.
Rule 4: a stock client cannot delete an artifact, so where nothing was complete and no version exists, the partial
        content stays visible until the next change starts afresh; if none comes it becomes an incomplete version.
Rule 5: versions are numbered as they are made, each has the version it was made from as its parent, and none is ever
        altered. The undo line is the chain of parents of the newest version made (`tip`); undo and redo move the
        current version along it, one version or one group (a run of versions by the same task), and a new version is
        the child of the current one and ends the redo line.
Rule 6: a version whose content is no longer kept has its place in the line, but there is no way back to it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from a2a_canvas.store.changes import (
    AppendParts,
    Change,
    EditText,
    Redo,
    ReplaceParts,
    Restore,
    Step,
    Undo,
    Update,
    apply,
    check,
    compact,
    group,
)
from a2a_canvas.store.document import Applied, Document, Draft
from a2a_canvas.store.errors import (
    ArtifactBusy,
    ArtifactNotFound,
    NothingToRedo,
    NothingToUndo,
    VersionConflict,
)
from a2a_canvas.store.models import (
    Author,
    Content,
    Limits,
    Part,
    Parts,
    Ref,
    TextEdit,
    TextPart,
    Version,
    replace_surrogates,
    text_of,
    text_part,
)


def apply_change(document: Document, ref: Ref, change: Change, limits: Limits) -> tuple[Document, Applied]:
    """`document` after `change` by `ref`'s task.

    Raises:
        ArtifactNotFound, ArtifactBusy, VersionNotFound, VersionPruned, VersionConflict, InvalidChange, LimitReached:
            nothing has changed.
    """
    _check_writer(document, ref)
    match change:
        case ReplaceParts() | AppendParts():
            return _written(document, ref, change, limits)
        case EditText() | Restore() | Undo() | Redo():
            return _stepped(document, ref, change, limits)
        case _:
            assert_never(change)


def _written(document: Document, ref: Ref, change: Update, limits: Limits) -> tuple[Document, Applied]:
    if isinstance(change, ReplaceParts):
        _check_base(document, change)
    if document.draft and not document.draft.dirty and not document.draft.never_completed and _replaces(change):
        document = _with_draft_closed(document, document.draft)
    draft = document.draft
    base = document.current_content if draft is None or draft.never_completed else draft.shown
    content = _content(base, change)
    check(content.parts, limits)
    append = not _replaces(change) and _extends(document, content, ref) and _in_order(base.parts, change.parts, content)
    kept = content if change.done else draft.completed if draft else None
    draft = Draft(ref.task_id, ref.author, kept, content, dirty=not change.done)
    shown = replace(document, draft=draft, changed_by=ref.task_id)
    if change.last_chunk:
        return _closed(shown, append, group(change.parts))
    return shown, _applied(shown, append, group(change.parts))


def _stepped(document: Document, ref: Ref, change: Step, limits: Limits) -> tuple[Document, Applied]:
    if not document.exists:
        raise ArtifactNotFound(document.artifact_id)
    if document.draft and document.draft.dirty:
        raise ArtifactBusy(document.artifact_id, document.draft.task_id)
    if document.draft:
        document = _with_draft_closed(document, document.draft)
    _check_base(document, change)
    document = replace(_after_step(document, ref, change), changed_by=ref.task_id)
    check(document.current_content.parts, limits)
    return document, _applied(document, append=False)


def _after_step(document: Document, ref: Ref, change: Step) -> Document:
    match change:
        case EditText():
            content = replace(document.current_content, parts=apply(document.current_content.parts, change))
            edited = TextEdit(change.span, len(replace_surrogates(change.text))) if change.passage else None
            return _with_version(document, content, ref.author, ref.task_id, edited=edited)
        case Restore():
            old = document.version(change.version)
            return _with_version(document, old.content, ref.author, ref.task_id, incomplete=old.incomplete)
        case Undo(group=whole):
            return replace(document, current=document.version(_before(document, whole)).number)
        case Redo(group=whole):
            return replace(document, current=document.version(_after(document, whole)).number)
        case _:
            assert_never(change)


def _before(document: Document, whole: bool) -> int:
    before = document.parent(document.current)
    if not before:
        raise NothingToUndo(document.artifact_id, document.current)
    task = document.maker(document.current)
    while whole and document.maker(before) == task and document.parent(before):
        before = document.parent(before)
    return before


def _after(document: Document, whole: bool) -> int:
    if document.current == document.tip:
        raise NothingToRedo(document.artifact_id, document.current)
    line = [document.tip]  # from the newest version back to the one after the current
    while document.parent(line[-1]) != document.current:
        line.append(document.parent(line[-1]))
    after = line.pop()
    while whole and line and document.maker(line[-1]) == document.maker(after):
        after = line.pop()
    return after


def complete_call(document: Document, ref: Ref) -> Document:
    """The call that was being written is complete: `discard_call` will return here."""
    _check_writer(document, ref)
    draft = document.draft
    if draft is None or not draft.dirty:
        return document
    return replace(document, draft=replace(draft, completed=draft.shown, dirty=False))


def discard_call(document: Document, ref: Ref) -> tuple[Document, Applied | None]:
    """The call that was being written was cut off (rules 3 and 4). None if watchers need not be told."""
    draft = document.draft
    if draft is None or not draft.dirty or draft.task_id != ref.task_id:
        return document, None
    if draft.completed is None and not document.versions:
        return replace(document, draft=replace(draft, dirty=False)), None
    back = replace(draft, shown=draft.completed, dirty=False) if draft.completed else None
    document = replace(document, draft=back)
    return document, _applied(document, append=False)


def close_draft(document: Document, ref: Ref) -> tuple[Document, Applied | None]:
    """The draft becomes a version. None if `ref`'s task has no draft open."""
    if document.draft is None or document.draft.task_id != ref.task_id:
        return document, None
    has_text = text_of(document.artifact.parts) is not None
    # A2A wants at least one part in every artifact; an empty text adds nothing to the text that is there.
    return _closed(document, append=has_text, new=(text_part(""),) if has_text else ())


def _extends(document: Document, content: Content, ref: Ref) -> bool:
    """Whether a stock client that saw the task's changes may add the new parts to those it has.

    It has not seen what other tasks have changed since, nor the end of a cut-off draft; and when it appends it
    looks at the parts alone, so it learns of a new name by a replacement.
    """
    if not document.exists or (document.draft and document.draft.never_completed):
        return False
    before = document.artifact
    same_name = (content.name, content.description) == (before.name, before.description)
    return document.changed_by == ref.task_id and same_name


def _in_order(before: Parts, new: Parts, content: Content) -> bool:
    """Whether parts stand where a stock client has them, which adds new ones at the end, and joins texts."""
    if len(new) == 1 and isinstance(new[0], TextPart):  # what a token does
        return True
    return _places((*before, *group(new))) == _places(content.parts)


def _places(parts: Parts) -> list[Part | None]:
    """Files and data in their order, and None where the first text stands."""
    text = text_of(parts)
    return [None if part is text else part for part in parts if part is text or not isinstance(part, TextPart)]


def _replaces(change: Update) -> bool:
    return isinstance(change, ReplaceParts)


def _check_writer(document: Document, ref: Ref) -> None:
    if document.draft and document.draft.task_id != ref.task_id:
        raise ArtifactBusy(document.artifact_id, document.draft.task_id)


def _check_base(document: Document, change: ReplaceParts | Step) -> None:
    if change.base is not None and change.base != document.current:
        raise VersionConflict(document.artifact_id, change.base, document.current)


def _content(base: Content, change: Update) -> Content:
    return Content(
        name=base.name if change.name is None else change.name,
        description=base.description if change.description is None else change.description,
        parts=apply(base.parts, change),
    )


def _closed(document: Document, append: bool, new: Parts) -> tuple[Document, Applied]:
    assert document.draft is not None
    document = _with_draft_closed(document, document.draft)
    return document, _applied(document, append, new)


def _with_draft_closed(document: Document, draft: Draft) -> Document:
    return _with_version(document, draft.shown, draft.author, draft.task_id, incomplete=draft.never_completed)


def _with_version(
    document: Document,
    content: Content,
    author: Author,
    task_id: str,
    *,
    incomplete: bool = False,
    edited: TextEdit | None = None,
) -> Document:
    number = len(document.versions) + 1
    content = replace(content, parts=compact(content.parts))
    version = Version(number, content, author, task_id, document.current, incomplete, edited)
    return replace(document, versions=(*document.versions, version), draft=None, current=number)


def _applied(document: Document, append: bool, new: Parts = ()) -> Applied:
    draft = document.draft
    writer = draft or document.versions[document.current - 1]
    version = len(document.versions) + 1 if draft else document.current
    parent = document.current if draft else document.parent(version)
    return Applied(document.artifact, append, new if append else (), draft is None, version, writer.author, parent)
