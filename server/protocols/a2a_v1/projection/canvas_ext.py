"""Edits and versions as they go over the wire: `urn:a2a-canvas:canvas:v1` (docs/canvas.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.tasks.record import TaskArtifact, TaskRecord
from a2a_canvas.store.edit_events import (
    EditAborted,
    EditChunk,
    EditCompleted,
    EditEvent,
    EditMode,
    EditStarted,
    EditSuggested,
    Selection,
)


def edit_metadata(event: EditEvent) -> dict[str, Any]:
    """`{edit: {id, phase, artifactId, …}}`; the unit and the version of its ranges are in its start."""
    phase, fields = _phase(event)
    # There is a chunk for every few characters: the artifact is named in the start.
    of = {} if isinstance(event, EditChunk) else {"artifactId": event.artifact_id}
    return {"edit": {"id": event.edit_id, "phase": phase, **of, **fields}}


def edit_turn_event(event: EditEvent) -> tuple[str, dict[str, Any]]:
    """The event type and the data of an edit as a turn event, whose data must name the edit."""
    phase, fields = _phase(event)
    return f"artifact_partial_update_{phase}", {"id": event.edit_id, "artifactId": event.artifact_id, **fields}


def change_metadata(event: ArtifactChanged) -> dict[str, Any]:
    """The metadata of an artifact update."""
    return {"artifactVersion": event.version, "author": event.author, "parentVersion": event.parent}


def snapshot_metadata(record: TaskRecord) -> dict[str, Any]:
    """The metadata of a task: the versions of its artifacts, and the open edits."""
    artifacts = {artifact.artifact_id: _artifact_metadata(artifact) for artifact in record.artifacts.values()}
    return {"artifacts": artifacts, "openEdits": open_edits(record)}


def _artifact_metadata(artifact: TaskArtifact) -> dict[str, Any]:
    pruned = {"pruned": True} if artifact.pruned else {}
    return {"artifactVersion": artifact.version, "author": artifact.author, **pruned}


def open_edits(record: TaskRecord) -> list[dict[str, Any]]:
    """The edits in progress, each with its text so far."""
    return [
        {
            "id": edit.edit_id,
            "artifactId": edit.artifact_id,
            "selection": selection_range(edit.selection),
            "unit": edit.selection.unit,
            "strategy": edit.strategy,
            "baseVersion": edit.version,
            **_mode(edit.mode),
            "text": str(edit.text),
        }
        for edit in record.open_edits.values()
    ]


def selection_range(selection: Selection) -> dict[str, int]:
    return {"start": selection.start, "end": selection.end}


def _phase(event: EditEvent) -> tuple[str, Mapping[str, Any]]:
    selection = selection_range(event.selection)
    match event:
        case EditChunk():
            return "chunk", {"chunk": event.chunk, "selection": selection}
        case EditStarted():
            counted = {"unit": event.selection.unit, "baseVersion": event.version}
            return "start", {"selection": selection, "strategy": event.strategy, **counted, **_mode(event.mode)}
        case EditCompleted():
            written = {"updatedContent": event.updated_content, "written": selection_range(event.written)}
            base = {"strategy": event.strategy, "baseVersion": event.version}
            return "complete", {"selection": selection, **written, **base}
        case EditSuggested():
            return "suggested", {"selection": selection, "annotationId": event.annotation_id}
        case EditAborted():
            return "abort", {"selection": selection}


def _mode(mode: EditMode) -> Mapping[str, str]:
    return {"mode": mode} if mode == "suggest" else {}
