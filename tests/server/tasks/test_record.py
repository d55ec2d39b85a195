"""What a task is: the fold of its journal."""

import tracemalloc
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2a_canvas.server.agent.blocks import Blocks
from a2a_canvas.server.agent.events import (
    AgentMessage,
    ArtifactChanged,
    AssistantOutput,
    BlockPosition,
    BlockStopped,
    FinalMessageStarted,
    LlmCallCompleted,
    MessageReceived,
    MessageStarted,
    State,
    StatusChanged,
    TextAdded,
    TextBlockStarted,
    ThinkingAdded,
    ToolUseStarted,
    TranscriptAppended,
    TurnEvent,
)
from a2a_canvas.server.agent.model import ModelText, ToolResult, Usage
from a2a_canvas.server.agent.phases import Phase
from a2a_canvas.server.tasks.record import Entry, OpenEdit, TaskRecord, fold
from a2a_canvas.store.changes import AppendParts, apply
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditEvent, EditStarted, Selection
from a2a_canvas.store.models import DataPart, TextPart, text_part
from a2a_canvas.store.text.rope import Rope
from tests.fakes import parts, said

START = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = BlockPosition(0, 1, 0)
NEW = TaskRecord("task", "context", "owner", START, history=(said("m-1", "Go"),))


def after(*events: TurnEvent, record: TaskRecord = NEW) -> TaskRecord:
    for event in events:
        generation = record.generation + 1
        record = fold(record, Entry(record.epoch, generation, START + timedelta(seconds=generation), event))
    return record


def wrote(words: str, *, append: bool = True, artifact_id: str = "doc", version: int = 1) -> ArtifactChanged:
    return ArtifactChanged(artifact_id, "Doc", "", append, parts(words), False, version, "agent", 0)


def status(state: State, text: str = "", *, label: bool = False) -> StatusChanged:
    return StatusChanged(state, AgentMessage(f"a-{text}", text, label) if text else None)


# ------------------------------------------------------------------ status and history


def test_a_status_says_what_and_since_when() -> None:
    record = after(status(State.WORKING), status(State.COMPLETED, "Done."))
    assert (record.state, record.message) == (State.COMPLETED, AgentMessage("a-Done.", "Done."))
    assert record.changed_at == START + timedelta(seconds=3)
    assert (record.epoch, record.generation) == (1, 3)


def test_only_a_status_moves_the_time_of_the_status() -> None:
    assert after(TextAdded(PLACE, "x")).changed_at == START


def test_history_holds_every_message_once_in_its_order() -> None:
    record = after(
        status(State.WORKING, "Working…", label=True),
        status(State.WORKING, "Let me see."),
        status(State.INPUT_REQUIRED, "Which?"),
        MessageReceived(said("m-2", "Blue")),
        status(State.WORKING),
        status(State.COMPLETED, "Done."),
    )
    assert [message.message_id for message in record.history] == ["m-1", "a-Let me see.", "a-Which?", "m-2", "a-Done."]


def test_a_label_is_the_status_message_and_no_history() -> None:
    record = after(status(State.WORKING, "Working…", label=True))
    assert record.message == AgentMessage("a-Working…", "Working…", label=True)
    assert record.history == NEW.history


# -------------------------------------------------------------------------- model calls


OVER = LlmCallCompleted(1, "end_turn", Usage())


@pytest.mark.parametrize(
    "begun", [MessageStarted(1), TextBlockStarted(PLACE, "thinking"), ToolUseStarted(PLACE, "T1", "artifact_list")]
)
def test_a_model_call_is_open_from_its_first_word_until_it_is_told_to_be_over(begun) -> None:
    assert not NEW.call_open
    assert after(begun).call_open
    assert after(begun, TextAdded(PLACE, "x"), BlockStopped(PLACE)).call_open
    assert not after(begun, OVER).call_open
    assert not after(begun, OVER, status(State.WORKING, "Next.")).call_open
    assert after(begun, OVER, MessageStarted(2)).call_open


# --------------------------------------------------------------------------- artifacts


def test_an_artifact_is_what_its_changes_made_of_it() -> None:
    record = after(wrote("Hello", append=False), wrote(" "), wrote("World", version=2))
    artifact = record.artifacts["doc"]
    assert artifact.content.parts[0].text == "Hello World"
    assert (artifact.content.name, artifact.version, artifact.author) == ("Doc", 2, "agent")
    assert after(wrote("Bye", append=False), record=record).artifacts["doc"].content.parts[0].text == "Bye"


def test_artifacts_stand_in_the_order_in_which_the_task_first_changed_them() -> None:
    record = after(*[wrote("x", append=False, artifact_id=name) for name in ("b", "a", "b", "c")])
    assert list(record.artifacts) == ["b", "a", "c"]


