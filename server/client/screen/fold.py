"""Folds a server's responses into the state of a task, and converts A2A parts to text. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from a2a_canvas.server.client.screen.display import fit, one_line, size_of
from a2a_canvas.server.wire import CANVAS, TURN, whole_numbers

MAX_DATA_CELLS = 60
"""Of a data part's JSON."""
_PIECE = ("adk_partial", "kagent_adk_partial")
BROKE_OFF = "The answer was interrupted; asking again…"

ENDED_BADLY = {
    pb.TASK_STATE_FAILED: "Task failed",
    pb.TASK_STATE_REJECTED: "Task rejected",
    pb.TASK_STATE_CANCELED: "Task canceled",
    pb.TASK_STATE_AUTH_REQUIRED: "Task needs authentication",
}
PAUSED = (pb.TASK_STATE_INPUT_REQUIRED, pb.TASK_STATE_AUTH_REQUIRED)
OVER = {pb.TASK_STATE_COMPLETED, *PAUSED, *ENDED_BADLY}


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call of a tool that waits for the user's approval."""

    tool: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SeenTask:
    """A task as the server's responses describe it. `artifacts` are pairs of id and name, oldest first.

    `broke_off`: the model's answer broke off, and it has not begun another one. `reply`: the visible text of the round
    so far, by turn:v1 or by pieces (`is_piece`). `asked`: the calls that the task's question asks to approve.
    """

    task_id: str = ""
    context_id: str = ""
    state: pb.TaskState = pb.TASK_STATE_UNSPECIFIED
    message: str = ""
    artifacts: tuple[tuple[str, str], ...] = ()
    answered: bool = False
    broke_off: bool = False
    reply: str = ""
    asked: tuple[AskedCall, ...] = ()

    @property
    def where(self) -> str:
        """The ids in parentheses, to append to a sentence; empty until the server has named a task."""
        ids = [f"{word} {value}" for word, value in (("task", self.task_id), ("context", self.context_id)) if value]
        return f" ({', '.join(ids)})" if self.task_id else ""


def fold(seen: SeenTask, response: pb.StreamResponse) -> SeenTask:
    """The state after one more response."""
    match response.WhichOneof("payload"):
        case "task":
            task = response.task
            seen = _with_status(_with_ids(seen, task.id, task.context_id), task.status)
            for artifact in task.artifacts:
                seen = _with_artifact(seen, artifact)
            seen = replace(seen, broke_off=False, reply="")  # the events in between are unknown
        case "status_update":
            update = response.status_update
            seen = _with_status(_with_ids(seen, update.task_id, update.context_id), update.status)
            turn = extension_data(update.metadata, TURN)
            seen = _with_turn(seen, turn) if turn else _with_piece(seen, update)
        case "artifact_update":
            change = response.artifact_update
            seen = _with_artifact(_with_ids(seen, change.task_id, change.context_id), change.artifact)
        case "message":
            message = response.message
            seen = _with_ids(seen, message.task_id, message.context_id)
            seen = replace(seen, message=message_text(message), answered=True)
    return seen


def _with_ids(seen: SeenTask, task_id: str, context_id: str) -> SeenTask:
    return replace(seen, task_id=task_id or seen.task_id, context_id=context_id or seen.context_id)


def _with_status(seen: SeenTask, status: pb.TaskStatus) -> SeenTask:
    asked = approval_calls(status.message) if status.state == pb.TASK_STATE_INPUT_REQUIRED else ()
    return replace(seen, state=status.state, message=message_text(status.message), asked=asked)


def _with_artifact(seen: SeenTask, artifact: pb.Artifact) -> SeenTask:
    names = dict(seen.artifacts)
    names[artifact.artifact_id] = artifact.name or names.get(artifact.artifact_id, "")
    return replace(seen, artifacts=tuple(names.items()))


def _with_turn(seen: SeenTask, turn: dict[str, Any]) -> SeenTask:
    match turn:
        case {"event_type": "llm_call_completed", "data": {"stop_reason": "error"}}:
            return replace(seen, broke_off=True)
        case {"event_type": "message_start"}:
            return replace(seen, broke_off=False, reply="")
        case {"event_type": "text_delta", "data": {"text": str(text)}}:
            return replace(seen, reply=seen.reply + text)
        case {"event_type": "assistant", "data": {"content": str(text)}}:
            return replace(seen, reply=text)
        case _:
            return seen


def is_piece(update: pb.TaskStatusUpdateEvent) -> bool:
    """Whether the text of a status is a piece of the reply, as google-adk marks them; the whole reply follows."""
    return any(
        key in metadata and metadata[key] is True
        for metadata in (update.metadata, update.status.message.metadata)
        for key in _PIECE
    )


def _with_piece(seen: SeenTask, update: pb.TaskStatusUpdateEvent) -> SeenTask:
    if is_piece(update):
        return replace(seen, reply=seen.reply + message_text(update.status.message))
    return replace(seen, reply="") if update.status.HasField("message") else seen


def collect_artifacts(made: dict[str, pb.Artifact], response: pb.StreamResponse) -> None:
    """Update `made`, the artifacts by id, with one more response."""
    for artifact in response.task.artifacts:
        made[artifact.artifact_id] = artifact
    change = response.artifact_update
    if change.append and change.artifact.artifact_id in made:
        made[change.artifact.artifact_id].parts.extend(change.artifact.parts)
    elif response.HasField("artifact_update"):
        made[change.artifact.artifact_id] = change.artifact


def answers_again(before: SeenTask, after: SeenTask, response: pb.StreamResponse) -> bool:
    """Whether the response from `before` to `after` says that the model answers again after an interruption."""
    return before.broke_off and not after.broke_off and response.HasField("status_update")


def extension_data(metadata: Struct, extension: str) -> dict[str, Any]:
    """The data of an extension in the metadata; empty if missing or unreadable."""
    if extension not in metadata or not isinstance(data := metadata[extension], Struct):
        return {}
    said: dict[str, Any] = whole_numbers(MessageToDict(data))
    return said


def approval_calls(message: pb.Message) -> tuple[AskedCall, ...]:
    """The calls that a message asks the user to approve."""
    calls = extension_data(message.metadata, CANVAS).get("approvals")
    found: list[AskedCall] = []
    for call in calls if isinstance(calls, list) else ():
        match call:
            case {"tool": str(tool), **rest}:
                given = rest.get("input")
                found.append(AskedCall(tool, given if isinstance(given, dict) else {}))
    return tuple(found)


def part_label(part: pb.Part) -> str:
    """One line for a part that is not text; empty for text."""
    match part.WhichOneof("content"):
        case "raw" | "url" as kind:
            size = size_of(len(part.raw)) if kind == "raw" else ""
            words = ("file", part.filename, part.media_type, size, part.url)
            return one_line(f"[{' '.join(word for word in words if word)}]")
        case "data":
            data = json.dumps(whole_numbers(MessageToDict(part.data)), ensure_ascii=False, separators=(",", ":"))
            return f"[data {fit(one_line(data), MAX_DATA_CELLS)}]"
        case _:
            return ""


def message_text(message: pb.Message) -> str:
    """A message as text."""
    return "\n".join(part_label(part) or part.text for part in message.parts)
