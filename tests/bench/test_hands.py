"""`make hands` in miniature: nothing is lost while servers are killed; and the check notices whatever could be."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from bench.databases import Kind
from bench.hands.folds import ContextFold, differences
from bench.hands.ledger import Ledger, Left, Operation, Step, Verb, Version, faults
from bench.hands.run import Plan, errors_in, run
from tests.database_fixtures import why_not

CANVAS = "urn:a2a-canvas:canvas:v1"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_people_and_agents_lose_nothing_while_servers_are_killed(database: Kind) -> None:
    if database == "postgresql" and why_not():
        pytest.skip(why_not())
    result = await run(Plan(database, seconds=15, people=8, agents=3, think=0.5, seed=3))
    assert result.faults == []
    assert result.kills == 2
    assert result.at_work > 0
    assert result.versions > 10
    assert result.annotations > 0


def test_an_error_of_a_server_is_a_fault_and_comes_with_its_traceback() -> None:
    said = "2026-11-28T01:33:02.119Z"
    log = [f"{said} INFO    Task completed", f"{said} ERROR   It failed", "Traceback (most recent call last):", "  x"]
    assert [each.splitlines()[0] for each in errors_in(log)] == log[:2]
    assert all(each.endswith("  x") for each in errors_in(log))
    assert errors_in([log[0], f"{said} INFO    The user said: ERROR"]) == []


# ------------------------------------------------------------------------- a good history


def done(verb: Verb, task: str, *steps: tuple[str, str], **more: Any) -> Operation:
    """An operation that is acknowledged: what each of its steps adds and removes."""
    changes = [Step(frozenset(adds.split()), frozenset(removes.split())) for adds, removes in steps]
    return Operation(verb, "ann", changes, state="completed", task_id=task, acknowledged=len(changes) or 1, **more)


def annotation(name: str, task: str, state: str, *remarks: str, **more: Any) -> dict[str, Any]:
    thread = [{"text": remark} for remark in remarks]
    quote = {"exact": more.pop("exact", "a")}
    kind = "suggestion" if "replacement" in more else "comment"
    known = {"annotationId": name, "taskId": task, "state": state, "kind": kind, "thread": thread, "quote": quote}
    return known | more


def history() -> tuple[list[Operation], Left]:
    """Typing, an agent's two calls, an undo, a suggestion that is accepted, and comments."""
    ledger = Ledger()
    for operation in (
        done("overwrite", "t1", ("a b c", "")),
        done("agent-writes", "t2", ("d e", ""), ("f", "d")),
        done("type", "t3", ("g", "")),
        done("undo", "t4", current=3),
        done("suggest", "t5", ("h", "b"), remark="r1", target="s1"),
        done("accept", "t6", target="s1", accepted=["s1"]),
        done("comment", "t7", remark="r2", target="c1"),
        done("reply", "t8", remark="r3", target="c1"),
        done("resolve", "t9", target="c1"),
        done("suggest", "t10", ("i", "a"), remark="r4", target="s2"),
        done("reject", "t11", target="s2"),
        replace(done("type", "t12", ("x", "")), state="rejected", acknowledged=0),
    ):
        ledger.begin(operation)
        ledger.end(operation)
    versions = [
        Version(1, 0, "t1", "a b\nc\n"),
        Version(2, 1, "t2", "a b\nc\nd e\n"),
        Version(3, 2, "t2", "a b\nc\nf e\n"),
        Version(4, 3, "t3", "a b g\nc\nf e\n"),
        Version(5, 3, "t6", "a h\nc\nf e\n"),
    ]
    annotations = [
        annotation("s1", "t5", "accepted", "r1", exact="b", replacement="h", decision={"artifactVersion": 5}),
        annotation("c1", "t7", "resolved", "r2", "r3"),
        annotation("s2", "t10", "rejected", "r4", exact="a", replacement="i"),
    ]
    return ledger.operations, Left(versions, 5, annotations)


def with_text(left: Left, number: int, text: str) -> Left:
    versions = [replace(each, text=text) if each.number == number else each for each in left.versions]
    return replace(left, versions=versions)


def test_a_history_in_which_all_is_explained_has_no_fault() -> None:
    assert faults(*history()) == []


def test_without_any_one_of_its_operations_it_has_a_fault() -> None:
    """Only what was refused may be missing; and a reply that is not known was said by nobody."""
    operations, left = history()
    unnoticed = [each.task_id for each in operations if not faults([one for one in operations if one != each], left)]
    assert unnoticed == ["t12"]


@pytest.mark.parametrize("gone", [1, 2, 3, 4, 5])
def test_a_version_that_is_missing_is_a_fault(gone: int) -> None:
    operations, left = history()
    versions = [each for each in left.versions if each.number != gone]
    assert faults(operations, replace(left, versions=versions))


@pytest.mark.parametrize("gone", ["s1", "c1", "s2"])
def test_an_annotation_that_is_missing_is_a_fault(gone: str) -> None:
    operations, left = history()
    annotations = [each for each in left.annotations if each["annotationId"] != gone]
    assert faults(operations, replace(left, annotations=annotations))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "a b\n"),  # a word is lost,
        (1, "a b\ncc\n"),  # altered,
        (1, "ab\nc\n"),  # joined to another,
        (1, "a b\nc c\n"),  # there twice,
        (4, "b a g\nc\nf e\n"),  # in another order;
        (4, "a b g x\nc\nf e\n"),  # a word is there that was refused,
        (4, "a b g\nf e\n"),  # or is not there that another one wrote
        (5, "a b\nc\nf e\n"),
        (3, "a b\nc\nd e\n"),
    ],
)
def test_a_text_that_no_operation_explains_is_a_fault(number: int, text: str) -> None:
    operations, left = history()
    assert faults(operations, with_text(left, number, text))


