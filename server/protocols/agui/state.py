"""The canvas as AG-UI's state: a snapshot at the start of a run, and a JSON patch for each later change. Pure.

    {"phase", "taskId", "contextId", "status",
     "artifacts": {id: {"name", "description", "version", "author", "open", "parts", "versions"}},
     "agent"?: what the agent's function has sent as its state (agent_events.py)}

Rule 1: `phase` is the state of the task; `status` is the newest progress label, or empty.
Rule 2: `version` is the version shown, `author` its author. While a draft is `open` that is the draft's version, which
        is not among the `versions` yet.
Rule 3: the size of a patch follows that of its event, not that of the artifact. So appended text is one more element of
        `parts`; when the draft closes, `parts` are grouped (store/changes.py). Adjacent texts mean the same as one
        joined text.
Rule 4: a version that the store listed before its entry arrived is not listed twice.
Rule 5: an event with an older version leaves no draft open: the draft was discarded.
Rule 6: what the task has done since the record was read is not in the snapshot: its entries follow (`at_record`).
Rule 7: the snapshot shows the artifacts of the store, except those that this task changed last: the record has those
        at the generation that its entries continue from. Changes by others after the snapshot are not sent, so
        `versions` may have gaps.
"""

from __future__ import annotations

import dataclasses
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, assert_never

from a2a_canvas.server.agent.events import AgentMessage, ArtifactChanged, State, StatusChanged, TurnEvent
from a2a_canvas.server.protocols.agui.json_patch import END, Json, Op, add, replace, replace_changed
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.changes import AppendParts, apply
from a2a_canvas.store.ids import public_id
from a2a_canvas.store.models import Artifact, Author, Content, DataPart, FilePart, Part, Parts, TextPart, Version

AGENT = "agent"
"""The key of the state of the agent's function."""
VersionsByArtifact = Mapping[str, Sequence[Version]]
"""The closed versions of artifacts, by artifact id, oldest first."""


class RunState(Protocol):
    """AG-UI's state as one subscriber of a task knows it; `apply` returns the patch (RFC 6902), which may be empty."""

    def snapshot(self) -> Json: ...
    def apply(self, event: TurnEvent) -> list[Op]: ...


def part_json(part: Part) -> Json:
    """A part as A2A 0.3 writes it, with `mimeType` for texts and data as well."""
    match part:
        case TextPart():
            shown = {"text": part.text, **_non_empty(mimeType=part.media_type)}
        case FilePart():
            source = {"uri": part.url} if part.content is None else {"bytes": b64encode(part.content).decode()}
            shown = {"file": {**source, **_non_empty(name=part.name, mimeType=part.media_type)}}
        case DataPart():
            shown = {"data": part.data, **_non_empty(mimeType=part.media_type)}
        case _:
            assert_never(part)
    return {"kind": part.kind, **shown, **_non_empty(metadata=dict(part.metadata))}


def _non_empty(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value}


@dataclass(slots=True)
class ArtifactView:
    """An artifact as the state shows it.

    Attributes:
        versions: `{number, author, parent}` by number, in order.
        pieces: the text is more than one element of `parts`.
        overtaken: the parts as the task left them, if others have changed them since (rule 7). Earlier entries may
            still arrive; they append to these parts.
    """

    artifact_id: str
    content: Content = field(default_factory=Content)
    version: int = 0
    author: Author = "agent"
    open: bool = False
    versions: dict[int, Json] = field(default_factory=dict)
    pieces: bool = False
    overtaken: Parts | None = None

    @classmethod
    def at_snapshot(
        cls, artifact_id: str, record: TaskRecord, stored: Artifact | None, versions: Sequence[Version]
    ) -> ArtifactView:
        """The view at the snapshot (rule 7)."""
        known = {version.number: version for version in versions}
        listed = {number: _version_json(number, version.author, version.parent) for number, version in known.items()}
        view = cls(artifact_id, versions=listed)
        changed = record.artifacts.get(artifact_id)
        if changed and stored and stored.changed_by != record.task_id:
            view.overtaken, changed = changed.content.parts, None
        if changed:
            view.content, view.version, view.author = changed.content, changed.version, changed.author
        elif stored:
            view.content, view.version = stored.content, len(known) + 1 if stored.open else stored.version
            view.author = known[view.version].author if view.version in known else "agent"
        view.open = view.version not in known
        return view

    def json(self) -> Json:
        parts = [part_json(part) for part in self.content.parts]
        return {**self._fields(), "parts": parts, "versions": list(self.versions.values())}

    def apply(self, event: ArtifactChanged) -> list[Op]:
        """Apply a change. Returns the patch."""
        before, path = self._fields(), ("artifacts", self.artifact_id)
        closed = self._closed_by(event)
        ops = self._apply_parts(event)
        self.version, self.author, self.open = event.version, event.author, not event.last_chunk
        ops += [add(version, *path, "versions", END) for version in closed]
        return ops + replace_changed(before, self._fields(), *path)

    def _fields(self) -> Json:
        return {
            "name": self.content.name,
            "description": self.content.description,
            "version": self.version,
            "author": self.author,
            "open": self.open,
        }

    def _closed_by(self, event: ArtifactChanged) -> list[Json]:
        """The versions that a change adds to the list."""
        if not event.last_chunk or event.version in self.versions:  # undo and redo, or rule 4
            return []
        self.versions[event.version] = _version_json(event.version, event.author, event.parent)
        return [self.versions[event.version]]

    def _apply_parts(self, event: ArtifactChanged) -> list[Op]:
        overtaken, self.overtaken = self.overtaken, None
        before = self.content.parts if overtaken is None else overtaken
        parts = apply(before, AppendParts(event.parts)) if event.append and before else event.parts
        self.content = Content(event.name, event.description, parts)
        new = [part for part in event.parts if not _adds_nothing(part, before)]
        path = ("artifacts", self.artifact_id, "parts")
        appends = event.append and overtaken is None
        if appends and not event.last_chunk:
            self.pieces = self.pieces or bool(new)
            return [add(part_json(part), *path, END) for part in new]
        if appends and not new and not self.pieces:
            return []
        self.pieces = False
        return [replace([part_json(part) for part in parts], *path)]