def test_parts_are_joined_by_kind() -> None:
    data = ArtifactChanged("doc", "Doc", "", True, (DataPart(1), text_part("!")), False, 1, "agent", 0)
    record = after(wrote("Hello", append=False), data)
    assert record.artifacts["doc"].content.parts == (text_part("Hello!"), DataPart(1))


def test_a_record_shows_its_artifacts_as_they_were_whatever_comes_later() -> None:
    record = after(wrote("Hello", append=False))
    before = record.artifacts["doc"]
    later = after(wrote(" World"), record=record)
    after(wrote("?"), record=record)
    after(wrote("!"), record=later)
    assert before.content.parts[0].text == "Hello"
    assert later.artifacts["doc"].content.parts[0].text == "Hello World"


# ---------------------------------------------------------------- what a turn needs again


def test_a_turn_finds_again_where_its_indices_rounds_and_calls_stood() -> None:
    record = after(
        MessageStarted(1),
        TextBlockStarted(BlockPosition(0, 1, 0), "text"),
        ToolUseStarted(BlockPosition(1, 1, 1), "T1", "ask_user"),
        FinalMessageStarted(),
        TranscriptAppended((AssistantOutput(4, (ModelText("Hm"),)), ToolResult("T1", "1"))),
    )
    progress = record.progress
    assert (progress.round, progress.call, progress.phase) == (1, 4, Phase.ASSISTANT)
    assert progress.blocks == Blocks(2)
    assert record.transcript == (AssistantOutput(4, (ModelText("Hm"),)), ToolResult("T1", "1"))


def test_what_is_remembered_without_a_call_leaves_the_count_of_calls() -> None:
    record = after(
        TranscriptAppended((AssistantOutput(2, (ModelText("a"),)),)), TranscriptAppended((ToolResult("T1", "x"),))
    )
    assert record.progress.call == 2


def test_the_reply_so_far_is_that_of_the_round() -> None:
    record = after(MessageStarted(1), TextAdded(PLACE, "Hel"), TextAdded(PLACE, "lo"))
    assert str(record.reply) == "Hello"
    assert str(after(MessageStarted(2), record=record).reply) == ""


def test_a_pause_clears_the_reply_so_far() -> None:
    record = after(MessageStarted(1), TextAdded(PLACE, "Hm"), status(State.INPUT_REQUIRED, "Which?"))
    assert str(record.reply) == ""
    assert str(after(status(State.WORKING), record=record).reply) == ""


def test_what_has_been_said_stands_in_the_history_and_is_no_reply_so_far_any_more() -> None:
    streamed = after(MessageStarted(1), TextAdded(PLACE, "I write."))
    assert str(after(status(State.WORKING, "Writing…", label=True), record=streamed).reply) == "I write."
    assert str(after(status(State.WORKING, "I write."), record=streamed).reply) == ""


@pytest.mark.parametrize(
    "event", [ThinkingAdded(PLACE, "hm"), BlockStopped(PLACE), LlmCallCompleted(1, "end_turn", Usage())]
)
def test_what_only_streams_changes_nothing_but_the_generation(event) -> None:
    assert after(event) == replace(NEW, generation=2)


# ------------------------------------------------------------------------------ the fold

words = st.text("ab ", max_size=3)
places = st.builds(BlockPosition, st.integers(0, 5), st.integers(1, 3), st.integers(0, 2))
some_events = st.one_of(
    st.builds(TextAdded, places, words),
    st.builds(ThinkingAdded, places, words),
    st.builds(TextBlockStarted, places, st.sampled_from(["text", "thinking"])),
    st.builds(MessageStarted, st.integers(1, 3)),
    st.builds(wrote, words, append=st.booleans(), artifact_id=st.sampled_from("ab"), version=st.integers(1, 3)),
    st.builds(status, st.sampled_from(State), words, label=st.booleans()),
    st.builds(MessageReceived, st.builds(said, words, words)),
    st.builds(TranscriptAppended, st.just((AssistantOutput(1, (ModelText("a"),)),))),
    st.just(FinalMessageStarted()),
)


def seen(record: TaskRecord) -> dict[str, object]:
    """Everything a record shows, as values of its own."""
    texts = {
        artifact_id: [part.text for part in artifact.content.parts if isinstance(part, TextPart)]
        for artifact_id, artifact in record.artifacts.items()
    }
    return {**{field.name: getattr(record, field.name) for field in fields(record)}, "texts": texts}


@given(st.lists(some_events, max_size=12), st.lists(some_events, max_size=6))
def test_a_fold_is_pure(events, more) -> None:
    record = after(*events)
    before = {**seen(record), "reply": str(record.reply)}
    folded = after(*more, record=record)
    assert after(*more, record=record) == folded
    assert {**seen(record), "reply": str(record.reply)} == before
    assert after(*events) == record


