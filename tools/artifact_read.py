"""`artifact_read` and `artifact_list`: what the model sees of the artifacts that are there."""

from __future__ import annotations

import json

from pydantic import BaseModel, Field

from store.errors import ArtifactNotFound
from store.models import Artifact
from tools.base import Done, Failed, Outcome, WholeInputTool, Workspace
from tools.parts import part_output


class ReadInput(BaseModel):
    artifact_id: str = Field(description="The id of the artifact to read.")


class ListInput(BaseModel):
    pass


async def _read(call: ReadInput, workspace: Workspace) -> Outcome:
    try:
        artifact = await workspace.store.get(workspace.ref(call.artifact_id))
    except ArtifactNotFound as error:
        return Failed(str(error))
    parts = [part_output(part) for part in artifact.parts]
    return Done(to_json({**_head(artifact), "parts": parts}))


async def _list(call: ListInput, workspace: Workspace) -> Outcome:
    artifacts = await workspace.store.list(workspace.context_id)
    return Done(to_json([_entry(artifact) for artifact in artifacts]))


def _head(artifact: Artifact) -> dict[str, object]:
    head: dict[str, object] = {"artifact_id": artifact.artifact_id, "name": artifact.name}
    if artifact.description:
        head["description"] = artifact.description
    return {**head, "version": artifact.version, "draft": artifact.open}


def _entry(artifact: Artifact) -> dict[str, object]:
    kinds = [part.kind for part in artifact.parts]
    size = sum(part.size for part in artifact.parts)
    return {**_head(artifact), "kinds": sorted(set(kinds)), "parts": len(kinds), "size": size}


def to_json(value: object) -> str:
    """JSON as a model reads it: not escaped."""
    return json.dumps(value, ensure_ascii=False)


artifact_read = WholeInputTool(
    "artifact_read",
    "Read an artifact as it stands now: its parts with their text and data. Files are shown by name, type and size.",
    ReadInput,
    _read,
)
artifact_list = WholeInputTool(
    "artifact_list",
    "List the artifacts of this conversation, the one changed last at the end: ids, names, versions, kinds, bytes.",
    ListInput,
    _list,
)
