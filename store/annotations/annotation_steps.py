"""What may be done with an annotation in each state. Pure.

    state       reply       resolve    accept, reject
    open        adds        comments   suggestions
    accepted    adds        –          –
    rejected    adds        –          –
    resolved    opens it    –          –

Accepting is the one step that a version belongs to: `Review.accept` makes it, after `check_acceptable`. The state here
is the shown one (`shown_state`): what an undo has opened again can be accepted again, and a stale annotation is an open
one whose passage is gone, so it cannot be accepted.
"""

from __future__ import annotations

from dataclasses import replace

from a2a_canvas.store.annotations.annotation import (
    MAX_REMARK_BYTES,
    MAX_REMARKS,
    MAX_THREAD_BYTES,
    Annotation,
    Decision,
    Remark,
    ShownState,
)
from a2a_canvas.store.errors import AnnotationClosed, AnnotationStale, RemarkTooLong, ThreadFull, WrongAnnotationKind


def add_reply(annotation: Annotation, remark: Remark) -> Annotation:
    """The annotation with one more remark; a resolved one is open again.

    Raises:
        RemarkTooLong: the remark has more than `MAX_REMARK_BYTES`.
        ThreadFull: the thread would have more than `MAX_REMARKS`, or more than `MAX_THREAD_BYTES`.
    """
    check_remark(remark.text)
    size = sum(len(each.text.encode()) for each in (*annotation.thread, remark))
    if len(annotation.thread) >= MAX_REMARKS or size > MAX_THREAD_BYTES:
        raise ThreadFull(annotation.annotation_id, MAX_REMARKS, MAX_THREAD_BYTES)
    answered = replace(annotation, thread=(*annotation.thread, remark))
    return replace(answered, state="open", decision=None) if annotation.state == "resolved" else answered


def check_remark(text: str) -> None:
    """Raises `RemarkTooLong` if the text of a remark has more than `MAX_REMARK_BYTES`."""
    size = len(text.encode())
    if size > MAX_REMARK_BYTES:
        raise RemarkTooLong(size, MAX_REMARK_BYTES)


def resolve(annotation: Annotation, shown: ShownState, decision: Decision) -> Annotation:
    """The comment, resolved.

    Raises:
        WrongAnnotationKind: it is a suggestion, which is accepted or rejected.
        AnnotationClosed: it is resolved already.
    """
    if annotation.kind != "comment":
        raise WrongAnnotationKind(annotation.annotation_id, "suggestion", "Accept or reject it.")
    return _decide(annotation, shown, replace(annotation, state="resolved", decision=decision))


def reject(annotation: Annotation, shown: ShownState, decision: Decision) -> Annotation:
    """The suggestion, rejected.

    Raises:
        WrongAnnotationKind, AnnotationClosed: it is a comment; it has been accepted or rejected.
    """
    _check_suggestion(annotation)
    return _decide(annotation, shown, replace(annotation, state="rejected", decision=decision))


def check_acceptable(annotation: Annotation, shown: ShownState) -> None:
    """Whether the annotation can be accepted.

    Raises:
        WrongAnnotationKind: it is a comment.
        AnnotationStale, AnnotationClosed: its passage is gone; it has been accepted or rejected.
    """
    _check_suggestion(annotation)
    if shown == "stale":
        raise AnnotationStale(annotation.annotation_id)
    if shown != "open":
        raise AnnotationClosed(annotation.annotation_id, shown)


def _check_suggestion(annotation: Annotation) -> None:
    if annotation.kind != "suggestion":
        raise WrongAnnotationKind(annotation.annotation_id, "comment", "Reply to it, or resolve it.")


def _decide(annotation: Annotation, shown: ShownState, decided: Annotation) -> Annotation:
    if shown not in ("open", "stale"):
        raise AnnotationClosed(annotation.annotation_id, shown)
    return decided
