"""Edits and versions over A2A: requests, an artifact to make them on, and the fold of a client that knows canvas."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from a2a.client import ClientCallContext
from a2a.server.tasks.task_manager import append_artifact_to_task
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from tests.server.app_server import TURN, WAYS, Served, Stream, Way, asking, sent

SCRIPT = Path(__file__).parent / "scripts" / "canvas.yaml"
CANVAS = "urn:a2a-canvas:canvas:v1"
AGENTSTACK = "https://a2a-extensions.agentstack.beeai.dev/ui/canvas/v1"

# ----------------------------------------------------------------------------- asking


def activating(*uris: str) -> ClientCallContext:
    return ClientCallContext(service_parameters={"A2A-Extensions": ", ".join(uris)} if uris else {})


def with_metadata(context: str, text: str, metadata: dict[str, Any], *, now: bool = False) -> Any:
    request = asking(text, context=context, now=now)
    request.message.metadata.update(metadata)
    return request


def selected(within: str, quote: str, *, unit: str = "utf16", **more: Any) -> dict[str, Any]:
    """The selection of the first `quote` in a text."""
    before = within[: within.index(quote)]
    start, length = (len(part) if unit == "codepoint" else utf16(part) for part in (before, quote))
    return {"start": start, "end": start + length, "unit": unit, **more}


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@dataclass
class Doc:
    """An artifact in a context of its own."""

    served: Served
    context: str
    text: str = ""
    artifact_id: str = "doc"

    def operation(self, op: str, instruction: str = "please", *, now: bool = False, **fields: Any) -> Any:
        """The request of an operation on it."""
        metadata = {CANVAS: {"op": op, "artifactId": self.artifact_id, **fields}}
        return with_metadata(self.context, instruction, metadata, now=now)

    def edit(self, instruction: str, selection: Any, *, now: bool = False, **fields: Any) -> Any:
        """The request of an edit; a string selects itself."""
        selection = selected(self.text, selection) if isinstance(selection, str) else selection
        return self.operation("edit", instruction, now=now, selection=selection, **fields)

    async def run(self, request: Any, way: Way = WAYS[0]) -> pb.Task:
        return await sent(self.served, way, request)

    def stream(self, request: Any, *uris: str, way: Way = WAYS[0]) -> Stream:
        return Stream(self.served.client(*way).send_message(request, context=activating(*uris)))

    async def now(self) -> dict[str, Any]:
        """The artifact as it stands."""
        response = await self.served.http.get(f"/artifacts/{self.context}/{self.artifact_id}")
        assert response.status_code == 200, response.text
        artifact: dict[str, Any] = response.json()
        return artifact

    async def read(self) -> tuple[int, str]:
        """(current version, text)."""
        artifact = await self.now()
        return artifact["version"], "".join(part.get("text", "") for part in artifact["parts"])

    async def versions(self) -> list[tuple[str, int]]:
        """(author, parent) of each version."""
        response = await self.served.http.get(f"/artifacts/{self.context}/{self.artifact_id}/versions")
        assert response.status_code == 200, response.text
        return [(version["author"], version["parent"]) for version in response.json()["versions"]]

    async def tasks(self) -> list[tuple[str, str]]:
        """(id, state) of all tasks of the context."""
        request = pb.ListTasksRequest(context_id=self.context)
        tasks = (await self.served.client().list_tasks(request)).tasks
        return [(task.id, pb.TaskState.Name(task.status.state)) for task in tasks]


async def made(served: Served, text: str, name: str = "doc.txt", media_type: str = "text/plain") -> Doc:
    """An artifact whose first version, the agent's, has this text."""
    doc = Doc(served, str(uuid4()), text)
    await say(doc, f"make doc {name} {media_type}\n{text}")
    return doc


async def say(doc: Doc, text: str) -> pb.Task:
    """A message of a conversation, answered."""
    task = await doc.run(asking(text, context=doc.context))
    assert task.status.state == pb.TASK_STATE_COMPLETED, task.status
    return task


