"""Passages as they are written: what is read from the events of canvas."""

from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.client.commands.edit import PassagePiece, passage_pieces
from a2a_canvas.server.protocols.a2a_v1.projection import canvas_ext
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.edit_events import (
    EditAborted,
    EditChunk,
    EditCompleted,
    EditEvent,
    EditStarted,
    Selection,
    Strategy,
)
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


def read(event: EditEvent) -> list[PassagePiece]:
    return passage_pieces(status(canvas_ext.edit_metadata(event)))


def test_a_passage_begins_grows_and_is_given_up() -> None:
    assert read(EditStarted("e", "doc", PLACE, "replace", 1)) == [PassagePiece("")]
    assert read(EditChunk("e", "doc", PLACE, "ab")) == [PassagePiece("ab", append=True)]
    assert read(EditAborted("e", "doc", PLACE)) == []


@pytest.mark.parametrize(
    ("strategy", "content", "written"),
    [
        ("replace", "new", Selection(2, 5)),
        ("insert_before", "newold", Selection(2, 5)),
        ("insert_after", "oldnew", Selection(5, 8)),
    ],
)
def test_a_complete_passage_is_what_was_written_without_what_stands_beside_it(
    strategy: Strategy, content: str, written: Selection
) -> None:
    completed = EditCompleted("e", "doc", PLACE, content, written, strategy, 1)
    assert read(completed) == [PassagePiece("new", complete=True)]


def test_a_snapshot_has_what_is_written_so_far() -> None:
    edits = [{"id": "e", "artifactId": "doc", "text": "so far"}, {"id": "f", "artifactId": "doc", "text": ""}]
    assert passage_pieces(task({"openEdits": edits})) == [PassagePiece("so far"), PassagePiece("")]


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
def test_what_is_malformed_completes_nothing(canvas: Any) -> None:
    for response in (status(canvas), task(canvas)):
        assert not any(piece.complete for piece in passage_pieces(response))
    assert passage_pieces(pb.StreamResponse(message=pb.Message())) == []
