"""What conformance suites ask of the protocol: each point over every binding and version that it concerns."""

from typing import Any

import grpc
import grpc.aio
import httpx
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.compat.v0_3.a2a_v0_3_pb2_grpc import A2AServiceStub as Stub03
from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub as Stub10

from tests.server.app_server import WAYS, Served, asking, envelope, every_way, sent

pytestmark = pytest.mark.asyncio(loop_scope="module")

V10 = {"A2A-Version": "1.0"}
USER = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "just say it"}]}
LEGACY_USER = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "just say it"}]}


async def failed(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await (call.read() if hasattr(call, "read") else call)
    return caught.value


# ---------------------------------------------------------------------------- tasks that are not there


@pytest.mark.parametrize(
    ("method", "params", "version"),
    [
        ("GetTask", {"id": "gone"}, "1.0"),
        ("CancelTask", {"id": "gone"}, "1.0"),
        ("SubscribeToTask", {"id": "gone"}, "1.0"),
        ("SendMessage", {"message": {**USER, "taskId": "gone"}}, "1.0"),
        ("tasks/get", {"id": "gone"}, "0.3"),
        ("tasks/cancel", {"id": "gone"}, "0.3"),
        ("message/send", {"message": {**LEGACY_USER, "taskId": "gone"}}, "0.3"),
    ],
)
async def test_jsonrpc_says_that_a_task_is_not_found(
    served: Served, method: str, params: dict[str, Any], version: str
) -> None:
    error = (await served.rpc(method, params, **{"A2A-Version": version}))["error"]
    assert (error["code"], error["message"][:14]) == (-32001, "Task not found")


@pytest.mark.parametrize("path", ["tasks/gone", "tasks/gone:subscribe"])
@pytest.mark.parametrize(("prefix", "version"), [("/rest", "1.0"), ("/rest/v1", "0.3")])
async def test_so_does_http_json(served: Served, prefix: str, version: str, path: str) -> None:
    answer = await served.http.get(f"{prefix}/{path}", headers={"A2A-Version": version})
    assert (answer.status_code, answer.json()["error"]["message"][:14]) == (404, "Task not found")


async def test_so_does_grpc(served: Served) -> None:
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        new: Any = Stub10(channel)  # type: ignore[no-untyped-call]
        old: Any = Stub03(channel)  # type: ignore[no-untyped-call]
        error = await failed(new.GetTask(pb.GetTaskRequest(id="gone")))
        legacy = await failed(old.GetTask(pb03.GetTaskRequest(name="tasks/gone")))
    assert error.code() is legacy.code() is grpc.StatusCode.NOT_FOUND
    assert (error.details() or "").startswith("Task not found")
    assert (legacy.details() or "").startswith("TaskNotFoundError: Task not found")


# ------------------------------------------------------------------------------------------ questions


@every_way
async def test_a_question_is_answered_by_its_context_alone(served: Served, context: str, way: tuple[str, str]) -> None:
    asked = await sent(served, way, asking("ask", context=context))
    assert asked.status.state == pb.TASK_STATE_INPUT_REQUIRED
    answered = await sent(served, way, asking("Blue", context=context))
    assert (answered.id, answered.status.state) == (asked.id, pb.TASK_STATE_COMPLETED)
    after = await sent(served, way, asking("just say it", context=context))
    assert after.id != asked.id


# ---------------------------------------------------------------------------------------- repetition


@every_way
async def test_a_first_message_that_is_sent_again_runs_once_if_its_id_is_unique(
    served: Served, way: tuple[str, str]
) -> None:
    unique = asking("just say it")
    first, again = [await sent(served, way, unique) for _ in range(2)]
    assert first.id == again.id
    short = asking("just say it", message_id="m-1")
    first, again = [await sent(served, way, short) for _ in range(2)]
    assert first.id != again.id


# ------------------------------------------------------------------------------------------- tenants


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("SendMessage", {"message": USER}),
        ("SendStreamingMessage", {"message": USER}),
        ("GetTask", {"id": "t"}),
        ("ListTasks", {}),
        ("CancelTask", {"id": "t"}),
        ("SubscribeToTask", {"id": "t"}),
        ("GetExtendedAgentCard", {}),
    ],
)
async def test_a_tenant_is_refused_over_jsonrpc(served: Served, method: str, params: dict[str, Any]) -> None:
    error = (await served.rpc(method, {**params, "tenant": "acme"}))["error"]
    assert (error["code"], "tenant" in error["message"]) == (-32602, True)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "message:send", {"message": USER, "tenant": "acme"}),
        ("POST", "message:stream", {"message": USER, "tenant": "acme"}),
        ("POST", "message:send?tenant=acme", {"message": USER}),
        ("POST", "tasks/t:cancel", {"tenant": "acme"}),
        ("POST", "tasks/t:cancel?tenant=acme", None),
        ("GET", "tasks/t?tenant=acme", None),
        ("GET", "tasks?tenant=acme", None),
        ("GET", "tasks/t:subscribe?tenant=acme", None),
        ("GET", "extendedAgentCard?tenant=acme", None),
    ],
)
async def test_so_it_is_over_http_json(served: Served, method: str, path: str, body: Any) -> None:
    answer = await served.http.request(method, f"/rest/{path}", json=body, headers=V10)
    assert (answer.status_code, "tenant" in answer.json()["error"]["message"]) == (400, True)


