"""Artifacts and versions as JSON: the fields of an A2A 1.0 `Artifact`, and this server's own. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.operation_forms import instruction_of
from a2a_canvas.server.protocols.a2a_v1.projection.parts import to_artifact
from a2a_canvas.server.protocols.edge.wire_times import timestamp
from a2a_canvas.store.annotations.annotation import Writer
from a2a_canvas.store.models import Artifact, Parts, Version

Json = dict[str, Any]

MAX_REQUEST = 500
"""Characters of a request that are shown with a version."""


def current_json(artifact: Artifact) -> Json:
    """The current artifact, its draft included."""
    wire: Json = MessageToDict(to_artifact(artifact.artifact_id, artifact.content))
    return wire | {"version": artifact.version, "open": artifact.open}


@dataclass(frozen=True, slots=True)
class VersionOrigins:
    """The origins of an artifact's versions, as far as they are known.

    Attributes:
        times: by the number of the version.
        messages: the first messages of tasks, by the ids of the tasks.
        suggested_by: whose suggestions they have accepted, by the number of the version.
    """

    times: Mapping[int, datetime] = field(default_factory=dict)
    messages: Mapping[str, UserMessage] = field(default_factory=dict)
    suggested_by: Mapping[int, Sequence[Writer]] = field(default_factory=dict)

    def describe(self, version: Version) -> Json:
        """`timestamp` as in A2A's JSON, `request`, the beginning of the text, and `by`, the user who sent it.

        `suggestedBy` names the authors of suggestions. Each is left out if it is not known.
        """
        at, message = self.times.get(version.number), self.messages.get(version.task_id)
        text = instruction_of(message.parts) if message else ""
        known: Json = {"timestamp": at and timestamp(at), "request": text[:MAX_REQUEST]}
        known["by"] = message and message.sender
        known["suggestedBy"] = [each.shown_name for each in self.suggested_by.get(version.number, ())]
        return {name: value for name, value in known.items() if value}


def version_json(artifact: Artifact, origins: VersionOrigins, version: Version) -> Json:
    """One version of `artifact`, with its content."""
    wire: Json = MessageToDict(to_artifact(artifact.artifact_id, version.content))
    return wire | version_summary(artifact, origins, version)


def version_summary(artifact: Artifact, origins: VersionOrigins, version: Version) -> Json:
    """A version without its content. `parent` is 0 for none, `size` is in bytes."""
    return {
        "number": version.number,
        "author": version.author,
        "parent": version.parent,
        "taskId": version.task_id,
        "incomplete": version.incomplete,
        "size": parts_size(version.content.parts),
        "current": version.number == artifact.version,
        **origins.describe(version),
        **({"pruned": True} if version.pruned else {}),
    }


def artifact_summary(artifact: Artifact, versions: tuple[Version, ...]) -> Json:
    """An artifact without its content. `author` is the current version's, left out while there is none."""
    author = {"author": versions[artifact.version - 1].author} if artifact.version else {}
    return {
        "artifactId": artifact.artifact_id,
        "name": artifact.name,
        "description": artifact.description,
        "version": artifact.version,
        "versions": len(versions),
        "open": artifact.open,
        **author,
        "kinds": list(dict.fromkeys(part.kind for part in artifact.parts)),
        "size": parts_size(artifact.parts),
    }


def parts_size(parts: Parts) -> int:
    """Bytes of all parts together, without their metadata."""
    return sum(part.size for part in parts)
