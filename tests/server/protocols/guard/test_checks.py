"""What the guard decides, without HTTP or gRPC around it."""

import json
import math

import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    VersionNotSupportedError,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from a2a_canvas.server.protocols.guard.checks import (
    MAX_JSON_DEPTH,
    MAX_VALUES,
    BodyLimits,
    Refusal,
    check_content_type,
    check_json,
    check_version,
)
from a2a_canvas.server.protocols.guard.proto_messages import check_message
from a2a_canvas.server.protocols.guard.rest import RestRoute, allowed_methods, check_rest, find_rest_route
from a2a_canvas.server.protocols.guard.rpc_calls import RejectedCall, RpcCall, check_jsonrpc, check_legacy_proto

LIMITS = BodyLimits()
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def nested(levels: int, kind: str) -> object:
    value: object = "x"
    for _ in range(levels):
        value = {"a": value} if kind == "object" else [value]
    return value


@given(JSON)
def test_all_json_that_utf8_and_doubles_hold_is_read_as_the_json_module_reads_it(value: object) -> None:
    assert check_json(json.dumps(value).encode(), LIMITS) == value
    assert check_json(json.dumps(value, ensure_ascii=False).encode(), LIMITS) == value


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_value_or_a_refusal(body: bytes) -> None:
    value = check_json(body, LIMITS)
    assert isinstance(value, Refusal) or value == json.loads(body.decode())


@given(st.text(alphabet='[]{}"\\x,:u'))
def test_brackets_in_strings_are_no_depth(text: str) -> None:
    assert check_json(json.dumps([text, text]).encode(), BodyLimits(max_depth=1)) == [text, text]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth_is_refused_at_one_level_more_than_the_limit(opening: str) -> None:
    closing = "]" if opening == "[" else "}"

    def of(levels: int) -> bytes:
        return (opening * levels + "1" + closing * levels).encode()

    assert not isinstance(check_json(of(MAX_JSON_DEPTH), LIMITS), Refusal)
    refusal = check_json(of(MAX_JSON_DEPTH + 1), LIMITS)
    assert isinstance(refusal, Refusal)
    assert "32 levels" in refusal.message


@pytest.mark.parametrize("body", [b"[" * 10**6, b'{"a":' * 10**6, b'"' + b'\\"' * 10**6, b'"\\'])
def test_long_nonsense_is_refused_in_one_pass(body: bytes) -> None:
    assert isinstance(check_json(body, LIMITS), Refusal)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", JSONParseError),
        (b"{", JSONParseError),
        (b"\xff", JSONParseError),
        ('{"a":1}'.encode("utf-16"), JSONParseError),
        (b"\xef\xbb\xbf{}", JSONParseError),
        (b"NaN", JSONParseError),
        (b"[-Infinity]", JSONParseError),
        (b"1e999", InvalidRequestError),
        (b"1" * 400, InvalidRequestError),
        (b"1" * 10_000, InvalidRequestError),
        (rb'"\ud800"', InvalidRequestError),
        (rb'{"\udc00":1}', InvalidRequestError),
        (rb'"\ud800\ud800\udc00"', InvalidRequestError),
        (b'{"a":1,"a":2}', InvalidRequestError),
    ],
)
def test_what_protobuf_or_utf8_cannot_hold_is_refused(body: bytes, kind: type[Exception]) -> None:
    refusal = check_json(body, LIMITS)
    assert isinstance(refusal, Refusal)
    assert refusal.kind is kind


def test_escapes_that_pair_up_and_nul_are_fine() -> None:
    assert check_json(rb'["\ud83d\ude00", "\\ud800", "\u0000"]', LIMITS) == ["\U0001f600", "\\ud800", "\0"]


@pytest.mark.parametrize("levels", [{"max_body_bytes": 0}, {"max_depth": 0}, {"max_depth": MAX_JSON_DEPTH + 1}])
def test_limits_that_cannot_hold_are_refused(levels: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="has to be"):
        BodyLimits(**levels)


