"""Events of AG-UI runs, and the operations that they are."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.models.sse_decoder import EventStreamDecoder
from a2a_canvas.server.tool_sources.agui_agents import run_mapping as to
from a2a_canvas.server.tool_sources.agui_agents.run_mapping import Interrupt, MappingError, RunMapping
from tests.server.tool_sources.agui_agents.agui_server import FINISHED, called, interrupted, said, whole

RUN = whole(
    *said("I look ", "it up."),
    *called("search", '{"q": ', '"tides"}', result="High."),
    *said("High 😀.", message="m-2"),
)
OPERATIONS = [
    to.ReplyText("I look "),
    to.ReplyText("it up."),
    to.MessageEnd(),
    to.CallStart("c-1", "search"),
    to.CallInput("c-1", '{"q": '),
    to.CallInput("c-1", '"tides"}'),
    to.CallEnd("c-1"),
    to.CallResult("c-1", "High."),
    to.ReplyText("High 😀."),
    to.MessageEnd(),
    to.RunEnd(),
]


def mapped(*events, state=None) -> list[to.Operation]:
    mapping = RunMapping(state)
    return [operation for event in events for operation in mapping.take(event)]


def test_a_run_is_text_calls_and_an_end() -> None:
    assert mapped(*RUN) == OPERATIONS


@given(st.data())
def test_the_stream_may_be_cut_anywhere(data) -> None:
    stream = "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n: ping\n\n" for event in RUN).encode()
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=30)))
    pieces = [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]
    decoder = EventStreamDecoder()
    events = [json.loads(event.data) for piece in pieces for event in decoder.feed(piece)]
    assert mapped(*events) == OPERATIONS


@pytest.mark.parametrize("length", range(len(RUN)))
def test_a_run_that_is_cut_has_no_end(length: int) -> None:
    assert to.RunEnd() not in mapped(*RUN[:length])


CHUNK = {"type": "TEXT_MESSAGE_CHUNK"}
REASONING = {"messageId": "r", "delta": "Hm."}
TOOL_CHUNK = {"type": "TOOL_CALL_CHUNK"}


@pytest.mark.parametrize(
    ("events", "operations"),
    [
        ([CHUNK | {"messageId": "a", "delta": "A"}, CHUNK | {"delta": "B"}], [to.ReplyText("A"), to.ReplyText("B")]),
        (
            [CHUNK | {"messageId": "a", "delta": "A"}, CHUNK | {"messageId": "b", "delta": "B"}],
            [to.ReplyText("A"), to.MessageEnd(), to.ReplyText("B")],
        ),
        ([{"type": "REASONING_MESSAGE_CONTENT"} | REASONING], [to.ReasoningText("Hm.")]),
        ([{"type": "REASONING_MESSAGE_CHUNK"} | REASONING], [to.ReasoningText("Hm.")]),
        (
            [{"type": "THINKING_START"}, {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "Hm."}],
            [to.ReasoningText("Hm.")],
        ),
        (
            [TOOL_CHUNK | {"toolCallId": "c", "toolCallName": "f", "delta": "{"}, TOOL_CHUNK | {"delta": "}"}],
            [to.CallStart("c", "f"), to.CallInput("c", "{"), to.CallInput("c", "}")],
        ),
        ([CHUNK | {"messageId": "a", "delta": "A", "subagentRunId": "s"}], [to.ReasoningText("A")]),
        ([{"type": "STEP_STARTED", "stepName": "search"}, {"type": "STEP_FINISHED"}], [to.ProgressLabel("search…")]),
        ([{"type": "SUBAGENT_STARTED", "name": "researcher"}], [to.ProgressLabel("researcher…")]),
        ([{"type": "RUN_ERROR", "message": "no"}], [to.RunFailure("no")]),
        (
            [FINISHED | {"usage": [{"inputTokens": 9, "cachedInputTokens": 4, "outputTokens": 2}]}],
            [to.TokenUse(5, 2, 4), to.RunEnd()],
        ),
        ([interrupted("Where?")], [to.RunEnd((Interrupt("i-1", "Where?"),))]),
        (
            [{"type": "CUSTOM", "name": "on_interrupt", "value": {"a": 1}}, FINISHED],
            [to.RunEnd((Interrupt("", '{"a": 1}'),))],
        ),
        ([FINISHED | {"outcome": {"type": "cancelled"}}], [to.RunFailure("the agent cancelled the run")]),
    ],
)
def test_an_event_is_an_operation(events, operations) -> None:
    assert mapped(*events) == operations


def test_texts_of_other_roles_are_not_the_reply() -> None:
    assert mapped(*[{**event, "role": "user"} for event in said("Go")]) == [to.MessageEnd()]


def test_a_call_without_a_result_has_one_when_the_run_ends() -> None:
    *begun, _, _ = called("search", "{}")
    assert mapped(*begun, FINISHED)[-3:] == [
        to.CallEnd("c-1"),
        to.CallResult("c-1", to.NO_RESULT, failed=True),
        to.RunEnd(),
    ]


def test_a_delta_changes_the_state_of_the_snapshot_or_of_the_run_before() -> None:
    delta = {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/n", "value": 2}]}
    assert mapped(delta, state={"m": 1}) == [to.NewState({"m": 1, "n": 2}, delta["delta"])]
    snapshot = {"type": "STATE_SNAPSHOT", "snapshot": {}}
    assert mapped(snapshot, delta) == [to.NewState({}), to.NewState({"n": 2}, delta["delta"])]


def test_a_delta_that_does_not_fit_is_skipped() -> None:
    [skipped] = mapped({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/x"}]}, state={})
    assert isinstance(skipped, to.SkippedEvent)


def test_a_snapshot_of_messages_says_what_was_not_streamed() -> None:
    messages = [
        {"id": "old", "role": "assistant", "content": "Old."},
        {"id": "u", "role": "user", "content": "Go"},
        {"id": "m-1", "role": "assistant", "content": "Streamed."},
        {"id": "other id", "role": "assistant", "content": "Streamed."},
        {"id": "new", "role": "assistant", "content": "New."},
    ]
    operations = mapped(*said("Streamed."), {"type": "MESSAGES_SNAPSHOT", "messages": messages})
    assert operations == [to.ReplyText("Streamed."), to.MessageEnd(), to.ReplyText("New."), to.MessageEnd()]


def test_a_snapshot_of_messages_has_results_that_no_event_had() -> None:
    *call, _ = called("search", "{}")
    messages = [{"id": "r", "role": "tool", "toolCallId": "c-1", "content": "High."}]
    assert mapped(*call, {"type": "MESSAGES_SNAPSHOT", "messages": messages})[-1] == to.CallResult("c-1", "High.")


def test_the_conversation_has_the_agents_ids_and_its_calls() -> None:
    user = {"id": "u", "role": "user", "content": "Go"}
    mapping = RunMapping(None, [user])
    for event in RUN:
        mapping.take(event)
    function = {"name": "search", "arguments": '{"q": "tides"}'}
    assert mapping.messages == [
        user,
        {"id": "m-1", "role": "assistant", "content": "I look it up."},
        {
            "id": "c-1 message",
            "role": "assistant",
            "toolCalls": [{"id": "c-1", "type": "function", "function": function}],
        },
        {"id": "c-1-r", "role": "tool", "toolCallId": "c-1", "content": "High."},
        {"id": "m-2", "role": "assistant", "content": "High 😀."},
    ]
    mapping.take({"type": "MESSAGES_SNAPSHOT", "messages": [user]})
    assert mapping.messages == [user]


@pytest.mark.parametrize("kind", ["WEATHER", "TEXT_MESSAGE_LOUD", "TOOL_CALL_PAUSED"])
def test_an_unknown_event_is_skipped(kind: str) -> None:
    assert mapped({"type": kind, "toolCallId": "c"}) == [to.SkippedEvent(f"events of the type {kind} are not known")]


@pytest.mark.parametrize(
    "event",
    [
        7,
        [],
        {},
        {"type": 7},
        {"type": "TEXT_MESSAGE_CONTENT", "delta": 7},
        {"type": "TOOL_CALL_START", "toolCallId": "c"},
        {"type": "RUN_FINISHED", "outcome": {"type": "interrupt", "interrupts": [7]}},
    ],
)
def test_a_malformed_event_is_an_error(event) -> None:
    with pytest.raises(MappingError):
        mapped(event)


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3), lambda each: st.lists(each, max_size=3), max_leaves=5
)
KINDS = [
    "TEXT_MESSAGE_CHUNK",
    "TOOL_CALL_CHUNK",
    "TOOL_CALL_RESULT",
    "STATE_DELTA",
    "MESSAGES_SNAPSHOT",
    "RUN_FINISHED",
]
FIELDS = ["messageId", "delta", "toolCallId", "toolCallName", "content", "messages", "outcome", "usage", "role"]


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), VALUES).map(dict), max_size=8), st.data())
def test_no_event_raises_anything_else(events, data) -> None:
    mapping = RunMapping()
    for event in events:
        try:
            mapping.take({"type": data.draw(st.sampled_from(KINDS)), **event})
        except MappingError:
            return
