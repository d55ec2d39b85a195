"""What a protobuf message must not hold, and which field of an object of JSON does not fit one."""

import json
import math
import re
from typing import cast

import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.protocols.guard.calls import Call
from a2a_canvas.server.protocols.guard.checks import (
    MAX_ITEMS,
    MAX_JSON_DEPTH,
    MAX_VALUES,
    BodyLimits,
    Refusal,
    check_json,
    too_many_items,
    too_many_values,
)
from a2a_canvas.server.protocols.guard.parsing import SMALL_BODY_BYTES
from a2a_canvas.server.protocols.guard.proto_messages import check_message, missing_fields, parse_params
from a2a_canvas.server.protocols.guard.rpc_calls import RejectedCall, check_jsonrpc

LIMITS = BodyLimits()


def nested(levels: int, kind: str) -> object:
    value: object = "x"
    for _ in range(levels):
        value = {"a": value} if kind == "object" else [value]
    return value


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


def test_free_form_json_that_was_judged_as_text_is_not_walked_again() -> None:
    deep = pb.SendMessageRequest()
    ParseDict({"message": {"parts": [{"data": {"x": 1}}]}}, deep)
    deep.message.parts[0].data.struct_value.fields["x"].number_value = math.inf
    assert check_message(deep, LIMITS, from_json=True) is None
    assert check_message(deep, LIMITS) is not None


@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from([None, 5, {"text": 5}, {"text": "a", "url": "b"}]))
def test_the_first_item_of_a_list_that_does_not_fit_is_named(before: int, after: int, wrong: object) -> None:
    parts = [{"text": "x"}] * before + [wrong] * (after + 1)
    refusal = parse_params({"message": {"parts": parts}}, pb.SendMessageRequest, LIMITS)
    assert isinstance(refusal, Refusal)
    below = ".text" if wrong == {"text": 5} else ""
    assert refusal.fields[0][0] == f"message.parts[{before}]{below}"


def with_values(count: int) -> pb.SendMessageRequest:
    """As many messages, the request, its message and the list included."""
    request = pb.SendMessageRequest()
    request.message.metadata["list"] = [True] * (count - 5)
    return request


def test_a_message_with_too_many_values_is_refused_at_one_more_than_the_limit() -> None:
    assert check_message(with_values(MAX_VALUES), LIMITS) is None
    refusal = check_message(with_values(MAX_VALUES + 1), LIMITS)
    assert refusal == too_many_values()


@pytest.mark.parametrize("count", [MAX_ITEMS, MAX_ITEMS + 1])
def test_a_list_of_messages_has_at_most_as_many_as_the_limit(count: int) -> None:
    body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}] * count}}
    refused = parse_params(body, pb.SendMessageRequest, LIMITS)
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send"}
    old = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}] * count}
    answer = check_jsonrpc(json.dumps(call | {"params": {"message": old}}).encode(), None, LIMITS)
    if count == MAX_ITEMS:
        assert not isinstance(refused, Refusal)
        assert isinstance(answer, Call)
        return
    assert refused == too_many_items("message.parts", count)
    assert isinstance(answer, RejectedCall)
    assert answer.refusal == refused


STRUCTS = st.builds(lambda value: ParseDict({"k": value}, Struct()), st.sampled_from([None, "", 0, [[], {}], {"": ""}]))
PARTS = st.builds(pb.Part, text=st.sampled_from(["", "x"]), metadata=st.none() | STRUCTS)
MESSAGES = st.builds(
    pb.Message,
    message_id=st.sampled_from(["", "m"]),
    role=st.sampled_from([0, 1]),
    parts=st.lists(PARTS, max_size=2),
    metadata=st.none() | STRUCTS,
)
SCHEMES = st.builds(
    pb.SecurityScheme,
    api_key_security_scheme=st.none() | st.builds(pb.APIKeySecurityScheme, name=st.sampled_from(["", "n"])),
)
REQUESTS = st.one_of(
    st.builds(pb.SendMessageRequest, message=st.none() | MESSAGES, metadata=st.none() | STRUCTS),
    st.builds(pb.AgentCard, security_schemes=st.dictionaries(st.sampled_from("ab"), SCHEMES, max_size=2)),
    st.builds(pb.TaskPushNotificationConfig, url=st.sampled_from(["", "u"])),
)


@given(REQUESTS)
def test_the_fields_that_are_missing_are_those_that_the_sdk_finds(request: Message) -> None:
    try:
        validate_proto_required_fields(request)
        found = []
    except InvalidParamsError as error:
        found = [each["field"] for each in (error.data or {})["errors"]]
    assert [*missing_fields(request)] == found


@given(st.text(alphabet="AZaz09+/-_=*é", max_size=12))
def test_bytes_are_base64_in_either_alphabet_with_padding_or_without(text: str) -> None:
    slow = re.compile(r"(?:[A-Za-z0-9_+/-]{4})*(?:[A-Za-z0-9_+/-]{2,3}={0,2})?")
    body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"raw": text}]}}
    parsed = parse_params(body, pb.SendMessageRequest, LIMITS)
    assert isinstance(parsed, Refusal) is not bool(slow.fullmatch(text))


def texts_of(*sizes: int) -> dict[str, object]:
    parts: list[object] = [{"text": "x" * size} for size in sizes]
    return {"message": {"parts": [*parts, {"raw": "AAAA" * 1000}]}}


def test_more_text_than_a_message_may_have_is_refused_before_protobuf_reads_it() -> None:
    limits = BodyLimits(max_text_bytes=1000)
    half = SMALL_BODY_BYTES // 2
    assert not isinstance(parse_params(texts_of(half, half + 1000), pb.SendMessageRequest, limits), Refusal)
    refusal = parse_params(texts_of(half, half + 1001), pb.SendMessageRequest, limits)
    assert isinstance(refusal, Refusal)
    assert refusal.message == (
        "message.parts[1].text goes beyond the 1000 bytes of text that a request may have; send it as a file."
    )


def in_message(part: dict[str, object] | None = None, **fields: object) -> dict[str, object]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part or {"text": "x"}], **fields}}


LONG = "x" * (SMALL_BODY_BYTES + 1001)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (in_message(extensions=[LONG]), "message.extensions"),
        (in_message({"url": LONG}), "message.parts[0].url"),
        (in_message({"url": "x", "filename": LONG}), "message.parts[0].filename"),
        (in_message({"url": "x", "mediaType": LONG}), "message.parts[0].mediaType"),
        (in_message() | {"configuration": {"acceptedOutputModes": [LONG]}}, "configuration.acceptedOutputModes"),
    ],
    ids=str,
)
def test_every_text_of_a_message_counts(body: dict[str, object], field: str) -> None:
    refusal = parse_params(body, pb.SendMessageRequest, BodyLimits(max_text_bytes=1000))
    assert isinstance(refusal, Refusal)
    assert refusal.message.startswith(f"{field}")


@pytest.mark.parametrize(
    "path",
    [
        "configuration",
        "configuration.taskPushNotificationConfig",
        "configuration.taskPushNotificationConfig.authentication",
    ],
)
def test_what_is_no_object_is_refused_by_the_name_of_its_field(path: str) -> None:
    value: object = "x"
    for name in reversed(path.split(".")):
        value = {name: value}
    refusal = parse_params({**in_message(), **cast("dict[str, object]", value)}, pb.SendMessageRequest, LIMITS)
    assert isinstance(refusal, Refusal)
    assert refusal.message.startswith(path)
