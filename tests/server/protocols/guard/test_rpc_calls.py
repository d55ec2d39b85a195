"""JSON-RPC requests from bytes to a call or a refusal."""

import json
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import (
    InvalidParamsError,
    InvalidRequestError,
    MethodNotFoundError,
    VersionNotSupportedError,
)

from a2a_canvas.server.protocols.guard.calls import Call
from a2a_canvas.server.protocols.guard.checks import (
    BodyLimits,
)
from a2a_canvas.server.protocols.guard.rpc_calls import RejectedCall, check_jsonrpc

LIMITS = BodyLimits()


def call(method: object = "GetTask", version: str | None = "1.0", **members: object) -> Call | RejectedCall:
    request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"id": "t"}, **members}
    return check_jsonrpc(json.dumps(request).encode(), version, LIMITS)


@pytest.mark.parametrize("id_", ["a", 7, -1, None, 10**30])
def test_a_call_keeps_its_id(id_: object) -> None:
    assert call(id=id_) == Call("GetTask", pb.GetTaskRequest(id="t"), id=id_)


@pytest.mark.parametrize(
    "members",
    [{"id": True}, {"id": 1.5}, {"id": []}, {"id": {}}, {"jsonrpc": "1.0"}, {"jsonrpc": 2.0}]
    + [{"method": method} for method in (None, 5, "", "rpc.x", [], {})]
    + [{"params": params} for params in ("x", 1, True)],
)
def test_an_envelope_that_is_no_json_rpc_is_an_invalid_request(members: dict[str, object]) -> None:
    rejected = call(**members)
    assert isinstance(rejected, RejectedCall)
    assert rejected.refusal.kind is InvalidRequestError
    assert rejected.id == (None if "id" in members else 7)


def test_other_members_are_ignored() -> None:
    assert call(extra=1, trace={"id": "x"}) == Call("GetTask", pb.GetTaskRequest(id="t"), id=7)
    legacy = call("tasks/get", None, params={"id": "t"}, extra=1)
    assert legacy == Call("GetTask", pb.GetTaskRequest(id="t"), True, 7)


def notification(method: str, version: str, params: object = None) -> Call | RejectedCall:
    given = {"params": params} if params is not None else {}
    return check_jsonrpc(json.dumps({"jsonrpc": "2.0", "method": method, **given}).encode(), version, LIMITS)


@pytest.mark.parametrize(("method", "version"), [("GetTask", "1.0"), ("tasks/get", "0.3")])
def test_a_notification_is_refused(method: str, version: str) -> None:
    rejected = notification(method, version, {"id": "t"})
    assert isinstance(rejected, RejectedCall)
    assert (rejected.refusal.kind, rejected.id, rejected.legacy) == (InvalidRequestError, None, version == "0.3")
    assert "notifications" in rejected.refusal.message


@pytest.mark.parametrize(
    ("method", "version", "kind"),
    [
        ("Nope", "1.0", MethodNotFoundError),
        ("Nope", "0.3", MethodNotFoundError),
        ("GetTask", "0.3", VersionNotSupportedError),
        ("SendMessage", "1.0", InvalidParamsError),
        ("message/send", "0.3", InvalidParamsError),
    ],
)
def test_a_missing_id_is_reported_last(method: str, version: str, kind: type[Exception]) -> None:
    rejected = notification(method, version)
    assert isinstance(rejected, RejectedCall)
    assert (rejected.refusal.kind, rejected.id) == (kind, None)


@pytest.mark.parametrize(
    "authentication",
    [
        {},
        {"schemes": []},
        {"schemes": [], "credentials": ""},
        {"schemes": None, "credentials": None},
        {"schemes": [], "credentials": None},
        {"credentials": ""},
    ],
    ids=str,
)
def test_an_empty_authentication_of_0_3_is_none(authentication: dict[str, Any]) -> None:
    push = {"url": "https://a.example/", "authentication": authentication}
    message = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}], "metadata": push}
    created = call("tasks/pushNotificationConfig/set", None, params={"taskId": "t", "pushNotificationConfig": push})
    sent = call("message/send", None, params={"message": message, "configuration": {"pushNotificationConfig": push}})
    assert isinstance(created, Call)
    assert created.params == pb.TaskPushNotificationConfig(task_id="t", url="https://a.example/")
    assert isinstance(sent, Call)
    assert isinstance(sent.params, pb.SendMessageRequest)
    assert not sent.params.configuration.task_push_notification_config.HasField("authentication")
    assert "authentication" in sent.params.message.metadata


