"""The mutations of one artifact: its drafts and versions. Pure.

Rule 1: a draft has one writer, a task. Other tasks get `ArtifactBusy` while it is open.
Rule 2: a draft closes into a version at `last_chunk`, before a replace by a later call, and when its turn closes it.
        The deltas of one call never close it: a replace closes the draft only if the call before it was complete.
        Whatever closes it, subscribers learn of that before they learn of a later version.
Rule 3: a call that is cut off leaves nothing: the draft returns to its state after the last completed call.
Rule 4: a stock client cannot delete an artifact. So if no call was complete and there is no version, the partial
        content stays visible. The next change starts from an empty artifact; if none follows, the partial content
        becomes a version marked incomplete.
Rule 5: versions are numbered as they are made. Each has the version it was made from as its parent, and none is ever
        altered. The undo line is the chain of parents of the newest version (`tip`); undo and redo move the current
        version along it, by one version or by one group (a run of versions by the same task). A new version is the
        child of the current one and ends the redo line.
Rule 6: a version whose content was removed stays in the line, but cannot be made current or restored.
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
from a2a_canvas.store.errors import ArtifactBusy, ArtifactNotFound, NothingToRedo, NothingToUndo, VersionConflict
from a2a_canvas.store.models import (
    AppliedChange,
    Author,
    Content,
    Document,
    Draft,
    Limits,
    Part,
    Parts,
    Ref,
    TextEdit,
    TextPart,
    TextSplice,
    Version,
    text_of,
    text_part,
)
from a2a_canvas.store.text.spans import from_codepoints, length
from a2a_canvas.store.text.unicode import replace_surrogates


def apply_change(document: Document, ref: Ref, change: Change, limits: Limits) -> tuple[Document, AppliedChange]:
    """`document` after `change` by `ref`'s task.

    Raises:
        ArtifactNotFound, ArtifactBusy, VersionNotFound, VersionPruned, VersionConflict, InvalidChange, LimitReached:
            nothing has changed.
    """
    _check_writer(document, ref)
    match change:
        case ReplaceParts() | AppendParts():
            return _update_draft(document, ref, change, limits)
        case EditText() | Restore() | Undo() | Redo():
            return _step(document, ref, change, limits)
        case _:
            assert_never(change)


def _update_draft(document: Document, ref: Ref, change: Update, limits: Limits) -> tuple[Document, AppliedChange]:
    if isinstance(change, ReplaceParts):
        _check_base(document, change)
    closed = None
    if document.draft and not document.draft.dirty and not document.draft.never_completed and _replaces(change):
        document, closed = _close(document)
    draft = document.draft
    base = document.current_content if draft is None or draft.never_completed else draft.shown
    content = _content(base, change)
    check(content.parts, limits)
    append = not _replaces(change) and _extends(document, content, ref) and _in_order(base.parts, change.parts, content)
    kept = content if change.done else draft.completed if draft else None
    draft = Draft(ref.task_id, ref.author, kept, content, dirty=not change.done)
    shown = replace(document, draft=draft, changed_by=ref.task_id)
    if change.last_chunk:
        shown = _with_draft_closed(shown, draft)
    return shown, _to_applied(shown, append, group(change.parts), closed)


def _step(document: Document, ref: Ref, change: Step, limits: Limits) -> tuple[Document, AppliedChange]:
    if not document.exists:
        raise ArtifactNotFound(document.artifact_id)
    if document.draft and document.draft.dirty:
        raise ArtifactBusy(document.artifact_id, document.draft.task_id)
    closed = None
    if document.draft:
        document, closed = _close(document)
    _check_base(document, change)
    splice = _splice(document.current_content.parts, change) if isinstance(change, EditText) else None
    stepped = replace(_step_result(document, ref, change), changed_by=ref.task_id)
    check(stepped.current_content.parts, limits)
    applied = _to_applied(stepped, append=False, closed=closed)
    return stepped, replace(applied, splice=splice, rolled_back=isinstance(change, Undo))


def _splice(parts: Parts, change: EditText) -> TextSplice | None:
    """The edit of the text among `parts`, if there is one."""
    if (part := text_of(parts)) is None:
        return None
    text, span = part.text, change.span
    start = from_codepoints(text, span.start, "utf16")
    return TextSplice(start, start + length(span.extract(text), "utf16"), replace_surrogates(change.text))


def _step_result(document: Document, ref: Ref, change: Step) -> Document:
    match change:
        case EditText():
            content = replace(document.current_content, parts=apply(document.current_content.parts, change))
            whole = (TextEdit(change.span, len(replace_surrogates(change.text))),) if change.passage else ()
            return _with_version(document, content, ref.author, ref.task_id, edits=change.edits or whole)
        case Restore():
            old = document.version(change.version)
            return _with_version(document, old.content, ref.author, ref.task_id, incomplete=old.incomplete)
        case Undo(group=in_group):
            return replace(document, current=document.version(_undo_target(document, in_group)).number)
        case Redo(group=in_group):
            return replace(document, current=document.version(_redo_target(document, in_group)).number)
        case _:
            assert_never(change)


def _undo_target(document: Document, in_group: bool) -> int:
    before = document.parent(document.current)
    if not before:
        raise NothingToUndo(document.artifact_id, document.current)
    task = document.maker(document.current)
    while in_group and document.maker(before) == task and document.parent(before):
        before = document.parent(before)
    return before


def _redo_target(document: Document, in_group: bool) -> int:
    if document.current == document.tip:
        raise NothingToRedo(document.artifact_id, document.current)
    line = [document.tip]  # from the newest version back to the successor of the current one
    while document.parent(line[-1]) != document.current:
        line.append(document.parent(line[-1]))
    after = line.pop()
    while in_group and line and document.maker(line[-1]) == document.maker(after):
        after = line.pop()
    return after


def complete_call(document: Document, ref: Ref) -> Document:
    """Complete the call being written: a later `discard_call` returns to this state."""
    _check_writer(document, ref)
    draft = document.draft
    if draft is None or not draft.dirty:
        return document
    return replace(document, draft=replace(draft, completed=draft.shown, dirty=False))


def discard_call(document: Document, ref: Ref) -> tuple[Document, AppliedChange | None]:
    """Undo the call being written (rules 3 and 4). None if subscribers need no event."""
    draft = document.draft
    if draft is None or not draft.dirty or draft.task_id != ref.task_id:
        return document, None
    if draft.completed is None and not document.versions:
        return replace(document, draft=replace(draft, dirty=False)), None
    back = replace(draft, shown=draft.completed, dirty=False) if draft.completed else None
    document = replace(document, draft=back)
    return document, replace(_to_applied(document, append=False), rolled_back=True)


def close_draft(document: Document, ref: Ref) -> tuple[Document, AppliedChange | None]:
    """Close the draft into a version. None if `ref`'s task has no draft."""
    if document.draft is None or document.draft.task_id != ref.task_id:
        return document, None
    return _close(document)


