"""Translates the older JSON request of `POST /canvas/stream` (older_form.py) into a `RunAgentInput`. Pure.

The request is about the thread's one artifact: the one that such a client made (ARTIFACT_ID), otherwise the first with
text that a task of the thread made. Later artifacts do not change that, so a request is about what the last answer
showed.

Rule 1: an artifact that the thread does not have yet is made from `contents`, as versions 1…n in their order; the one
        at `currentIndex` becomes the current version.
Rule 2: of an artifact that the thread has, only the content at `currentIndex` is read. Where it differs from our
        version of that number (as older_state.py shows it), it is the user's own edit, and is stored as a new version.
        Fields that are left out keep their values. An open draft cannot have been edited.
Rule 3: `currentIndex` is the version that the message is about. If `contents` has the newest version and `currentIndex`
        names another one, the user has undone or redone changes: that version becomes current first (undo, redo, or a
        restored copy), so an edit branches from it; no version is lost. Without the newest version the client is only
        behind: nothing is undone, a selection is tracked to the current version, and the user's own edit is merged with
        the changes of others, or refused where both changed the same place.
Rule 4: with a selection the message is an edit; without an artifact anywhere it is conversation.
Rule 5: a request with the `run_id` and the message of an earlier one joins its run, whatever its artifact: that has
        changed meanwhile.
Rule 6: if each message has an id, they are the history of the run. Otherwise the run has no history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from a2a_canvas.server.agent.edit.locate import EditBase, selected_range
from a2a_canvas.server.agent.events import AgentMessage, UserMessage
from a2a_canvas.server.agent.intent import SelectionEdit
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.protocols.a2a_v1.errors import invalid_field
from a2a_canvas.server.protocols.agui.input import RUN_METADATA, RunInput, parse, run_input
from a2a_canvas.server.protocols.agui.older.older_form import ArtifactForm, ContentForm, OlderRequest
from a2a_canvas.server.protocols.agui.older.older_state import content_json
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.changes import Change, EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.merge import MergeResult, merge
from a2a_canvas.store.models import Artifact, Content, JsonValue, TextPart, Version, text_of, text_part
from a2a_canvas.store.text.spans import difference, find_again, from_codepoints
from a2a_canvas.store.text.unicode import MAX_ID

ARTIFACT_ID = "canvas"
"""The id of an artifact that such a client makes."""

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


@dataclass(frozen=True, slots=True)
class ThreadArtifact:
    """The thread's one artifact, in its current state."""

    artifact: Artifact
    versions: Sequence[Version]


def needs_tasks(artifacts: Sequence[Artifact]) -> bool:
    """Whether `thread_artifact` needs the thread's tasks to choose among its artifacts."""
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
    """A run, and the changes that its user made before it.

    Attributes:
        artifact_id: the thread's artifact; empty while it has none.
        changes: by artifact id; to be stored before the run begins.
    """

    run: RunInput
    artifact_id: str
    changes: tuple[tuple[str, Change], ...]


def translate_request(request: OlderRequest, thread: ThreadArtifact | None, run_id: str) -> TranslatedRun:
    """Translate a request in a thread with this artifact.

    Raises:
        InvalidParamsError, InvalidOperation: it cannot be carried out.
    """
    value = request.artifact
    requested = None if value is None else _known_artifact(value, thread) if thread else _new_artifact(value)
    artifact_id = thread.artifact.artifact_id if thread else ARTIFACT_ID if requested else ""
    operation = _operation(request, artifact_id, requested.version if requested else None)
    run = run_input(request.run_agent_input(run_id, operation))
    changes = requested.changes if requested else ()
    if requested and changes and (moved := _moved_selection(run, artifact_id, requested)):
        run = run_input(request.run_agent_input(run_id, {**operation, "selection": moved}))
    run = run if request.shows_messages else replace(run, history=None)
    return TranslatedRun(run, artifact_id, tuple((artifact_id, change) for change in changes))


