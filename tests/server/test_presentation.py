"""What a reader sees of a turn, over the wire: with `urn:a2a-canvas:turn:v1` and without it (docs/turn.md)."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator
from itertools import accumulate, pairwise
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc as grpc03
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc as grpc10
from google.protobuf.json_format import MessageToJson

from a2a_canvas.server.agent.models.provider_errors import FOR_USERS
from tests.server.app_server import (
    TURN,
    WAYS,
    Served,
    Stream,
    Way,
    asking,
    envelope,
    every_way,
    history_of,
    said,
    sent,
    serving,
    text_of,
    with_turn_events,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCENARIOS = {
    "write report": "I wrote report.",
    "think": "Thought.",
    "just say it": "All in one piece.",
    "tools": "The end.",
    "silent": "Done; no artifact was changed.",
    "ask": "Which colour?",
    "draft then ask": "More?",
    "decline": "Not this.",
    "fail": FOR_USERS["refused"],
    "break once": "Once and for all.",
    "json": '{"event_type": "completed", "n": [1, 2]}',
    "leak 1": "It is done.",
    "leak 2": "It is done.",
    "leak 3": "It is done.",
}
"""What is asked, and the message that the turn ends or pauses with."""


def sending(served: Served, text: str, way: Way = WAYS[0], **ids: str) -> Stream:
    return Stream(served.client(*way).send_message(asking(text, **ids), context=with_turn_events()))


def watching(served: Served, task_id: str, way: Way = WAYS[0]) -> Stream:
    request = pb.SubscribeToTaskRequest(id=task_id)
    return Stream(served.client(*way).subscribe(request, context=with_turn_events()))


def kinds(stream: Stream) -> list[str]:
    return [kind for kind, _ in stream.turn_events()]


def of_kind(stream: Stream, *wanted: str) -> list[dict[str, Any]]:
    return [data for kind, data in stream.turn_events() if kind in wanted]


# --------------------------------------------------------------- what holds for every turn


@pytest.mark.parametrize(("text", "message"), SCENARIOS.items())
async def test_every_turn_ends_with_its_message_and_clears_what_streamed(
    served: Served, text: str, message: str
) -> None:
    stream = await sending(served, text).rest()
    assert said(stream.task.status) == message
    assert kinds(stream)[-2:] == ["completed", "stream_end"]
    assert kinds(stream).count("completed") == kinds(stream).count("stream_end") == 1
    assert of_kind(stream, "completed") == [{"content": message} if message else {}]
    # The final status is the only thing that comes after them.
    assert "event_type" in stream.seen[-2].status_update.metadata.fields[TURN].struct_value.fields
    assert stream.seen[-1].status_update.status == stream.task.status


@pytest.mark.parametrize("text", SCENARIOS)
async def test_turn_events_are_working_statuses_without_a_message(served: Served, text: str) -> None:
    stream = await sending(served, text).rest()
    for event in stream.seen:
        if "event_type" in event.status_update.metadata.fields[TURN].struct_value.fields:
            assert event.status_update.status.state == pb.TASK_STATE_WORKING
            assert not event.status_update.status.HasField("message")


@pytest.mark.parametrize("text", SCENARIOS)
async def test_every_event_says_which_entry_it_comes_from_in_order(served: Served, text: str) -> None:
    stream = await sending(served, text).rest()
    orders = stream.orders()
    assert len(orders) == len(stream.seen)
    assert orders[0] == (1, 1)
    assert all(before <= after for before, after in pairwise(orders))


@pytest.mark.parametrize("text", SCENARIOS)
async def test_blocks_are_numbered_without_holes_and_everything_about_them_carries_their_number(
    served: Served, text: str
) -> None:
    stream = await sending(served, text).rest()
    starts = of_kind(stream, "text_block_start", "tool_use_start")
    assert [start["index"] for start in starts] == list(range(len(starts)))
    known: dict[int, dict[str, Any]] = {}
    for kind, data in stream.turn_events():
        if kind in ("text_block_start", "tool_use_start"):
            known[data["index"]] = data
        elif "index" in data:
            start = known[data["index"]]
            assert all(data[key] == start[key] for key in ("round", "llm_index", "tool_use_id") if key in data)


@pytest.mark.parametrize("text", SCENARIOS)
async def test_the_final_message_starts_once_and_right_before_the_first_text(served: Served, text: str) -> None:
    stream = await sending(served, text).rest()
    shown = [kind for kind in kinds(stream) if kind in ("final_message_start", "text_delta")]
    assert shown[:2] in ([], ["final_message_start", "text_delta"])
    assert shown.count("final_message_start") == bool(shown)


@pytest.mark.parametrize("text", SCENARIOS)
async def test_the_reply_grows_without_repeats_and_is_the_whole_text_of_its_round_when_a_text_ends(
    served: Served, text: str
) -> None:
    stream = await sending(served, text).rest()
    deltas: list[str] = []
    shown = ""
    for kind, data in stream.turn_events():
        match kind:
            case "message_start":
                deltas, shown = [], ""
            case "text_delta":
                deltas.append(data["text"])
            case "assistant":
                shown = data["content"]
                assert data == {"content": "".join(deltas), "replace": True}
            case "content_block_stop" | "llm_call_completed" | "completed":
                assert shown == "".join(deltas), "whoever is spared stale replies is sent the newest"


@pytest.mark.parametrize("text", SCENARIOS)
async def test_every_model_call_is_said_to_have_ended_once(served: Served, text: str) -> None:
    stream = await sending(served, text).rest()
    started = [data["round"] for data in of_kind(stream, "message_start")]
    assert [data["round"] for data in of_kind(stream, "llm_call_completed")] == started


@pytest.mark.parametrize("text", SCENARIOS)
async def test_every_call_gets_its_result_after_its_whole_input(served: Served, text: str) -> None:
    stream = await sending(served, text).rest()
    calls: dict[str, list[str]] = defaultdict(list)
    for kind, data in stream.turn_events():
        if "tool_use_id" in data and kind != "tool_use_input_delta":
            calls[data["tool_use_id"]].append(kind)
    for told in calls.values():
        assert told[:2] == ["tool_use_start", "tool_use_input_complete"]
        assert told[2:] in (["tool_result"], ["tool_execution_error"])


@every_way
@pytest.mark.transports
async def test_every_binding_and_version_carries_the_same_turn_events(served: Served, way: Way) -> None:
    reference = await sending(served, "tools").rest()
    stream = await sending(served, "tools", way).rest()
    # A reader that is behind is shown the reply as it stands less often.
    ours, theirs = ([kind for kind in kinds(one) if kind != "assistant"] for one in (stream, reference))
    assert ours == theirs
    assert of_kind(stream, "text_delta", "thinking") == of_kind(reference, "text_delta", "thinking")
    assert of_kind(stream, "assistant")[-1] == of_kind(reference, "assistant")[-1]
    assert list(dict.fromkeys(stream.orders())) == list(dict.fromkeys(reference.orders()))


# --------------------------------------------------------------------------- thinking


async def test_each_thinking_event_holds_only_the_newest_piece(served: Served) -> None:
    stream = await sending(served, "think").rest()
    assert [data["content"] for data in of_kind(stream, "thinking")] == ["ab", " a", "bc"]


async def test_text_comes_after_thinking_and_the_reply_takes_its_place(served: Served) -> None:
    shown = [kind for kind in kinds(await sending(served, "think").rest()) if kind in ("thinking", "assistant")]
    assert list(dict.fromkeys(shown)) == ["thinking", "assistant"]
    assert shown.count("thinking") == 3


async def test_a_turn_without_thinking_has_no_thinking_events_and_a_reply_in_one_piece_works(served: Served) -> None:
    stream = await sending(served, "just say it").rest()
    assert kinds(stream) == [
        "message_start",
        "text_block_start",
        "final_message_start",
        "text_delta",
        "assistant",
        "content_block_stop",
        "message_delta",
        "llm_call_completed",
        "completed",
        "stream_end",
    ]


# ----------------------------------------------------------------------------- rounds


async def test_after_tool_rounds_the_final_message_is_the_last_rounds_alone(served: Served) -> None:
    stream = await sending(served, "tools").rest()
    assert [said(status.status) for status in stream.statuses() if not said(status.status).endswith("…")] == [
        "Two calls first.",
        "Once more.",
        "The end.",
    ]
    last = of_kind(stream, "assistant")[-1]
    assert last["content"] == "The end."


async def test_a_last_round_without_text_says_what_was_done_and_not_the_text_of_an_earlier_round(
    served: Served,
) -> None:
    stream = await sending(served, "silent").rest()
    assert stream.task.status.state == pb.TASK_STATE_COMPLETED
    assert said(stream.task.status) == "Done; no artifact was changed."
    task = await served.client().get_task(pb.GetTaskRequest(id=stream.task.id))
    last = ("agent", "Done; no artifact was changed.")
    assert history_of(task) == [("user", "silent"), ("agent", "Only on the way."), last]


async def test_a_call_of_a_missing_artifact_is_a_tool_error_at_the_index_of_its_call(served: Served) -> None:
    stream = await sending(served, "tools").rest()
    (error,) = of_kind(stream, "tool_execution_error")
    (read,) = [start for start in of_kind(stream, "tool_use_start") if start["name"] == "artifact_read"]
    assert (error["index"], error["tool_use_id"]) == (read["index"], read["tool_use_id"]) == (3, read["tool_id"])
    assert "missing" in error["error"]


async def test_a_round_that_breaks_off_is_said_again_from_its_beginning(served: Served) -> None:
    stream = await sending(served, "break once").rest()
    replies = [data["content"] for data in of_kind(stream, "assistant")]
    assert set(replies) <= {*accumulate(["Once ", "and f", "or al", "l."])}
    assert replies[-1] == "Once and for all."
    assert [data["stop_reason"] for data in of_kind(stream, "llm_call_completed")] == ["error", "end_turn"]


async def test_a_turn_that_reaches_its_round_limit_ends_with_a_message_that_says_so() -> None:
    async with serving(max_rounds=2, grpc=False) as served:
        stream = await sending(served, "for ever").rest()
    assert stream.task.status.state == pb.TASK_STATE_FAILED
    assert said(stream.task.status) == "Stopped after 2 rounds without an end. Ask for less at a time."
    assert of_kind(stream, "completed") == [{"content": said(stream.task.status)}]


async def test_a_canceled_turn_clears_what_streamed_too(served: Served) -> None:
    stream = sending(served, "think and hang")
    while "thinking" not in kinds(stream):
        await stream.next()
    await served.client().cancel_task(pb.CancelTaskRequest(id=stream.task.id))
    await stream.rest()
    assert kinds(stream)[-2:] == ["completed", "stream_end"]
    assert stream.task.status.state == pb.TASK_STATE_CANCELED


# ------------------------------------------------------------------ pauses, late joiners


async def test_a_pause_clears_what_streamed_and_is_the_same_turn_for_those_who_stay(served: Served) -> None:
    stream = sending(served, "ask slowly")
    await stream.next()
    watcher = watching(served, stream.task.id)
    await watcher.next()
    served.gate.open()
    await watcher.until_state(pb.TASK_STATE_INPUT_REQUIRED)
    assert kinds(watcher)[-1] == "completed"
    assert "stream_end" not in kinds(watcher)
    await sent(served, WAYS[0], asking("this", task=stream.task.id))
    await watcher.rest()
    assert kinds(watcher).count("completed") == 2
    assert kinds(watcher)[-2:] == ["completed", "stream_end"]
    assert kinds(watcher).count("final_message_start") == 1
    assert of_kind(watcher, "message_start")[-1] == {"round": 2}
    assert of_kind(watcher, "text_block_start")[-1] == {"index": 2, "round": 2, "llm_index": 0, "type": "text"}
    await stream.rest()
    assert kinds(stream)[-2:] == ["completed", "stream_end"]


async def test_who_answers_is_not_shown_again_what_the_pause_has_cleared(served: Served) -> None:
    paused = await sent(served, WAYS[0], asking("draft then ask"))
    stream = await sending(served, "yes", task=paused.id).rest()
    assert [data["content"] for data in of_kind(stream, "assistant")] == ["Drafted."]


@every_way
async def test_a_late_joiner_gets_the_reply_so_far_and_then_what_follows(served: Served, way: Way) -> None:
    stream = sending(served, "think and hang", way)
    await stream.next()
    served.gate.let(1)
    while "assistant" not in kinds(stream):
        await stream.next()
    late = watching(served, stream.task.id, way)
    for _ in range(3):
        await late.next()
    assert late.turn_events() == [
        ("final_message_start", {}),
        ("assistant", {"content": "Half of t", "replace": True}),
    ]
    assert late.orders() == [stream.orders()[-1]] * 3
    served.gate.open()
    await late.rest()
    await stream.rest()
    assert of_kind(late, "assistant")[-1] == {"content": "Half of the reply", "replace": True}
    assert late.turn_events()[2:] == stream.turn_events()[-len(late.turn_events()) + 2 :]


async def test_who_joins_before_the_first_text_is_told_of_none(served: Served) -> None:
    stream = sending(served, "think and hang")
    while "thinking" not in kinds(stream):
        await stream.next()
    late = watching(served, stream.task.id)
    await late.next()
    served.gate.open()
    await late.rest()
    assert kinds(late).count("final_message_start") == 1


# ------------------------------------------------------------------------------- tags


@every_way
@pytest.mark.parametrize("size", [1, 2, 3])
async def test_tags_reach_no_reader_however_they_are_cut_but_stay_in_artifacts(
    served: Served, way: Way, size: int
) -> None:
    stream = await sending(served, f"leak {size}", way).rest()
    assert text_of(stream.task) == "<think>kept</think> <tool_call>kept</tool_call>"
    task = await served.client(*way).get_task(pb.GetTaskRequest(id=stream.task.id))
    shown = [
        *(data.get("text", "") for data in of_kind(stream, "text_delta")),
        *(data.get("content", "") for data in of_kind(stream, "assistant", "completed")),
        *(said(status.status) for status in stream.statuses()),
        *(text for _, text in history_of(task)),
    ]
    assert not any(leak in text for text in shown for leak in ("secret", "<", ">"))
    assert history_of(task)[1:] == [("agent", "Before."), ("agent", "It is done.")]


# ------------------------------------------------------------------------------ thinking


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def silent_server() -> AsyncIterator[Served]:
    async with serving(expose_thinking=False) as running:
        yield running


@every_way
@pytest.mark.parametrize(("text", "thoughts"), [("think", "ab abc"), ("tools", "Plan.Now.")])
async def test_thinking_is_told_in_turn_events_alone(served: Served, way: Way, text: str, thoughts: str) -> None:
    stream = await sending(served, text, way).rest()
    assert "".join(data["content"] for data in of_kind(stream, "thinking")) == thoughts
    plain = await Stream(served.client(*way).send_message(asking(text))).rest()
    task = await served.client(*way).get_task(pb.GetTaskRequest(id=plain.task.id), context=with_turn_events())
    for shown in (*plain.seen, task):
        # A word of its own: ids have "ab" in them, too.
        assert not re.search(r"\bab\b|Plan\.|Now\.", MessageToJson(shown))
    assert not any("Plan." in said(status.status) for status in stream.statuses())


@every_way
@pytest.mark.parametrize("text", ["think", "tools"])
async def test_a_server_that_does_not_expose_thinking_tells_everything_else(
    silent_server: Served, served: Served, way: Way, text: str
) -> None:
    stream, whole = await sending(silent_server, text, way).rest(), await sending(served, text, way).rest()
    hidden = {data["index"] for data in of_kind(whole, "text_block_start") if data["type"] == "thinking"}
    assert hidden
    kept = [
        (kind, data.get("index"))
        for kind, data in whole.turn_events()
        if data.get("index") not in hidden and kind != "assistant"
    ]
    told = [(kind, data.get("index")) for kind, data in stream.turn_events() if kind != "assistant"]
    assert [kind for kind, _ in told] == [kind for kind, _ in kept]
    numbers = {old: new for (_, old), (_, new) in zip(kept, told, strict=True) if old is not None}
    assert [numbers[index] for index in sorted(numbers)] == list(range(len(numbers))), "no number is missing"
    assert of_kind(stream, "assistant")[-1] == of_kind(whole, "assistant")[-1]


async def test_who_joins_while_the_model_thinks_is_sent_the_numbers_of_those_who_were_there(
    silent_server: Served,
) -> None:
    stream = sending(silent_server, "think and hang")
    await stream.next()
    await silent_server.gate.reached.wait()
    late = watching(silent_server, stream.task.id)
    await late.next()
    silent_server.gate.open()
    for each in (await late.rest(), await stream.rest()):
        assert [data["index"] for data in of_kind(each, "content_block_stop")] == [0]
        assert not of_kind(each, "thinking")
    silent_server.gate.close()


# ------------------------------------------------------------------------ who asks for it


@every_way
@pytest.mark.parametrize("text", ["write report", "tools", "ask", "fail"])
async def test_who_activates_nothing_sees_none_of_it_and_misses_nothing(served: Served, way: Way, text: str) -> None:
    with_it = await sending(served, text, way).rest()
    plain = await Stream(served.client(*way).send_message(asking(text))).rest()
    assert not any(
        event.task.metadata or event.status_update.metadata or event.artifact_update.metadata for event in plain.seen
    )
    assert [(update.status.state, said(update.status)) for update in plain.statuses()] == [
        (update.status.state, "" if of_the_turn(update) else said(update.status)) for update in with_it.statuses()
    ]
    assert [update.artifact for update in plain.updates()] == [update.artifact for update in with_it.updates()]


def of_the_turn(update: pb.TaskStatusUpdateEvent) -> bool:
    """Whether it has a label that does not name what is written."""
    return said(update.status) in ("Working…", "Writing reply…")


STREAM = {"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "just say it"}]}}
OLD_STREAM = {"message": {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "just say it"}]}}
OLD_REST = {"message": {"role": "ROLE_USER", "messageId": "m", "content": [{"text": "just say it"}]}}


@pytest.mark.parametrize(
    ("path", "body", "version", "header"),
    [
        ("/", envelope("SendStreamingMessage", STREAM), "1.0", "A2A-Extensions"),
        ("/", envelope("message/stream", OLD_STREAM), "0.3", "A2A-Extensions"),
        ("/", envelope("message/stream", OLD_STREAM), "0.3", "X-A2A-Extensions"),
        ("/rest/message:stream", STREAM, "1.0", "A2A-Extensions"),
        ("/rest/v1/message:stream", OLD_REST, "0.3", "A2A-Extensions"),
        ("/rest/v1/message:stream", OLD_REST, "0.3", "X-A2A-Extensions"),
    ],
)
async def test_the_response_header_says_what_was_activated(
    served: Served, path: str, body: Any, version: str, header: str
) -> None:
    headers = {"A2A-Version": version, header: f"urn:unknown, {TURN}"}
    response = await served.http.post(path, json=body, headers=headers)
    assert response.headers[header] == TURN
    assert "final_message_start" in response.text
    assert "A2A-Extensions" not in (await served.http.post(path, json=body, headers={"A2A-Version": version})).headers


async def test_an_extension_that_is_unknown_is_not_echoed(served: Served) -> None:
    headers = {"A2A-Version": "1.0", "A2A-Extensions": "urn:unknown"}
    response = await served.http.post("/", json=envelope("SendStreamingMessage", STREAM), headers=headers)
    assert "A2A-Extensions" not in response.headers
    assert TURN not in response.text


async def test_a_1_0_request_with_the_header_of_0_3_activates_nothing_and_is_not_told_otherwise(
    served: Served,
) -> None:
    headers = {"A2A-Version": "1.0", "X-A2A-Extensions": TURN}
    response = await served.http.post("/", json=envelope("SendStreamingMessage", STREAM), headers=headers)
    assert TURN not in response.text
    assert "X-A2A-Extensions" not in response.headers


@pytest.mark.parametrize(
    ("version", "key"), [("1.0", "a2a-extensions"), ("0.3", "a2a-extensions"), ("0.3", "x-a2a-extensions")]
)
async def test_grpc_says_it_in_the_initial_metadata(served: Served, version: str, key: str) -> None:
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        if version == "1.0":
            stub, request = grpc10.A2AServiceStub(channel), asking("just say it")
            unary, get = stub.GetTask, pb.GetTaskRequest
        else:
            stub = grpc03.A2AServiceStub(channel)
            parts = [pb03.Part(text="just say it")]
            message = pb03.Message(message_id="m", role=pb03.ROLE_USER, content=parts)
            request = pb03.SendMessageRequest(request=message)
            unary, get = stub.GetTask, lambda id: pb03.GetTaskRequest(name=f"tasks/{id}")
        call = stub.SendStreamingMessage(request, metadata=[(key, TURN)])
        assert dict(await call.initial_metadata())[key] == TURN
        events = [event async for event in call]
        assert "final_message_start" in str(events)
        read = unary(get(id=events[0].task.id), metadata=[(key, TURN)])
        assert dict(await read.initial_metadata())[key] == TURN
        plain = stub.SendStreamingMessage(request)
        assert key not in dict(await plain.initial_metadata())
        assert TURN not in str([event async for event in plain])