def watching(served: Served, task_id: str, *uris: str, way: Way = WAYS[0]) -> Stream:
    request = pb.SubscribeToTaskRequest(id=task_id)
    return Stream(served.client(*way).subscribe(request, context=activating(*uris)))


# ---------------------------------------------------------------------------- reading


def canvas_of(event: Any) -> dict[str, Any]:
    """What canvas says with an event of a stream, or with a task."""
    if isinstance(event, pb.StreamResponse):
        event = getattr(event, event.WhichOneof("payload") or "")
    fields: dict[str, Any] = MessageToDict(event.metadata).get(CANVAS, {})
    return fields


def phases(stream: Stream) -> list[dict[str, Any]]:
    """What is told of edits, in order."""
    return [fields["edit"] for event in stream.seen if "edit" in (fields := canvas_of(event))]


def names(stream: Stream) -> list[str]:
    """What happens in a stream, in short: the phases of edits, replaced artifacts, appended ones, and statuses."""
    return [name for event in stream.seen if (name := _name(event))]


def _name(event: pb.StreamResponse) -> str:
    fields = canvas_of(event)
    if "edit" in fields:
        return str(fields["edit"]["phase"])
    if event.HasField("artifact_update"):
        return "appended" if event.artifact_update.append else "replaced"
    if "event_type" in MessageToDict(event.status_update.metadata).get(TURN, {}):
        return ""
    status = event.task.status if event.HasField("task") else event.status_update.status
    return pb.TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()


@dataclass
class Known:
    """What a client that knows canvas has of a task."""

    task: pb.Task = field(default_factory=pb.Task)
    versions: dict[str, Any] = field(default_factory=dict)
    edits: dict[str, dict[str, Any]] = field(default_factory=dict)

    def take(self, event: Any) -> Known:
        """What it has after one more event: docs/canvas.md."""
        after = deepcopy(self)
        fields = canvas_of(event)
        match event:
            case pb.Task():
                after.task.CopyFrom(event)
                after.versions = fields["artifacts"]
                after.edits = {edit["id"]: edit for edit in fields["openEdits"]}
            case pb.TaskArtifactUpdateEvent():
                append_artifact_to_task(after.task, event)
                facts = {key: fields[key] for key in ("artifactVersion", "author")}
                after.versions[event.artifact.artifact_id] = facts
            case pb.TaskStatusUpdateEvent() if "edit" in fields:
                after._edit(fields["edit"])
            case pb.TaskStatusUpdateEvent():
                after.task.status.CopyFrom(event.status)
        return after

    def _edit(self, edit: dict[str, Any]) -> None:
        match edit:
            case {"phase": "start", "id": edit_id, **fields}:
                self.edits[edit_id] = {"id": edit_id, **fields, "text": ""}
            case {"phase": "chunk", "id": edit_id, "chunk": chunk}:
                self.edits[edit_id]["text"] += chunk
            case {"phase": "complete" | "suggested" | "abort", "id": edit_id}:
                del self.edits[edit_id]

    def seen(self) -> Any:
        """What it shows: to be compared with what another client shows."""
        artifacts = {
            artifact.artifact_id: ("".join(part.text for part in artifact.parts), artifact.name)
            for artifact in self.task.artifacts
        }
        return artifacts, self.task.status.state, self.versions, self.edits


def folded(events: Iterable[Any]) -> Known:
    known = Known()
    for event in events:
        payload = getattr(event, event.WhichOneof("payload")) if isinstance(event, pb.StreamResponse) else event
        known = known.take(payload)
    return known


CODE = """import time


def fetch(url):
    return time.sleep(1)


def main():
    fetch("def fetch(url):")
"""


LOOP = """items = [1, 2]
squares = []
for item in items:
    squares.append(item * item)
print(squares)
"""


POOLS = "# Tide pools\n\nThe tide comes in. Crabs hide.\n\n- one\n- two\n"


WORDS = "One two three.\nFour five six.\nSeven eight nine.\n"
