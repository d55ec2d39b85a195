"""Which entries must be durable before they are seen: the rule for every event that there is."""

from typing import Any, get_args

import pytest

from a2a_canvas.server.agent.events import (
    AgentMessage,
    AguiSent,
    ArtifactChanged,
    AssistantOutput,
    BlockPosition,
    BlockStopped,
    FinalMessageStarted,
    LlmCallCompleted,
    MessageDelta,
    MessageReceived,
    MessageStarted,
    State,
    StatusChanged,
    TextAdded,
    TextBlockStarted,
    ThinkingAdded,
    ToolFailed,
    ToolInputAdded,
    ToolInputCompleted,
    ToolSucceeded,
    ToolUseStarted,
    TranscriptAppended,
    TurnEvent,
)
from a2a_canvas.server.agent.model import Usage
from a2a_canvas.server.tasks.record import is_durable
from a2a_canvas.store.annotations.annotation import AnnotationsChanged
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, EditSuggested, Selection
from tests.fakes import parts, said

PLACE = BlockPosition(0, 1, 0)
RANGE = Selection(0, 3)


def changed(last_chunk: bool) -> ArtifactChanged:
    return ArtifactChanged("doc", "doc.md", "", False, parts("one"), last_chunk, 1, "agent", 0)


ALWAYS = [
    AnnotationsChanged("doc"),
    MessageReceived(said("m", "Go")),
    TranscriptAppended((AssistantOutput(1, ()),)),
    ToolSucceeded(0, "T1", "Done"),
    ToolFailed(0, "T1", "No such artifact"),
    EditCompleted("e", "doc", RANGE, "new", RANGE, "replace", 1),
    EditSuggested("e", "doc", RANGE, "n-1"),
]
NEVER = [
    MessageStarted(1),
    MessageDelta(1),
    TextBlockStarted(PLACE, "text"),
    TextAdded(PLACE, "x"),
    ThinkingAdded(PLACE, "x"),
    ToolUseStarted(PLACE, "T1", "artifact_update"),
    ToolInputAdded(PLACE, "T1", "{"),
    BlockStopped(PLACE),
    ToolInputCompleted(0, "T1", {}),
    LlmCallCompleted(1, "end_turn", Usage()),
    FinalMessageStarted(),
    EditStarted("e", "doc", RANGE, "replace", 1),
    EditChunk("e", "doc", RANGE, "n"),
    EditAborted("e", "doc", RANGE),
    AguiSent({"type": "CUSTOM", "name": "n", "value": 1}),
]


def name(event: Any) -> str:
    return type(event).__name__


@pytest.mark.parametrize("state", [State.SUBMITTED, State.WORKING])
@pytest.mark.parametrize("event", ALWAYS, ids=name)
def test_messages_completed_calls_and_completed_edits_last(event: TurnEvent, state: State) -> None:
    assert is_durable(state, event)


@pytest.mark.parametrize("event", NEVER, ids=name)
def test_what_is_on_its_way_does_not(event: TurnEvent) -> None:
    assert not is_durable(State.WORKING, event)


def test_a_change_of_an_artifact_lasts_when_it_makes_a_version() -> None:
    assert is_durable(State.WORKING, changed(last_chunk=True))
    assert not is_durable(State.WORKING, changed(last_chunk=False))


@pytest.mark.parametrize("before", State)
@pytest.mark.parametrize("after", State)
def test_a_new_state_lasts_whatever_is_said_with_it(before: State, after: State) -> None:
    label = AgentMessage("m", "Writing…", label=True)
    assert is_durable(before, StatusChanged(after)) is (before is not after)
    assert is_durable(before, StatusChanged(after, label)) is (before is not after)


def test_what_the_agent_says_lasts_and_a_label_does_not() -> None:
    assert is_durable(State.WORKING, StatusChanged(State.WORKING, AgentMessage("m", "The first part is done.")))
    assert not is_durable(State.WORKING, StatusChanged(State.WORKING, AgentMessage("m", "Writing…", label=True)))


def test_there_is_no_other_event() -> None:
    by_its_content = {ArtifactChanged, StatusChanged}
    assert {type(event) for event in (*ALWAYS, *NEVER)} | by_its_content == set(get_args(TurnEvent))