@pytest.mark.parametrize("kind", ["object", "list"])
def test_what_max_depth_lets_pass_can_be_copied_stored_and_sent_on_in_both_versions(kind: str) -> None:
    from a2a.compat.v0_3 import conversions, proto_utils

    data = nested(MAX_JSON_DEPTH - 4, kind)
    body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": data}]}}
    assert not isinstance(check_json(json.dumps(body).encode(), LIMITS), Refusal)
    message = ParseDict(body, pb.SendMessageRequest()).message
    assert check_message(pb.SendMessageRequest(message=message), LIMITS) is None
    task = pb.Task(id="t", status=pb.TaskStatus(message=message), history=[message])
    answer = pb.StreamResponse(task=task)
    assert pb.StreamResponse.FromString(answer.SerializeToString()) == answer
    assert ParseDict(MessageToDict(answer), pb.StreamResponse()) == answer
    legacy = pb03.StreamResponse(task=proto_utils.ToProto.task(conversions.to_compat_task(task)))
    assert pb03.StreamResponse.FromString(legacy.SerializeToString()) == legacy


@pytest.mark.parametrize(
    ("header", "spoken", "passes"),
    [
        (None, None, True),
        ("", "0.3", True),
        (None, "1.0", False),
        ("0.3", "0.3", True),
        ("0.3.7", "0.3", True),
        ("1.0", "1.0", True),
        ("1", "1.0", True),
        ("1.1", "1.0", True),
        ("1.0.5", "1.0", True),
        ("1.0", "0.3", False),
        ("0.3", "1.0", False),
        *(
            (bad, None, False)
            for bad in ("0.2", "0.30", "2.0", "10", "v1.0", "1.0, 0.3", " 1.0", "garbage", "1.x", "١")
        ),
    ],
)
def test_a_version_is_03_or_1_and_nothing_is_03(header: str | None, spoken: str | None, passes: bool) -> None:
    refusal = check_version(header, spoken)
    assert (refusal is None) == passes
    assert refusal is None or refusal.kind is VersionNotSupportedError


@pytest.mark.parametrize("header", ["application/json", "Application/A2A+JSON ; charset=utf-8"])
def test_json_has_two_names(header: str) -> None:
    assert check_content_type(header) is None


@pytest.mark.parametrize("header", [None, "", "text/plain", "application/jsonp", "application/x-www-form-urlencoded"])
def test_other_content_types_are_refused(header: str | None) -> None:
    refusal = check_content_type(header)
    assert refusal is not None
    assert refusal.kind is ContentTypeNotSupportedError


def with_part(**part: object) -> pb.SendMessageRequest:
    return pb.SendMessageRequest(message=pb.Message(parts=[pb.Part(**part)]))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_lacks_are_found_wherever_a_message_has_them(number: float) -> None:
    request = with_part(text="x")
    request.message.parts[0].metadata["a"] = [{"b": number}]
    refusal = check_message(request, LIMITS)
    assert refusal is not None
    assert refusal.kind is InvalidParamsError
    path, _ = refusal.fields[0]
    assert path.startswith("message.parts[0].metadata.fields[a]")


def test_parts_without_content_and_impossible_times_are_found() -> None:
    refusal = check_message(with_part(), LIMITS)
    assert refusal is not None
    assert refusal.fields[0][0] == "message.parts[0]"
    request = pb.ListTasksRequest()
    request.status_timestamp_after.seconds = 2**60
    refusal = check_message(request, LIMITS)
    assert refusal is not None
    assert refusal.fields[0][0] == "statusTimestampAfter"


