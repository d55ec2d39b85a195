"""Parts and messages: what came in goes out as it was, and every JSON value survives."""

import json
import math
import re
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.annotation_operations import Annotate
from a2a_canvas.server.agent.events import AgentMessage
from a2a_canvas.server.agent.operation_forms import InvalidOperation, SelectionRequest
from a2a_canvas.server.protocols.a2a_v1.projection.parts import (
    check_ids,
    to_message,
    to_part,
    user_message,
    with_operations,
)
from a2a_canvas.server.wire import AGENTSTACK, CANVAS
from a2a_canvas.store.models import DataPart, FilePart, TextPart, text_part

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)  # not -0.0
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(words, json_values, max_size=3)


@st.composite
def parts(draw: st.DrawFn) -> pb.Part:
    part = pb.Part(media_type=draw(st.sampled_from(["", "text/plain"])))
    match draw(st.sampled_from(["text", "raw", "url", "data"])):
        case "text":
            part.text = draw(words)
        case "raw":
            part.raw, part.filename = draw(st.binary(max_size=8)), draw(words)
        case "url":
            part.url, part.filename = draw(words), draw(words)
        case _:
            ParseDict(draw(json_values), part.data)
    if metadata := draw(objects):
        part.metadata.update(metadata)
    return part


def message(*content: pb.Part, **fields: Any) -> pb.Message:
    return pb.Message(**{"message_id": "m", "role": pb.ROLE_USER, "parts": content} | fields)


HELLO = pb.Part(text="hello")


@given(st.lists(parts(), max_size=4), objects)
def test_a_message_goes_out_as_it_came_in(content: list[pb.Part], metadata: dict[str, Any]) -> None:
    came = message(HELLO, *content, extensions=["urn:x"], reference_task_ids=["t0"], task_id="t", context_id="c")
    if metadata:
        came.metadata.update(metadata)
    assert to_message(user_message(came), "t", "c") == came


@given(json_values)
def test_data_is_read_as_the_json_it_was_whole_numbers_included(value: Any) -> None:
    (part,) = user_message(message(pb.Part(data=ParseDict(value, Value())))).parts
    assert isinstance(part, DataPart)
    assert part.data == value
    if isinstance(value, int):
        assert isinstance(part.data, int)


def test_each_kind_of_part_is_what_it_says() -> None:
    read = user_message(
        message(
            pb.Part(text="hi", media_type="text/markdown"),
            pb.Part(raw=b"\x00\xff", filename="f.bin", media_type="application/octet-stream"),
            pb.Part(url="https://example.com/a.png", filename="a.png"),
            pb.Part(data=ParseDict({"n": [1, 2.5, None]}, Value())),
        )
    ).parts
    assert read == (
        text_part("hi", "text/markdown"),
        FilePart(b"\x00\xff", "", "f.bin", "application/octet-stream"),
        FilePart(None, "https://example.com/a.png", "a.png"),
        DataPart({"n": [1, 2.5, None]}, size=21),
    )


def test_an_empty_file_is_a_file_with_no_bytes_and_not_one_without_content() -> None:
    (part,) = user_message(message(pb.Part(raw=b"", filename="empty"))).parts
    assert part == FilePart(b"", name="empty")
    assert to_part(part).WhichOneof("content") == "raw"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_refused_where_they_stand(number: float) -> None:
    with pytest.raises(InvalidParamsError, match=r"message\.parts\[1\]\.data"):
        user_message(message(HELLO, pb.Part(data=Value(number_value=number))))
    with pytest.raises(InvalidParamsError, match=r"message\.parts\[0\]\.metadata"):
        user_message(message(pb.Part(text="x", metadata={"n": number})))
    with pytest.raises(InvalidParamsError, match=r"message\.metadata"):
        user_message(message(HELLO, metadata={"n": number}))


@pytest.mark.parametrize("content", [(), (pb.Part(text=""),), (pb.Part(text=" \n"), pb.Part(text="\t"))])
def test_a_message_that_says_nothing_is_refused(content: tuple[pb.Part, ...]) -> None:
    with pytest.raises(InvalidParamsError, match=r"message\.parts must have a part that says something"):
        user_message(message(*content))


def test_an_operation_needs_no_words_unless_it_says_so() -> None:
    suggestion = {"op": "annotate", "artifactId": "doc", "selection": {"start": 0, "end": 1}, "replacement": "x"}
    blank = message(pb.Part(text=""), metadata={CANVAS: suggestion})
    assert user_message(blank).intent == Annotate("doc", SelectionRequest(0, 1), "", "x", None)
    blank.metadata.update({CANVAS: {"op": "edit", "artifactId": "doc", "selection": {"start": 0, "end": 1}}})
    with pytest.raises(InvalidOperation, match="must say in a text what is to be changed"):
        assert user_message(blank).intent