@pytest.mark.parametrize("body", [b"[]", b"1", b'"x"', b"null", b'[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]'])
def test_one_object_is_a_request_and_nothing_else(body: bytes) -> None:
    rejected = check_jsonrpc(body, "1.0", LIMITS)
    assert isinstance(rejected, RejectedCall)
    assert rejected.refusal.kind is InvalidRequestError


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"message": 5}, "message"),
        ({"message": {"parts": "x"}}, "message.parts"),
        ({"message": {"parts": [{"text": 5}]}}, "message.parts[0].text"),
        ({"message": {"parts": [{"text": "a"}, {"raw": "a"}]}}, "message.parts[1].raw"),
        ({"message": {"parts": [{"text": "a"}, None]}}, "message.parts[1]"),
        ({"message": {"parts": [{"text": "a", "url": "b"}]}}, "message.parts[0]"),
        ({"message": {"parts": [{"text": "a", "metadata": [1]}]}}, "message.parts[0].metadata"),
        ({"message": {"parts": [{}]}}, "message.parts[0]"),
        ({"configuration": {"historyLength": 2**40}}, "configuration.historyLength"),
        ({"metadata": "x"}, "metadata"),
    ],
)
def test_params_that_protobuf_cannot_hold_are_refused_with_their_path(params: object, field: str) -> None:
    rejected = call("SendMessage", params=params)
    assert isinstance(rejected, RejectedCall)
    assert rejected.refusal.kind is InvalidParamsError
    assert [path for path, _ in rejected.refusal.fields] == [field]
    assert field in rejected.refusal.message


@pytest.mark.parametrize("params", [None, []])
def test_params_are_an_object(params: object) -> None:
    rejected = call(params=params)
    assert isinstance(rejected, RejectedCall)
    assert rejected.refusal.kind is InvalidParamsError


def test_of_an_unknown_method_in_an_unknown_version_the_version_is_told() -> None:
    for method in ("Nope", "GetTask", "tasks/get"):
        rejected = call(method, "9.9")
        assert isinstance(rejected, RejectedCall)
        assert (rejected.refusal.kind, rejected.legacy) == (VersionNotSupportedError, False)


def test_a_legacy_call_that_does_not_fit_its_model_names_each_field_once() -> None:
    rejected = call("message/send", None, params={"message": {"parts": [{"kind": "text"}], "role": 5}})
    assert isinstance(rejected, RejectedCall)
    assert (rejected.refusal.kind, rejected.legacy) == (InvalidParamsError, True)
    assert [path for path, _ in rejected.refusal.fields] == [
        "message.messageId",
        "message.parts[0]",
        "message.role",
    ]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tasks/get", {"id": "t", "historyLength": 2**40}),
        *(
            ("message/send", {"message": {"messageId": "m", "role": "user", "parts": [part]}})
            for part in (
                {"kind": "file", "file": {"bytes": "a"}},
                {"kind": "data", "data": {}, "metadata": {"data_part_compat": True}},
            )
        ),
    ],
)
def test_a_legacy_call_that_cannot_become_a_10_one_has_invalid_params(method: str, params: object) -> None:
    rejected = call(method, None, params=params)
    assert isinstance(rejected, RejectedCall)
    assert (rejected.refusal.kind, rejected.legacy) == (InvalidParamsError, True)


def test_a_legacy_call_has_the_operation_and_the_params_of_10() -> None:
    params = pb.GetTaskRequest(id="t", history_length=3)
    assert call("tasks/get", None, params={"id": "t", "historyLength": 3}) == Call("GetTask", params, True, 7)
