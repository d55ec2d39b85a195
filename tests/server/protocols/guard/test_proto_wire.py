"""The fields of a message are counted in its bytes as protobuf would parse them."""

from typing import Any

import pytest
from a2a.types import a2a_pb2
from google.protobuf.message import DecodeError, Message
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.protocols.guard.proto_wire import has_more_fields

KIND = a2a_pb2.SendMessageRequest.DESCRIPTOR


def request(*parts: a2a_pb2.Part, **fields: Any) -> a2a_pb2.SendMessageRequest:
    message = a2a_pb2.Message(message_id="m", parts=parts, role="ROLE_USER")
    return a2a_pb2.SendMessageRequest(message=message, **fields)


def fields_of(message: Message) -> int:
    """Every value that is set, at every level; entries of a map are messages."""
    found = 0
    for field, value in message.ListFields():
        if field.message_type is None:
            found += len(value) if field.is_repeated else 1
        elif field.message_type.GetOptions().map_entry:
            found += sum(3 + fields_of(value[key]) for key in value)  # the entry, its key and its value
        else:
            found += sum(1 + fields_of(each) for each in (value if field.is_repeated else [value]))
    return found


JSON = st.recursive(
    st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4), st.lists(st.text(min_size=1, max_size=200), max_size=5))
def test_as_many_fields_are_counted_as_the_message_has(metadata: dict[str, Any], texts: list[str]) -> None:
    message = request(*(a2a_pb2.Part(text=text) for text in texts), metadata=metadata)
    data, count = message.SerializeToString(), fields_of(message)
    assert not has_more_fields(data, KIND, count)
    assert has_more_fields(data, KIND, count - 1)


def test_a_large_file_is_one_field() -> None:
    data = request(a2a_pb2.Part(raw=bytes(2**20))).SerializeToString()
    assert not has_more_fields(data, KIND, 5)
    assert has_more_fields(data, KIND, 4)


@pytest.mark.parametrize("more", [b"\x2a\x00", b"\x98\x06\x00", b"\x9d\x06abcd", b"\x99\x06abcdefgh"])
def test_empty_messages_and_unknown_fields_of_every_wire_type_count(more: bytes) -> None:
    inner = more * 100
    data = b"\x12" + bytes([len(inner) & 127 | 128, len(inner) >> 7]) + inner
    a2a_pb2.SendMessageRequest.FromString(data)
    assert has_more_fields(data, KIND, 100)
    assert not has_more_fields(data, KIND, 101)


@given(st.binary(max_size=300))
def test_any_bytes_can_be_counted(data: bytes) -> None:
    assert not has_more_fields(data, KIND, len(data) * 2)


def test_what_protobuf_refuses_is_left_to_it() -> None:
    for data in (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x12\x7f", b"\xff" * 100):
        assert not has_more_fields(data, KIND, 100)
        with pytest.raises(DecodeError):
            a2a_pb2.SendMessageRequest.FromString(data)
