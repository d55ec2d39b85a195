"""The older JSON request of `POST /canvas/stream`, which means the thread's one canvas artifact. Pure.

    {message, thread_id, artifact?: {currentIndex, contents: [{index, type, code | fullMarkdown, language, title}]},
     selectedText?: {start, end, text, lineStart, lineEnd}}

The canvas is the artifact that such a client has made (ARTIFACT_ID), else the first with text that a task of the thread
has made: it stays the same whatever else is written, so what a request is about is what the answer before it has shown.

Rule 1: an artifact that the thread does not have yet is made of `contents`, as versions 1…n in their order; the one
        at `currentIndex` is the current one.
Rule 2: of an artifact that it has, only the content at `currentIndex` counts, and the others are not read. What
        differs there from our version of that number, as the state shows it (agui_legacy.py), is the user's own edit,
        and is stored as a new version. What the request does not say stays. A draft that is being written cannot
        have been edited.
Rule 3: `currentIndex` is the `baseVersion` of whatever is asked for: if others have moved on, nothing is overwritten.
Rule 4: a selection makes the message an edit, whatever it says; without an artifact anywhere it is conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from a2a_canvas.server.agent.edit.locate import EditBase, locate
from a2a_canvas.server.agent.intent import CANVAS, intent_of
from a2a_canvas.server.agent.operations import InvalidOperation, SelectionEdit
from a2a_canvas.server.protocols.a2a_v1.errors import invalid_field
from a2a_canvas.server.protocols.agui.input import METADATA, RunInput, check_id, read, said
from a2a_canvas.server.protocols.agui.older.form import ArtifactForm, ContentForm, KnownForm, RequestForm
from a2a_canvas.server.protocols.agui.older.view import content_json
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.changes import Change, EditText, ReplaceParts, Undo
from a2a_canvas.store.models import Artifact, Content, JsonValue, TextPart, Version, text_of, text_part
from a2a_canvas.store.text.spans import difference

ARTIFACT_ID = "canvas"
"""The id of an artifact that such a client has made."""

MEDIA_TYPES = {"code": "", "text": "text/markdown"}

NAMES = {
    "selection": "selectedText",
    "baseVersion": "artifact.currentIndex",
    "artifactId": "artifact",
    "message.parts": "message",
}
"""What the fields of an operation are called in this request."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """The thread's canvas artifact as it stands."""

    artifact: Artifact
    versions: Sequence[Version]


@dataclass(frozen=True, slots=True)
class OlderRun:
    """One run, and what the user has changed before.

    Attributes:
        artifact_id: the thread's canvas artifact; empty while it has none.
    """

    run: RunInput
    artifact_id: str
    changes: tuple[tuple[str, Change], ...]


def is_first_made(artifacts: Sequence[Artifact]) -> bool:
    """Whether only the thread's tasks can tell which of its artifacts is its canvas."""
    with_text = _with_text(artifacts)
    return bool(with_text) and ARTIFACT_ID not in with_text


def canvas_of(artifacts: Sequence[Artifact], tasks: Sequence[TaskRecord]) -> Artifact | None:
    """Which of a thread's artifacts is its canvas.

    Args:
        tasks: those of the thread, oldest first; they count if `is_first_made`.
    """
    with_text = _with_text(artifacts)
    made = (artifact_id for task in tasks for artifact_id in task.artifacts)
    return next((with_text[artifact_id] for artifact_id in (ARTIFACT_ID, *made) if artifact_id in with_text), None)


def _with_text(artifacts: Sequence[Artifact]) -> Mapping[str, Artifact]:
    return {artifact.artifact_id: artifact for artifact in artifacts if text_of(artifact.parts)}


def in_its_words(error: InvalidOperation) -> InvalidOperation:
    """The same error, with its field named as in this request."""
    for ours, theirs in NAMES.items():
        if error.field == ours or error.field.startswith(f"{ours}."):
            return InvalidOperation(theirs + error.field.removeprefix(ours), error.reason)
    return error


