"""The canvas as AG-UI's state: the snapshot that a run begins with, and the patches that turn it into the next. Pure.

    {"phase", "taskId", "contextId", "status",
     "artifacts": {id: {"name", "description", "version", "author", "open", "parts", "versions"}}}

Rule 1: `phase` is the state of the task, `status` the label of what is going on, empty between labels.
Rule 2: `version` is the version shown, `author` who wrote it. While a draft is `open` that is the one being written,
        which is not among the `versions` yet.
Rule 3: a patch is made from its event and costs what the event brings, not what the artifact already has. So text that
        is added is one more element of `parts`; when the draft closes, `parts` are put in order (store/changes.py).
        Neighbouring texts mean the same joined.
Rule 4: a version that the store knew of before its entry came is not listed twice.
Rule 5: whoever goes back to an older version has no draft open: a draft that is left for one was taken back.
Rule 6: the snapshot shows what stands in the store, except of what the task itself has changed last: there the record
        is the moment that its entries go on from. What others change after the snapshot is not told, so `versions` may
        have gaps.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from a2a_canvas.server.agent.events import AgentMessage, ArtifactChanged, State, StatusChanged, TurnEvent, UserMessage
from a2a_canvas.server.agent.intent import intent_of
from a2a_canvas.server.agent.operations import SelectionEdit
from a2a_canvas.server.protocols.agui.json_patch import END, Json, Op, add, differing, put
from a2a_canvas.server.protocols.agui.older.view import OlderArtifactView
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.changes import AppendParts, apply
from a2a_canvas.store.edits import EditAborted, EditStarted
from a2a_canvas.store.models import Artifact, Author, Content, DataPart, FilePart, Part, Parts, TextPart, Version

VersionsByArtifact = Mapping[str, Sequence[Version]]
"""The closed versions of artifacts, by artifact id, oldest first."""


def part_json(part: Part) -> Json:
    """A part as A2A 0.3 writes it, with `mimeType` for texts and data as well."""
    match part:
        case TextPart():
            shown = {"text": part.text, **_told(mimeType=part.media_type)}
        case FilePart():
            source = {"uri": part.url} if part.content is None else {"bytes": b64encode(part.content).decode()}
            shown = {"file": {**source, **_told(name=part.name, mimeType=part.media_type)}}
        case DataPart():
            shown = {"data": part.data, **_told(mimeType=part.media_type)}
        case _:
            assert_never(part)
    return {"kind": part.kind, **shown, **_told(metadata=dict(part.metadata))}


def _told(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value}


@dataclass(slots=True)
class _ArtifactView:
    """An artifact as the state shows it.

    Attributes:
        parent: of the version that is being written; 0 for none.
        versions: `{number, author, parent}` by number, in order.
        pieces: the text stands in more than one element of `parts`.
        overtaken: the parts as the task had left them, if others have changed them since (rule 6). Entries from before
            that may still come, and add to these.
    """

    artifact_id: str
    content: Content = field(default_factory=Content)
    version: int = 0
    author: Author = "agent"
    open: bool = False
    parent: int = 0
    versions: dict[int, Json] = field(default_factory=dict)
    pieces: bool = False
    overtaken: Parts | None = None

    def json(self) -> Json:
        parts = [part_json(part) for part in self.content.parts]
        return {**self._fields(), "parts": parts, "versions": list(self.versions.values())}

    def follow(self, event: ArtifactChanged) -> list[Op]:
        """The view after a change, and what tells of it."""
        before, where = self._fields(), ("artifacts", self.artifact_id)
        made = self._made(event)
        ops = self._parts(event)
        self.version, self.author, self.open = event.version, event.author, not event.last_chunk
        ops += [add(version, *where, "versions", END) for version in made]
        return ops + differing(before, self._fields(), *where)

    def _fields(self) -> Json:
        return {
            "name": self.content.name,
            "description": self.content.description,
            "version": self.version,
            "author": self.author,
            "open": self.open,
        }

    def _made(self, event: ArtifactChanged) -> list[Json]:
        """The versions that a change has made."""
        made = []
        if self.open and event.version > self.version:  # a replacement closes the draft before it without a word
            made += self._close(self.version, self.author)
        self.parent = event.parent
        if event.last_chunk:
            made += self._close(event.version, event.author)
        return made

    def _close(self, number: int, author: Author) -> list[Json]:
        if number in self.versions:  # undo and redo, or rule 4
            return []
        self.versions[number] = _listed(number, author, self.parent)
        return [self.versions[number]]

    def _parts(self, event: ArtifactChanged) -> list[Op]:
        left, self.overtaken = self.overtaken, None
        before = self.content.parts if left is None else left
        parts = apply(before, AppendParts(event.parts)) if event.append and before else event.parts
        self.content = Content(event.name, event.description, parts)
        new = [part for part in event.parts if not _adds_nothing(part, before)]
        where = ("artifacts", self.artifact_id, "parts")
        adds = event.append and left is None
        if adds and not event.last_chunk:
            self.pieces = self.pieces or bool(new)
            return [add(part_json(part), *where, END) for part in new]
        if adds and not new and not self.pieces:
            return []
        self.pieces = False
        return [put([part_json(part) for part in parts], *where)]


def _adds_nothing(part: Part, before: Parts) -> bool:
    if not isinstance(part, TextPart) or len(part.body) or part.media_type or part.metadata:
        return False
    return any(isinstance(known, TextPart) for known in before)


class CanvasState:
    """The state as one subscriber of a task knows it.

    Args:
        record: the task where the subscriber's stream begins.
        artifacts: those of the context, read after the record. What the task has changed last is shown as the record
            has it.
        versions: of every artifact of the context.
        legacy: adds the view of older clients, of the artifact with this id; if it is empty, of the first that the
            task changes. None adds nothing.
    """

    def __init__(
        self, record: TaskRecord, artifacts: Iterable[Artifact], versions: VersionsByArtifact, legacy: str | None = None
    ) -> None:
        self._ids = {"taskId": record.task_id, "contextId": record.context_id}
        self._status = _status(record.state, record.message)
        stored = {artifact.artifact_id: artifact for artifact in artifacts}
        self._views = {
            artifact_id: _view(artifact_id, record, stored.get(artifact_id), versions)
            for artifact_id in dict.fromkeys((*stored, *record.artifacts))
        }
        self._legacy = None if legacy is None else self._legacy_view(record, legacy, versions)

    def snapshot(self) -> Json:
        """The state as it stands."""
        artifacts = {artifact_id: view.json() for artifact_id, view in self._views.items()}
        older = self._legacy.snapshot() if self._legacy else {}
        return {**self._status, **self._ids, "artifacts": artifacts, **older}

    def follow(self, event: TurnEvent) -> list[Op]:
        """The state after an event, and the patch (RFC 6902) that leads to it; empty if nothing has changed."""
        match event:
            case ArtifactChanged():
                return self._changed(event)
            case StatusChanged():
                before, self._status = self._status, _status(event.state, event.message)
                return differing(before, self._status)
            case EditStarted() | EditAborted() if self._legacy:
                return self._legacy.edit(event)
            case _:
                return []

    def _changed(self, event: ArtifactChanged) -> list[Op]:
        view = self._views.get(event.artifact_id)
        if view:
            ops = view.follow(event)
        else:
            view = self._views[event.artifact_id] = _ArtifactView(event.artifact_id)
            view.follow(event)
            ops = [add(view.json(), "artifacts", event.artifact_id)]
        return ops + (self._legacy.follow(event, view.content) if self._legacy else [])

    def _legacy_view(self, record: TaskRecord, artifact_id: str, versions: VersionsByArtifact) -> OlderArtifactView:
        artifact_id = artifact_id or next(iter(record.artifacts), "")
        view = self._views.get(artifact_id)
        return OlderArtifactView(
            artifact_id,
            versions,
            (view.version, view.content) if view else None,
            open=view.open if view else False,
            editing=_edits(record, artifact_id),
        )


def _edits(record: TaskRecord, artifact_id: str) -> bool:
    """Whether the task is an edit of the artifact, or one is open."""
    asked = next((message for message in record.history if isinstance(message, UserMessage)), None)
    intent = intent_of(asked) if asked else None
    open_edits = (edit.artifact_id == artifact_id for edit in record.open_edits.values())
    return (isinstance(intent, SelectionEdit) and intent.artifact_id == artifact_id) or any(open_edits)


def _status(state: State, message: AgentMessage | None) -> Json:
    return {"phase": state.value, "status": message.text if message and message.label else ""}


def _view(artifact_id: str, record: TaskRecord, stored: Artifact | None, versions: VersionsByArtifact) -> _ArtifactView:
    known = {version.number: version for version in versions.get(artifact_id, ())}
    listed = {number: _listed(number, version.author, version.parent) for number, version in known.items()}
    view = _ArtifactView(artifact_id, parent=stored.version if stored else max(known, default=0), versions=listed)
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


def _listed(number: int, author: Author, parent: int) -> Json:
    return {"number": number, "author": author, "parent": parent}