def clears_the_reply(event: TurnEvent) -> bool:
    if not isinstance(event, StatusChanged):
        return isinstance(event, MessageStarted)
    says = event.message is not None and not event.message.label
    return says or event.state.paused


@given(st.lists(some_events, max_size=20))
@example([TextAdded(PLACE, "a"), status(State.AUTH_REQUIRED)])
def test_a_record_is_the_sum_of_its_entries(events) -> None:
    record = after(*events)
    assert record.generation == NEW.generation + len(events)
    ids = [message.message_id for message in record.history]
    received = [e.message.message_id for e in events if isinstance(e, MessageReceived)]
    spoken = [e.message for e in events if isinstance(e, StatusChanged) and e.message]
    said_by_agent = [message.message_id for message in spoken if not message.label]
    assert sorted(ids) == sorted(["m-1", *received, *said_by_agent])
    cleared = max((n for n, event in enumerate(events) if clears_the_reply(event)), default=-1)
    assert str(record.reply) == "".join(e.text for e in events[cleared + 1 :] if isinstance(e, TextAdded))


@given(st.lists(st.tuples(words, st.booleans()), min_size=1, max_size=10))
def test_artifacts_fold_as_the_part_rules_say(changes) -> None:
    expected = ()
    for text, append in changes:
        expected = apply(expected, AppendParts(parts(text))) if append else parts(text)
    record = after(*[wrote(text, append=append) for text, append in changes])
    assert record.artifacts["doc"].content.parts == expected


@pytest.mark.parametrize("event", [TextAdded(PLACE, "x"), wrote("x")])
def test_a_fold_allocates_what_its_entry_brings_and_not_what_the_task_has(event) -> None:
    size = 1_000_000
    record = after(wrote("x" * size, append=False), MessageStarted(1), TextAdded(PLACE, "x" * size), event)
    tracemalloc.start()
    try:
        record = after(event, event, event, record=record)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 10


def test_a_record_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        NEW.state = State.WORKING  # type: ignore[misc]
    assert after(TextAdded(PLACE, "x")).reply == Rope("x")


# ------------------------------------------------------------------------------- edits

HERE = Selection(2, 5, "codepoint")


def started(edit_id: str = "e") -> EditStarted:
    return EditStarted(edit_id, "doc", HERE, "insert_after", 3)


def chunk(text: str, edit_id: str = "e") -> EditChunk:
    return EditChunk(edit_id, "doc", HERE, text)


def ended(edit_id: str, completed: bool) -> EditEvent:
    if completed:
        return EditCompleted(edit_id, "doc", HERE, "x", HERE, "insert_after", 1)
    return EditAborted(edit_id, "doc", HERE)


def test_an_edit_that_is_being_written_is_open_with_what_it_has_so_far() -> None:
    record = after(started(), chunk("Hel"), chunk("lo"))
    assert record.open_edits == {"e": OpenEdit("e", "doc", HERE, "insert_after", 3, Rope("Hello"))}
    assert str(after(started()).open_edits["e"].text) == ""


@pytest.mark.parametrize("completed", [True, False])
def test_an_edit_that_has_ended_is_open_no_more(completed) -> None:
    assert after(started(), chunk("x"), ended("e", completed)).open_edits == {}


def test_an_edit_on_its_way_changes_neither_the_artifacts_nor_the_reply() -> None:
    record = after(wrote("Hello", append=False), TextAdded(PLACE, "Hm"))
    edited = after(started(), chunk("x"), ended("e", True), record=record)
    assert (edited.artifacts, edited.reply, edited.history) == (record.artifacts, record.reply, record.history)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["go on", "complete", "abort"]), words), max_size=20))
def test_open_edits_are_those_that_have_begun_and_not_ended_each_with_its_own_text(steps) -> None:
    record, expected = NEW, {}
    for edit_id, step, text in steps:
        if edit_id not in expected:
            record, expected[edit_id] = after(started(edit_id), record=record), ""
        if step == "go on":
            record, expected[edit_id] = after(chunk(text, edit_id), record=record), expected[edit_id] + text
        else:
            record = after(ended(edit_id, step == "complete"), record=record)
            del expected[edit_id]
        assert {edit_id: str(edit.text) for edit_id, edit in record.open_edits.items()} == expected


def test_a_chunk_allocates_what_it_brings_and_not_what_its_edit_has() -> None:
    size = 1_000_000
    record = after(started(), chunk("x" * size), chunk("x"))
    tracemalloc.start()
    try:
        record = after(*[chunk("x")] * 3, record=record)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 10
