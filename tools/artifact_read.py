"""`artifact_read` and `artifact_list`: what the model sees of the artifacts that are there."""

from __future__ import annotations

import json

from pydantic import BaseModel, Field

from store.errors import StoreError
from store.models import Artifact, Content, Version
from tools.base import Done, Failed, Outcome, WholeInputTool, Workspace
from tools.parts import part_output


class ReadInput(BaseModel):
    artifact_id: str = Field(description="The id of the artifact to read.")
    version: int | None = Field(
        default=None, description="The number of an older version; without it, what is current."
    )


class ListInput(BaseModel):
    pass


async def _read(call: ReadInput, workspace: Workspace) -> Outcome:
    ref = workspace.ref(call.artifact_id)
    try:
        artifact = await workspace.store.get(ref)
        versions = await workspace.store.versions(ref)
        old = None if call.version is None else await workspace.store.version(ref, call.version)
    except StoreError as error:
        return Failed(str(error))
    content = artifact.content if old is None else old.content
    head = _head(artifact, len(versions)) if old is None else _head_of(old, artifact, len(versions))
    return Done(to_json({**head, "parts": [part_output(part) for part in content.parts]}))


async def _list(call: ListInput, workspace: Workspace) -> Outcome:
    store = workspace.store
    artifacts = await store.list(workspace.context_id)
    counts = [len(await store.versions(workspace.ref(artifact.artifact_id))) for artifact in artifacts]
    return Done(to_json([_entry(artifact, count) for artifact, count in zip(artifacts, counts, strict=True)]))


def _named(artifact_id: str, content: Content) -> dict[str, object]:
    described = {"description": content.description} if content.description else {}
    return {"artifact_id": artifact_id, "name": content.name, **described}


def _head(artifact: Artifact, versions: int) -> dict[str, object]:
    named = _named(artifact.artifact_id, artifact.content)
    return {**named, "version": artifact.version, "versions": versions, "draft": artifact.open}


def _head_of(old: Version, artifact: Artifact, versions: int) -> dict[str, object]:
    named = _named(artifact.artifact_id, old.content)
    return {**named, "version": old.number, "versions": versions, "current_version": artifact.version}


def _entry(artifact: Artifact, versions: int) -> dict[str, object]:
    kinds = [part.kind for part in artifact.parts]
    size = sum(part.size for part in artifact.parts)
    return {**_head(artifact, versions), "kinds": sorted(set(kinds)), "parts": len(kinds), "size": size}


def to_json(value: object) -> str:
    """JSON as a model reads it: not escaped."""
    return json.dumps(value, ensure_ascii=False)


artifact_read = WholeInputTool(
    "artifact_read",
    "Read an artifact as it stands now: its parts with their text and data. Files are shown by name, type and size. "
    "`version` is the current one (0: none is finished yet) of `versions`, numbered from 1; with the parameter "
    "`version`, an older one is shown.",
    ReadInput,
    _read,
)
artifact_list = WholeInputTool(
    "artifact_list",
    "List the artifacts of this conversation, the one changed last at the end: ids, names, the current version and "
    "the number of versions, kinds, bytes.",
    ListInput,
    _list,
)
