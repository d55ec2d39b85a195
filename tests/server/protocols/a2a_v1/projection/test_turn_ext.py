"""The turn events as they go over the wire: docs/turn.md, row by row."""

from collections.abc import Iterator
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.agent.model import Usage
from a2a_canvas.server.protocols.a2a_v1.projection import turn_ext
from a2a_canvas.server.wire import TURN
from a2a_canvas.store.models import text_part
from a2a_canvas.store.text.rope import Rope

PLACE = ev.BlockPosition(index=2, round=1, llm_index=0)
AT = {"index": 2, "round": 1, "llm_index": 0}
IDS = {"tool_use_id": "T1", "tool_id": "T1"}
USAGE = {"input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 3, "cache_write_tokens": 4}


@pytest.mark.parametrize(
    ("event", "event_type", "data"),
    [
        (ev.MessageStarted(1), "message_start", {"round": 1}),
        (ev.MessageDelta(1), "message_delta", {"round": 1}),
        (ev.TextBlockStarted(PLACE, "text"), "text_block_start", {**AT, "type": "text"}),
        (ev.TextBlockStarted(PLACE, "thinking"), "text_block_start", {**AT, "type": "thinking"}),
        (ev.TextAdded(PLACE, "x"), "text_delta", {**AT, "text": "x"}),
        (ev.ThinkingAdded(PLACE, "hm"), "thinking", {**AT, "content": "hm"}),
        (ev.ToolUseStarted(PLACE, "T1", "artifact_list"), "tool_use_start", {**AT, **IDS, "name": "artifact_list"}),
        (
            ev.ToolInputAdded(PLACE, "T1", '{"a"'),
            "tool_use_input_delta",
            {**AT, "tool_use_id": "T1", "partial_json": '{"a"'},
        ),
        (ev.BlockStopped(PLACE), "content_block_stop", AT),
        (
            ev.ToolInputCompleted(2, "T1", {"a": [1, None]}),
            "tool_use_input_complete",
            {"index": 2, "tool_use_id": "T1", "input": {"a": [1, None]}},
        ),
        (ev.ToolSucceeded(2, "T1", "ok"), "tool_result", {"index": 2, "tool_use_id": "T1", "content": "ok"}),
        (ev.ToolFailed(2, "T1", "no"), "tool_execution_error", {"index": 2, "tool_use_id": "T1", "error": "no"}),
        (
            ev.LlmCallCompleted(1, "end_turn", Usage(1, 2, 3, 4)),
            "llm_call_completed",
            {"round": 1, "stop_reason": "end_turn", "usage": USAGE},
        ),
        (ev.FinalMessageStarted(), "final_message_start", {}),
    ],
)
def test_every_streaming_event_has_its_row(event: ev.TurnEvent, event_type: str, data: dict[str, Any]) -> None:
    assert turn_ext.to_turn_event(event) == {"event_type": event_type, "data": data}


@pytest.mark.parametrize(
    "event",
    [
        ev.ArtifactChanged("a", "n", "", False, (text_part("x"),), False, 1, "agent", 0),
        ev.StatusChanged(ev.State.WORKING),
        ev.TranscriptAppended(()),
        ev.MessageReceived(ev.UserMessage("m", (text_part("x"),))),
    ],
)
def test_what_standard_events_say_or_nobody_needs_has_none(event: ev.TurnEvent) -> None:
    assert turn_ext.to_turn_event(event) is None


def test_the_events_made_by_the_projection() -> None:
    assert turn_ext.assistant_event("x") == {"event_type": "assistant", "data": {"content": "x", "replace": True}}
    assert turn_ext.completed_event("x") == {"event_type": "completed", "data": {"content": "x"}}
    assert turn_ext.completed_event("") == {"event_type": "completed", "data": {}}
    assert turn_ext.STREAM_END == {"event_type": "stream_end", "data": {}}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("value", ["\ud800", float("nan"), 10**400, nested(27)])
def test_input_that_no_transport_can_carry_is_left_out(value: Any) -> None:
    assert turn_ext.to_turn_event(ev.ToolInputCompleted(0, "T1", {"a": value})) is None


def test_the_deepest_input_that_is_sent_survives_protobuf() -> None:
    wire = turn_ext.to_turn_event(ev.ToolInputCompleted(0, "T1", nested(27)))
    assert wire is not None
    event = pb.StreamResponse()
    event.status_update.metadata.update({TURN: wire})
    assert pb.StreamResponse.FromString(event.SerializeToString()) == event


STOP = ev.BlockStopped(PLACE)
QUESTION = ev.AgentMessage("a", "Which?")
LABEL = ev.AgentMessage("a", "Writing reply…", label=True)


def texts(*sent: Iterator[Rope]) -> list[str]:
    return [str(text) for each in sent for text in each]


def test_a_reply_is_sent_again_when_it_has_grown_by_an_eighth_and_when_its_text_ends() -> None:
    reply = turn_ext.ReplySoFar(Rope("x" * 80))
    assert texts(reply.send(), reply.send_before(STOP)) == ["x" * 80]
    sent = [texts(reply.follow(ev.TextAdded(PLACE, "y" * 5), behind=False)) for _ in range(3)]
    assert sent == [[], [], ["x" * 80 + "y" * 15]]
    assert texts(reply.follow(ev.TextAdded(PLACE, "z" * 50), behind=True)) == []
    assert texts(reply.send_before(STOP)) == ["x" * 80 + "y" * 15 + "z" * 50]
    assert texts(reply.send_before(STOP)) == []


@pytest.mark.parametrize(
    ("event", "ends"),
    [
        (STOP, True),
        (ev.LlmCallCompleted(1, "error", Usage()), True),
        (ev.StatusChanged(ev.State.CANCELED), True),
        (ev.StatusChanged(ev.State.WORKING, QUESTION), True),
        (ev.StatusChanged(ev.State.WORKING, LABEL), False),
        (ev.ThinkingAdded(PLACE, "hm"), False),
        (ev.MessageStarted(2), False),
    ],
    ids=str,
)
def test_what_ends_a_text(event: ev.TurnEvent, ends: bool) -> None:
    reply = turn_ext.ReplySoFar(Rope("x"))
    texts(reply.follow(ev.TextAdded(PLACE, "y"), behind=True))
    assert texts(reply.send_before(event)) == ["xy"] * ends


def test_a_round_that_begins_anew_owes_nothing() -> None:
    reply = turn_ext.ReplySoFar(Rope())
    assert texts(reply.follow(ev.TextAdded(PLACE, "a"), behind=True)) == []
    assert texts(reply.follow(ev.MessageStarted(2), behind=False)) == []
    assert texts(reply.send_before(STOP), reply.send()) == []
    assert texts(reply.follow(ev.TextAdded(PLACE, "b"), behind=False)) == ["b"]
