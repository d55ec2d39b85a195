"""Errors while the database is unavailable, and when a stream is lost: over every binding, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import grpc
import grpc.aio
import httpx
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.server.context import ServerCallContext
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2A_ERROR_MAPPING, JSON_RPC_ERROR_CODE_MAP
from a2a.utils.grpc_status import status_from_call
from google.rpc import error_details_pb2

from a2a_canvas.server.agent.events import MessageReceived
from a2a_canvas.server.protocols.a2a_v1.operations.handler import A2AHandler
from a2a_canvas.server.protocols.edge.availability import DATABASE_UNAVAILABLE, StorageFullError
from a2a_canvas.server.protocols.edge.error_tables import PermissionDeniedError, rpc_code
from a2a_canvas.server.protocols.edge.shutdown import Shutdown
from a2a_canvas.server.protocols.pipeline.entrance import UnauthenticatedError
from a2a_canvas.server.tasks.errors import StreamLost, TaskDetached
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.store.errors import Unavailable
from tests.server.protocols.agui.agui_runs import ScriptedRuntime
from tests.server.protocols.agui.agui_verifier import verify
from tests.server.protocols.bindings_harness import (
    MESSAGE,
    MESSAGE_03,
    REST_03,
    RUN,
    V10,
    Edge,
    FailingJournal,
    Json,
    edge,
    edge_app,
    rpc,
    streaming,
)
from tests.server.protocols.push_fixtures import push_operations

AWAY_NOW = Unavailable("connection to secret.internal refused")
INTERNAL_ERROR = "The connection to the task was lost. Subscribe to it again."
FULL = "The server is busy: 0 tasks are waiting already. Send it again in a moment."
BREAKS = [(AWAY_NOW, DATABASE_UNAVAILABLE), (StreamLost(), INTERNAL_ERROR)]


@pytest.fixture
async def here() -> AsyncIterator[Edge]:
    """A server with a task that has begun to write `doc` in context `c`, and holds."""
    async with edge() as served:
        yield served


@pytest.fixture
async def away(here: Edge) -> Edge:
    """The same with its database away."""
    here.journal.error = AWAY_NOW
    return here


# ------------------------------------------------------------------ what each form must be


def assert_jsonrpc_10(answer: Json, message: str = DATABASE_UNAVAILABLE) -> None:
    assert (answer["jsonrpc"], answer["id"], answer.keys()) == ("2.0", 7, {"jsonrpc", "id", "error"})
    assert (answer["error"]["code"], answer["error"]["message"]) == (-32603, message)
    (info,) = answer["error"]["data"]
    assert (info["reason"], info["domain"]) == ("INTERNAL_ERROR", "a2a-protocol.org")
    assert info["metadata"] == {"retryable": "true"}


def assert_jsonrpc_03(answer: Json, message: str = DATABASE_UNAVAILABLE) -> None:
    assert answer == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32603, "message": message, "data": {"retryable": True}},
    }


def assert_status(payload: Json, message: str = DATABASE_UNAVAILABLE, status: str = "UNAVAILABLE") -> None:
    """A `google.rpc.Status`."""
    error = payload["error"]
    assert (error["code"], error["status"], error["message"]) == (503, status, message)
    assert error["details"][0]["metadata"] == {"retryable": "true"}


def assert_503(response: httpx.Response, message: str = DATABASE_UNAVAILABLE, status: str = "UNAVAILABLE") -> None:
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert_status(response.json(), message, status)


def assert_grpc(error: grpc.aio.AioRpcError, message: str = DATABASE_UNAVAILABLE, code: str = "UNAVAILABLE") -> None:
    assert (error.code(), error.details()) == (grpc.StatusCode[code], message)
    status = status_from_call(error)
    assert status is not None
    (detail,) = status.details
    retry = error_details_pb2.RetryInfo()
    assert detail.Unpack(retry)
    assert retry.retry_delay.seconds == 1


# ----------------------------------------------------------------------- before the answer


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("SendMessage", {"message": MESSAGE}),
        ("SendStreamingMessage", {"message": MESSAGE}),
        ("GetTask", {"id": "t"}),
        ("ListTasks", {}),
        ("CancelTask", {"id": "t"}),
        ("SubscribeToTask", {"id": "t"}),
    ],
)
async def test_jsonrpc_says_internal_error_and_that_it_can_be_tried_again(
    away: Edge, method: str, params: Json
) -> None:
    response = await away.http.post("/", json=rpc(method, params), headers=V10)
    assert response.status_code == 200
    assert_jsonrpc_10(response.json())


@pytest.mark.parametrize(
    ("method", "params"),
    [("message/send", {"message": MESSAGE_03}), ("tasks/get", {"id": "t"}), ("tasks/cancel", {"id": "t"})],
)
async def test_so_does_jsonrpc_03(away: Edge, method: str, params: Json) -> None:
    response = await away.http.post("/", json=rpc(method, params))
    assert response.status_code == 200
    assert_jsonrpc_03(response.json())


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/rest/message:send", {"message": MESSAGE}),
        ("POST", "/rest/message:stream", {"message": MESSAGE}),
        ("GET", "/rest/tasks/t", None),
        ("GET", "/rest/tasks", None),
        ("POST", "/rest/tasks/t:cancel", None),
        ("GET", "/rest/tasks/t:subscribe", None),
    ],
)
async def test_rest_says_503_and_when_to_try_again(away: Edge, method: str, path: str, body: Json | None) -> None:
    assert_503(await away.http.request(method, path, json=body, headers=V10))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/rest/v1/message:send", {"message": REST_03}),
        ("POST", "/rest/v1/message:stream", {"message": REST_03}),
        ("GET", "/rest/v1/tasks/t", None),
        ("POST", "/rest/v1/tasks/t:cancel", None),
        ("GET", "/rest/v1/tasks/t:subscribe", None),
    ],
)
async def test_so_does_rest_03(away: Edge, method: str, path: str, body: Json | None) -> None:
    assert_503(await away.http.request(method, path, json=body))


async def test_a_03_jsonrpc_stream_that_never_begins_has_it_as_its_only_event(away: Edge) -> None:
    async with streaming(away.http, "POST", "/", json=rpc("message/stream", {"message": MESSAGE_03})) as events:
        ((_, answer),) = [event async for event in events]
    assert_jsonrpc_03(answer)


async def test_grpc_says_unavailable_and_when_to_try_again(away: Edge) -> None:
    said = pb.Message(message_id="m", role=pb.ROLE_USER, context_id="c", parts=[pb.Part(text="Go")])
    said_03 = pb03.Message(message_id="m", role=pb03.ROLE_USER, context_id="c", content=[pb03.Part(text="Go")])
    calls = [
        away.grpc10.SendMessage(pb.SendMessageRequest(message=said)),
        away.grpc10.GetTask(pb.GetTaskRequest(id="t")),
        away.grpc10.ListTasks(pb.ListTasksRequest()),
        away.grpc10.CancelTask(pb.CancelTaskRequest(id="t")),
        away.grpc10.SendStreamingMessage(pb.SendMessageRequest(message=said)).read(),
        away.grpc10.SubscribeToTask(pb.SubscribeToTaskRequest(id="t")).read(),
        away.grpc03.SendMessage(pb03.SendMessageRequest(request=said_03)),
        away.grpc03.GetTask(pb03.GetTaskRequest(name="tasks/t")),
        away.grpc03.SendStreamingMessage(pb03.SendMessageRequest(request=said_03)).read(),
        away.grpc03.TaskSubscription(pb03.TaskSubscriptionRequest(name="tasks/t")).read(),
    ]
    for call in calls:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        assert_grpc(refused.value)


@pytest.mark.parametrize(
    "path", ["c", "c/doc", "c/doc/versions", "c/doc/versions/1", "c/doc/versions/1/diff", "c/events"]
)
async def test_artifacts_are_503(away: Edge, path: str) -> None:
    assert_503(await away.http.get(f"/artifacts/{path}"))


@pytest.mark.parametrize("body", [RUN, {"message": "Go", "thread_id": "c"}])
async def test_a_run_is_503_before_it_begins(away: Edge, body: Json) -> None:
    assert_503(await away.http.post("/canvas/stream", json=body))


async def test_the_reason_is_the_operators_alone(away: Edge, caplog: pytest.LogCaptureFixture) -> None:
    answers = [
        await away.http.post("/", json=rpc("GetTask", {"id": "t"}), headers=V10),
        await away.http.get("/rest/tasks/t", headers=V10),
        await away.http.get("/artifacts/c"),
        await away.http.post("/canvas/stream", json=RUN),
    ]
    assert not [answer for answer in answers if "secret" in answer.text]
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("a2a_canvas.")]
    assert len(logged) == len(answers)
    assert all("secret.internal refused" in line for line in logged)
    assert not [record for record in caplog.records if record.exc_info]


async def test_when_it_is_back_the_same_request_goes_well(away: Edge) -> None:
    away.journal.error = None
    away.hold.release.set()
    answer = (await away.http.post("/", json=rpc("SendMessage", {"message": MESSAGE}), headers=V10)).json()
    assert answer["result"]["task"]["contextId"] == "c"


# ------------------------------------------------------------------------------- no room


@pytest.fixture
async def full() -> AsyncIterator[Edge]:
    """A server with one task that holds, and room for no other."""
    async with edge(admission=Admission(1, 0)) as served:
        await served.begin()
        yield served


async def test_a_message_for_which_there_is_no_room_is_refused_in_every_binding_and_not_kept(full: Edge) -> None:
    send = {"json": {"message": MESSAGE}, "headers": V10}
    for path in ("/rest/message:send", "/rest/message:stream"):
        assert_503(await full.http.post(path, **send), FULL, "RESOURCE_EXHAUSTED")
    response = await full.http.post("/rest/v1/message:send", json={"message": REST_03})
    assert_503(response, FULL, "RESOURCE_EXHAUSTED")
    assert_503(await full.http.post("/canvas/stream", json=RUN), FULL, "RESOURCE_EXHAUSTED")
    for method in ("SendMessage", "SendStreamingMessage"):
        response = await full.http.post("/", json=rpc(method, {"message": MESSAGE}), headers=V10)
        assert_jsonrpc_10(response.json(), FULL)
    response = await full.http.post("/", json=rpc("message/send", {"message": MESSAGE_03}))
    assert_jsonrpc_03(response.json(), FULL)
    said = pb.Message(message_id="m", role=pb.ROLE_USER, context_id="c", parts=[pb.Part(text="Go")])
    said_03 = pb03.Message(message_id="m", role=pb03.ROLE_USER, context_id="c", content=[pb03.Part(text="Go")])
    for call in (
        full.grpc10.SendMessage(pb.SendMessageRequest(message=said)),
        full.grpc10.SendStreamingMessage(pb.SendMessageRequest(message=said)).read(),
        full.grpc03.SendMessage(pb03.SendMessageRequest(request=said_03)),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        assert_grpc(refused.value, FULL, "RESOURCE_EXHAUSTED")
    assert len(await full.journal.context("c")) == 1


async def test_when_there_is_room_again_the_same_message_goes_well(full: Edge) -> None:
    assert (await full.http.post("/rest/message:send", json={"message": MESSAGE}, headers=V10)).status_code == 503
    full.hold.release.set()
    (task,) = await full.journal.context("c")
    assert [entry async for entry in await full.journal.follow(task.task_id)]
    response = await full.http.post("/rest/message:send", json={"message": MESSAGE}, headers=V10)
    assert response.json()["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


# ---------------------------------------------------------------------- inside the answer


@pytest.mark.parametrize(("error", "message"), BREAKS)
async def test_a_stream_over_http_ends_with_it_as_its_last_event(here: Edge, error: Exception, message: str) -> None:
    task_id = await here.begin()
    async with AsyncExitStack() as opened:
        streams = [
            await opened.enter_async_context(streaming(here.http, *request, json=body, headers=headers))
            for request, body, headers in (
                (("POST", "/"), rpc("SubscribeToTask", {"id": task_id}), V10),
                (("POST", "/"), rpc("tasks/resubscribe", {"id": task_id}), {}),
                (("GET", f"/rest/tasks/{task_id}:subscribe"), None, V10),
                (("GET", f"/rest/v1/tasks/{task_id}:subscribe"), None, {}),
            )
        ]
        for stream in streams:
            assert (await anext(stream))[0] == ""
        here.journal.fail(error)
        ends = [[event async for event in stream][-1] for stream in streams]
    # The SDK's 0.3 streams of JSON-RPC give no event a name.
    assert [name for name, _ in ends] == ["error", "", "error", "error"]
    assert_jsonrpc_10(ends[0][1], message)
    assert_jsonrpc_03(ends[1][1], message)
    assert_status(ends[2][1], message)
    assert_status(ends[3][1], message)


@pytest.mark.parametrize(("error", "message"), BREAKS)
async def test_a_stream_over_grpc_ends_with_it_as_its_status(here: Edge, error: Exception, message: str) -> None:
    task_id = await here.begin()
    calls = [
        here.grpc10.SubscribeToTask(pb.SubscribeToTaskRequest(id=task_id)),
        here.grpc03.TaskSubscription(pb03.TaskSubscriptionRequest(name=f"tasks/{task_id}")),
    ]
    for call in calls:
        assert (await call.read()).task.id == task_id
    here.journal.fail(error)
    for call in calls:
        with pytest.raises(grpc.aio.AioRpcError) as lost:
            await call.read()
        assert_grpc(lost.value, message)


@pytest.mark.parametrize(("error", "message"), BREAKS)
async def test_so_does_a_call_that_waits_for_its_task(here: Edge, error: Exception, message: str) -> None:
    task_id = await here.begin()
    more = {**MESSAGE, "messageId": "m-2", "taskId": task_id}
    following = aiter(await here.journal.follow(task_id))
    waiting = asyncio.create_task(here.http.post("/rest/message:send", json={"message": more}, headers=V10))
    assert isinstance((await anext(following)).event, MessageReceived)
    here.journal.fail(error)
    response = await waiting
    assert response.status_code == 503
    assert_status(response.json(), message)


async def test_whoever_comes_back_after_a_lost_stream_reads_on_from_a_new_snapshot(here: Edge) -> None:
    task_id = await here.begin()
    subscribe = {"json": rpc("SubscribeToTask", {"id": task_id}), "headers": V10}
    async with streaming(here.http, "POST", "/", **subscribe) as stream:
        await anext(stream)
        here.journal.fail(StreamLost())
        assert [name async for name, _ in stream][-1] == "error"
    here.journal.mend()
    async with streaming(here.http, "POST", "/", **subscribe) as stream:
        _, first = await anext(stream)
        here.hold.release.set()
        *_, (_, last) = [event async for event in stream]
    assert first["result"]["task"]["artifacts"][0]["parts"] == [{"text": "Half"}]
    assert last["result"]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (AWAY_NOW, DATABASE_UNAVAILABLE),
        (StreamLost(), "The connection to the task was lost. Send the run again to join it."),
    ],
)
async def test_a_run_that_is_lost_ends_with_an_error_after_which_it_is_joined_again(
    here: Edge, error: Exception, message: str
) -> None:
    async with streaming(here.http, "POST", "/canvas/stream", json=RUN) as events:
        lost = [(await anext(events))[1]]
        while not here.hold.reached.is_set():
            lost.append((await anext(events))[1])
        here.journal.fail(error)
        lost += [event async for _, event in events]
    assert lost[-1] == {"type": "RUN_ERROR", "message": message, "code": "unavailable"}
    here.journal.mend()
    here.hold.release.set()
    async with streaming(here.http, "POST", "/canvas/stream", json=RUN) as events:
        joined = [event async for _, event in events]
    assert joined[-1]["type"] == "RUN_FINISHED"
    assert len(await here.journal.context("c")) == 1
    verify(lost, joined)


@pytest.mark.parametrize("error", [AWAY_NOW, StreamLost()])
async def test_the_event_stream_of_a_context_just_ends(
    here: Edge, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Its reader is an EventSource, which comes back by itself, with the last id."""
    await here.begin()
    async with streaming(here.http, "GET", "/artifacts/c/events") as events:
        await anext(events)
        here.journal.fail(error)
        assert [event async for event in events] == []
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