def find_run(run: RunInput, tasks: Sequence[TaskRecord]) -> TaskRecord | None:
    """The task of the thread that an earlier copy of this request started, or continued by an answer (rule 5).

    Args:
        run: the request without its artifact and selection.
    """
    new = run.message

    def is_same(message: UserMessage | AgentMessage) -> bool:
        if not isinstance(message, UserMessage) or new is None or message.message_id != new.message_id:
            return False
        # An operation has no `context` before the message.
        own_parts = new.parts[-len(message.parts) :]
        return message.metadata.get(RUN_METADATA) == new.metadata[RUN_METADATA] and message.parts == own_parts

    return next((task for task in tasks if any(map(is_same, task.history))), None)


def in_older_names(error: InvalidOperation) -> InvalidOperation:
    """The same error, with its field named as in the older form."""
    for ours, theirs in FIELDS.items():
        if error.field == ours or error.field.startswith(f"{ours}."):
            return InvalidOperation(theirs + error.field.removeprefix(ours), error.reason)
    return error


def _operation(request: OlderRequest, artifact_id: str, version: int | None) -> dict[str, JsonValue]:
    if not artifact_id:
        return {}
    operation: dict[str, JsonValue] = {"artifactId": artifact_id}
    if version:
        operation["baseVersion"] = version
    if request.selected_text:
        operation |= {"op": "edit", "selection": request.selected_text.model_dump(by_alias=True, exclude_none=True)}
    return operation


@dataclass(frozen=True, slots=True)
class _RequestedVersion:
    """The version that a request is about, once `changes` are stored, and its text.

    Attributes:
        shown: the text that the client shows, where others' changes are merged into `text`.
    """

    version: int
    text: str
    changes: tuple[Change, ...] = ()
    shown: str | None = None


def _moved_selection(run: RunInput, artifact_id: str, requested: _RequestedVersion) -> dict[str, JsonValue] | None:
    """Where the selection is in a text that others' changes are merged into; None if it has not moved.

    Raises:
        InvalidOperation: the text that the client shows, or the merged text, has no such selection. Nothing is stored
            yet.
    """
    intent = run.message.intent if run.message else None
    if not isinstance(intent, SelectionEdit):
        return None
    shown = requested.text if requested.shown is None else requested.shown
    span, quote = selected_range(
        intent.selection, EditBase(artifact_id, requested.version, shown, requested.version, shown)
    )
    if shown == requested.text:
        return None
    found = find_again(shown, span, quote, requested.text)
    if found is None:
        raise InvalidOperation("selection", "is a passage that others have changed; take the newest version")
    start, end = (from_codepoints(requested.text, offset, "utf16") for offset in (found.start, found.end))
    return {"start": start, "end": end, "text": found.extract(requested.text)}


def _new_artifact(value: Mapping[str, Any]) -> _RequestedVersion:
    """Rule 1, unless another client makes the artifact at the same time."""
    form = parse(ArtifactForm, value, "artifact")
    if len(form.contents) > MAX_CONTENTS:
        raise invalid_field("artifact.contents", f"must not be more than {MAX_CONTENTS}")
    contents = [parse(ContentForm, each, f"artifact.contents.{n}") for n, each in enumerate(form.contents)]
    for number, content in enumerate(contents):
        _check_head(content, number, {})
    indices = [content.index for content in contents]
    if len(set(indices)) < len(indices):
        raise invalid_field("artifact.contents", "must each have a unique index")
    current = _position(indices, form.current_index)
    made = tuple(
        ReplaceParts((_new_part(content),), content.title, last_chunk=True, base=number)
        for number, content in enumerate(contents)
    )
    undone = tuple(Undo(number) for number in range(len(made), current + 1, -1))
    return _RequestedVersion(current + 1, contents[current].text, made + undone)


def _check_head(content: ContentForm, number: int, shown: Mapping[str, Any]) -> None:
    """Raises for a title or language that is too long, unless the client got it from the server."""
    for name in ("title", "language"):
        value = getattr(content, name) or ""
        if len(value) > MAX_ID and value != shown.get(name):
            reason = f"must not be longer than {MAX_ID} characters"
            raise invalid_field(f"artifact.contents.{number}.{name}", reason)


