"""REST requests against the table of routes."""

import json

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.message import Message
from starlette.datastructures import QueryParams

from a2a_canvas.server.protocols.guard.calls import Call
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal
from a2a_canvas.server.protocols.guard.rest_calls import allowed_methods, check_rest, find_rest_route

LIMITS = BodyLimits()


@pytest.mark.parametrize(
    ("method", "path", "version"),
    [
        ("POST", "message:send", "1.0"),
        ("POST", "v1/message:stream", "0.3"),
        ("POST", "tasks/a:b:cancel", "1.0"),
        ("HEAD", "tasks", "1.0"),
        ("DELETE", "tasks/x/pushNotificationConfigs/y", "1.0"),
        ("GET", "v1/card", "0.3"),
    ],
)
def test_a_rest_path_finds_its_route(method: str, path: str, version: str) -> None:
    found = find_rest_route(method, path)
    assert found is not None
    assert found[0].version == version


@pytest.mark.parametrize("path", ["", "x", "/tasks", "acme/tasks"])
def test_other_paths_have_no_route(path: str) -> None:
    assert allowed_methods(path) == ()


def test_a_path_knows_its_methods() -> None:
    assert allowed_methods("tasks/x/pushNotificationConfigs/y") == ("DELETE", "GET")
    assert allowed_methods("message:send") == ("POST",)


def checked(method: str, path: str, query: str = "", body: bytes = b"", version: str | None = "1.0") -> Call | Refusal:
    found = find_rest_route(method, path)
    assert found is not None
    return check_rest(*found, QueryParams(query), body, version, LIMITS)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("pageSize=x", "pageSize"),
        ("pageSize=99999999999", "pageSize"),
        ("statusTimestampAfter=x", "statusTimestampAfter"),
        ("includeArtifacts=1", "includeArtifacts"),
        ("includeArtifacts=banana", "includeArtifacts"),
        ("includeArtifacts=", "includeArtifacts"),
        ("status=99", "status"),
    ],
)
def test_a_query_parameter_that_does_not_fit_is_refused_and_an_unknown_one_is_ignored(query: str, field: str) -> None:
    assert checked("GET", "tasks", "pageSize=5&unknown=x") == Call("ListTasks", pb.ListTasksRequest(page_size=5))
    refusal = checked("GET", "tasks", query)
    assert isinstance(refusal, Refusal)
    assert [path for path, _ in refusal.fields] == [field]


@pytest.mark.parametrize(("method", "path"), [("GET", "tasks/t"), ("POST", "tasks/t:cancel")])
def test_a_tenant_in_the_query_becomes_that_of_the_params(method: str, path: str) -> None:
    call = checked(method, path, "tenant=acme")
    assert isinstance(call, Call)
    assert getattr(call.params, "tenant", "") == "acme"


@pytest.mark.parametrize(("given", "meant"), [("true", True), ("false", False), ("TRUE", True), ("False", False)])
def test_a_truth_value_is_true_or_false(given: str, meant: bool) -> None:
    expected = Call("ListTasks", pb.ListTasksRequest(include_artifacts=meant))
    assert checked("GET", "tasks", f"includeArtifacts={given}") == expected


MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
LEGACY_MESSAGE = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}
CORE = pb.SendMessageRequest(message=pb.Message(message_id="m", role=pb.ROLE_USER, parts=[pb.Part(text="hi")]))


@pytest.mark.parametrize(
    ("method", "path", "operation", "params"),
    [
        ("POST", "message:send", "SendMessage", CORE),
        ("POST", "message:stream", "SendStreamingMessage", CORE),
        ("POST", "tasks/t:cancel", "CancelTask", pb.CancelTaskRequest(id="t")),
        ("POST", "tasks/t:subscribe", "SubscribeToTask", pb.SubscribeToTaskRequest(id="t")),
        ("GET", "tasks/t:subscribe", "SubscribeToTask", pb.SubscribeToTaskRequest(id="t")),
        ("GET", "tasks/t", "GetTask", pb.GetTaskRequest(id="t")),
        (
            "GET",
            "tasks/t/pushNotificationConfigs/c",
            "GetTaskPushNotificationConfig",
            pb.GetTaskPushNotificationConfigRequest(task_id="t", id="c"),
        ),
        (
            "GET",
            "tasks/t/pushNotificationConfigs",
            "ListTaskPushNotificationConfigs",
            pb.ListTaskPushNotificationConfigsRequest(task_id="t"),
        ),
    ],
)
def test_both_versions_become_the_same_call(method: str, path: str, operation: str, params: Message) -> None:
    bodies = ({"message": MESSAGE}, {"request": LEGACY_MESSAGE})
    new, old = (json.dumps(body).encode() if path.startswith("message") else b"" for body in bodies)
    assert checked(method, path, "", new) == Call(operation, params)
    assert checked(method, f"v1/{path}", "", old, None) == Call(operation, params, legacy=True)


def test_the_id_in_the_path_counts_and_not_one_in_the_query() -> None:
    assert checked("GET", "tasks/t", "id=u&historyLength=3") == Call(
        "GetTask", pb.GetTaskRequest(id="t", history_length=3)
    )


def test_in_03_a_history_length_of_0_is_none() -> None:
    for query in ("historyLength=0", ""):
        assert checked("GET", "v1/tasks/t", query, version=None) == Call("GetTask", pb.GetTaskRequest(id="t"), True)


def test_a_body_that_is_not_needed_may_be_missing_but_not_be_nonsense() -> None:
    for body in (b"", b"{}", b'{"unknown":1}'):
        assert checked("POST", "tasks/x:cancel", "", body) == Call("CancelTask", pb.CancelTaskRequest(id="x"))
    for body in (b"[]", b"{", b'{"metadata":5}'):
        assert isinstance(checked("POST", "tasks/x:cancel", "", body), Refusal)
