"""Translates the older JSON request of `POST /canvas/stream` into a `RunAgentInput`. Pure.

    {message, thread_id, run_id?, selectedText?: {start, end, text, lineStart, lineEnd},
     artifact?: {currentIndex, contents: [{index, type, code | fullMarkdown, language, title}]}}

It is about the thread's one artifact: the one that such a client has made (ARTIFACT_ID), otherwise the first with text
that a task of the thread has made. Later artifacts do not change that, so a request is about what the last answer
showed.

Rule 1: an artifact that the thread does not have is made of `contents`, as versions 1…n in their order; the one at
        `currentIndex` becomes the current version.
Rule 2: of an artifact that the thread has, only the content at `currentIndex` is read. Where it differs from our
        version of that number (as older_state.py shows it), it is the user's own edit, and is stored as a new version.
        Fields that are left out keep their values. A draft that is being written cannot have been edited.
Rule 3: `currentIndex` is the version that the message is about. An edit of a version that is not current, by a
        selection or the user's own, makes that version current first (undo, redo, or a restored copy), so the new one
        branches from it; no version is lost. Any other message does so if `contents` has the newest version: then the
        user has gone back or on, and does not just lag behind.
Rule 4: with a selection the message is an edit; without an artifact anywhere it is conversation.
Rule 5: a request with the `run_id` and the message of an earlier one joins its run, whatever artifact it has: that has
        changed meanwhile.
Rule 6: unknown fields are ignored: such clients send more than this server needs. Known fields are read strictly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from a2a_canvas.server.agent.edit.locate import EditBase, selected
from a2a_canvas.server.agent.events import AgentMessage, UserMessage
from a2a_canvas.server.agent.intent import InvalidOperation, SelectionEdit
from a2a_canvas.server.protocols.a2a_v1.errors import invalid_field
from a2a_canvas.server.protocols.agui.input import RUN_METADATA, RunInput, check_id, parse, run_input
from a2a_canvas.server.protocols.agui.older.older_state import TEXT_FIELD, content_json
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import Change, EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.models import Artifact, Content, JsonValue, TextPart, Version, text_of, text_part
from a2a_canvas.store.text.spans import difference

ARTIFACT_ID = "canvas"
"""The id of an artifact that such a client has made."""

MAX_CONTENTS = 1000
"""Versions that one request can give a new artifact."""

MEDIA_TYPES = {"code": "", "text": "text/markdown"}

FIELDS = {
    "selection": "selectedText",
    "baseVersion": "artifact.currentIndex",
    "artifactId": "artifact",
    "message.parts": "message",
}
"""Fields of an operation, and their names in this request."""


class _OlderForm(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, alias_generator=to_camel)


class _SelectedTextForm(_OlderForm):
    """A selection, by offsets (UTF-16), by lines, or both. Its rules are those of an operation's selection."""

    start: int | None = None
    end: int | None = None
    text: str | None = None
    line_start: int | None = None
    line_end: int | None = None


class OlderRequest(_OlderForm):
    """The body. Its artifact is parsed once it is known whether the thread has one."""

    message: str
    thread_id: str = Field(alias="thread_id")
    run_id: str | None = Field(None, alias="run_id")
    artifact: dict[str, Any] | None = None
    selected_text: _SelectedTextForm | None = None

    @field_validator("message")
    @classmethod
    def _is_not_blank(cls, message: str) -> str:
        if not message.strip():
            raise ValueError("must say something")
        return message

    def without_artifact(self) -> OlderRequest:
        """The same, about the artifact that the thread has."""
        return self.model_copy(update={"artifact": None, "selected_text": None})


class _ContentForm(_OlderForm):
    index: int
    type: Literal["code", "text"]
    code: str | None = None
    full_markdown: str | None = None
    language: str | None = None
    title: str | None = None

    @model_validator(mode="after")
    def _has_its_text(self) -> _ContentForm:
        if self._given is None:
            raise ValueError(f"needs {TEXT_FIELD[self.type]}, because its type is {self.type}")
        return self

    @property
    def _given(self) -> str | None:
        return self.code if self.type == "code" else self.full_markdown

    @property
    def text(self) -> str:
        return self._given or ""

    @property
    def head(self) -> dict[str, JsonValue]:
        """The fields that are given, except index and text."""
        fields = {"type": self.type, "language": self.language, "title": self.title}
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def kind(self) -> dict[str, JsonValue]:
        """Its type, and its language if that is given: a text part keeps them as metadata."""
        return {name: value for name, value in self.head.items() if name != "title"}


class _ArtifactForm(_OlderForm):
    contents: list[Any] = Field(min_length=1)
    current_index: int


