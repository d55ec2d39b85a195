"""Edits and versions as they go over the wire: the phases with their fields, and what a snapshot says of them."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.protocols.a2a_v1.projection import canvas_ext, turn_ext
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ActivatedExtensions
from a2a_canvas.server.protocols.a2a_v1.projection.projection import TaskProjection, to_task
from a2a_canvas.server.tasks.record import Entry, TaskArtifact, TaskRecord, fold, pruned_content
from a2a_canvas.server.wire import CANVAS, TURN
from a2a_canvas.store.edit_events import (
    EditAborted,
    EditChunk,
    EditCompleted,
    EditEvent,
    EditStarted,
    EditSuggested,
    Selection,
)
from a2a_canvas.store.models import text_part
from tests.property_examples import examples
from tests.server.canvas_client import Known

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BEGIN = TaskRecord(task_id="t", context_id="c", owner="", changed_at=AT)
WHERE = Selection(4, 7)
START = EditStarted("e", "doc", WHERE, "replace", 3)
CHUNK = EditChunk("e", "doc", WHERE, "two")
COMPLETE = EditCompleted("e", "doc", Selection(5, 8), "twofold", Selection(5, 12), "replace", 1)
ABORT = EditAborted("e", "doc", WHERE)
PHASES: list[tuple[EditEvent, dict[str, Any]]] = [
    (
        START,
        {
            "phase": "start",
            "artifactId": "doc",
            "selection": {"start": 4, "end": 7},
            "unit": "utf16",
            "baseVersion": 3,
            "strategy": "replace",
        },
    ),
    (CHUNK, {"phase": "chunk", "selection": {"start": 4, "end": 7}, "chunk": "two"}),
    (
        COMPLETE,
        {
            "phase": "complete",
            "artifactId": "doc",
            "selection": {"start": 5, "end": 8},
            "updatedContent": "twofold",
            "written": {"start": 5, "end": 12},
            "strategy": "replace",
            "baseVersion": 1,
        },
    ),
    (
        EditSuggested("e", "doc", WHERE, "n-1"),
        {"phase": "suggested", "artifactId": "doc", "selection": {"start": 4, "end": 7}, "annotationId": "n-1"},
    ),
    (ABORT, {"phase": "abort", "artifactId": "doc", "selection": {"start": 4, "end": 7}}),
]


def entries(*events: ev.TurnEvent) -> list[Entry]:
    return [Entry(2, number, AT, event) for number, event in enumerate(events, 2)]


def records(*events: ev.TurnEvent) -> list[TaskRecord]:
    """The task at every generation."""
    return list(accumulate(entries(*events), fold, initial=BEGIN))


def changed(version: int, text: str = "x", *, append: bool = False, author: Any = "agent") -> ev.ArtifactChanged:
    return ev.ArtifactChanged("doc", "", "", append, (text_part(text),), True, version, author, version - 1)


@pytest.mark.parametrize(("event", "fields"), PHASES, ids=[fields["phase"] for _, fields in PHASES])
def test_each_phase_has_its_fields(event: EditEvent, fields: dict[str, Any]) -> None:
    assert canvas_ext.edit_metadata(event) == {"edit": {"id": "e", **fields}}


@pytest.mark.parametrize(("event", "fields"), PHASES, ids=[fields["phase"] for _, fields in PHASES])
def test_turn_events_say_the_same_and_always_which_artifact_it_is(event: EditEvent, fields: dict[str, Any]) -> None:
    phase = fields["phase"]
    data = {"id": "e", "artifactId": "doc", **{key: value for key, value in fields.items() if key != "phase"}}
    wire = {"event_type": f"artifact_partial_update_{phase}", "data": data}
    assert turn_ext.to_turn_event(event) == wire
    assert canvas_ext.edit_turn_event(event) == (wire["event_type"], data)


def test_the_senders_unit_and_strategy_are_told() -> None:
    start = replace(START, selection=Selection(1, 2, "codepoint"), strategy="insert_after")
    edit = canvas_ext.edit_metadata(start)["edit"]
    assert (edit["unit"], edit["strategy"]) == ("codepoint", "insert_after")


@pytest.mark.parametrize("author", ["agent", "user"])
def test_a_change_says_which_version_it_is_and_whose(author: Any) -> None:
    assert canvas_ext.change_metadata(changed(7, author=author)) == {
        "artifactVersion": 7,
        "author": author,
        "parentVersion": 6,
    }


def test_a_snapshot_says_which_versions_there_are_and_which_edits_are_open() -> None:
    record = records(changed(3, author="user"), START, CHUNK, replace(CHUNK, chunk="fold"))[-1]
    assert canvas_ext.snapshot_metadata(record) == {
        "artifacts": {"doc": {"artifactVersion": 3, "author": "user"}},
        "openEdits": [
            {
                "id": "e",
                "artifactId": "doc",
                "selection": {"start": 4, "end": 7},
                "unit": "utf16",
                "strategy": "replace",
                "baseVersion": 3,
                "text": "twofold",
            }
        ],
    }


def test_only_an_edit_that_suggests_says_its_mode() -> None:
    suggesting = records(replace(START, mode="suggest"))[-1]
    assert canvas_ext.edit_metadata(replace(START, mode="suggest"))["edit"]["mode"] == "suggest"
    assert canvas_ext.open_edits(suggesting)[0]["mode"] == "suggest"
    assert "mode" not in canvas_ext.edit_metadata(START)["edit"]


@pytest.mark.parametrize(
    "end",
    [COMPLETE, ABORT, EditSuggested("e", "doc", WHERE, "n-1")],
    ids=["complete", "abort", "suggested"],
)
def test_an_edit_that_has_ended_is_not_open(end: EditEvent) -> None:
    assert canvas_ext.snapshot_metadata(records(START, CHUNK, end)[-1])["openEdits"] == []


def test_a_snapshot_says_what_was_pruned() -> None:
    gone = TaskArtifact("doc", pruned_content("d.md", 3), 3, "user", pruned=True)
    metadata = canvas_ext.snapshot_metadata(replace(BEGIN, artifacts={"doc": gone}))
    assert metadata["artifacts"] == {"doc": {"artifactVersion": 3, "author": "user", "pruned": True}}


def test_a_snapshot_without_edits_says_so() -> None:
    assert canvas_ext.snapshot_metadata(BEGIN) == {"artifacts": {}, "openEdits": []}


# ---------------------------------------------------------------- joining at any moment

IDS = ("e", "f")
pieces = st.text("ab 😀\n", min_size=1, max_size=3)
moves = st.lists(
    st.tuples(st.sampled_from(IDS), st.sampled_from(["write", "complete", "abort", "change"]), pieces), max_size=12
)


def story(steps: list[tuple[str, str, str]]) -> list[ev.TurnEvent]:
    """A task's events: edits that begin, grow, end and begin again, and changes of the artifact between them."""
    events: list[ev.TurnEvent] = [ev.StatusChanged(ev.State.WORKING)]
    open_edits: set[str] = set()
    version = 1
    for edit_id, move, text in steps:
        where = Selection(version, version + len(text))
        if move == "change":
            version += 1
            # The first change of an artifact in a task is a replacement.
            events.append(changed(version, text, append=version > 2))
        elif edit_id not in open_edits:
            open_edits.add(edit_id)
            events.append(EditStarted(edit_id, "doc", where, "replace", version))
        elif move == "write":
            events.append(EditChunk(edit_id, "doc", where, text))
        elif move == "abort":
            open_edits.remove(edit_id)
            events.append(EditAborted(edit_id, "doc", where))
        else:
            open_edits.remove(edit_id)
            version += 1
            events += [
                EditCompleted(edit_id, "doc", where, text, where, "replace", version - 1),
                changed(version, text),
            ]
    return [*events, ev.StatusChanged(ev.State.COMPLETED)]


