"""Passages as they are written: what is read from the events of canvas."""

from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.client.display import ArtifactParts
from a2a_canvas.server.client.edit import PassageStep, passage_steps
from a2a_canvas.server.protocols.a2a_v1 import canvas_ext
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.edits import EditAborted, EditChunk, EditCompleted, EditEvent, EditStarted, Selection, Strategy
from tests.property_examples import examples

PLACE = Selection(2, 5)


def status(canvas: Any) -> pb.StreamResponse:
    update = pb.TaskStatusUpdateEvent()
    update.metadata.update({CANVAS: canvas})
    return pb.StreamResponse(status_update=update)


def task(canvas: Any) -> pb.StreamResponse:
    snapshot = pb.Task(id="t")
    snapshot.metadata.update({CANVAS: canvas})
    return pb.StreamResponse(task=snapshot)


def read(event: EditEvent) -> list[PassageStep]:
    return passage_steps(status(canvas_ext.edit_metadata(event)))


def test_a_passage_begins_grows_and_is_complete() -> None:
    written = Selection(2, 4)
    assert read(EditStarted("e", "doc", PLACE, "replace", 1)) == [PassageStep(ArtifactParts("e", (), "doc"))]
    assert read(EditChunk("e", "doc", PLACE, "ab")) == [PassageStep(ArtifactParts("e", ("ab",), append=True))]
    completed = EditCompleted("e", "doc", PLACE, "abc", written, "replace", 1)
    assert read(completed) == [PassageStep(ArtifactParts("e", ("abc",), "doc"), complete=True)]


@pytest.mark.parametrize("strategy", ["insert_before", "insert_after"])
def test_what_is_inserted_is_complete_without_the_passage_beside_it(strategy: Strategy) -> None:
    completed = EditCompleted("e", "doc", PLACE, "new and old", PLACE, strategy, 1)
    assert read(completed) == [PassageStep(ArtifactParts("e", (), "doc", append=True), complete=True)]


def test_an_edit_that_comes_to_nothing_is_told() -> None:
    assert read(EditAborted("e", "doc", PLACE)) == [
        PassageStep(ArtifactParts("e", (), "doc", append=True), aborted=True)
    ]


def test_a_snapshot_has_what_is_written_so_far() -> None:
    edits = [{"id": "e", "artifactId": "doc", "text": "so far"}, {"id": "f", "artifactId": "doc", "text": ""}]
    assert passage_steps(task({"openEdits": edits})) == [
        PassageStep(ArtifactParts("e", ("so far",), "doc")),
        PassageStep(ArtifactParts("f", (), "doc")),
    ]


Json = st.recursive(
    st.none() | st.booleans() | st.floats(0, 9) | st.text(max_size=3),
    lambda values: (
        st.lists(values, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "phase", "chunk", "text"]), values, max_size=3)
    ),
    max_leaves=4,
)


@given(Json | st.fixed_dictionaries({}, optional={"edit": Json, "openEdits": Json}))
@settings(max_examples=examples(100))
def test_what_is_malformed_shows_nothing_that_was_not_said(canvas: Any) -> None:
    for response in (status(canvas), task(canvas)):
        for step in passage_steps(response):
            assert (step.complete, step.aborted) == (False, False)
    assert passage_steps(pb.StreamResponse(message=pb.Message())) == []