async def test_so_it_is_over_grpc(served: Served) -> None:
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        stub: Any = Stub10(channel)  # type: ignore[no-untyped-call]
        message = asking("just say it").message
        for call in (
            stub.SendMessage(pb.SendMessageRequest(message=message, tenant="acme")),
            stub.SendStreamingMessage(pb.SendMessageRequest(message=message, tenant="acme")),
            stub.GetTask(pb.GetTaskRequest(id="t", tenant="acme")),
            stub.ListTasks(pb.ListTasksRequest(tenant="acme")),
        ):
            error = await failed(call)
            assert (error.code(), "tenant" in (error.details() or "")) == (grpc.StatusCode.INVALID_ARGUMENT, True)


@pytest.mark.parametrize("path", ["/acme/rest/tasks", "/rest/acme/tasks", "/acme/rest/v1/card"])
async def test_there_is_no_path_below_a_tenant(served: Served, path: str) -> None:
    assert (await served.http.get(path, headers=V10)).status_code == 404


# --------------------------------------------------------------------------------------------- lists


async def both_lists(served: Served, **params: Any) -> list[dict[str, Any]]:
    """The answer to `ListTasks` over JSON-RPC and over HTTP+JSON."""
    query = httpx.QueryParams({name: str(value) for name, value in params.items()})
    over_rest = await served.http.get("/rest/tasks", params=query, headers=V10)
    return [(await served.rpc("ListTasks", params))["result"], over_rest.json()]


@pytest.mark.parametrize("with_artifacts", [True, False])
async def test_a_list_has_tasks_as_get_task_writes_them(served: Served, context: str, with_artifacts: bool) -> None:
    task = await sent(served, WAYS[0], asking("write report", context=context))
    got = (await served.rpc("GetTask", {"id": task.id, "historyLength": 0}))["result"]
    if not with_artifacts:
        del got["artifacts"]
    for page in await both_lists(served, contextId=context, includeArtifacts=with_artifacts):
        assert page == {"tasks": [got], "nextPageToken": "", "pageSize": 50, "totalSize": 1}


async def test_an_empty_list_has_all_its_members(served: Served, context: str) -> None:
    for page in await both_lists(served, contextId=context):
        assert page == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


async def test_a_state_that_is_none_is_refused_in_every_binding(served: Served) -> None:
    assert (await served.rpc("ListTasks", {"status": 99}))["error"]["code"] == -32602
    assert (await served.http.get("/rest/tasks?status=99", headers=V10)).status_code == 400
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        stub: Any = Stub10(channel)  # type: ignore[no-untyped-call]
        error = await failed(stub.ListTasks(pb.ListTasksRequest(status=99)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT


@every_way
async def test_times_have_milliseconds_and_find_their_task(served: Served, context: str, way: tuple[str, str]) -> None:
    task = await sent(served, way, asking("just say it", context=context))
    assert task.status.timestamp.nanos % 1_000_000 == 0
    at = task.status.timestamp.ToJsonString()
    assert len((await both_lists(served, contextId=context, statusTimestampAfter=at))[0]["tasks"]) == 1
    task.status.timestamp.FromNanoseconds(task.status.timestamp.ToNanoseconds() + 1)
    later = task.status.timestamp.ToJsonString()
    assert [page["totalSize"] for page in await both_lists(served, contextId=context, statusTimestampAfter=later)] == [
        0,
        0,
    ]


# --------------------------------------------------------------------------------------- versions


@pytest.mark.parametrize(
    ("versions", "passes"), [(("1.0", "1.0"), True), (("1.0", "0.3"), False), (("0.3", "1.0"), False)]
)
async def test_two_headers_with_different_versions_are_refused(
    served: Served, versions: tuple[str, str], passes: bool
) -> None:
    headers = [("A2A-Version", each) for each in versions]
    assert (await served.http.get("/rest/tasks", headers=headers)).is_success is passes
    answer = (await served.http.post("/", json=envelope("ListTasks", {}), headers=headers)).json()
    assert answer.get("error", {}).get("code") == (None if passes else -32009)


# --------------------------------------------------------------------------------------- JSON-RPC


async def test_a_notification_does_nothing(served: Served, context: str) -> None:
    request = envelope("SendMessage", {"message": {**USER, "contextId": context}})
    del request["id"]
    answer = (await served.http.post("/", json=request, headers=V10)).json()
    assert (answer["error"]["code"], answer["id"]) == (-32600, None)
    assert (await both_lists(served, contextId=context))[0]["totalSize"] == 0


async def test_invalid_params_have_one_code_in_both_versions(served: Served) -> None:
    new = await served.rpc("SendMessage", {"message": {"parts": 5}})
    old = await served.rpc("message/send", {"message": {"parts": 5}}, **{"A2A-Version": "0.3"})
    assert new["error"]["code"] == old["error"]["code"] == -32602