@settings(max_examples=examples(60))
@given(moves)
def test_who_joins_at_any_generation_knows_at_every_later_one_what_those_know_who_watched_from_the_beginning(
    steps: list[tuple[str, str, str]],
) -> None:
    events = story(steps)
    joined = [Known().take(to_task(record, ActivatedExtensions(canvas=True))) for record in records(*events)]
    projection = TaskProjection(BEGIN, ActivatedExtensions(canvas=True), ends_at_pause=False)
    watching = [joined[0]]
    for number, entry in enumerate(entries(*events), 1):
        for event in projection.project(entry):
            watching = [known.take(event) for known in watching]
        watching.append(joined[number])
        assert all(known.seen() == watching[0].seen() for known in watching)


@settings(max_examples=examples(40))
@given(moves)
def test_who_joins_with_turn_events_alone_has_the_beginning_of_every_edit_too(
    steps: list[tuple[str, str, str]],
) -> None:
    events = story(steps)
    written: dict[tuple[str, int], set[str]] = {}
    for number, record in enumerate(records(*events)):
        begun = fields_of(to_task(record, ActivatedExtensions(turn=True))).get("openEdits", [])
        texts = {edit["id"]: edit["text"] for edit in begun}
        assert [edit["id"] for edit in begun] == list(record.open_edits)
        projection = TaskProjection(record, ActivatedExtensions(turn=True), ends_at_pause=False)
        for entry in entries(*events)[number:]:
            for fields in map(fields_of, projection.project(entry)):
                data = fields.get("data", {})
                match fields.get("event_type"):
                    case "artifact_partial_update_start":
                        texts[data["id"]] = ""
                    case "artifact_partial_update_chunk":
                        texts[data["id"]] += data["chunk"]
                    case "artifact_partial_update_complete":
                        written.setdefault((data["id"], entry.generation), set()).add(texts.pop(data["id"]))
    assert all(len(texts) == 1 for texts in written.values())


def fields_of(event: Any) -> dict[str, Any]:
    fields: dict[str, Any] = MessageToDict(event.metadata).get(TURN, {})
    return fields


@given(moves)
def test_every_event_says_which_entry_it_comes_from(steps: list[tuple[str, str, str]]) -> None:
    projection = TaskProjection(BEGIN, ActivatedExtensions(turn=True, canvas=True), ends_at_pause=False)
    for entry in entries(*story(steps)):
        for event in projection.project(entry):
            for uri, fields in MessageToDict(event.metadata).items():
                assert uri in (CANVAS, TURN)
                assert (fields["epoch"], fields["generation"]) == (2, entry.generation)
