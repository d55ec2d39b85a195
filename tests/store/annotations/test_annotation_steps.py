"""The table of what may be done with an annotation in each state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from a2a_canvas.store.annotations import annotation_steps as steps
from a2a_canvas.store.annotations.annotation import (
    MAX_REMARK_BYTES,
    MAX_REMARKS,
    MAX_THREAD_BYTES,
    Annotation,
    Decision,
    Remark,
    ShownState,
    Writer,
    shown_state,
)
from a2a_canvas.store.errors import AnnotationClosed, AnnotationStale, RemarkTooLong, ThreadFull, WrongAnnotationKind
from a2a_canvas.store.text.spans import Span
from tests.store.annotations.test_annotation_places import AT, annotation

COMMENT = annotation(1, 1, "text", Span(0, 4))
SUGGESTION = annotation(2, 1, "text", Span(0, 4), "words")
DECISION = Decision(Writer("user", "ann", "ann"), AT, 2)
STATES: tuple[ShownState, ...] = ("open", "accepted", "rejected", "resolved", "stale")
Step = Callable[[Annotation, ShownState, Decision], Annotation]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("step", "made", "after"),
    [
        (steps.resolve, COMMENT, "resolved"),
        (steps.reject, SUGGESTION, "rejected"),
    ],
)
def test_what_is_open_or_stale_is_decided_once(step: Step, made: Annotation, after: str, state: ShownState) -> None:
    if state in ("open", "stale"):
        assert step(made, state, DECISION) == replace(made, state=after, decision=DECISION)
        return
    with pytest.raises(AnnotationClosed):
        step(made, state, DECISION)


@pytest.mark.parametrize("state", STATES)
def test_only_what_is_open_is_accepted(state: ShownState) -> None:
    if state == "open":
        steps.check_acceptable(SUGGESTION, state)
        return
    with pytest.raises(AnnotationStale if state == "stale" else AnnotationClosed):
        steps.check_acceptable(SUGGESTION, state)


@pytest.mark.parametrize("state", STATES)
def test_a_comment_is_resolved_and_a_suggestion_accepted_or_rejected(state: ShownState) -> None:
    with pytest.raises(WrongAnnotationKind):
        steps.resolve(SUGGESTION, state, DECISION)
    with pytest.raises(WrongAnnotationKind):
        steps.reject(COMMENT, state, DECISION)
    with pytest.raises(WrongAnnotationKind):
        steps.check_acceptable(COMMENT, state)


@pytest.mark.parametrize("state", ["open", "accepted", "rejected", "resolved"])
def test_a_reply_is_added_in_every_state_and_opens_what_was_resolved(state: str) -> None:
    made = replace(COMMENT, state=state, decision=None if state == "open" else DECISION)
    remark = Remark(Writer("agent"), AT, "Why?")
    opened = {"state": "open", "decision": None} if state == "resolved" else {}
    assert steps.add_reply(made, remark) == replace(made, thread=(remark,), **opened)
    with pytest.raises(RemarkTooLong):
        steps.add_reply(made, replace(remark, text="x" * (MAX_REMARK_BYTES + 1)))


@pytest.mark.parametrize(
    ("state", "line", "found", "shown"),
    [
        ("open", {1, 2}, True, "open"),
        ("open", {1, 2}, False, "stale"),
        ("accepted", {1, 2}, False, "accepted"),
        ("accepted", {1}, True, "open"),
        ("accepted", {1}, False, "stale"),
        ("rejected", {1}, False, "rejected"),
        ("resolved", {1}, False, "resolved"),
    ],
)
def test_the_shown_state_follows_from_the_versions(state: str, line: set[int], found: bool, shown: str) -> None:
    made = replace(SUGGESTION, state=state, decision=None if state == "open" else DECISION)
    assert shown_state(made, line, Span(0, 4) if found else None) == shown


def test_a_thread_has_an_end() -> None:
    long = Remark(Writer("user"), AT, "x" * MAX_REMARK_BYTES)
    thread = COMMENT
    with pytest.raises(ThreadFull):
        for _ in range(10):
            thread = steps.add_reply(thread, long)
    assert sum(len(each.text) for each in thread.thread) <= MAX_THREAD_BYTES
    short = replace(COMMENT, thread=(Remark(Writer("user"), AT, "x"),) * MAX_REMARKS)
    with pytest.raises(ThreadFull):
        steps.add_reply(short, short.thread[0])


@pytest.mark.parametrize(
    ("writer", "name"),
    [
        (Writer("agent"), "agent"),
        (Writer("user", "guest", "link 1"), "guest"),
        (Writer("user", "ann", "ann"), "ann"),
        (Writer("user"), ""),
    ],
)
def test_an_author_is_called_by_one_name(writer: Writer, name: str) -> None:
    assert [each for each in ("agent", "guest", "ann", "") if writer.is_called(each)] == [name]
    assert not any(Writer("user", each, each).is_called(each) for each in ("agent", "guest"))