def test_a_last_version_that_is_lost_is_a_fault_even_if_the_others_fit() -> None:
    operations, left = history()
    operations.append(done("type", "t13", ("z", ""), sent=98, ended=99))
    assert [fault.partition(" of")[0] for fault in faults(operations, left)] == ["lost: type"]


def test_a_version_that_is_left_aside_needs_an_undo_that_was_acknowledged_meanwhile() -> None:
    operations, left = history()
    early = [replace(each, sent=0, ended=0) if each.verb == "undo" else each for each in operations]
    assert ["leaves" in fault for fault in faults(early, left)] == [True]
    elsewhere = [replace(each, current=2) if each.verb == "undo" else each for each in operations]
    assert ["leaves" in fault for fault in faults(elsewhere, left)] == [True]


def test_a_current_version_that_is_not_the_newest_needs_an_undo() -> None:
    operations, left = history()
    moved = replace(left, current=3, annotations=[{**left.annotations[0], "state": "open"}, *left.annotations[1:]])
    assert ["is current" in fault for fault in faults(operations, moved)] == [True]
    operations.append(done("undo", "t13", current=3, sent=98, ended=99))
    assert faults(operations, moved) == []


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("s1", {"state": "open"}),
        ("s1", {"replacement": "k"}),
        ("s2", {"state": "open"}),
        ("c1", {"state": "open"}),
        ("c1", {"thread": [{"text": "r2"}]}),
        ("c1", {"thread": [{"text": "r2"}, {"text": "r3"}, {"text": "r3"}]}),
        ("c1", {"thread": [{"text": "r2"}, {"text": "r3"}, {"text": "r9"}]}),
        ("c1", {"taskId": "t99"}),
        ("c1", {"state": "rejected"}),
    ],
)
def test_an_annotation_that_is_not_as_the_operations_left_it_is_a_fault(name: str, changed: dict[str, Any]) -> None:
    operations, left = history()
    annotations = [each | changed if each["annotationId"] == name else each for each in left.annotations]
    assert faults(operations, replace(left, annotations=annotations))


def test_what_was_done_twice_is_a_fault() -> None:
    operations, left = history()
    again = [*left.versions, Version(6, 5, "t3", "a h g\nc\nf e\n")]
    assert faults(operations, replace(left, versions=again, current=6))
    doubled = [*left.annotations, annotation("c2", "t7", "open", "r2")]
    assert faults(operations, replace(left, annotations=doubled))


@pytest.mark.parametrize("state", ["", "failed", "canceled"])
def test_an_operation_without_an_answer_and_one_that_fails_are_faults(state: str) -> None:
    operations, left = history()
    assert faults([*operations, Operation("type", "ann", [Step(frozenset("y"))], state=state)], left)


def test_what_is_withdrawn_is_gone() -> None:
    operations, left = history()
    operations.append(done("withdraw", "t13", target="c1"))
    assert faults(operations, left) == ["c1 was withdrawn and is there"]
    assert faults(operations, replace(left, annotations=[left.annotations[0], left.annotations[2]])) == []


# ----------------------------------------------------------------------------- clients


def update(text: str, version: int, *, append: bool = False, last: bool = True) -> dict[str, Any]:
    artifact = {"artifactId": "doc", "parts": [{"text": text}]}
    metadata = {CANVAS: {"artifactVersion": version}}
    return {"artifactUpdate": {"artifact": artifact, "append": append, "lastChunk": last, "metadata": metadata}}


def folded(events: Sequence[dict[str, Any]], annotations: Sequence[dict[str, Any]]) -> ContextFold:
    fold = ContextFold("doc")
    fold.read_annotations(annotations)
    for event in events:
        fold.take(event)
    return fold


EVENTS = [
    update("a ", 4, last=False),
    update("b\n", 4, append=True, last=False),
    update("c\n", 4, append=True),
    update("a h\nc\nf e\n", 5),
]


def test_a_client_that_has_all_is_like_a_reader() -> None:
    _, left = history()
    left = with_text(left, 4, "a b\nc\n")
    fold = folded(EVENTS, deepcopy([*left.annotations]))
    assert [*differences(fold, left, whole=True)] == []


@pytest.mark.parametrize("lost", [0, 1, 3])  # the last piece of a version that is not current leaves no trace
def test_a_client_that_misses_an_event_is_not(lost: int) -> None:
    _, left = history()
    left = with_text(left, 4, "a b\nc\n")
    fold = folded([each for place, each in enumerate(EVENTS) if place != lost], left.annotations)
    assert [*differences(fold, left, whole=True)]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_client_that_misses_an_annotation_or_a_remark_is_not(lost: int) -> None:
    _, left = history()
    left = with_text(left, 4, "a b\nc\n")
    known = [each for place, each in enumerate(left.annotations) if place != lost]
    assert [*differences(folded(EVENTS, known), left, whole=True)]
    short = [each | {"thread": []} if place == lost else each for place, each in enumerate(left.annotations)]
    assert [*differences(folded(EVENTS, short), left, whole=True)]


def test_a_version_that_is_told_with_two_texts_is_a_fault() -> None:
    _, left = history()
    fold = folded([update("a h\nc\nf e\n", 5), update("a h\nc\nf\n", 5), update("a h\nc\nf e\n", 5)], left.annotations)
    assert len([*differences(fold, left, whole=True)]) == 1
