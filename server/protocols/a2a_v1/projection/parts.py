"""Parts, messages and artifacts: A2A's protobuf to ours and back. The only file that knows both shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import assert_never, cast

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value

from a2a_canvas.server.agent.events import AgentMessage, ArtifactChanged, UserMessage
from a2a_canvas.server.protocols.a2a_v1.errors import invalid_field
from a2a_canvas.server.protocols.guard.checks import BodyLimits, check_json
from a2a_canvas.server.protocols.guard.proto_messages import USER_ROLE
from a2a_canvas.server.wire import AGENTSTACK, CANVAS, whole_numbers
from a2a_canvas.store.models import Content, DataPart, FilePart, JsonValue, Metadata, Part, Parts, TextPart, text_part
from a2a_canvas.store.text.unicode import MAX_ID, valid_id

_IDS = ("id", "message_id", "context_id", "task_id", "reference_task_ids", "message")
"""The fields of a request that are ids, and `message`, which contains some."""

OPERATION_LIMITS = BodyLimits(max_depth=8)
"""Limits of an operation in a string: it is nested below the levels of its request."""

# ------------------------------------------------------------------------- reading


def check_ids(request: Message, within: str = "") -> None:
    """Raises `InvalidParamsError` with the JSON name of the first id that has a forbidden character."""
    for field, value in request.ListFields():
        where = within + field.json_name
        if field.name not in _IDS:
            continue
        if isinstance(value, Message):
            check_ids(value, f"{where}.")
        elif isinstance(value, str):
            check_characters(where, value)
        else:
            for number, each in enumerate(value):
                check_characters(f"{where}[{number}]", each)


def check_tenant(request: Message) -> None:
    """Raises `InvalidParamsError` for a tenant: the card offers none."""
    if getattr(request, "tenant", ""):
        raise invalid_field("tenant", "must be left out: this agent's card offers none")


def check_characters(field: str, given: str) -> None:
    """Raises `InvalidParamsError` if `given` has a character that no id may have."""
    try:
        valid_id(given)
    except ValueError as error:
        raise invalid_field(field, str(error)) from None


def user_message(message: pb.Message, of_request: Struct | None = None) -> UserMessage:
    """The user's message in a request.

    Args:
        of_request: the request's own metadata, which may also contain operations (`with_operations`).

    Raises:
        InvalidParamsError: its role is not the user's, it is empty, an id is too long, or it has two operations.
    """
    for name, given in (
        ("messageId", message.message_id),
        ("contextId", message.context_id),
        ("taskId", message.task_id),
    ):
        if len(given) > MAX_ID:
            raise invalid_field(f"message.{name}", f"must not be longer than {MAX_ID} characters")
    if message.role != pb.ROLE_USER:
        raise invalid_field("message.role", f"must be {USER_ROLE}")
    parts = tuple(_part(part, f"message.parts[{index}]") for index, part in enumerate(message.parts))
    fields = _fields(message.metadata, "message.metadata"), _fields(of_request or Struct(), "metadata")
    metadata = with_operations(*fields)
    if not has_content(parts, metadata):
        raise invalid_field("message.parts", "must have a part that says something: text, a file or data")
    return UserMessage(
        message_id=message.message_id,
        parts=parts,
        metadata=metadata,
        extensions=tuple(message.extensions),
        reference_task_ids=tuple(message.reference_task_ids),
    )


def with_operations(metadata: Metadata, of_request: Metadata) -> dict[str, JsonValue]:
    """A message's metadata with the operations in its request's metadata, each as an object.

    Raises:
        InvalidParamsError: message and request have different ones.
    """
    merged = dict(metadata)
    for uri in (CANVAS, AGENTSTACK):
        given = [_operation(place[uri]) for place in (metadata, of_request) if place.get(uri) is not None]
        if len({json.dumps(each, sort_keys=True) for each in given}) > 1:
            raise invalid_field(f"metadata[{uri}]", "must be left out of the request or of the message: they differ")
        if given:
            merged[uri] = given[0]
    return merged


def _operation(given: JsonValue) -> JsonValue:
    """Some clients can send only strings: an object may be written as JSON in one."""
    value = check_json(given.encode(), OPERATION_LIMITS) if isinstance(given, str) else None
    return cast("JsonValue", whole_numbers(value)) if isinstance(value, dict) else given


def check_text(message: UserMessage, limit: int, field: str) -> None:
    """Raises `InvalidParamsError` if a message has more than `limit` bytes of text and data.

    Files and the text of the operation `put` do not count: they have limits of their own.

    Args:
        field: the sender's name for the message's parts.
    """
    size = sum(part.size for part in message.parts if not isinstance(part, FilePart))
    size += sum(len(json.dumps(part.metadata)) for part in message.parts if part.metadata)
    size += len(json.dumps(_without_put(message.metadata))) if message.metadata else 0
    if size > limit:
        reason = f"has {size} bytes of text and data with its metadata, and may have {limit}; send it as a file"
        raise invalid_field(field, reason)


def _without_put(metadata: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    operation = metadata.get(CANVAS)
    if isinstance(operation, dict) and operation.get("op") == "put":
        return {**metadata, CANVAS: {**operation, "text": ""}}
    return metadata


def has_content(parts: Parts, metadata: Metadata) -> bool:
    """Whether a message says something: in a part that is more than white space, or by an operation. An operation that
    needs words checks that itself."""
    operation = metadata.get(CANVAS)
    return (isinstance(operation, dict) and "op" in operation) or any(
        not isinstance(part, TextPart) or part.text.strip() for part in parts
    )


def _part(part: pb.Part, where: str) -> Part:
    metadata = _fields(part.metadata, f"{where}.metadata")
    match part.WhichOneof("content"):
        case "text":
            return text_part(part.text, part.media_type, metadata)
        case "raw":
            return FilePart(part.raw, "", part.filename, part.media_type, metadata)
        case "url":
            return FilePart(None, part.url, part.filename, part.media_type, metadata)
        case "data":
            data = _json(part.data, f"{where}.data")
            return DataPart(data, part.media_type, metadata, len(json.dumps(data).encode()))
        case _:
            raise invalid_field(where, "has no content; give it one of text, raw, url or data")


def _fields(struct: Struct, where: str) -> dict[str, JsonValue]:
    fields = _json(struct, where)
    assert isinstance(fields, dict)
    return fields


def _json(value: Value | Struct, where: str) -> JsonValue:
    try:
        plain: JsonValue = whole_numbers(MessageToDict(value))
        return plain
    except (ValueError, RecursionError):
        raise invalid_field(where, "must be plain JSON, without NaN or infinite numbers") from None


# ------------------------------------------------------------------------- writing


def to_part(part: Part) -> pb.Part:
    """A part as A2A 1.0 has it."""
    wire = pb.Part(media_type=part.media_type)
    match part:
        case TextPart():
            wire.text = part.text
        case FilePart():
            wire.filename = part.name
            if part.content is None:
                wire.url = part.url
            else:
                wire.raw = part.content
        case DataPart():
            _fill(wire.data, part.data)
        case _:
            assert_never(part)
    if part.metadata:
        wire.metadata.update(dict(part.metadata))
    return wire


def _fill(wire: Value, data: JsonValue) -> None:
    """What `ParseDict` does for a JSON value, in a third of its time: there may be 10,000 in one message."""
    match data:
        case str():
            wire.string_value = data
        case None:
            wire.null_value = NULL_VALUE
        case bool():
            wire.bool_value = data
        case int() | float():
            wire.number_value = data
        case Mapping():
            wire.struct_value.SetInParent()
            fields = wire.struct_value.fields
            for name, value in data.items():
                _fill(fields[name], value)
        case _:
            wire.list_value.SetInParent()
            for value in data:
                _fill(wire.list_value.values.add(), value)


def to_message(message: UserMessage | AgentMessage, task_id: str, context_id: str) -> pb.Message:
    """A message of a task's history."""
    wire = pb.Message(message_id=message.message_id, task_id=task_id, context_id=context_id)
    match message:
        case AgentMessage():
            wire.role = pb.ROLE_AGENT
            wire.parts.add(text=message.text)
        case UserMessage():
            wire.role = pb.ROLE_USER
            wire.parts.extend(to_part(part) for part in message.parts)
            wire.extensions.extend(message.extensions)
            wire.reference_task_ids.extend(message.reference_task_ids)
        case _:
            assert_never(message)
    if message.metadata:
        wire.metadata.update(dict(message.metadata))
    return wire


def to_artifact(artifact_id: str, content: Content) -> pb.Artifact:
    """An artifact as A2A 1.0 has it."""
    wire = pb.Artifact(artifact_id=artifact_id, name=content.name, description=content.description)
    wire.parts.extend(to_part(part) for part in content.parts)
    return wire


def to_update(event: ArtifactChanged, task_id: str, context_id: str) -> pb.TaskArtifactUpdateEvent:
    """A change of an artifact: the new parts, or the whole artifact."""
    update = pb.TaskArtifactUpdateEvent(
        task_id=task_id, context_id=context_id, append=event.append, last_chunk=event.last_chunk
    )
    artifact = update.artifact
    artifact.artifact_id = event.artifact_id
    if not event.append:
        artifact.name, artifact.description = event.name, event.description
    artifact.parts.extend(to_part(part) for part in event.parts)
    return update