def _adds_nothing(part: Part, before: Parts) -> bool:
    if not isinstance(part, TextPart) or len(part.body) or part.media_type or part.metadata:
        return False
    return any(isinstance(known, TextPart) for known in before)


def _version_json(number: int, author: Author, parent: int) -> Json:
    return {"number": number, "author": author, "parent": parent}


def at_record(
    record: TaskRecord, artifacts: Iterable[Artifact], versions: VersionsByArtifact
) -> tuple[tuple[Artifact, ...], VersionsByArtifact]:
    """Artifacts and versions that were read after the record, without what its task has done since (rule 6)."""
    known = {artifact_id: _known_at(record, artifact_id, listed) for artifact_id, listed in versions.items()}
    shown = (_artifact_at(record, artifact, versions, known) for artifact in artifacts)
    return tuple(artifact for artifact in shown if artifact), known


def _known_at(record: TaskRecord, artifact_id: str, versions: Sequence[Version]) -> tuple[Version, ...]:
    changed = record.artifacts.get(artifact_id)

    def is_known(version: Version) -> bool:
        if version.task_id != record.task_id:
            return True
        if changed is None:
            return False
        if version.number == changed.version:  # a draft that the store has closed since may have had fewer parts
            return version.pruned or version.content.parts == changed.content.parts
        # Changes that came with the message were made before the record was read: this may be one of the earlier ones.
        return version.number < changed.version or version.author == "user"

    return tuple(filter(is_known, versions))


def _artifact_at(
    record: TaskRecord, artifact: Artifact, versions: VersionsByArtifact, known: VersionsByArtifact
) -> Artifact | None:
    artifact_id = artifact.artifact_id
    if artifact.changed_by != record.task_id or artifact_id in record.artifacts:
        return artifact
    before = {version.number: version for version in known.get(artifact_id, ())}
    made = next((version for version in versions.get(artifact_id, ()) if version.number not in before), None)
    current = before.get(made.parent if made else artifact.version)
    return (
        dataclasses.replace(artifact, content=current.content, version=current.number, open=False) if current else None
    )


class CanvasState:
    """The state for clients of `RunAgentInput`.

    Args:
        record: the task where the subscriber's stream begins.
        artifacts: those of the context, read after the record.
        versions: of every artifact of the context.

    Attributes:
        artifacts: by artifact id.
    """

    def __init__(self, record: TaskRecord, artifacts: Iterable[Artifact], versions: VersionsByArtifact) -> None:
        self._ids = {"taskId": record.task_id, "contextId": public_id(record.context_id)}
        self._status = _status(record.state, record.message)
        self._agent = record.agui.view.state
        stored = {artifact.artifact_id: artifact for artifact in artifacts}
        self.artifacts = {
            artifact_id: ArtifactView.at_snapshot(
                artifact_id, record, stored.get(artifact_id), versions.get(artifact_id, ())
            )
            for artifact_id in dict.fromkeys((*stored, *record.artifacts))
        }

    def snapshot(self) -> Json:
        artifacts = {artifact_id: view.json() for artifact_id, view in self.artifacts.items()}
        agent = {AGENT: self._agent.value} if self._agent else {}
        return {**self._status, **self._ids, "artifacts": artifacts, **agent}

    def apply(self, event: TurnEvent) -> list[Op]:
        match event:
            case ArtifactChanged():
                return self._apply_change(event)
            case StatusChanged():
                before, self._status = self._status, _status(event.state, event.message)
                return replace_changed(before, self._status)
            case _:
                return []

    def _apply_change(self, event: ArtifactChanged) -> list[Op]:
        if view := self.artifacts.get(event.artifact_id):
            return view.apply(event)
        view = self.artifacts[event.artifact_id] = ArtifactView(event.artifact_id)
        view.apply(event)
        return [add(view.json(), "artifacts", event.artifact_id)]


def _status(state: State, message: AgentMessage | None) -> Json:
    return {"phase": state.value, "status": message.text if message and message.label else ""}
