"""What is kept of tasks reads again as it was written."""

import json
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.agent.model import ModelText, Thinking, ToolResult, ToolUse, Usage
from a2a_canvas.server.tasks import codec
from a2a_canvas.server.tasks.record import Entry, OpenEdit, TaskArtifact, TaskRecord, pruned_content
from a2a_canvas.store.annotations.annotation import Annotation, AnnotationsChanged, Decision, Quote, Remark, Writer
from a2a_canvas.store.codec import to_json
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, EditSuggested, Selection
from a2a_canvas.store.models import Content, DataPart, FilePart, text_part
from a2a_canvas.store.text.rope import Rope
from a2a_canvas.store.text.spans import Span
from tests.store.artifact_builders import PART_TUPLES

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
PLACE = ev.BlockPosition(3, 2, 1)
SELECTION = Selection(1, 2, "codepoint")
MESSAGE = ev.UserMessage(
    "m", (text_part("Go", "text/plain", {"k": [1, None]}), FilePart(b"\0\xff"), DataPart({})), {"a": 1}
)
TRANSCRIPT = (
    ev.UserInput("m", (ModelText("Go"),)),
    ev.AssistantOutput(
        1, (Thinking("hm", "sealed"), ModelText("I"), ToolUse("T1", "artifact_list", {"a": [1.5, "x"]}))
    ),
    ToolResult("T1", "none", is_error=True),
)
ANNOTATION = Annotation(
    "n",
    "doc",
    1,
    2,
    Span(0, 3),
    Quote("new", "", " text"),
    Writer("user", "guest", "link 1"),
    AT,
    "task",
    (Remark(Writer("agent"), AT, "Why?"),),
    "old",
    "accepted",
    Decision(Writer("user", "ann", "ann"), AT, 3),
)
EVENTS: list[ev.TurnEvent] = [
    ev.MessageStarted(1),
    ev.MessageDelta(1),
    ev.TextBlockStarted(PLACE, "thinking"),
    ev.TextAdded(PLACE, "a\u2028é"),
    ev.ThinkingAdded(PLACE, "hm"),
    ev.ToolUseStarted(PLACE, "T1", "artifact_update"),
    ev.ToolInputAdded(PLACE, "T1", '{"a'),
    ev.BlockStopped(PLACE),
    ev.ToolInputCompleted(3, "T1", {"a": {"b": None}}),
    ev.ToolSucceeded(3, "T1", "done"),
    ev.ToolFailed(3, "T1", "not done"),
    ev.LlmCallCompleted(1, "tool_use", Usage(1, 2, 3, 4)),
    ev.FinalMessageStarted(),
    ev.StatusChanged(ev.State.WORKING, ev.AgentMessage("a", "Writing…", label=True, of_tool=True, metadata={"x": 1})),
    ev.StatusChanged(ev.State.COMPLETED),
    ev.TranscriptAppended(TRANSCRIPT),
    ev.MessageReceived(MESSAGE),
    ev.AguiSent({"type": "STATE_SNAPSHOT", "snapshot": {"a": [None, 1.5]}}, "once", 3),
    EditStarted("e", "doc", SELECTION, "insert_after", 2),
    EditStarted("e", "doc", SELECTION, "replace", 2, "suggest"),
    EditSuggested("e", "doc", SELECTION, "n-1"),
    EditChunk("e", "doc", SELECTION, "new"),
    EditCompleted("e", "doc", SELECTION, "new", Selection(3, 4), "replace", 2),
    EditAborted("e", "doc", SELECTION),
    AnnotationsChanged("doc", (ANNOTATION,), ("gone",)),
]


def again(event: ev.TurnEvent) -> ev.TurnEvent:
    entries = [Entry(2, 7, AT, event)]
    read = list(codec.entries_of_json(2, codec.entries_to_json(entries)))
    assert read == entries
    return read[0].event


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_entry_reads_again_as_it_was_written(event) -> None:
    assert type(again(event)) is type(event)


def test_no_kind_of_event_is_left_out() -> None:
    assert {type(event) for event in EVENTS} | {ev.ArtifactChanged} == set(ev.TurnEvent.__args__)


@given(PART_TUPLES, st.booleans())
def test_a_change_of_an_artifact_reads_again_whatever_its_parts(parts, append) -> None:
    again(ev.ArtifactChanged("doc", "d.md", "", append, parts, False, 3, "agent", 2))