def _known_artifact(value: Mapping[str, Any], thread: ThreadArtifact) -> _RequestedVersion:
    """Rules 2 and 3."""
    form = parse(ArtifactForm, value, "artifact")
    indices = [each.get("index") if isinstance(each, dict) else None for each in form.contents]
    position = _position(indices, form.current_index)
    content = parse(ContentForm, form.contents[position], f"artifact.contents.{position}")
    count, index = len(thread.versions), form.current_index
    last = count + thread.artifact.open
    if not 1 <= index <= last:
        raise invalid_field("artifact.currentIndex", f"is {index} and must be a version of the artifact, 1 to {last}")
    if index > count:
        return _RequestedVersion(index, content.text)
    version = thread.versions[index - 1]
    if version.pruned:
        reason = f"is {index}, a version that is no longer kept; continue from a newer one"
        raise invalid_field("artifact.currentIndex", reason)
    _check_head(content, position, _version_json(version))
    if not thread.artifact.open and count not in indices:
        return _from_behind(content, version, thread)
    steps = () if thread.artifact.open else _steps(thread.artifact.version, index, thread.versions)
    base = count + 1 if any(isinstance(step, Restore) for step in steps) else index
    own = _own_edit(content, version, base)
    if own is None:
        return _RequestedVersion(base, content.text, steps)
    return _RequestedVersion(max(count, base) + 1, content.text, (*steps, own))


def _from_behind(content: ContentForm, version: Version, thread: ThreadArtifact) -> _RequestedVersion:
    """The version of a client that does not have the newest one (rule 3)."""
    current = thread.versions[thread.artifact.version - 1]
    together = merge(version.content.text, current.content.text, content.text)
    if not isinstance(together, MergeResult):
        reason = f"is {version.number}, and version {current.number} has changed the same place; load that one first"
        raise invalid_field("artifact.currentIndex", reason)
    own = _own_edit(content.model_copy(update={content.text_field: together.text}), current, current.number, version)
    if own is None:
        return _RequestedVersion(version.number, content.text)
    return _RequestedVersion(len(thread.versions) + 1, together.text, (own,), content.text)


def _steps(current: int, target: int, versions: Sequence[Version]) -> tuple[Change, ...]:
    """The changes that make version `target` current: undo or redo if they lead to it, otherwise a restored copy."""
    parents = {version.number: version.parent for version in versions}
    back = _line(current, target, parents)
    if back is not None:
        return tuple(map(Undo, back))
    on = _line(len(versions), current, parents) or []
    if target in on:
        return tuple(map(Redo, (current, *reversed(on[on.index(target) + 1 :]))))
    return (Restore(target, current),)


def _line(start: int, end: int, parents: Mapping[int, int]) -> list[int] | None:
    """The versions from `start` back to the child of `end`; None if `end` is not an ancestor of `start`."""
    line = []
    while start and start != end:
        line.append(start)
        start = parents[start]
    return line if start == end else None


def _position(indices: Sequence[Any], current: int) -> int:
    if indices.count(current) != 1:
        raise invalid_field("artifact.currentIndex", "must be the index of one of contents, and of no other")
    return indices.index(current)


def _new_part(content: ContentForm) -> TextPart:
    return text_part(content.text, MEDIA_TYPES[content.type], content.kind)


def _own_edit(content: ContentForm, version: Version, base: int, shown: Version | None = None) -> Change | None:
    """The change from `version` to the client's content; None if they are equal (rule 2).

    Args:
        base: the number that `version` then has.
        shown: the version that the client shows, if it is another one.
    """
    described = _version_json(shown or version)
    if not content.head.items() <= described.items():
        part = _redescribed_part(content, described, version.content)
        return ReplaceParts((part,), content.title, last_chunk=True, base=base)
    before = version.content.text
    if content.text == before:
        return None
    span, text = difference(before, content.text)
    return EditText(span, text, base, passage=False)


def _version_json(version: Version) -> Mapping[str, Any]:
    return content_json(version.number, version.content)


def _redescribed_part(content: ContentForm, shown: Mapping[str, Any], before: Content) -> TextPart:
    """The text part of a content with a new type, language or title. A new type resets the language."""
    if content.kind.items() <= shown.items():
        media_type = next((part.media_type for part in before.parts if isinstance(part, TextPart)), "")
        return text_part(content.text, media_type, content.kind)
    reset: dict[str, JsonValue] = {"language": ""} if content.type != shown["type"] else {}
    return text_part(content.text, MEDIA_TYPES[content.type], {**reset, **content.kind})
