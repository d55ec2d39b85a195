"""A user's own edit (`put`): a complete new text, or files and data, become a version.

Rule 1: if the text is based on a version that is no longer current, nothing is overwritten: with `merge`, both sets of
        changes are merged (`store/merge.py`), or the operation is rejected with all conflicting places; without it,
        the operation is rejected.
Rule 2: the change applies to the version that was read. If another version is made in the meantime, it is recomputed.
Rule 3: content equal to the current version makes no new version: an editor that saves an unchanged text changes
        nothing, and does not end the redo line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePath

from a2a_canvas.server.agent.intent import Put, Upload
from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.changes import EditText, ReplaceParts, apply
from a2a_canvas.store.errors import ArtifactBusy, ArtifactNotFound, MergeConflict, VersionConflict
from a2a_canvas.store.merge import Conflict, MergeResult, merge
from a2a_canvas.store.models import AppliedChange, Artifact, DataPart, JsonValue, Part, Parts, Ref, text_part
from a2a_canvas.store.text.comparing import run_comparison
from a2a_canvas.store.text.spans import difference, from_codepoints

MAX_PLACES = 100
MAX_TEXTS = 50_000
"""The most conflicts reported, and the most characters of all their texts together."""


@dataclass(frozen=True, slots=True)
class NoChange:
    """The artifact has this content already (rule 3)."""

    artifact: Artifact


async def put(operation: Put | Upload, ref: Ref, store: ArtifactStore) -> AppliedChange | NoChange:
    """Make a version, unless it equals the current one (rule 3).

    Raises:
        MergeConflict, VersionConflict, StoreError: nothing has changed (rule 1).
    """
    while True:
        try:
            change = await _change(operation, ref, store)
            return change if isinstance(change, NoChange) else await store.apply(ref, change)
        except VersionConflict:
            if operation.base_version is not None and not (isinstance(operation, Put) and operation.merge):
                raise


def describe_put(operation: Put | Upload, applied: AppliedChange | NoChange) -> str:
    """The closing message of the task."""
    if isinstance(applied, NoChange):
        artifact = applied.artifact
        return f"Nothing has changed: all of it is in version {artifact.version} of {artifact.title} already."
    if operation.base_version not in (None, applied.parent):
        return f"Merged with version {applied.parent}: version {applied.version} is saved."
    return f"Saved {applied.artifact.title} as version {applied.version}."


def version_of(done: AppliedChange | NoChange) -> int:
    """The version that has the content."""
    return done.artifact.version if isinstance(done, NoChange) else done.version


async def get_without_draft(ref: Ref, store: ArtifactStore) -> Artifact:
    """The artifact.

    Raises:
        ArtifactNotFound, ArtifactBusy: there is none; a task is writing it.
    """
    artifact = await store.get(ref)
    if artifact.open:
        raise ArtifactBusy(artifact.artifact_id, "")
    return artifact


async def _change(operation: Put | Upload, ref: Ref, store: ArtifactStore) -> EditText | ReplaceParts | NoChange:
    try:
        artifact = await get_without_draft(ref, store)
    except ArtifactNotFound:
        if operation.name is None:
            raise
        return ReplaceParts(_parts(operation, operation.name), name=operation.name, last_chunk=True, base=0)
    change = await _change_existing(artifact, operation, ref, store)
    return (
        NoChange(artifact)
        if _comparable_parts(apply(artifact.parts, change)) == _comparable_parts(artifact.parts)
        else change
    )


async def _change_existing(
    artifact: Artifact, operation: Put | Upload, ref: Ref, store: ArtifactStore
) -> EditText | ReplaceParts:
    """The change. For a text only the difference, so that versions share their common text."""
    if isinstance(operation, Upload):
        if operation.base_version not in (None, artifact.version):
            raise VersionConflict(artifact.artifact_id, operation.base_version, artifact.version)
        return ReplaceParts(operation.parts, last_chunk=True, base=artifact.version)
    span, text = difference(artifact.text, await _text(operation, artifact, ref, store))
    return EditText(span, text, artifact.version, passage=False)


def _comparable_parts(parts: Parts) -> list[Part]:
    """The parts for a comparison, with data as JSON, because in Python `True` equals 1."""
    return [replace(part, data=json.dumps(part.data), size=0) if isinstance(part, DataPart) else part for part in parts]


def _parts(operation: Put | Upload, name: str) -> Parts:
    if isinstance(operation, Upload):
        return operation.parts
    return (text_part(operation.text, media_type_of(name)),)


async def _text(operation: Put, artifact: Artifact, ref: Ref, store: ArtifactStore) -> str:
    """The artifact's new text (rule 1)."""
    base = operation.base_version
    if base is None or base == artifact.version:
        return operation.text
    if not operation.merge:
        raise VersionConflict(artifact.artifact_id, base, artifact.version)
    texts = (await store.version(ref, base)).content.text, artifact.text, operation.text
    together = await run_comparison(merge, *texts)
    if isinstance(together, MergeResult):
        return together.text
    raise MergeConflict(artifact.artifact_id, base, artifact.version, texts[0], together.places)


def conflicts_json(base: str, places: Sequence[Conflict]) -> list[JsonValue]:
    """The conflicts as in docs/canvas.md: offsets in UTF-16 of the base. Beyond `MAX_TEXTS`, texts are omitted."""
    return list(islice(_conflicts_json(base, places), MAX_PLACES))


def _conflicts_json(base: str, places: Sequence[Conflict]) -> Iterator[JsonValue]:
    left = MAX_TEXTS
    for place in places:
        start = from_codepoints(base, place.start, "utf16")
        texts: dict[str, JsonValue] = {"base": place.base, "current": place.current, "yours": place.yours}
        left -= len(place.base) + len(place.current) + len(place.yours)
        end = start + from_codepoints(place.base, len(place.base), "utf16")
        yield {"start": start, "end": end, **(texts if left >= 0 else {})}


def media_type_of(name: str) -> str:
    """The media type of a text, by the suffix of its name; empty if docs/canvas.md does not list the suffix."""
    return _MEDIA_TYPES.get(PurePath(name.lower()).suffix, "")


_MEDIA_TYPES = {
    **{f".{kind}": f"text/{kind}" for kind in ("html", "css", "csv")},
    **{f".{kind}": f"application/{kind}" for kind in ("json", "xml", "yaml", "toml")},
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".js": "text/javascript",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
}