@dataclass(frozen=True, slots=True)
class ThreadArtifact:
    """The thread's one artifact now."""

    artifact: Artifact
    versions: Sequence[Version]


def needs_tasks(artifacts: Sequence[Artifact]) -> bool:
    """Whether only the thread's tasks tell which of its artifacts `thread_artifact` returns."""
    with_text = _with_text(artifacts)
    return bool(with_text) and ARTIFACT_ID not in with_text


def thread_artifact(artifacts: Sequence[Artifact], tasks: Sequence[TaskRecord]) -> Artifact | None:
    """The one artifact of a thread; None if it has none with text.

    Args:
        tasks: those of the thread, oldest first; not read unless `needs_tasks`.
    """
    with_text = _with_text(artifacts)
    made = (artifact_id for task in tasks for artifact_id in task.artifacts)
    return next((with_text[artifact_id] for artifact_id in (ARTIFACT_ID, *made) if artifact_id in with_text), None)


def _with_text(artifacts: Sequence[Artifact]) -> Mapping[str, Artifact]:
    return {artifact.artifact_id: artifact for artifact in artifacts if text_of(artifact.parts)}


@dataclass(frozen=True, slots=True)
class TranslatedRun:
    """A run, and what its user has changed before.

    Attributes:
        artifact_id: the thread's artifact; empty while it has none.
        changes: by artifact id; to be stored before the run begins.
    """

    run: RunInput
    artifact_id: str
    changes: tuple[tuple[str, Change], ...]


def is_older(value: Mapping[str, JsonValue]) -> bool:
    """Whether a body is of the older form."""
    return "message" in value and "messages" not in value


def older_request(value: Mapping[str, JsonValue]) -> OlderRequest:
    """Parse a body.

    Raises:
        InvalidParamsError: it is not of the older form.
    """
    request = parse(OlderRequest, value)
    check_id("thread_id", request.thread_id)
    if request.run_id is not None:
        check_id("run_id", request.run_id)
    return request


def translated(request: OlderRequest, known: ThreadArtifact | None, run_id: str) -> TranslatedRun:
    """The run that `request` asks for in a thread with this artifact.

    Raises:
        InvalidParamsError, InvalidOperation: it cannot be carried out.
    """
    edits = request.selected_text is not None
    value = request.artifact
    given = None if value is None else _known(value, known, edits) if known else _new(value)
    artifact_id = known.artifact.artifact_id if known else ARTIFACT_ID if given else ""
    run = run_input(_run_agent_input(request, artifact_id, given.version if given else None, run_id))
    run = replace(run, history=())  # such a client keeps its messages to itself
    changes = given.changes if given else ()
    if given and changes:
        _check_selection(run, artifact_id, given)
    return TranslatedRun(run, artifact_id, tuple((artifact_id, change) for change in changes))


def begun_run(request: OlderRequest, tasks: Sequence[TaskRecord]) -> TaskRecord | None:
    """Which of the thread's tasks the same request has begun before, or continued by an answer (rule 5)."""

    def is_same(message: UserMessage | AgentMessage) -> bool:
        if not isinstance(message, UserMessage) or message.message_id != request.run_id:
            return False
        return message.metadata.get(RUN_METADATA) == {"runId": request.run_id} and message.parts == (
            text_part(request.message),
        )

    return next((task for task in tasks if any(map(is_same, task.history))), None)


def in_older_names(error: InvalidOperation) -> InvalidOperation:
    """The same error, with its field named as in the older form."""
    for ours, theirs in FIELDS.items():
        if error.field == ours or error.field.startswith(f"{ours}."):
            return InvalidOperation(theirs + error.field.removeprefix(ours), error.reason)
    return error


def _run_agent_input(request: OlderRequest, artifact_id: str, version: int | None, run_id: str) -> dict[str, JsonValue]:
    operation: dict[str, JsonValue] = {"artifactId": artifact_id}
    if version:
        operation["baseVersion"] = version
    if request.selected_text:
        selection = request.selected_text.model_dump(by_alias=True, exclude_none=True)
        operation |= {"op": "edit", "selection": selection}
    return {
        "threadId": request.thread_id,
        "runId": run_id,
        "messages": [{"id": run_id, "role": "user", "content": request.message}],
        "forwardedProps": {CANVAS: operation} if artifact_id else {},
    }


@dataclass(frozen=True, slots=True)
class _Given:
    """The version that a request is about, once `changes` are stored, and its text."""

    version: int
    text: str
    changes: tuple[Change, ...] = ()


def _check_selection(run: RunInput, artifact_id: str, given: _Given) -> None:
    """Refuses a selection that the changed text does not have, before the changes are stored."""
    intent = run.message.intent if run.message else None
    if isinstance(intent, SelectionEdit):
        selected(intent.selection, EditBase(artifact_id, given.version, given.text, given.version, given.text))


