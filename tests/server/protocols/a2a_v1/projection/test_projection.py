"""The projection: from journal entries to what one subscriber is sent."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, MessageToJson
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ActivatedExtensions
from a2a_canvas.server.protocols.a2a_v1.projection.projection import (
    STATES,
    A2AEvent,
    TaskProjection,
    to_task,
)
from a2a_canvas.server.tasks.record import Entry, TaskArtifact, TaskRecord, fold, pruned_content
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.server.wire import TURN as URI
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, Selection
from a2a_canvas.store.models import DataPart, text_part

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PLACE = ev.BlockPosition(0, 1, 0)
ENDS = [state for state in ev.State if state.terminal]
BEGIN = TaskRecord(
    task_id="t", context_id="c", owner="", changed_at=AT, history=(ev.UserMessage("m", (text_part("go"),)),)
)


def entry(generation: int, event: ev.TurnEvent, epoch: int = 1) -> Entry:
    return Entry(epoch, generation, AT + timedelta(seconds=generation), event)


def entries(*events: ev.TurnEvent) -> list[Entry]:
    return [entry(number, event) for number, event in enumerate(events, 2)]


def at(*events: ev.TurnEvent) -> TaskRecord:
    """The task after these events."""
    return list(accumulate(entries(*events), fold, initial=BEGIN))[-1]


def projected(
    *events: ev.TurnEvent, turn: bool = True, pause: bool = True, snapshot: TaskRecord = BEGIN
) -> list[A2AEvent]:
    projection = TaskProjection(snapshot, ActivatedExtensions(turn), ends_at_pause=pause)
    return [event for each in entries(*events) for event in projection.project(each)]


def turn_fields(event: Any) -> dict[str, Any]:
    fields: dict[str, Any] = MessageToDict(event.metadata).get(URI, {})
    return fields


def kinds(events: list[A2AEvent]) -> list[str]:
    return [turn_fields(event).get("event_type", type(event).__name__) for event in events]


def said(text: str) -> ev.AgentMessage:
    return ev.AgentMessage("a", text)


def grows(append: bool, text: str, last_chunk: bool = False) -> ev.ArtifactChanged:
    return ev.ArtifactChanged("r", "r.md", "about", append, (text_part(text),), last_chunk, 1, "agent", 0)


# ---------------------------------------------------------------------- standard events


def test_a_replacement_names_the_artifact_and_an_append_only_adds() -> None:
    first, second = projected(grows(False, "a"), grows(True, "b", last_chunk=True), turn=False)
    assert isinstance(first, pb.TaskArtifactUpdateEvent)
    assert isinstance(second, pb.TaskArtifactUpdateEvent)
    assert (first.task_id, first.context_id, first.append, first.last_chunk) == ("t", "c", False, False)
    assert (second.append, second.last_chunk) == (True, True)
    assert first.artifact == pb.Artifact(artifact_id="r", name="r.md", description="about", parts=[pb.Part(text="a")])
    assert second.artifact == pb.Artifact(artifact_id="r", parts=[pb.Part(text="b")])


@pytest.mark.parametrize("state", ev.State)
def test_every_state_is_a_status_with_its_message_and_time(state: ev.State) -> None:
    (update,) = projected(ev.StatusChanged(state, said("x")), turn=False)
    assert isinstance(update, pb.TaskStatusUpdateEvent)
    assert update.status.state == STATES[state]
    assert update.status.message.parts[0].text == "x"
    assert update.status.message.role == pb.ROLE_AGENT
    assert update.status.timestamp.ToDatetime(UTC) == AT + timedelta(seconds=2)


def test_without_turn_events_the_streaming_events_say_nothing() -> None:
    events = projected(
        ev.MessageStarted(1),
        ev.TextBlockStarted(PLACE, "text"),
        ev.FinalMessageStarted(),
        ev.TextAdded(PLACE, "x"),
        ev.TranscriptAppended(()),
        ev.MessageReceived(ev.UserMessage("m2", (text_part("more"),))),
        turn=False,
    )
    assert events == []


def test_a_task_shows_its_status_history_and_artifacts() -> None:
    record = at(
        label("Working…"),
        grows(False, "a"),
        grows(True, "b"),
        ev.StatusChanged(ev.State.COMPLETED, said("Done.")),
    )
    task = to_task(record)
    assert task.status.state == pb.TASK_STATE_COMPLETED
    assert task.status.timestamp.ToDatetime(UTC) == record.changed_at
    assert [message.parts[0].text for message in task.history] == ["go", "Done."]
    assert [(artifact.name, [part.text for part in artifact.parts]) for artifact in task.artifacts] == [
        ("r.md", ["ab"])
    ]
    assert not to_task(record, artifacts=False).artifacts


def test_data_of_an_artifact_is_json_on_the_wire() -> None:
    change = ev.ArtifactChanged("d", "", "", False, (DataPart({"n": [1, None]}),), True, 1, "agent", 0)
    (update,) = projected(change, turn=False)
    assert MessageToDict(update)["artifact"]["parts"] == [{"data": {"n": [1, None]}}]


# -------------------------------------------------------------------------- turn events


@pytest.mark.parametrize("state", [*ENDS, ev.State.INPUT_REQUIRED, ev.State.AUTH_REQUIRED])
def test_every_end_clears_everything_then_ends_the_stream_then_is_the_status(state: ev.State) -> None:
    events = projected(ev.StatusChanged(state, said("x")))
    assert kinds(events) == ["completed", "stream_end", "TaskStatusUpdateEvent"]
    assert turn_fields(events[0])["data"] == {"content": "x"}
    assert events[-1].status.state == STATES[state]  # type: ignore[union-attr]


def test_a_stream_that_stays_open_at_a_pause_is_cleared_but_not_ended() -> None:
    events = projected(ev.StatusChanged(ev.State.INPUT_REQUIRED, said("?")), pause=False)
    assert kinds(events) == ["completed", "TaskStatusUpdateEvent"]


@pytest.mark.parametrize("state", ev.State)
@pytest.mark.parametrize("pause", [True, False])
def test_a_stream_ends_with_the_task_and_at_a_pause_if_it_is_the_senders(state: ev.State, pause: bool) -> None:
    ends = TaskProjection(BEGIN, ActivatedExtensions(), ends_at_pause=pause).ends(state)
    assert ends == (state.terminal or (pause and state in (ev.State.INPUT_REQUIRED, ev.State.AUTH_REQUIRED)))


def test_working_is_no_end() -> None:
    assert kinds(projected(ev.StatusChanged(ev.State.WORKING, said("x")))) == ["TaskStatusUpdateEvent"]


def replies(events: Iterable[Any]) -> list[str]:
    """What each `assistant` says."""
    given = [turn_fields(event) for event in events]
    assert all(fields["data"]["replace"] for fields in given if fields.get("event_type") == "assistant")
    return [fields["data"]["content"] for fields in given if fields.get("event_type") == "assistant"]


def test_the_whole_reply_follows_its_deltas_and_begins_anew_with_each_round() -> None:
    events = projected(
        ev.MessageStarted(1),
        ev.TextAdded(PLACE, "a"),
        ev.TextAdded(PLACE, "b"),
        ev.MessageStarted(2),
        ev.TextAdded(PLACE, "c"),
    )
    assert replies(events) == ["a", "ab", "c"]


@pytest.mark.parametrize("joins", [0, 700])
def test_a_long_reply_costs_in_proportion_to_its_length(joins: int) -> None:
    pieces = [f"{number:019}\n" for number in range(1000)]
    events = [ev.MessageStarted(1), ev.FinalMessageStarted(), *(ev.TextAdded(PLACE, piece) for piece in pieces)]
    events.append(ev.BlockStopped(PLACE))
    projection = TaskProjection(at(*events[:joins]), ActivatedExtensions(turn=True), ends_at_pause=True)
    sent = [*projection.begin(), *(event for each in entries(*events)[joins:] for event in projection.project(each))]
    assert replies(sent)[-1] == "".join(pieces)
    assert all(len(after) > 9 / 8 * len(before) for before, after in pairwise(replies(sent)[:-1]))
    assert sum(map(len, replies(sent))) < 11 * len("".join(pieces))
    assert sum(event.ByteSize() for event in sent) < 500_000, "of 20 KB; sent whole after each piece it was 10 MB"


@given(st.lists(st.text(min_size=1, max_size=3), max_size=8), st.integers(0, 8))
def test_the_reply_is_the_same_for_who_joins_late(pieces: list[str], joins: int) -> None:
    begin = (ev.StatusChanged(ev.State.WORKING), ev.MessageStarted(1), ev.FinalMessageStarted())
    events = [*begin, *(ev.TextAdded(PLACE, piece) for piece in pieces), ev.BlockStopped(PLACE)]
    joins = min(joins, len(pieces))
    seen = len(begin) + joins
    late = TaskProjection(at(*events[:seen]), ActivatedExtensions(turn=True), ends_at_pause=True)
    shown = [*late.begin(), *(event for each in entries(*events)[seen:] for event in late.project(each))]
    assert [*replies(shown), ""][0] == "".join(pieces[: joins or 1])
    assert ["", *replies(shown)][-1] == "".join(pieces)
    assert kinds(shown).count("final_message_start") == 1


def test_everything_carries_the_epoch_and_generation_of_its_entry() -> None:
    projection = TaskProjection(BEGIN, ActivatedExtensions(turn=True), ends_at_pause=True)
    (snapshot,) = projection.begin()
    assert turn_fields(snapshot) == {"epoch": 1, "generation": 1}
    for event in (ev.TextAdded(PLACE, "x"), grows(False, "a"), ev.StatusChanged(ev.State.COMPLETED)):
        for wire in projection.project(entry(7, event, epoch=3)):
            assert (turn_fields(wire)["epoch"], turn_fields(wire)["generation"]) == (3, 7)


def test_a_paused_turn_that_waits_to_go_on_has_begun_its_reply() -> None:
    """Its client sent the answer, and begins with the task as `submitted`: what follows must find its place."""
    begun = (ev.MessageStarted(1), ev.FinalMessageStarted(), ev.TextAdded(PLACE, "x"))
    record = at(*begun, ev.StatusChanged(ev.State.INPUT_REQUIRED), ev.StatusChanged(ev.State.SUBMITTED))
    events = list(TaskProjection(record, ActivatedExtensions(turn=True), ends_at_pause=True).begin())
    assert [turn_fields(event).get("event_type") for event in events] == [None, "final_message_start"]


@pytest.mark.parametrize("state", [ev.State.INPUT_REQUIRED, *ENDS])
def test_a_task_that_is_settled_has_no_reply_so_far(state: ev.State) -> None:
    record = at(ev.MessageStarted(1), ev.FinalMessageStarted(), ev.TextAdded(PLACE, "x"), ev.StatusChanged(state))
    assert kinds(list(TaskProjection(record, ActivatedExtensions(turn=True), ends_at_pause=True).begin())) == ["Task"]


def test_without_turn_events_the_snapshot_has_no_metadata() -> None:
    (snapshot,) = TaskProjection(BEGIN, ActivatedExtensions(), ends_at_pause=True).begin()
    assert not snapshot.metadata


# --------------------------------------------------------------------- readers that lag


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1))
def test_who_lags_is_spared_stale_replies_but_never_the_newest(pieces: list[tuple[str, bool]]) -> None:
    projection = TaskProjection(BEGIN, ActivatedExtensions(turn=True), ends_at_pause=True)
    events: list[A2AEvent] = []
    for number, (text, behind) in enumerate(pieces, 2):
        events += projection.project(entry(number, ev.TextAdded(PLACE, text)), behind=behind)
    events += projection.project(entry(len(pieces) + 2, ev.BlockStopped(PLACE)))
    assert replies(events)[-1] == "".join(text for text, _ in pieces)
    assert len(replies(events)) <= sum(not behind for _, behind in pieces) + 1
    assert kinds(events)[-1] == "content_block_stop"


def test_a_reply_that_a_new_round_overwrites_is_not_sent_any_more() -> None:
    projection = TaskProjection(BEGIN, ActivatedExtensions(turn=True), ends_at_pause=True)
    events = [*projection.project(entry(2, ev.TextAdded(PLACE, "old")), behind=True)]
    events += projection.project(entry(3, ev.MessageStarted(2)))
    assert kinds(events) == ["text_delta", "message_start"]


def test_a_label_is_marked_as_one() -> None:
    labelled, word = projected(label("Writing…"), ev.StatusChanged(ev.State.WORKING, said("I write.")))
    assert turn_fields(labelled) == {"epoch": 1, "generation": 2, "label": True}
    assert turn_fields(word) == {"epoch": 1, "generation": 3}


# ------------------------------------------------------------------------------ labels

PLAIN = [ActivatedExtensions(), ActivatedExtensions(canvas=True)]
"""Those whose clients cannot tell a label from what the agent says."""


def label(text: str, *, of_tool: bool = False, state: ev.State = ev.State.WORKING) -> ev.StatusChanged:
    return ev.StatusChanged(state, ev.AgentMessage(f"l-{text}", text, label=True, of_tool=of_tool))


def texts(events: Iterable[Any]) -> list[str]:
    """The message of each status, empty for none."""
    statuses = [event.status for event in events if not isinstance(event, pb.TaskArtifactUpdateEvent)]
    return ["".join(part.text for part in status.message.parts) for status in statuses]


def projected_at(activated: ActivatedExtensions, *timed: tuple[float, ev.TurnEvent]) -> list[A2AEvent]:
    """What a client is sent for events so many seconds after the snapshot."""
    projection = TaskProjection(BEGIN, activated, ends_at_pause=True)
    given = [Entry(1, number, AT + timedelta(seconds=after), event) for number, (after, event) in enumerate(timed, 2)]
    return [event for each in given for event in projection.project(each)]


@pytest.mark.parametrize("activated", PLAIN, ids=str)
def test_a_client_without_turn_events_is_told_what_is_written_and_no_other_label(
    activated: ActivatedExtensions,
) -> None:
    waiting = label("Waiting: number 1 in the queue…", state=ev.State.SUBMITTED)
    told = (waiting, label("Working…"), label("Writing r.md…", of_tool=True), label("Writing reply…"))
    events = projected_at(activated, *enumerate((*told, ev.StatusChanged(ev.State.WORKING, said("I write.")))))
    assert texts(events) == ["", "", "Writing r.md…", "", "I write."]
    assert [event.status.state for event in events] == [pb.TASK_STATE_SUBMITTED, *[pb.TASK_STATE_WORKING] * 4]  # type: ignore[union-attr]
    assert not any(event.status.HasField("message") for event in events[:2])  # type: ignore[union-attr]


@pytest.mark.parametrize("activated", PLAIN, ids=str)
@pytest.mark.parametrize("since", [-0.5, 0, 0.999])
def test_it_is_told_one_at_most_in_a_second_by_the_time_of_the_entries(
    activated: ActivatedExtensions, since: float
) -> None:
    first, soon, later = (label(name, of_tool=True) for name in "abc")
    events = projected_at(activated, (5, first), (5 + since, soon), (6, later), (6, ev.StatusChanged(ev.State.FAILED)))
    assert texts(events) == ["a", "", "c", ""]
    assert texts(projected_at(activated, (5, first), (5, ev.StatusChanged(ev.State.WORKING, said("x"))))) == ["a", "x"]


@pytest.mark.parametrize("activated", PLAIN, ids=str)
def test_a_label_of_the_snapshot_counts(activated: ActivatedExtensions) -> None:
    record = at(label("a", of_tool=True))
    projection = TaskProjection(record, activated, ends_at_pause=True)
    rest = [Entry(1, 3, record.changed_at + timedelta(seconds=after), label("b", of_tool=True)) for after in (0.5, 1)]
    assert texts([*projection.begin(), *(event for each in rest for event in projection.project(each))]) == [
        "a",
        "",
        "b",
    ]


@pytest.mark.parametrize("activated", [None, *PLAIN], ids=str)
def test_a_working_task_is_read_with_the_labels_that_its_stream_has(activated: ActivatedExtensions | None) -> None:
    assert texts([to_task(at(label("Writing reply…")), activated)]) == [""]
    assert texts([to_task(at(label("Writing r.md…", of_tool=True)), activated)]) == ["Writing r.md…"]
    assert texts([to_task(at(ev.StatusChanged(ev.State.WORKING, said("I write."))), activated)]) == ["I write."]


def test_with_turn_events_every_label_is_told_at_once() -> None:
    told = [label("Working…"), *(label(name, of_tool=True) for name in "abc")]
    events = projected_at(ActivatedExtensions(turn=True), *((0, event) for event in told))
    assert texts(events) == ["Working…", "a", "b", "c"]
    assert texts([to_task(at(told[0]), ActivatedExtensions(turn=True))]) == ["Working…"]


# ------------------------------------------------------------------------------- edits

WHERE = Selection(4, 7)
EDIT = (
    label("Editing r.md…", of_tool=True),
    EditStarted("e1", "r", WHERE, "replace", 1),
    EditChunk("e1", "r", WHERE, "tw"),
    EditAborted("e1", "r", WHERE),
    EditStarted("e2", "r", WHERE, "replace", 1),
    EditChunk("e2", "r", WHERE, "tw"),
    EditChunk("e2", "r", WHERE, "o"),
    EditCompleted("e2", "r", WHERE, "two", WHERE, "replace", 1),
    ev.ArtifactChanged("r", "r.md", "", False, (text_part("one two"),), True, 2, "user", 1),
    ev.StatusChanged(ev.State.COMPLETED, said("Edited.")),
)
PHASES = ["start", "chunk", "abort", "start", "chunk", "chunk", "complete"]
COMPLETED = pb.TASK_STATE_COMPLETED


def seen(activated: ActivatedExtensions, *events: ev.TurnEvent) -> list[A2AEvent]:
    projection = TaskProjection(BEGIN, activated, ends_at_pause=True)
    return [*projection.begin(), *(event for each in entries(*events) for event in projection.project(each))]


def fields_of(event: A2AEvent, uri: str) -> dict[str, Any]:
    fields: dict[str, Any] = MessageToDict(event.metadata).get(uri, {})
    return fields


def phases(events: list[A2AEvent]) -> list[str]:
    return [fields["edit"]["phase"] for event in events if "edit" in (fields := fields_of(event, CANVAS))]


def ours(events: list[A2AEvent]) -> set[str]:
    return {uri for event in events for uri in MessageToDict(event.metadata)}


def test_to_a_client_that_activates_nothing_an_edit_is_one_replacement_and_no_word_of_ours() -> None:
    events = seen(ActivatedExtensions(), *EDIT)
    assert [type(event).__name__ for event in events] == [
        "Task",
        "TaskStatusUpdateEvent",
        "TaskArtifactUpdateEvent",
        "TaskStatusUpdateEvent",
    ]
    (change,) = (event for event in events if isinstance(event, pb.TaskArtifactUpdateEvent))
    assert (change.append, change.last_chunk) == (False, True)
    assert [part.text for part in change.artifact.parts] == ["one two"]
    assert not any(event.HasField("metadata") for event in events)
    assert "urn:" not in "".join(MessageToJson(event) for event in events)


def test_with_turn_events_an_edit_is_told_among_them_and_is_never_reply_text() -> None:
    events = seen(ActivatedExtensions(turn=True), *EDIT)
    assert ours(events) == {URI}
    edit_events = [kind for kind in kinds(events) if kind.startswith("artifact_partial_update_")]
    assert edit_events == [f"artifact_partial_update_{phase}" for phase in PHASES]
    assert not {"assistant", "text_delta", "final_message_start"} & set(kinds(events))
    assert kinds(events)[-3:] == ["completed", "stream_end", "TaskStatusUpdateEvent"]


def test_with_canvas_an_edit_is_told_in_statuses_of_its_own() -> None:
    events = seen(ActivatedExtensions(canvas=True), *EDIT)
    assert ours(events) == {CANVAS}
    assert phases(events) == PHASES
    for event in events:
        if "edit" in fields_of(event, CANVAS):
            assert event == pb.TaskStatusUpdateEvent(
                task_id="t",
                context_id="c",
                status=pb.TaskStatus(state=pb.TASK_STATE_WORKING),
                metadata=event.metadata,
            )


def test_complete_comes_just_before_the_change_which_says_its_version_and_author() -> None:
    *_, complete, change, end = seen(ActivatedExtensions(canvas=True), *EDIT)
    assert fields_of(complete, CANVAS)["edit"]["phase"] == "complete"
    assert isinstance(change, pb.TaskArtifactUpdateEvent)
    version = {"artifactVersion": 2, "author": "user", "parentVersion": 1}
    assert fields_of(change, CANVAS) == {**version, "epoch": 1, "generation": 10}
    assert isinstance(end, pb.TaskStatusUpdateEvent)
    assert end.status.state == COMPLETED


def test_with_both_each_extension_has_its_own_events_and_they_share_the_standard_ones() -> None:
    both = seen(ActivatedExtensions(turn=True, canvas=True), *EDIT)
    for uri, alone in ((URI, ActivatedExtensions(turn=True)), (CANVAS, ActivatedExtensions(canvas=True))):
        with_one = [event for event in both if fields_of(event, uri)]
        assert [fields_of(event, uri) for event in with_one] == [fields_of(event, uri) for event in seen(alone, *EDIT)]
    standard = [event for event in both if len(MessageToDict(event.metadata)) == 2]
    assert len(standard) == len(seen(ActivatedExtensions(), *EDIT))


@pytest.mark.parametrize(
    "activated",
    [ActivatedExtensions(turn=True), ActivatedExtensions(canvas=True), ActivatedExtensions(True, True)],
    ids=str,
)
def test_whatever_is_activated_every_event_says_its_epoch_and_generation_in_order(
    activated: ActivatedExtensions,
) -> None:
    events = seen(activated, *EDIT)
    orders = [
        (fields["epoch"], fields["generation"]) for event in events for fields in MessageToDict(event.metadata).values()
    ]
    assert all(MessageToDict(event.metadata) for event in events)
    assert orders == sorted(orders)
    assert {generation for _, generation in orders} == set(range(1, len(EDIT) + 2))


@pytest.mark.parametrize(
    "activated", [ActivatedExtensions(), ActivatedExtensions(turn=True), ActivatedExtensions(True, True)], ids=str
)
def test_a_rejection_says_in_its_message_which_version_is_current_whatever_is_activated(
    activated: ActivatedExtensions,
) -> None:
    now = {"artifactId": "r", "artifactVersion": 4}
    message = ev.AgentMessage("a", "It has changed.", metadata={CANVAS: now})
    status = seen(activated, ev.StatusChanged(ev.State.REJECTED, message))[-1]
    assert isinstance(status, pb.TaskStatusUpdateEvent)
    assert MessageToDict(status.status.message.metadata) == {CANVAS: now}
    order = {"epoch": 1, "generation": 2}
    assert fields_of(status, CANVAS) == ({**now, **order} if activated.canvas else {})
    record = at(ev.StatusChanged(ev.State.REJECTED, message))
    assert MessageToDict(to_task(record).status.message.metadata) == {CANVAS: now}
    assert MessageToDict(to_task(record).history[-1].metadata) == {CANVAS: now}


def test_canvas_alone_is_not_told_of_turn_events_nor_of_labels_as_such() -> None:
    told = (ev.MessageStarted(1), ev.TextAdded(PLACE, "x"), label("Writing…"))
    events = seen(ActivatedExtensions(canvas=True), *told)
    assert [fields_of(event, CANVAS) for event in events[1:]] == [{"epoch": 1, "generation": 4}]


def test_an_artifact_whose_version_was_pruned_says_so_in_words_and_has_a_part() -> None:
    gone = TaskArtifact("doc", pruned_content("d.md", 3), 3, "agent", pruned=True)
    [artifact] = to_task(replace(BEGIN, artifacts={"doc": gone})).artifacts
    assert MessageToDict(artifact) == {
        "artifactId": "doc",
        "name": "d.md",
        "description": "The content of version 3 is no longer stored.",
        "parts": [{"text": ""}],
    }