@given(PART_TUPLES, st.booleans())
def test_what_is_written_by_hand_is_what_the_library_would_write(parts, append) -> None:
    change = ev.ArtifactChanged("doc", "d.md", "", append, parts, False, 3, "agent", 2)
    for event in (change, *EVENTS):
        assert codec.event_to_json(event) == codec._event_to_json(event)


CONTENT = Content("d.md", "A draft.", (text_part("x", "text/plain"), DataPart({"a": 1})))
CLOSED = Entry(2, 7, AT, ev.ArtifactChanged("doc", "d.md", "A draft.", False, CONTENT.parts, True, 3, "agent", 2))


@pytest.mark.parametrize("resent", [False, True])
def test_a_change_that_names_its_version_reads_again_with_the_content_of_it(resent: bool) -> None:
    closed = replace(CLOSED, event=replace(CLOSED.event, resent=resent))
    page = codec.entries_to_json([closed], naming={7})
    assert "A draft." not in page
    assert list(codec.entries_of_json(2, page, {("doc", 3): CONTENT})) == [closed]


def test_artifacts_that_name_their_versions_read_again_with_the_contents_of_them() -> None:
    artifacts = {
        "doc": TaskArtifact("doc", CONTENT, 3, "agent", closed=3),
        "draft": TaskArtifact("draft", CONTENT, 2, "user", closed=1),
    }
    written = codec.artifacts_to_json(artifacts, naming={"doc"})
    assert written.count("A draft.") == 1
    assert codec.artifacts_of_json(written, {("doc", 3): CONTENT}) == artifacts


def test_what_was_pruned_has_its_name_and_says_so() -> None:
    gone = pruned_content("d.md", 3)
    assert (gone.name, gone.description) == ("d.md", "The content of version 3 is no longer stored.")
    assert gone.text == ""
    written = codec.artifacts_to_json({"doc": TaskArtifact("doc", CONTENT, 3, "user")}, naming={"doc"})
    read = codec.artifacts_of_json(written)
    assert read == {"doc": TaskArtifact("doc", gone, 3, "user", closed=3, pruned=True)}
    assert codec.artifacts_to_json(read, naming={"doc"}) == written
    [entry] = codec.entries_of_json(2, codec.entries_to_json([CLOSED], naming={7}))
    assert isinstance(entry.event, ev.ArtifactChanged)
    assert (entry.event.name, entry.event.description, entry.event.parts) == (gone.name, gone.description, gone.parts)


def test_the_names_of_a_row_read_again_as_they_were_written() -> None:
    named = (codec.NamedVersion("doc", 3, 12), codec.NamedVersion("é", 1, 0))
    assert codec.names_of_json(codec.names_to_json(named)) == named
    assert (codec.names_to_json(()), codec.names_of_json(None)) == (None, ())


def test_a_task_reads_again_as_it_was_written() -> None:
    artifact = TaskArtifact("doc", Content("d", "", (text_part("x"),)), 2, "user")
    edit = OpenEdit("e", "doc", SELECTION, "replace", 2, Rope("so far"))
    record = TaskRecord(
        "t",
        "c",
        "ann",
        AT,
        ev.State.WORKING,
        ev.AgentMessage("a", "Hm"),
        (MESSAGE, ev.AgentMessage("a", "Hm")),
        {"doc": artifact},
        TRANSCRIPT,
        reply=Rope("Hel"),
        open_edits={"e": edit},
        epoch=3,
        generation=9,
    )
    assert codec.record_of_json(codec.record_to_json(record)) == record
    assert codec.transcript_of_json(codec.transcript_to_json(TRANSCRIPT)) == TRANSCRIPT
    assert codec.artifacts_of_json(codec.artifacts_to_json(record.artifacts)) == record.artifacts
    assert codec.message_of_json(codec.message_to_json(MESSAGE)) == MESSAGE


@given(st.lists(st.binary(max_size=40) | st.text(max_size=40), max_size=5))
def test_bytes_are_written_as_base64_wherever_they_are(values: list[bytes | str]) -> None:
    plain = [b64encode(each).decode() if isinstance(each, bytes) else each for each in values]
    assert to_json({"a": values}) == json.dumps({"a": plain}, ensure_ascii=False, separators=(",", ":"))
