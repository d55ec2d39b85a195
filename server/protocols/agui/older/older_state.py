"""The state for clients of the older request: `CanvasState`, and two fields with the thread's one artifact. Pure.

    {"artifact": {"currentIndex", "contents": [{"index", "type", "language", "title", "code" | "fullMarkdown"}]} | null,
     "artifactAction": "partial_update" | null}

Rule 1: an `index` is the number of a version. An open draft is the last one. A pruned version is left out.
Rule 2: `type` and `language` are those of the text part's metadata; without them they follow from the language of the
        text.
Rule 3: a text is one string here and cannot be appended to. While it grows it is sent again whenever it has grown by
        an eighth, and when its draft closes: at most ten times the text in all.
"""

from __future__ import annotations

from dataclasses import dataclass

from a2a_canvas.server.agent.events import ArtifactChanged, TurnEvent
from a2a_canvas.server.agent.intent import SelectionEdit
from a2a_canvas.server.agent.text.file_language import is_markdown, language_of
from a2a_canvas.server.protocols.a2a_v1.projection.turn_ext import RESEND_GROWTH
from a2a_canvas.server.protocols.agui.json_patch import END, Json, Op, add, remove, replace
from a2a_canvas.server.protocols.agui.state import CanvasState, VersionsByArtifact
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.edit_events import EditAborted, EditStarted, EditSuggested
from a2a_canvas.store.models import Content, TextPart, text_of, text_part

PARTIAL_UPDATE = "partial_update"
TEXT_FIELD = {"code": "code", "text": "fullMarkdown"}


def content_json(number: int, content: Content) -> Json:
    """One version."""
    head = _head(number, content)
    return {**head, TEXT_FIELD[head["type"]]: _text(content).text}


def _head(number: int, content: Content) -> Json:
    """All fields of a version except its text."""
    text = _text(content)
    language, kind = text.metadata.get("language"), text.metadata.get("type")
    if not isinstance(language, str):
        language = language_of(content.name, text.media_type)
    if kind not in TEXT_FIELD:
        kind = "text" if not language or is_markdown(language) else "code"
    return {"index": number, "type": kind, "language": language, "title": content.name}


def _text(content: Content) -> TextPart:
    return text_of(content.parts) or text_part("")


@dataclass(frozen=True, slots=True)
class _SentVersion:
    """What the client has of the version that it shows: its fields, and the length of its text."""

    head: Json
    length: int

    @classmethod
    def from_content(cls, number: int, content: Content) -> _SentVersion:
        return cls(_head(number, content), len(_text(content).body))

    def is_due(self, content: Content) -> bool:
        return len(_text(content).body) > self.length * (1 + RESEND_GROWTH)


class OlderState:
    """Wraps the state of one subscriber.

    Args:
        record: the task where the subscriber's stream begins.
        versions: of every artifact of the context, at that time.
        artifact_id: the thread's artifact; if it is empty, the first artifact that the task changes.
    """

    def __init__(self, state: CanvasState, record: TaskRecord, versions: VersionsByArtifact, artifact_id: str) -> None:
        self._state = state
        self._versions = versions
        self._artifact_id = artifact_id or next(iter(record.artifacts), "")
        self._contents = self._closed_versions()
        view, content = state.artifacts.get(self._artifact_id), Content()
        self._current, self._open = (view.version, view.open) if view else (0, False)
        if view:
            content = self._contents[view.version] = view.content
        self._sent = _SentVersion.from_content(self._current, content)
        self._action = PARTIAL_UPDATE if _is_edited(record, self._artifact_id) else None

    def snapshot(self) -> Json:
        return {**self._state.snapshot(), "artifact": self._artifact(), "artifactAction": self._action}

    def apply(self, event: TurnEvent) -> list[Op]:
        ops = self._state.apply(event)
        match event:
            case ArtifactChanged():
                return ops + self._apply_change(event)
            case EditStarted() | EditSuggested() | EditAborted():
                return ops + self._edit(event)
            case _:
                return ops

    def _closed_versions(self) -> dict[int, Content]:
        versions = self._versions.get(self._artifact_id, ())
        return {version.number: version.content for version in versions if not version.pruned}

    def _artifact(self) -> Json | None:
        if not self._contents:
            return None
        contents = [content_json(number, content) for number, content in self._contents.items()]
        return {"currentIndex": self._current, "contents": contents}

    def _edit(self, event: EditStarted | EditSuggested | EditAborted) -> list[Op]:
        action = PARTIAL_UPDATE if isinstance(event, EditStarted) else None
        if event.artifact_id != self._artifact_id or action == self._action:
            return []
        self._action = action
        return [replace(action, "artifactAction")]

    def _apply_change(self, event: ArtifactChanged) -> list[Op]:
        if event.artifact_id != (self._artifact_id or event.artifact_id):
            return []
        known = bool(self._contents)
        if not self._artifact_id:
            self._artifact_id = event.artifact_id
            self._contents = self._closed_versions()
        ops = [*self._leave(event.version), *self._show(event, self._state.artifacts[event.artifact_id].content)]
        if self._current != event.version:
            ops.append(replace(event.version, "artifact", "currentIndex"))
        self._current, self._open = event.version, not event.last_chunk
        return ops if known else [replace(self._artifact(), "artifact")]

    def _leave(self, version: int) -> list[Op]:
        """Operations for the draft that was shown, if another version follows: the draft was closed or discarded."""
        if not self._open or version == self._current:
            return []
        if version > self._current:
            return self._send(self._contents[self._current])
        index = self._index(self._current)
        del self._contents[self._current]
        return [remove("artifact", "contents", index)]

    def _show(self, event: ArtifactChanged, content: Content) -> list[Op]:
        number = event.version
        if number not in self._contents:
            self._contents[number] = content
            self._sent = _SentVersion.from_content(number, content)
            return [add(content_json(number, content), "artifact", "contents", END)]
        if not (self._open and number == self._current):
            return []  # a closed version does not change
        self._contents[number] = content
        if not event.append:
            return self._send(content, replaced=True)
        return self._send(content) if event.last_chunk or self._sent.is_due(content) else []

    def _send(self, content: Content, *, replaced: bool = False) -> list[Op]:
        """What the client lacks of the version that it shows. `replaced`: its text changed other than by appending."""
        before, self._sent = self._sent, _SentVersion.from_content(self._current, content)
        path = ("artifact", "contents", self._index(self._current))
        if replaced or before.head != self._sent.head:
            return [replace(content_json(self._current, content), *path)]
        if before.length == self._sent.length:
            return []
        return [replace(_text(content).text, *path, TEXT_FIELD[before.head["type"]])]

    def _index(self, number: int) -> int:
        # Not `number - 1`: versions that others make during the run are missing here.
        return list(self._contents).index(number)


def _is_edited(record: TaskRecord, artifact_id: str) -> bool:
    """Whether the task is an edit of the artifact, or has one open."""
    operation = record.operation
    open_edits = (edit.artifact_id == artifact_id for edit in record.open_edits.values())
    return (isinstance(operation, SelectionEdit) and operation.artifact_id == artifact_id) or any(open_edits)