def _new(value: Mapping[str, Any]) -> _Given:
    """Rule 1, unless somebody else makes the artifact at the same time."""
    form = parse(_ArtifactForm, value, "artifact")
    if len(form.contents) > MAX_CONTENTS:
        raise invalid_field("artifact.contents", f"must not be more than {MAX_CONTENTS}")
    contents = [parse(_ContentForm, each, f"artifact.contents.{n}") for n, each in enumerate(form.contents)]
    indices = [content.index for content in contents]
    if len(set(indices)) < len(indices):
        raise invalid_field("artifact.contents", "must each have an index of their own")
    current = _position(indices, form.current_index)
    made = tuple(
        ReplaceParts((_new_part(content),), content.title, last_chunk=True, base=number)
        for number, content in enumerate(contents)
    )
    undone = tuple(Undo(number) for number in range(len(made), current + 1, -1))
    return _Given(current + 1, contents[current].text, made + undone)


def _known(value: Mapping[str, Any], known: ThreadArtifact, edits: bool) -> _Given:
    """Rules 2 and 3. `edits`: the message is an edit."""
    form = parse(_ArtifactForm, value, "artifact")
    indices = [each.get("index") if isinstance(each, dict) else None for each in form.contents]
    position = _position(indices, form.current_index)
    content = parse(_ContentForm, form.contents[position], f"artifact.contents.{position}")
    count, index = len(known.versions), form.current_index
    last = count + known.artifact.open
    if not 1 <= index <= last:
        raise invalid_field("artifact.currentIndex", f"is {index} and must be a version of the artifact, 1 to {last}")
    if index > count:
        return _Given(index, content.text)
    if known.versions[index - 1].pruned:
        reason = f"is {index}, a version that is no longer kept; go on from a newer one"
        raise invalid_field("artifact.currentIndex", reason)
    version, steps = known.versions[index - 1], tuple[Change, ...]()
    edits = edits or _own_edit(content, version, index) is not None
    if not known.artifact.open and (edits or count in indices):
        steps = _steps(known.artifact.version, index, known.versions)
    base = count + 1 if any(isinstance(step, Restore) for step in steps) else index
    own = _own_edit(content, version, base)
    return _Given(max(count, base) + 1, content.text, (*steps, own)) if own else _Given(base, content.text, steps)


def _steps(current: int, target: int, versions: Sequence[Version]) -> tuple[Change, ...]:
    """What makes version `target` current: undo or redo where that leads to it, otherwise a restored copy."""
    parents = {version.number: version.parent for version in versions}
    back = _line(current, target, parents)
    if back is not None:
        return tuple(map(Undo, back))
    on = _line(len(versions), current, parents) or []
    if target in on:
        return tuple(map(Redo, (current, *reversed(on[on.index(target) + 1 :]))))
    return (Restore(target, current),)


def _line(start: int, end: int, parents: Mapping[int, int]) -> list[int] | None:
    """The versions from `start` back to the one that was made from `end`; None if `end` is not before `start`."""
    line = []
    while start and start != end:
        line.append(start)
        start = parents[start]
    return line if start == end else None


def _position(indices: Sequence[Any], current: int) -> int:
    if indices.count(current) != 1:
        raise invalid_field("artifact.currentIndex", "must be the index of one of contents, and of no other")
    return indices.index(current)


def _new_part(content: _ContentForm) -> TextPart:
    return text_part(content.text, MEDIA_TYPES[content.type], content.kind)


def _own_edit(content: _ContentForm, version: Version, base: int) -> Change | None:
    """The change from `version` to what the client has; None if that is the same (rule 2). `base`: its number then."""
    shown = content_json(version.number, version.content)
    if not content.head.items() <= shown.items():
        part = _redescribed_part(content, shown, version.content)
        return ReplaceParts((part,), content.title, last_chunk=True, base=base)
    before = version.content.text
    if content.text == before:
        return None
    span, text = difference(before, content.text)
    return EditText(span, text, base, passage=False)


def _redescribed_part(content: _ContentForm, shown: Mapping[str, Any], before: Content) -> TextPart:
    """The text of a content with another type, language or title. A new type resets the language."""
    if content.kind.items() <= shown.items():
        media_type = next((part.media_type for part in before.parts if isinstance(part, TextPart)), "")
        return text_part(content.text, media_type, content.kind)
    reset: dict[str, JsonValue] = {"language": ""} if content.type != shown["type"] else {}
    return text_part(content.text, MEDIA_TYPES[content.type], {**reset, **content.kind})
