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

from collections.abc import Sequence
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
    thread = (*annotation.thread, remark)
    check_thread([each.text for each in thread])
    answered = replace(annotation, thread=thread)
    return replace(answered, state="open", decision=None) if annotation.state == "resolved" else answered


def check_thread(texts: Sequence[str]) -> None:
    """Raises `RemarkTooLong` or `ThreadFull` if the texts of its remarks are too long, or too many."""
    sizes = [len(text.encode()) for text in texts]
    longest = max(sizes, default=0)
    if longest > MAX_REMARK_BYTES:
        raise RemarkTooLong(longest, MAX_REMARK_BYTES)
    if len(sizes) > MAX_REMARKS or sum(sizes) > MAX_THREAD_BYTES:
        raise ThreadFull(MAX_REMARKS, MAX_THREAD_BYTES)


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
