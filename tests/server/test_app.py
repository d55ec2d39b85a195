"""The whole application over real HTTP and gRPC: what a client of each binding and version gets for each operation."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest
from a2a.client import Client
from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub
from a2a.utils.errors import (
    JSON_RPC_ERROR_CODE_MAP,
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.struct_pb2 import Struct, Value

from a2a_canvas.server.agent.models.provider_errors import FOR_USERS
from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.edge import sse_response
from a2a_canvas.server.settings.settings import Settings
from tests.server.app_server import (
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

every_way_of_1_0 = pytest.mark.parametrize("way", [way for way in WAYS if way[1] == "1.0"], ids="-".join)

WRITTEN = "# report\n\nHello, wörld 😀.\n"
SLOW = "0123456789" * 10
STATES = {name: getattr(pb, f"TASK_STATE_{name}") for name in ("COMPLETED", "CANCELED", "FAILED", "REJECTED")}


pytestmark = pytest.mark.asyncio(loop_scope="module")


def sending(served: Served, way: Way, text: str, **ids: str) -> Stream:
    return Stream(served.client(*way).send_message(asking(text, **ids)))


def watching(served: Served, way: Way, task_id: str) -> Stream:
    return Stream(served.client(*way).subscribe(pb.SubscribeToTaskRequest(id=task_id)))


async def half_way(served: Served, stream: Stream) -> None:
    """Let the model write some of `SLOW`, and read all of that."""
    await stream.next()
    await written(served, stream, 13)
    assert 0 < len(text_of(stream.task)) < len(SLOW)


async def written(served: Served, stream: Stream, deltas: int) -> None:
    served.gate.let(deltas)
    await served.gate.reached.wait()
    task = await served.client().get_task(pb.GetTaskRequest(id=stream.task.id))
    await stream.until_text(len(text_of(task)))


# ------------------------------------------------------------------------- messages


@every_way
@pytest.mark.transports
async def test_a_message_is_answered_with_the_finished_task(served: Served, way: Way) -> None:
    task = await sent(served, way, asking("write report"))
    assert task.status.state == pb.TASK_STATE_COMPLETED
    assert said(task.status) == "I wrote report."
    assert task.status.HasField("timestamp")
    assert [(artifact.artifact_id, artifact.name) for artifact in task.artifacts] == [("report", "report.md")]
    assert text_of(task) == WRITTEN
    assert task == await served.client(*way).get_task(pb.GetTaskRequest(id=task.id))


@every_way
async def test_return_immediately_answers_before_the_model_does(served: Served, way: Way) -> None:
    task = await sent(served, way, asking("slowly notes", now=True))
    assert task.status.state in (pb.TASK_STATE_SUBMITTED, pb.TASK_STATE_WORKING)
    watcher = watching(served, way, task.id)
    await watcher.next()
    served.gate.open()
    await watcher.rest()
    done = await served.client(*way).get_task(pb.GetTaskRequest(id=task.id))
    assert done.status.state == pb.TASK_STATE_COMPLETED
    assert text_of(done) == text_of(watcher.task) == SLOW


@every_way
@pytest.mark.transports
async def test_a_stream_is_the_task_then_the_artifact_as_it_grows_then_the_final_message(
    served: Served, way: Way
) -> None:
    stream = sending(served, way, "slowly notes")
    first = await stream.next()
    assert first.task.status.state == pb.TASK_STATE_SUBMITTED
    assert history_of(first.task) == [("user", "slowly notes")]
    await written(served, stream, 13)
    assert 0 < len(text_of(stream.task)) < len(SLOW)
    served.gate.open()
    await stream.rest()
    updates = stream.updates()
    assert [update.append for update in updates] == [False] + [True] * (len(updates) - 1)
    assert all(len(update.artifact.parts) == 1 for update in updates)
    assert "".join(update.artifact.parts[0].text for update in updates) == text_of(stream.task) == SLOW
    assert [said(update.status) for update in stream.statuses()] == ["", "Writing notes…", "", "Slowly done."]
    assert stream.seen[-1].status_update.status.state == pb.TASK_STATE_COMPLETED


@every_way
@pytest.mark.transports
async def test_each_version_has_its_last_chunk_and_the_last_piece_of_a_call_is_sent_with_it(
    served: Served, way: Way
) -> None:
    updates = (await sending(served, way, "revise").rest()).updates()
    ends = [number for number, update in enumerate(updates) if update.last_chunk]
    assert len(ends) == 2
    first, second = updates[: ends[0] + 1], updates[ends[0] + 1 :]
    for version, written in ((first, "First draft."), (second, "Second draft.")):
        assert [update.append for update in version] == [False] + [True] * (len(version) - 1)
        assert "".join(update.artifact.parts[0].text for update in version) == written
    assert first[-1].artifact.parts[0].text == ""  # the call did not close it: all of it was shown
    assert second[-1].artifact.parts[0].text


@every_way
async def test_a_task_that_works_is_read_without_labels_that_do_not_name_what_is_written(
    served: Served, way: Way
) -> None:
    client = served.client(*way)
    task = await sent(served, way, asking("think and hang", now=True))
    await served.gate.reached.wait()
    assert await label_of(client, task.id) == ""
    assert await label_of(client, task.id, context=with_turn_events()) == "Working…"
    await client.cancel_task(pb.CancelTaskRequest(id=task.id))
    stream = sending(served, way, "slowly notes")
    await half_way(served, stream)
    assert await label_of(client, stream.task.id) == "Writing notes…"
    served.gate.open()
    await stream.rest()


async def label_of(client: Client, task_id: str, **options: Any) -> str:
    task = await client.get_task(pb.GetTaskRequest(id=task_id), **options)
    assert task.status.state == pb.TASK_STATE_WORKING
    return said(task.status)


@every_way
async def test_history_has_every_message_once_and_no_label(served: Served, way: Way) -> None:
    task = await sent(served, way, asking("tools"))
    assert history_of(task) == [
        ("user", "tools"),
        ("agent", "Two calls first."),
        ("agent", "Once more."),
        ("agent", "The end."),
    ]
    assert len({message.message_id for message in task.history}) == 4
    assert {(message.task_id, message.context_id) for message in task.history} == {(task.id, task.context_id)}


@every_way
@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("decline", "REJECTED", "Not this."),
        ("fail", "FAILED", FOR_USERS["refused"]),
        ("nobody knows this", "FAILED", FOR_USERS["refused"]),
    ],
)
async def test_a_task_that_does_not_succeed_says_why(
    served: Served, way: Way, text: str, state: str, message: str
) -> None:
    stream = await sending(served, way, text).rest()
    assert stream.task.status.state == STATES[state]
    assert said(stream.task.status) == message


async def test_the_next_task_of_a_context_goes_on_with_its_artifacts_and_leaves_the_first_task_as_it_was(
    served: Served,
) -> None:
    first = await sent(served, WAYS[0], asking("write report"))
    second = await sent(served, WAYS[0], asking("slowly report", context=first.context_id, now=True))
    assert (second.context_id, second.id == first.id) == (first.context_id, False)
    served.gate.open()
    stream = await watching(served, WAYS[0], second.id).rest()
    assert text_of(stream.task) == SLOW
    assert await served.client().get_task(pb.GetTaskRequest(id=first.id)) == first


# ------------------------------------------------------------------ cancel, subscribe


@every_way
async def test_cancel_stops_the_model_and_every_watcher_sees_it(served: Served, way: Way) -> None:
    stream = sending(served, way, "slowly notes")
    await half_way(served, stream)
    watcher = watching(served, way, stream.task.id)
    await watcher.next()
    canceled = await served.client(*way).cancel_task(pb.CancelTaskRequest(id=stream.task.id))
    assert canceled.status.state == pb.TASK_STATE_CANCELED
    assert served.model.speaking == 0
    for reader in (stream, watcher):
        await reader.rest()
        assert reader.task.status.state == pb.TASK_STATE_CANCELED
    assert text_of(stream.task) == text_of(watcher.task) == text_of(canceled)


@every_way
@pytest.mark.parametrize("waits", ["ask", "secret"], ids=["for input", "for authentication"])
async def test_a_task_that_waits_can_be_canceled(served: Served, way: Way, waits: str) -> None:
    paused = await sent(served, way, asking(waits))
    canceled = await served.client(*way).cancel_task(pb.CancelTaskRequest(id=paused.id))
    assert canceled.status.state == pb.TASK_STATE_CANCELED


@every_way
async def test_who_subscribes_late_gets_a_snapshot_and_then_exactly_what_follows(served: Served, way: Way) -> None:
    stream = sending(served, way, "slowly notes")
    await half_way(served, stream)
    early, late = (watching(served, way, stream.task.id) for _ in range(2))
    assert text_of((await early.next()).task) == text_of(stream.task)
    await written(served, early, 3)
    assert text_of((await late.next()).task) == text_of(early.task)
    served.gate.open()
    for reader in (stream, early, late):
        await reader.rest()
        assert text_of(reader.task) == SLOW
        assert reader.task.status == stream.task.status
    for reader in (early, late):
        assert reader.seen[1:] == stream.seen[-len(reader.seen) + 1 :]


@every_way
async def test_a_watcher_that_leaves_disturbs_nobody(served: Served, way: Way) -> None:
    stream = sending(served, way, "slowly notes")
    await half_way(served, stream)
    watcher = watching(served, way, stream.task.id)
    await watcher.next()
    await watcher.close()
    served.gate.open()
    await stream.rest()
    assert text_of(stream.task) == SLOW
    assert stream.task.status.state == pb.TASK_STATE_COMPLETED


@every_way
async def test_a_task_goes_on_when_its_sender_hangs_up(served: Served, way: Way) -> None:
    stream = sending(served, way, "slowly notes")
    await half_way(served, stream)
    await stream.close()
    watcher = watching(served, way, stream.task.id)
    await watcher.next()
    served.gate.open()
    await watcher.rest()
    assert text_of(watcher.task) == SLOW


# --------------------------------------------------------------------- input-required


@every_way
async def test_a_question_ends_the_senders_stream_and_the_answer_goes_on_with_the_same_task(
    served: Served, way: Way
) -> None:
    asked = await sending(served, way, "draft then ask").rest()
    assert asked.task.status.state == pb.TASK_STATE_INPUT_REQUIRED
    assert said(asked.task.status) == "More?"
    watcher = watching(served, way, asked.task.id)
    assert (await watcher.next()).task.status.state == pb.TASK_STATE_INPUT_REQUIRED
    answered = await sending(served, way, "yes", task=asked.task.id).rest()
    await watcher.rest()
    for reader in (answered, watcher):
        assert reader.task.id == asked.task.id
        assert reader.task.status.state == pb.TASK_STATE_COMPLETED
        assert text_of(reader.task) == "one two"
    task = await served.client(*way).get_task(pb.GetTaskRequest(id=asked.task.id))
    assert history_of(task) == [
        ("user", "draft then ask"),
        ("agent", "Let me draft."),
        ("agent", "More?"),
        ("user", "yes"),
        ("agent", "Drafted."),
    ]


@every_way
@pytest.mark.parametrize(("answer", "then"), [("done", "The secret is out."), ("password 1234", "Only for you.")])
async def test_a_task_that_requires_authentication_waits_for_a_message_like_a_question(
    served: Served, way: Way, answer: str, then: str
) -> None:
    stream = await sending(served, way, "secret").rest()
    assert stream.task.status.state == pb.TASK_STATE_AUTH_REQUIRED
    assert said(stream.task.status) == "Log in at the desk."
    task = await served.client(*way).get_task(pb.GetTaskRequest(id=stream.task.id))
    assert task.status.state == pb.TASK_STATE_AUTH_REQUIRED
    if way[1] == "1.0":
        listing = pb.ListTasksRequest(context_id=task.context_id, status=pb.TASK_STATE_AUTH_REQUIRED)
        assert [each.id for each in (await served.client(*way).list_tasks(listing)).tasks] == [task.id]
    done = await sent(served, way, asking(answer, task=task.id))
    assert (done.id, done.status.state, said(done.status)) == (task.id, pb.TASK_STATE_COMPLETED, then)


@every_way
async def test_a_watcher_sees_the_question_and_stays_for_the_answer(served: Served, way: Way) -> None:
    task = await sent(served, way, asking("ask"))
    watcher = watching(served, way, task.id)
    await watcher.next()
    answer = await sent(served, way, asking("green", task=task.id, context=task.context_id))
    assert said(answer.status) == "As you like it."
    await watcher.rest()
    assert history_of(answer) == [
        ("user", "ask"),
        ("agent", "Which colour?"),
        ("user", "green"),
        ("agent", "As you like it."),
    ]


# --------------------------------------------------------- further and repeated messages


@every_way
async def test_a_second_message_to_a_working_task_reaches_the_model_before_its_next_round(
    served: Served, way: Way
) -> None:
    stream = sending(served, way, "wait")
    await stream.next()
    await served.gate.reached.wait()
    second = sending(served, way, "and be brief", task=stream.task.id)
    assert history_of((await second.next()).task) == [("user", "wait"), ("user", "and be brief")]
    third = await sent(served, way, asking("and be kind", task=stream.task.id, now=True))
    assert third.id == stream.task.id
    served.gate.open()
    for reader in (stream, second):
        assert said((await reader.rest()).task.status) == "Then I answer."
    told = [getattr(content, "text", "") for content in served.model.requests[-1].messages[-1].content]
    assert told[-2:] == ["and be brief", "and be kind"]
    task = await served.client(*way).get_task(pb.GetTaskRequest(id=stream.task.id))
    assert [text for who, text in history_of(task) if who == "user"] == ["wait", "and be brief", "and be kind"]


@every_way
async def test_who_waits_for_the_answer_to_a_second_message_gets_the_task_when_it_is_done(
    served: Served, way: Way
) -> None:
    stream = sending(served, way, "wait")
    await stream.next()
    await served.gate.reached.wait()
    waiting = asyncio.create_task(sent(served, way, asking("and be brief", task=stream.task.id)))
    while len(stream.task.history) < 2:
        stream.task.CopyFrom(await served.client().get_task(pb.GetTaskRequest(id=stream.task.id)))
    served.gate.open()
    assert said((await waiting).status) == "Then I answer."


@every_way
async def test_a_repeated_message_joins_the_task_of_the_first(served: Served, way: Way, context: str) -> None:
    first = await sent(served, way, asking("write report", message_id="m1", context=context))
    calls = len(served.model.requests)
    again = await sent(served, way, asking("write report", message_id="m1", context=context))
    streamed = await sending(served, way, "write report", message_id="m1", context=context).rest()
    assert again == streamed.task == first
    assert len(served.model.requests) == calls


async def test_a_message_that_is_repeated_while_its_task_works_follows_it(served: Served, context: str) -> None:
    stream = sending(served, WAYS[0], "slowly notes", message_id="m1", context=context)
    await half_way(served, stream)
    again = sending(served, WAYS[0], "slowly notes", message_id="m1", context=context)
    await again.next()
    served.gate.open()
    for reader in (stream, again):
        assert text_of((await reader.rest()).task) == SLOW
    assert again.task.id == stream.task.id


@pytest.mark.parametrize(
    "other",
    [{"context": "elsewhere"}, {"text": "write letter"}, {"message_id": "m2"}],
)
async def test_what_differs_in_context_content_or_id_is_no_repeat(
    served: Served, context: str, other: dict[str, str]
) -> None:
    same = {"text": "write report", "message_id": "m1", "context": context}
    first = await sent(served, WAYS[0], asking(**same))
    assert (await sent(served, WAYS[0], asking(**same | other))).id != first.id


async def test_anonymous_messages_without_a_context_are_never_repeats(served: Served) -> None:
    first, second = [await sent(served, WAYS[0], asking("write report", message_id="m1")) for _ in range(2)]
    assert first.id != second.id


# ----------------------------------------------------------------------------- errors


async def drained(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


def message(**ids: str) -> Callable[[Client, Any], Awaitable[Any]]:
    return lambda client, known: drained(
        client.send_message(asking("x", **{name: known.get(value, value) for name, value in ids.items()}))
    )


def changed(change: Callable[[Any], Any]) -> Callable[[Client, Any], Awaitable[Any]]:
    request = asking("x")
    change(request)
    return lambda client, known: drained(client.send_message(request))


REFUSED_MESSAGES: dict[str, tuple[Callable[[Client, Any], Awaitable[Any]], type[A2AError]]] = {
    "unknown task": (message(task="nope"), TaskNotFoundError),
    "finished task": (message(task="done"), UnsupportedOperationError),
    "another context than the task's": (message(task="paused", context="other"), InvalidParamsError),
    "blank": (changed(lambda request: setattr(request.message.parts[0], "text", " \n")), InvalidParamsError),
    "no parts": (changed(lambda request: request.message.ClearField("parts")), InvalidParamsError),
    "an agent's": (changed(lambda request: setattr(request.message, "role", pb.ROLE_AGENT)), InvalidParamsError),
    "push to this machine": (
        changed(lambda request: setattr(request.configuration.task_push_notification_config, "url", "https://[::1]")),
        InvalidParamsError,
    ),
}
REFUSED_CALLS: dict[str, tuple[Callable[[Client, Any], Awaitable[Any]], type[A2AError]]] = {
    "get unknown": (lambda client, known: client.get_task(pb.GetTaskRequest(id="nope")), TaskNotFoundError),
    "cancel unknown": (lambda client, known: client.cancel_task(pb.CancelTaskRequest(id="nope")), TaskNotFoundError),
    "cancel finished": (
        lambda client, known: client.cancel_task(pb.CancelTaskRequest(id=known["done"])),
        TaskNotCancelableError,
    ),
    "subscribe unknown": (
        lambda client, known: drained(client.subscribe(pb.SubscribeToTaskRequest(id="nope"))),
        TaskNotFoundError,
    ),
    "subscribe finished": (
        lambda client, known: drained(client.subscribe(pb.SubscribeToTaskRequest(id=known["done"]))),
        UnsupportedOperationError,
    ),
    "create push": (
        lambda client, known: client.create_task_push_notification_config(
            pb.TaskPushNotificationConfig(task_id=known["done"], url="https://127.0.0.1")
        ),
        InvalidParamsError,
    ),
    "get push": (
        lambda client, known: client.get_task_push_notification_config(
            pb.GetTaskPushNotificationConfigRequest(task_id=known["done"], id="1")
        ),
        TaskNotFoundError,
    ),
    "list push of an unknown task": (
        lambda client, known: client.list_task_push_notification_configs(
            pb.ListTaskPushNotificationConfigsRequest(task_id="nope")
        ),
        TaskNotFoundError,
    ),
    "delete push of an unknown task": (
        lambda client, known: client.delete_task_push_notification_config(
            pb.DeleteTaskPushNotificationConfigRequest(task_id="nope", id="1")
        ),
        TaskNotFoundError,
    ),
    "extended card": (
        lambda client, known: client.get_extended_agent_card(pb.GetExtendedAgentCardRequest()),
        UnsupportedOperationError,
    ),
}


# The SDK's client for HTTP+JSON 0.3 tells no errors apart; the test after the next looks at the bytes.
@pytest.mark.parametrize("way", [way for way in WAYS if way != ("HTTP+JSON", "0.3")], ids="-".join)
async def test_every_refusal_is_the_error_that_a2a_names_for_it(served: Served, way: Way) -> None:
    known = {"done": (await sent(served, way, asking("just say it"))).id, "paused": ""}
    known["paused"] = (await sent(served, way, asking("ask"))).id
    for streaming in (True, False):
        client = served.client(*way, streaming=streaming)
        cases = REFUSED_MESSAGES | (REFUSED_CALLS if streaming else {})
        for name, (call, error) in cases.items():
            with pytest.raises(A2AError) as caught:
                await call(client, known)
            assert type(caught.value) is error, name
    assert (await served.client(*way).get_task(pb.GetTaskRequest(id=known["paused"]))).status.state == (
        pb.TASK_STATE_INPUT_REQUIRED
    )


@every_way_of_1_0
async def test_a_media_type_that_the_card_does_not_list_is_refused(served: Served, way: Way) -> None:
    request = asking("x")
    request.message.parts[0].media_type = "video/mp4"
    with pytest.raises(ContentTypeNotSupportedError):
        await sent(served, way, request)


@every_way
@pytest.mark.parametrize("media_type", ["application/vnd.ag2.history+json", "application/x-unknown", "nonsense"])
async def test_data_is_kept_as_data_whatever_its_media_type(served: Served, way: Way, media_type: str) -> None:
    request = asking("write report")
    request.message.parts.add(data=Value(struct_value=Struct(fields={"a": Value(string_value="é")})))
    request.message.parts[1].media_type = media_type
    task = await sent(served, way, request)
    part = task.history[0].parts[1]
    assert dict(part.data.struct_value) == {"a": "é"}
    assert part.media_type == (media_type if way[1] == "1.0" else "")  # 0.3 has no media type of data


@every_way_of_1_0
async def test_a_missing_field_is_named_as_json_names_it(served: Served, way: Way) -> None:
    request = asking("x")
    request.message.message_id = ""
    with pytest.raises(InvalidParamsError) as caught:
        await sent(served, way, request)
    assert "messageId" in str(caught.value)
    assert "message_id" not in str(caught.value.data)


USER = {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "x"}]}
OLD_USER = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "x"}]}


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("GetTask", {"id": "nope"}, TaskNotFoundError),
        ("CancelTask", {"id": "{done}"}, TaskNotCancelableError),
        ("SendMessage", {"message": {**USER, "taskId": "{done}"}}, UnsupportedOperationError),
        ("SendMessage", {"message": {**USER, "parts": [{"text": ""}]}}, InvalidParamsError),
        ("SendMessage", {"message": {**USER, "parts": []}}, InvalidParamsError),
        ("ListTaskPushNotificationConfigs", {"taskId": "nope"}, TaskNotFoundError),
        ("GetExtendedAgentCard", {}, UnsupportedOperationError),
        ("ListTasks", {"pageSize": 0}, InvalidParamsError),
    ],
)
async def test_jsonrpc_has_the_codes_of_the_specification(
    served: Served, method: str, params: dict[str, Any], error: type[A2AError]
) -> None:
    done = (await sent(served, WAYS[0], asking("just say it"))).id
    filled = {
        key: value.replace("{done}", done)
        if isinstance(value, str)
        else {k: v.replace("{done}", done) if isinstance(v, str) else v for k, v in value.items()}
        if isinstance(value, dict)
        else value
        for key, value in params.items()
    }
    answer = await served.rpc(method, filled)
    assert answer["error"]["code"] == JSON_RPC_ERROR_CODE_MAP[error]
    assert answer["id"] == 1


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_http_json_has_the_status_of_the_specification(served: Served, version: str) -> None:
    prefix = "/rest" if version == "1.0" else "/rest/v1"
    headers = {"A2A-Version": version}
    done = (await sent(served, ("HTTP+JSON", "1.0"), asking("just say it"))).id
    assert (await served.http.get(f"{prefix}/tasks/nope", headers=headers)).status_code == 404
    canceled = await served.http.post(f"{prefix}/tasks/{done}:cancel", json={}, headers=headers)
    assert canceled.status_code == 400
    assert canceled.json()["error"]["status"] == "FAILED_PRECONDITION"
    new = {"message": {**USER, "taskId": done}}
    old = {"message": {"role": "ROLE_USER", "messageId": "m", "content": [{"text": "x"}], "taskId": done}}
    refused = await served.http.post(f"{prefix}/message:send", json=new if version == "1.0" else old, headers=headers)
    assert refused.status_code == 400
    assert done in refused.json()["error"]["message"]


async def test_grpc_has_the_status_of_the_specification(served: Served) -> None:
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await A2AServiceStub(channel).GetTask(pb.GetTaskRequest(id="nope"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_an_error_before_the_first_event_of_a_jsonrpc_stream_is_an_answer_with_the_error(served: Served) -> None:
    answer = await served.rpc("SubscribeToTask", {"id": "nope"})
    assert answer["error"]["code"] == -32001


# ------------------------------------------------------------------------------- list


@every_way_of_1_0
async def test_tasks_are_listed_newest_first_in_pages_and_with_artifacts_on_request(
    served: Served, way: Way, context: str
) -> None:
    tasks = [await sent(served, way, asking(f"write {name}", context=context)) for name in ("one", "two", "three")]
    client = served.client(*way)
    without = await client.list_tasks(pb.ListTasksRequest(context_id=context))
    assert not any(task.history for task in without.tasks)
    listed = await client.list_tasks(pb.ListTasksRequest(context_id=context, history_length=1))
    assert [task.id for task in listed.tasks] == [task.id for task in reversed(tasks)]
    assert all(not task.artifacts and len(task.history) == 1 for task in listed.tasks)
    assert (listed.total_size, listed.page_size, listed.next_page_token) == (3, 50, "")
    whole = pb.ListTasksRequest(context_id=context, page_size=2, include_artifacts=True, history_length=10)
    first = await client.list_tasks(whole)
    assert list(first.tasks) == [tasks[2], tasks[1]]
    whole.page_token = first.next_page_token
    second = await client.list_tasks(whole)
    assert list(second.tasks) == [tasks[0]]
    await sent(served, way, asking("ask", context=context))
    state = pb.TASK_STATE_INPUT_REQUIRED
    waiting = await client.list_tasks(pb.ListTasksRequest(context_id=context, status=state, history_length=10))
    assert [history_of(task)[0] for task in waiting.tasks] == [("user", "ask")]


# ------------------------------------------------------------------- what HTTP shows


async def test_an_sse_answer_is_one_that_proxies_leave_alone_and_ends_with_the_task(served: Served) -> None:
    body = envelope("SendStreamingMessage", {"message": {**USER, "parts": [{"text": "write report"}]}})
    async with served.http.stream("POST", "/", json=body, headers={"A2A-Version": "1.0"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["cache-control"] == "no-store"
        lines = [line async for line in response.aiter_lines() if line.startswith("data:")]
    assert '"TASK_STATE_COMPLETED"' in lines[-1]


async def test_streams_are_kept_alive_by_pings(monkeypatch: pytest.MonkeyPatch, served: Served) -> None:
    monkeypatch.setattr(sse_response, "PING_SECONDS", 0.01)
    body = envelope("SendStreamingMessage", {"message": {**USER, "parts": [{"text": "slowly notes"}]}})
    async with served.http.stream("POST", "/", json=body, headers={"A2A-Version": "1.0"}) as response:
        lines = response.aiter_lines()
        while not (await anext(lines)).startswith(": ping"):
            pass


async def test_a_jsonrpc_request_without_a_version_is_a_0_3_request(served: Served) -> None:
    response = await served.http.post(
        "/", json=envelope("message/send", {"message": {**OLD_USER, "parts": [{"kind": "text", "text": "write r"}]}})
    )
    result = response.json()["result"]
    assert (result["kind"], result["status"]["state"]) == ("task", "completed")
    assert result["artifacts"][0]["parts"] == [{"kind": "text", "text": "# r\n\nHello, wörld 😀.\n"}]


@pytest.mark.parametrize("method", ["OPTIONS", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/healthz"])
async def test_what_is_only_read_is_405_for_any_other_method(served: Served, method: str, path: str) -> None:
    response = await served.http.request(method, path)
    assert (response.status_code, set(response.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})


async def test_a_compressed_run_is_refused(served: Served) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    response = await served.http.post("/canvas/stream", content=b"\x1f\x8b", headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (415, 415)


async def test_healthz_says_ok(served: Served) -> None:
    response = await served.http.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


# ------------------------------------------------------------------------ start and stop


async def test_frames_change_how_many_events_come_but_not_what_they_say() -> None:
    async with serving(frame_ms=25) as served:
        stream = sending(served, WAYS[0], "write report")
        await stream.rest()
    assert text_of(stream.task) == WRITTEN
    assert said(stream.task.status) == "I wrote report."


async def test_a_server_that_stops_closes_the_connections_of_its_model() -> None:
    closed = asyncio.Event()

    class Connected(Rehearsal):
        async def aclose(self) -> None:
            closed.set()

    app = create_app(Settings(database="memory"), Connected())
    async with app.router.lifespan_context(app):
        assert not closed.is_set()
    assert closed.is_set()


async def test_a_server_that_stops_tells_the_watchers_of_its_tasks() -> None:
    async with serving() as served:
        stream = sending(served, ("GRPC", "1.0"), "slowly notes")
        await half_way(served, stream)
    await stream.rest()
    assert stream.task.status.state == pb.TASK_STATE_FAILED
    assert said(stream.task.status) == "The server was stopped before the task was done. Send it again."


async def test_grpc_can_be_served_without_being_in_the_card() -> None:
    async with serving() as served:
        card = (await served.http.get("/.well-known/agent-card.json")).json()
        assert {interface["protocolBinding"] for interface in card["supportedInterfaces"]} == {"JSONRPC", "HTTP+JSON"}
        assert text_of(await sent(served, ("GRPC", "1.0"), asking("write report"))) == WRITTEN


async def test_without_a_grpc_port_there_is_no_grpc() -> None:
    async with serving(grpc=False) as served:
        card = (await served.http.get("/.well-known/agent-card.json")).json()
        assert {interface["protocolBinding"] for interface in card["supportedInterfaces"]} == {"JSONRPC", "HTTP+JSON"}
        assert text_of(await sent(served, WAYS[0], asking("write report"))) == WRITTEN