# ------------------------------------------------------------------------- what is no answer


@pytest.mark.parametrize("end", [TaskDetached, asyncio.CancelledError])
async def test_a_cancel_is_never_made_an_answer(end: type[BaseException]) -> None:
    journal = FailingJournal()
    journal.error = end()
    world = ScriptedRuntime(journal=journal)
    handler = A2AHandler(world.runtime, pb.AgentCard(), push_operations())
    app = edge_app(world, Shutdown(world.runtime.close), handler)
    context = ServerCallContext()
    with pytest.raises(end):
        await handler.on_get_task(pb.GetTaskRequest(id="t"), context)
    with pytest.raises(end):
        await anext(handler.on_subscribe_to_task(pb.SubscribeToTaskRequest(id="t"), context))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", trust_env=False) as http:
        for method, path, body in (
            ("POST", "/", rpc("GetTask", {"id": "t"})),
            ("GET", "/rest/tasks/t", None),
            ("GET", "/artifacts/c", None),
            ("POST", "/canvas/stream", RUN),
        ):
            with pytest.raises(end):
                await http.request(method, path, json=body, headers=V10)


def test_a_client_in_the_same_process_takes_no_error_of_ours_for_an_internal_one() -> None:
    """A client of the SDK, such as that of other agents, looks up the class of an error by its code."""
    assert len({*JSON_RPC_ERROR_CODE_MAP.values()}) == len(JSON_RPC_ERROR_CODE_MAP)
    assert PermissionDeniedError in A2A_ERROR_MAPPING
    assert StorageFullError in A2A_ERROR_MAPPING


def test_what_is_refused_for_good_is_no_internal_error_of_json_rpc() -> None:
    """Clients retry -32603. No code is one of A2A's, and no two are the same."""
    ours = [rpc_code(kind) for kind in (UnauthenticatedError, PermissionDeniedError, StorageFullError)]
    assert len({*ours, *JSON_RPC_ERROR_CODE_MAP.values()}) == len(ours) + len(JSON_RPC_ERROR_CODE_MAP)
    assert all(-32099 <= code <= -32000 for code in ours)
