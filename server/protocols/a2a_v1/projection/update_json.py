"""Writes the frequent updates of a stream as A2A's JSON, without protobuf in between. Pure.

Rule 1: the result equals that of `MessageToDict` for the same update (projection.py), at a fraction of its cost. That
        includes the numbers of metadata, which are doubles there.
Rule 2: updates that are not frequent are left to protobuf: the result is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.protocols.edge.wire_times import timestamp
from a2a_canvas.store.models import TextPart

Json = dict[str, Any]

LEGACY: Final = "a2a_canvas.legacy"
"""The key in the state of a call's context that says that the caller speaks A2A 0.3."""


@dataclass(frozen=True, slots=True)
class JsonUpdate:
    """An update: its member of A2A's `StreamResponse`, and its fields."""

    member: Literal["statusUpdate", "artifactUpdate"]
    fields: Json


def artifact_update_json(event: ArtifactChanged, task_id: str, context_id: str, metadata: Json) -> JsonUpdate | None:
    """A change of an artifact if it appends plain text, as nearly all changes do.

    Args:
        metadata: of the update.
    """
    if not event.append:
        return None
    parts: list[Json] = []
    for part in event.parts:
        if not isinstance(part, TextPart) or part.metadata:
            return None
        parts.append({"text": part.text, "mediaType": part.media_type} if part.media_type else {"text": part.text})
    artifact: Json = {"artifactId": event.artifact_id}
    if parts:
        artifact["parts"] = parts
    fields: Json = {"taskId": task_id, "contextId": context_id, "artifact": artifact, "append": True}
    if event.last_chunk:
        fields["lastChunk"] = True
    if metadata:
        fields["metadata"] = struct_json(metadata)
    return JsonUpdate("artifactUpdate", fields)


def working_json(task_id: str, context_id: str, at: datetime | None, metadata: Json) -> JsonUpdate:
    """A `working` status without a message: an event of one of the extensions."""
    status = {"state": "TASK_STATE_WORKING"}
    if at is not None:
        status["timestamp"] = timestamp_json(at)
    fields = {"taskId": task_id, "contextId": context_id, "status": status, "metadata": struct_json(metadata)}
    return JsonUpdate("statusUpdate", fields)


def struct_json(fields: Mapping[str, Any]) -> Json:
    """The fields of a `Struct`."""
    return {name: _value(value) for name, value in fields.items()}


def _value(value: Any) -> Any:
    match value:
        case bool() | str() | None:
            return value
        case int() | float():
            return float(value)
        case Mapping():
            return struct_json(value)
        case _:
            return [_value(each) for each in value]


def timestamp_json(at: datetime) -> str:
    """A time, which has a zone, as protobuf writes a `Timestamp` in milliseconds: whole seconds have no fraction."""
    return timestamp(at).replace(".000Z", "Z")