def test_a_protobuf_message_has_the_depth_of_its_json() -> None:
    request = with_part(text="x")
    body = {"message": {"parts": [{"data": nested(MAX_JSON_DEPTH - 4, "object")}]}}
    assert check_message(ParseDict(body, pb.SendMessageRequest()), LIMITS) is None
    body = {"message": {"parts": [{"data": nested(MAX_JSON_DEPTH - 3, "object")}]}}
    refusal = check_message(ParseDict(body, request), LIMITS)
    assert refusal is not None
    assert "levels" in refusal.message


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


def test_an_unknown_method_is_left_to_the_sdk_and_an_unknown_version_is_not() -> None:
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


@pytest.mark.parametrize(
    ("method", "path", "version"),
    [
        ("POST", "/rest/message:send", "1.0"),
        ("POST", "/rest/v1/message:stream", "0.3"),
        ("POST", "/acme/rest/tasks/a:b:cancel", "1.0"),
        ("HEAD", "/rest/tasks", "1.0"),
        ("DELETE", "/rest/tasks/x/pushNotificationConfigs/y", "1.0"),
        ("GET", "/rest/v1/card", "0.3"),
    ],
)
def test_a_rest_path_finds_its_route(method: str, path: str, version: str) -> None:
    route = find_rest_route(method, path, "/rest")
    assert isinstance(route, RestRoute)
    assert route.version == version


@pytest.mark.parametrize(
    "path", ["/message:send", "/rest", "/rest/", "/rest/x", "/a/b/rest/tasks", "/acme/rest/v1/card"]
)
def test_other_paths_have_no_route(path: str) -> None:
    assert allowed_methods(path, "/rest") == ()


def test_a_path_knows_its_methods() -> None:
    assert allowed_methods("/rest/tasks/x/pushNotificationConfigs/y", "/rest") == ("DELETE", "GET")
    assert allowed_methods("/rest/message:send", "/rest") == ("POST",)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("pageSize=x", "pageSize"),
        ("pageSize=99999999999", "pageSize"),
        ("statusTimestampAfter=x", "statusTimestampAfter"),
    ],
)
def test_query_parameters_are_tried_as_the_sdk_reads_them(query: str, field: str) -> None:
    route = find_rest_route("GET", "/rest/tasks", "/rest")
    assert route is not None
    assert check_rest(route, QueryParams("pageSize=5&unknown=x"), b"", "1.0", LIMITS) is None
    refusal = check_rest(route, QueryParams(query), b"", "1.0", LIMITS)
    assert refusal is not None
    assert [path for path, _ in refusal.fields] == [field]


def test_a_body_that_the_sdk_does_not_read_may_be_missing_but_not_be_nonsense() -> None:
    route = find_rest_route("POST", "/rest/tasks/x:cancel", "/rest")
    assert route is not None
    assert check_rest(route, QueryParams(), b"", "1.0", LIMITS) is None
    assert check_rest(route, QueryParams(), b'{"metadata":{}}', "1.0", LIMITS) is None
    assert check_rest(route, QueryParams(), b"[]", "1.0", LIMITS) is not None


def test_a_request_with_too_many_values_is_refused_before_anything_parses_it() -> None:
    def body(values: int) -> bytes:
        return json.dumps({"data": [1] * values}).encode()

    assert not isinstance(check_json(body(MAX_VALUES), LIMITS), Refusal)
    refusal = check_json(body(MAX_VALUES + 1), LIMITS)
    assert isinstance(refusal, Refusal)
    assert f"More than {MAX_VALUES} values" in refusal.message


def test_commas_in_text_are_no_values() -> None:
    text = json.dumps({"text": "a, b, " * MAX_VALUES}).encode()
    assert not isinstance(check_json(text, LIMITS), Refusal)


def test_free_form_json_that_was_judged_as_text_is_not_walked_again() -> None:
    deep = pb.SendMessageRequest()
    ParseDict({"message": {"parts": [{"data": {"x": 1}}]}}, deep)
    deep.message.parts[0].data.struct_value.fields["x"].number_value = math.inf
    assert check_message(deep, LIMITS, from_json=True) is None
    assert check_message(deep, LIMITS) is not None
