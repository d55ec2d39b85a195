"""The passages that a server writes while it edits, from the events of `urn:a2a-canvas:canvas:v1`. Pure.

Rule 1: a passage is shown as if it were an artifact of its own, under the id of its edit.
Rule 2: what is said of a passage as a whole replaces the pieces, because some may have been missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from a2a_canvas.server.client.shown import ArtifactUpdate
from a2a_canvas.server.wire import CANVAS


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a passage: its text so far or what is added to it.

    `complete` says that the edit is done, `aborted` that it has come to nothing.
    """

    shown: ArtifactUpdate
    complete: bool = False
    aborted: bool = False


def steps(response: pb.StreamResponse) -> list[Step]:
    """What a response says of passages; nothing if it is malformed."""
    match response.WhichOneof("payload"):
        case "task":
            edits = _canvas(response.task.metadata).get("openEdits")
            return [_open(each) for each in edits if isinstance(each, dict)] if isinstance(edits, list) else []
        case "status_update":
            edit = _canvas(response.status_update.metadata).get("edit")
            return _phase(edit) if isinstance(edit, dict) else []
        case _:
            return []


def _canvas(metadata: Struct) -> dict[str, Any]:
    said = MessageToDict(metadata).get(CANVAS)
    return said if isinstance(said, dict) else {}


def _open(edit: dict[str, Any]) -> Step:
    return Step(_update(edit, str(edit.get("text", ""))))


def _phase(edit: dict[str, Any]) -> list[Step]:
    match edit.get("phase"):
        case "start":
            return [Step(_update(edit, ""))]
        case "chunk":
            return [Step(_update(edit, str(edit.get("chunk", "")), append=True))]
        case "complete" if edit.get("strategy") == "replace":
            return [Step(_update(edit, str(edit.get("updatedContent", ""))), complete=True)]
        case "complete":
            # Here `updatedContent` has the selected text in it, too.
            return [Step(_update(edit, "", append=True), complete=True)]
        case "abort":
            return [Step(_update(edit, "", append=True), aborted=True)]
        case _:
            return []


def _update(edit: dict[str, Any], text: str, *, append: bool = False) -> ArtifactUpdate:
    parts = (text,) if text else ()
    return ArtifactUpdate(str(edit.get("id", "")), parts, str(edit.get("artifactId", "")), append)