def test_a_part_without_content_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidParamsError, match=r"message\.parts\[1\] has no content"):
        user_message(message(HELLO, pb.Part(media_type="text/plain")))


@pytest.mark.parametrize("role", [pb.ROLE_AGENT, pb.ROLE_UNSPECIFIED])
def test_only_users_send_messages(role: pb.Role) -> None:
    with pytest.raises(InvalidParamsError, match="ROLE_USER"):
        user_message(message(HELLO, role=role))


def test_what_the_agent_says_is_one_text_part_of_its_own_message() -> None:
    wire = to_message(AgentMessage("m2", "Done."), "t", "c")
    assert MessageToDict(wire) == {
        "messageId": "m2",
        "taskId": "t",
        "contextId": "c",
        "role": "ROLE_AGENT",
        "parts": [{"text": "Done."}],
    }


def test_a_text_part_without_text_is_still_a_text_part() -> None:
    wire = to_part(text_part(""))
    assert wire.WhichOneof("content") == "text"
    assert isinstance(user_message(message(HELLO, wire)).parts[1], TextPart)


@pytest.mark.parametrize(
    ("field", "sent_as"), [("message_id", "messageId"), ("context_id", "contextId"), ("task_id", "taskId")]
)
def test_an_id_that_would_weigh_down_every_event_is_refused(field: str, sent_as: str) -> None:
    came = message(HELLO)
    setattr(came, field, "x" * 256)
    user_message(came)
    setattr(came, field, "x" * 257)
    with pytest.raises(InvalidParamsError, match=f"message.{sent_as} must not be longer than 256"):
        user_message(came)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.GetTaskRequest(id="a\0"), "id"),
        (pb.CancelTaskRequest(id="a\n"), "id"),
        (pb.SubscribeToTaskRequest(id="\x1f"), "id"),
        (pb.ListTasksRequest(context_id="a\0b"), "contextId"),
        (pb.ListTaskPushNotificationConfigsRequest(task_id="\0"), "taskId"),
        (pb.SendMessageRequest(message=pb.Message(message_id="\0")), "message.messageId"),
        (pb.SendMessageRequest(message=pb.Message(context_id="\0")), "message.contextId"),
        (pb.SendMessageRequest(message=pb.Message(task_id="\0")), "message.taskId"),
        (pb.SendMessageRequest(message=pb.Message(reference_task_ids=["a", "\t"])), "message.referenceTaskIds[1]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_id_with_a_control_character_is_refused_by_its_name_on_the_wire(request_: Any, field: str) -> None:
    with pytest.raises(InvalidParamsError, match=rf"^{re.escape(field)} must not contain the (control )?character"):
        check_ids(request_)


def test_what_is_no_id_may_have_any_character() -> None:
    check_ids(pb.SendMessageRequest(message=message(pb.Part(text="a\0b\n"))))


# ------------------------------------------------------- operations in the request's metadata

UNDO: dict[str, Any] = {"op": "undo", "artifactId": "doc", "baseVersion": 3}


@pytest.mark.parametrize("uri", [CANVAS, AGENTSTACK])
@pytest.mark.parametrize("given", [UNDO, json.dumps(UNDO), json.dumps(UNDO, indent=2)])
def test_an_operation_counts_in_the_message_and_in_the_request_as_an_object_and_as_its_json(
    uri: str, given: Any
) -> None:
    for found in (with_operations({uri: given, "k": "v"}, {}), with_operations({"k": "v"}, {uri: given, "x": 1})):
        assert found == {uri: UNDO, "k": "v"}


def test_the_same_in_both_places_is_one_and_different_ones_are_refused() -> None:
    assert with_operations({CANVAS: UNDO}, {CANVAS: json.dumps({**UNDO, "baseVersion": 3.0})}) == {CANVAS: UNDO}
    for other in ({**UNDO, "baseVersion": 2}, {**UNDO, "group": True}, "undo"):
        with pytest.raises(InvalidParamsError, match=re.escape(CANVAS)):
            with_operations({CANVAS: UNDO}, {CANVAS: other})
    with pytest.raises(InvalidParamsError):
        with_operations({CANVAS: {**UNDO, "group": 1}}, {CANVAS: {**UNDO, "group": True}})
    assert with_operations({CANVAS: None}, {CANVAS: UNDO}) == {CANVAS: UNDO}


@pytest.mark.parametrize(
    "text", ["undo", "", "[1]", "3", '{"a":', '{"a":1,"a":2}', '{"a":NaN}', '{"a":' * 9 + "1" + "}" * 9]
)
def test_a_string_that_is_no_object_stays_one_and_is_refused_as_an_operation(text: str) -> None:
    assert with_operations({CANVAS: text}, {}) == {CANVAS: text}
    came = message(HELLO)
    came.metadata.update({CANVAS: text})
    said = user_message(came)
    with pytest.raises(InvalidOperation, match="must be an object"):
        assert said.intent
