"""Artifacts and versions as JSON: the fields of an A2A 1.0 `Artifact`, and this server's own. Pure."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.protocols.a2a_v1.projection.parts import to_artifact
from a2a_canvas.server.protocols.edge.version_origins import VersionOrigins
from a2a_canvas.store.models import Artifact, Parts, Version

Json = dict[str, Any]


def current_json(artifact: Artifact) -> Json:
    """The current artifact, its draft included."""
    wire: Json = MessageToDict(to_artifact(artifact.artifact_id, artifact.content))
    return wire | {"version": artifact.version, "open": artifact.open}


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
