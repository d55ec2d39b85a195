"""JSON-RPC requests from bytes to a call or a refusal, and messages of A2A 0.3."""

import json

import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import (
    InvalidParamsError,
    InvalidRequestError,
    VersionNotSupportedError,
)

from a2a_canvas.server.protocols.guard.checks import (
    BodyLimits,
)
from a2a_canvas.server.protocols.guard.rpc_calls import RejectedCall, RpcCall, check_jsonrpc, check_legacy_proto

LIMITS = BodyLimits()


def test_a_legacy_message_is_tried_all_the_way_to_the_10_one() -> None:
    message = pb03.Message(message_id="m", role=pb03.ROLE_USER, content=[pb03.Part(text="x")])
    assert check_legacy_proto(pb03.SendMessageRequest(request=message), LIMITS) is None
    message.content[0].file.file_with_bytes = b"\xff"
    refusal = check_legacy_proto(pb03.SendMessageRequest(request=message), LIMITS)
    assert refusal is not None
    assert refusal.kind is InvalidParamsError


def call(method: object = "GetTask", version: str | None = "1.0", **members: object) -> RpcCall | RejectedCall:
    request = {"jsonrpc": "2.0", "id": 7, "method": method, **members}
    return check_jsonrpc(json.dumps(request).encode(), version, LIMITS)


@pytest.mark.parametrize("id_", ["a", 7, -1, None, 10**30])
def test_a_call_keeps_its_id(id_: object) -> None:
    assert call(id=id_) == RpcCall(id_, "GetTask", pb.GetTaskRequest())


@pytest.mark.parametrize(
    "members",
    [{"id": True}, {"id": 1.5}, {"id": []}, {"id": {}}, {"jsonrpc": "1.0"}, {"jsonrpc": 2.0}, {"extra": 1}]
    + [{"method": method} for method in (None, 5, "", "rpc.x", [], {})]
    + [{"params": params} for params in ("x", 1, True)],
)
def test_an_envelope_that_is_no_json_rpc_is_an_invalid_request(members: dict[str, object]) -> None:
    rejected = call(**members)
    assert isinstance(rejected, RejectedCall)
    assert rejected.refusal.kind is InvalidRequestError
    assert rejected.id == (None if "id" in members else 7)


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


def test_an_unknown_method_is_left_to_the_route_and_an_unknown_version_is_not() -> None:
    assert call("Nope") == RpcCall(7, "Nope")
    for method in ("Nope", "GetTask", "tasks/get"):
        rejected = call(method, "9.9")
        assert isinstance(rejected, RejectedCall)
        assert (rejected.refusal.kind, rejected.legacy) == (VersionNotSupportedError, False)


def test_a_legacy_call_that_does_not_fit_its_model_names_each_field_once() -> None:
    rejected = call("message/send", None, params={"message": {"parts": [{"kind": "text"}], "role": 5}})
    assert isinstance(rejected, RejectedCall)
    assert (rejected.refusal.kind, rejected.legacy) == (InvalidRequestError, True)
    assert [path for path, _ in rejected.refusal.fields] == [
        "params.message.messageId",
        "params.message.parts[0]",
        "params.message.role",
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