@dataclass(frozen=True, slots=True)
class OlderRequest:
    """A request that has been read, but not yet held against the thread."""

    form: RequestForm
    run_id: str

    @property
    def thread_id(self) -> str:
        return self.form.thread_id

    def meaning(self, canvas: Canvas | None) -> OlderRun:
        """What is asked for in a thread whose artifact is `canvas`.

        Raises:
            InvalidParamsError, InvalidOperation: it cannot be done.
        """
        given = self._given(canvas)
        artifact_id = canvas.artifact.artifact_id if canvas else ARTIFACT_ID if given else ""
        changes, base = _changes(given, canvas) if given else ((), None)
        metadata: dict[str, JsonValue] = {METADATA: {"runId": self.run_id}}
        if artifact_id:
            metadata[CANVAS] = self._asked(artifact_id, base)
        message = said("message", self.run_id, (text_part(self.form.message),), metadata)
        intent = intent_of(message)
        if isinstance(intent, SelectionEdit) and changes and given:
            text = given.current.text
            locate(intent.selection, EditBase(artifact_id, base or 0, text, base, text))
        run = RunInput(self.form.thread_id, self.run_id, message)
        return OlderRun(run, artifact_id, tuple((artifact_id, change) for change in changes))

    def _asked(self, artifact_id: str, base: int | None) -> dict[str, JsonValue]:
        asked: dict[str, JsonValue] = {"artifactId": artifact_id}
        if base:
            asked["baseVersion"] = base
        if self.form.selected_text:
            selection = self.form.selected_text.model_dump(by_alias=True, exclude_none=True)
            asked |= {"op": "edit", "selection": selection}
        return asked

    def _given(self, canvas: Canvas | None) -> ArtifactForm | None:
        """The artifact in the request; of one that the thread has, the current content alone (rule 2)."""
        given = self.form.artifact
        if given is None or canvas is None:
            return None if given is None else read(ArtifactForm, given, "artifact")
        known = read(KnownForm, given, "artifact")
        current = read(ContentForm, known.contents[known.place], f"artifact.contents.{known.place}")
        return read(ArtifactForm, {"contents": [current], "currentIndex": current.index})


def older_request(value: Mapping[str, Any], run_id: str) -> OlderRequest:
    """Read a request.

    Raises:
        InvalidParamsError: it is none.
    """
    form = read(RequestForm, value)
    check_id("thread_id", form.thread_id)
    return OlderRequest(form, run_id)


def _changes(given: ArtifactForm, canvas: Canvas | None) -> tuple[tuple[Change, ...], int]:
    """What is to be stored first, and the version that the request is then about."""
    if canvas is None:
        return _made(given), given.place + 1
    count, index = len(canvas.versions), given.current_index
    last = count + canvas.artifact.open
    if not 1 <= index <= last:
        raise invalid_field("artifact.currentIndex", f"is {index} and must be a version of the artifact, 1 to {last}")
    if index > count:
        return (), index
    if canvas.versions[index - 1].pruned:
        raise invalid_field(
            "artifact.currentIndex", f"is {index}, a version that is no longer kept; go on from a newer one"
        )
    change = _own_edit(given.current, canvas.versions[index - 1])
    return ((change,), count + 1) if change else ((), index)


def _made(given: ArtifactForm) -> tuple[Change, ...]:
    """An artifact with these versions (rule 1), unless somebody else makes one at the same time."""
    made = tuple(
        ReplaceParts((_new_part(content),), content.title, last_chunk=True, base=number)
        for number, content in enumerate(given.contents)
    )
    return (*made, *(Undo(number) for number in range(len(made), given.place + 1, -1)))


def _new_part(content: ContentForm) -> TextPart:
    return text_part(content.text, MEDIA_TYPES[content.type], content.kind)


def _own_edit(content: ContentForm, version: Version) -> Change | None:
    """What makes `version` what the client has; None if it has it already (rule 2)."""
    shown = content_json(version.number, version.content)
    if not content.head.items() <= shown.items():
        part = _retold_part(content, shown, version.content)
        return ReplaceParts((part,), content.title, last_chunk=True, base=version.number)
    before = version.content.text
    if content.text == before:
        return None
    span, text = difference(before, content.text)
    return EditText(span, text, version.number, passage=False)


def _retold_part(content: ContentForm, shown: Mapping[str, Any], before: Content) -> TextPart:
    """The text of a content that says something new about itself. Its language goes with its type."""
    if content.kind.items() <= shown.items():
        media_type = next((part.media_type for part in before.parts if isinstance(part, TextPart)), "")
        return text_part(content.text, media_type, content.kind)
    unsaid: dict[str, JsonValue] = {"language": ""} if content.type != shown["type"] else {}
    return text_part(content.text, MEDIA_TYPES[content.type], {**unsaid, **content.kind})
