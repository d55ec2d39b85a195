"""Updates written as JSON by hand are those that protobuf would write."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.protocols.a2a_v1.operations.dispatch import event_json
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ActivatedExtensions
from a2a_canvas.server.protocols.a2a_v1.projection.projection import TaskProjection
from a2a_canvas.server.protocols.a2a_v1.projection.update_json import JsonUpdate, struct_json, timestamp_json
from a2a_canvas.server.protocols.edge.wire_times import cut_to_milliseconds
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditStarted, Selection
from a2a_canvas.store.models import DataPart, FilePart, text_part
from tests.property_examples import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(TEXTS, JSON, max_size=4)
ZONES = st.timezones() | st.just(UTC) | st.just(timezone(timedelta(hours=-7, minutes=30)))
TIMES = st.datetimes(datetime(1971, 1, 1), datetime(9990, 1, 1), timezones=ZONES)

PLACES = st.builds(ev.BlockPosition, *[st.integers(0, 10**6)] * 3)
PARTS = st.one_of(
    st.builds(text_part, TEXTS, st.sampled_from(["", "text/markdown"]), st.just({}) | FIELDS),
    st.builds(DataPart, JSON, st.just("application/json")),
    st.builds(FilePart, st.binary(max_size=4)),
)
CHANGES = st.builds(
    ev.ArtifactChanged,
    artifact_id=st.text("ab/é", min_size=1, max_size=4),
    name=TEXTS,
    description=TEXTS,
    append=st.booleans(),
    parts=st.lists(PARTS, max_size=3).map(tuple),
    last_chunk=st.booleans(),
    version=st.integers(1, 10**6),
    author=st.sampled_from(["agent", "user"]),
    parent=st.integers(0, 10**6),
)
SELECTION = Selection(3, 8, "utf16")
EVENTS = st.one_of(
    CHANGES,
    st.builds(ev.MessageStarted, st.integers(1, 9)),
    st.builds(ev.TextAdded, PLACES, TEXTS),
    st.builds(ev.ThinkingAdded, PLACES, TEXTS),
    st.builds(ev.ToolUseStarted, PLACES, TEXTS, TEXTS),
    st.builds(ev.ToolInputAdded, PLACES, TEXTS, TEXTS),
    st.builds(ev.ToolInputCompleted, st.integers(0, 9), TEXTS, FIELDS),
    st.builds(ev.ToolSucceeded, st.integers(0, 9), TEXTS, TEXTS),
    st.builds(ev.FinalMessageStarted),
    st.builds(EditStarted, TEXTS, TEXTS, st.just(SELECTION), st.just("rewrite"), st.integers(1, 9)),
    st.builds(EditChunk, TEXTS, TEXTS, st.just(SELECTION), TEXTS),
    st.builds(EditAborted, TEXTS, TEXTS, st.just(SELECTION)),
)


def as_text(value: Any) -> str:
    """JSON that tells 1 from 1.0, keys in order of their names: those of a protobuf map have none."""
    return json.dumps(value, sort_keys=True)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.tuples(EVENTS, TIMES), max_size=5), st.booleans(), st.booleans())
def test_every_update_is_what_protobuf_makes_of_it(
    events: list[tuple[ev.TurnEvent, datetime]], turn: bool, canvas: bool
) -> None:
    record = TaskRecord("t", "c", "", datetime(2026, 1, 1, tzinfo=UTC), (ev.UserMessage("m", (text_part("go"),)),))
    activated = ActivatedExtensions(turn, canvas)
    by_hand, by_protobuf = (
        TaskProjection(record, activated, ends_at_pause=True, as_json=as_json) for as_json in (True, False)
    )
    for number, (event, at) in enumerate(events, 2):
        entry = Entry(1, number, at, event)
        written = [event_json(each) for each in by_hand.project(entry)]
        expected = [event_json(each) for each in by_protobuf.project(entry)]
        assert as_text(written) == as_text(expected)
        assert json.loads(to_json(written)) == json.loads(json.dumps(expected))


def test_what_is_frequent_needs_no_protobuf() -> None:
    record = TaskRecord("t", "c", "", datetime(2026, 1, 1, tzinfo=UTC), ())
    projection = TaskProjection(record, ActivatedExtensions(turn=True), ends_at_pause=True, as_json=True)
    place = ev.BlockPosition(0, 1, 0)
    appended = ev.ArtifactChanged("doc", "", "", True, (text_part("more"),), False, 1, "agent", 0)
    for event in (ev.TextAdded(place, "x"), ev.ToolInputAdded(place, "T", "{"), appended):
        entry = Entry(1, 2, record.changed_at, event)
        assert all(isinstance(each, JsonUpdate) for each in projection.project(entry))


@given(FIELDS)
def test_metadata_are_a_struct(fields: dict[str, Any]) -> None:
    struct = Struct()
    struct.update(fields)
    assert as_text(struct_json(fields)) == as_text(MessageToDict(struct))


@given(TIMES)
@pytest.mark.parametrize("microsecond", [None, 0, 999, 1000, 1001])
def test_a_time_is_a_timestamp(microsecond: int | None, at: datetime) -> None:
    at = at if microsecond is None else at.replace(microsecond=microsecond)
    stamp = Timestamp()
    stamp.FromDatetime(cut_to_milliseconds(at))
    assert timestamp_json(at) == stamp.ToJsonString()