def _extends(document: Document, content: Content, ref: Ref) -> bool:
    """Whether a stock client that saw the task's changes may add the new parts to those it has.

    It has not seen later changes by other tasks, nor the end of a cut-off call. It ignores the name when it appends, so
    a new name needs a replacement.
    """
    if not document.exists or (document.draft and document.draft.never_completed):
        return False
    before = document.artifact
    same_name = (content.name, content.description) == (before.name, before.description)
    return document.changed_by == ref.task_id and same_name


def _in_order(before: Parts, new: Parts, content: Content) -> bool:
    """Whether the parts are in the order of a stock client, which adds new ones at the end and joins texts."""
    if len(new) == 1 and isinstance(new[0], TextPart):  # fast path for a token
        return True
    return _slots((*before, *group(new))) == _slots(content.parts)


def _slots(parts: Parts) -> list[Part | None]:
    """Files and data in order, with None at the place of the first text."""
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


def _close(document: Document) -> tuple[Document, AppliedChange]:
    """The draft as a version, and the event for subscribers, which already have its content."""
    assert document.draft is not None
    document = _with_draft_closed(document, document.draft)
    has_text = text_of(document.artifact.parts) is not None
    # A2A requires at least one part in every artifact event; an empty text adds nothing to the existing text.
    return document, _to_applied(document, append=has_text, new=(text_part(""),) if has_text else ())


def _with_draft_closed(document: Document, draft: Draft) -> Document:
    return _with_version(document, draft.shown, draft.author, draft.task_id, incomplete=draft.never_completed)


def _with_version(
    document: Document,
    content: Content,
    author: Author,
    task_id: str,
    *,
    incomplete: bool = False,
    edits: tuple[TextEdit, ...] = (),
) -> Document:
    number = len(document.versions) + 1
    content = replace(content, parts=compact(content.parts))
    version = Version(number, content, author, task_id, document.current, incomplete, edits)
    return replace(document, versions=(*document.versions, version), draft=None, current=number)


def _to_applied(
    document: Document, append: bool, new: Parts = (), closed: AppliedChange | None = None
) -> AppliedChange:
    draft = document.draft
    writer = draft or document.versions[document.current - 1]
    version = len(document.versions) + 1 if draft else document.current
    parent = document.current if draft else document.parent(version)
    new = new if append else ()
    return AppliedChange(document.artifact, append, new, draft is None, version, writer.author, parent, closed)
