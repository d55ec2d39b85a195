"""Translates the older JSON request of `POST /canvas/stream` (older_form.py) into a `RunAgentInput`. Pure.

It is about the thread's one artifact: the one that such a client has made (ARTIFACT_ID), otherwise the first with text
that a task of the thread has made. Later artifacts do not change that, so a request is about what the last answer
showed.

Rule 1: an artifact that the thread does not have is made of `contents`, as versions 1…n in their order; the one at
        `currentIndex` becomes the current version.
Rule 2: of an artifact that the thread has, only the content at `currentIndex` is read. Where it differs from our
        version of that number (as older_state.py shows it), it is the user's own edit, and is stored as a new version.
        Fields that are left out keep their values. A draft that is being written cannot have been edited.
Rule 3: `currentIndex` is the version that the message is about. If `contents` has the newest version and another one is
        current by `currentIndex`, the user has gone back or on: that version becomes current first (undo, redo, or a
        restored copy), so an edit branches from it; no version is lost. Without the newest version its sender is only
        behind: nothing is undone, a selection is tracked to the current version, and an edit of the user's own is
        merged with what others have changed, or refused where both changed the same place.
Rule 4: with a selection the message is an edit; without an artifact anywhere it is conversation.
Rule 5: a request with the `run_id` and the message of an earlier one joins its run, whatever artifact it has: that has
        changed meanwhile.
Rule 6: the messages of a client that gives each an id are the history of its run. Any other keeps its messages to
        itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from a2a_canvas.server.agent.edit.locate import EditBase, selected_range
from a2a_canvas.server.agent.events import AgentMessage, UserMessage
from a2a_canvas.server.agent.intent import InvalidOperation, SelectionEdit
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


def translated(request: OlderRequest, known: ThreadArtifact | None, run_id: str) -> TranslatedRun:
    """The run that `request` asks for in a thread with this artifact.

    Raises:
        InvalidParamsError, InvalidOperation: it cannot be carried out.
    """
    value = request.artifact
    given = None if value is None else _known(value, known) if known else _new(value)
    artifact_id = known.artifact.artifact_id if known else ARTIFACT_ID if given else ""
    operation = _operation(request, artifact_id, given.version if given else None)
    run = run_input(request.run_agent_input(run_id, operation))
    changes = given.changes if given else ()
    if given and changes and (moved := _moved_selection(run, artifact_id, given)):
        run = run_input(request.run_agent_input(run_id, {**operation, "selection": moved}))
    run = run if request.shows_messages else replace(run, history=None)
    return TranslatedRun(run, artifact_id, tuple((artifact_id, change) for change in changes))


def begun_run(run: RunInput, tasks: Sequence[TaskRecord]) -> TaskRecord | None:
    """Which of the thread's tasks the same request has begun before, or continued by an answer (rule 5).

    Args:
        run: the request without its artifact and selection.
    """
    asked = run.message

    def is_same(message: UserMessage | AgentMessage) -> bool:
        if not isinstance(message, UserMessage) or asked is None or message.message_id != asked.message_id:
            return False
        # An operation has no `context` before the message.
        own_parts = asked.parts[-len(message.parts) :]
        return message.metadata.get(RUN_METADATA) == asked.metadata[RUN_METADATA] and message.parts == own_parts

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
class _Given:
    """The version that a request is about, once `changes` are stored, and its text.

    Attributes:
        shown: the text that the client shows, where others' changes are merged into `text`.
    """

    version: int
    text: str
    changes: tuple[Change, ...] = ()
    shown: str | None = None


def _moved_selection(run: RunInput, artifact_id: str, given: _Given) -> dict[str, JsonValue] | None:
    """Where the selection is in a text that others' changes are merged into; None if it has not moved.

    Raises:
        InvalidOperation: the text that the client shows has no such selection, or the merged one has not. Nothing is
            stored yet.
    """
    intent = run.message.intent if run.message else None
    if not isinstance(intent, SelectionEdit):
        return None
    shown = given.text if given.shown is None else given.shown
    span, quote = selected_range(intent.selection, EditBase(artifact_id, given.version, shown, given.version, shown))
    if shown == given.text:
        return None
    found = find_again(shown, span, quote, given.text)
    if found is None:
        raise InvalidOperation("selection", "is a passage that others have changed; take the newest version")
    start, end = (from_codepoints(given.text, offset, "utf16") for offset in (found.start, found.end))
    return {"start": start, "end": end, "text": found.extract(given.text)}


def _new(value: Mapping[str, Any]) -> _Given:
    """Rule 1, unless somebody else makes the artifact at the same time."""
    form = parse(ArtifactForm, value, "artifact")
    if len(form.contents) > MAX_CONTENTS:
        raise invalid_field("artifact.contents", f"must not be more than {MAX_CONTENTS}")
    contents = [parse(ContentForm, each, f"artifact.contents.{n}") for n, each in enumerate(form.contents)]
    for number, content in enumerate(contents):
        _check_head(content, number, {})
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


def _check_head(content: ContentForm, number: int, shown: Mapping[str, Any]) -> None:
    """Raises for a title or language that is too long, unless it is what the client was shown."""
    for name in ("title", "language"):
        given = getattr(content, name) or ""
        if len(given) > MAX_ID and given != shown.get(name):
            reason = f"must not be longer than {MAX_ID} characters"
            raise invalid_field(f"artifact.contents.{number}.{name}", reason)


def _known(value: Mapping[str, Any], known: ThreadArtifact) -> _Given:
    """Rules 2 and 3."""
    form = parse(ArtifactForm, value, "artifact")
    indices = [each.get("index") if isinstance(each, dict) else None for each in form.contents]
    position = _position(indices, form.current_index)
    content = parse(ContentForm, form.contents[position], f"artifact.contents.{position}")
    count, index = len(known.versions), form.current_index
    last = count + known.artifact.open
    if not 1 <= index <= last:
        raise invalid_field("artifact.currentIndex", f"is {index} and must be a version of the artifact, 1 to {last}")
    if index > count:
        return _Given(index, content.text)
    version = known.versions[index - 1]
    if version.pruned:
        reason = f"is {index}, a version that is no longer kept; go on from a newer one"
        raise invalid_field("artifact.currentIndex", reason)
    _check_head(content, position, _shown(version))
    if not known.artifact.open and count not in indices:
        return _from_behind(content, version, known)
    steps = () if known.artifact.open else _steps(known.artifact.version, index, known.versions)
    base = count + 1 if any(isinstance(step, Restore) for step in steps) else index
    own = _own_edit(content, version, base)
    return _Given(max(count, base) + 1, content.text, (*steps, own)) if own else _Given(base, content.text, steps)


def _from_behind(content: ContentForm, version: Version, known: ThreadArtifact) -> _Given:
    """What a client gives that does not know the newest version (rule 3)."""
    current = known.versions[known.artifact.version - 1]
    together = merge(version.content.text, current.content.text, content.text)
    if not isinstance(together, MergeResult):
        reason = f"is {version.number}, and version {current.number} has changed the same place; take that one first"
        raise invalid_field("artifact.currentIndex", reason)
    own = _own_edit(content.model_copy(update={content.text_field: together.text}), current, current.number, version)
    if own is None:
        return _Given(version.number, content.text)
    return _Given(len(known.versions) + 1, together.text, (own,), content.text)


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


def _new_part(content: ContentForm) -> TextPart:
    return text_part(content.text, MEDIA_TYPES[content.type], content.kind)


def _own_edit(content: ContentForm, version: Version, base: int, known: Version | None = None) -> Change | None:
    """The change from `version` to what the client has; None if that is the same (rule 2).

    Args:
        base: the number of `version` then.
        known: the version that the client shows, if it is another one.
    """
    described = _shown(known or version)
    if not content.head.items() <= described.items():
        part = _redescribed_part(content, described, version.content)
        return ReplaceParts((part,), content.title, last_chunk=True, base=base)
    before = version.content.text
    if content.text == before:
        return None
    span, text = difference(before, content.text)
    return EditText(span, text, base, passage=False)


def _shown(version: Version) -> Mapping[str, Any]:
    return content_json(version.number, version.content)


def _redescribed_part(content: ContentForm, shown: Mapping[str, Any], before: Content) -> TextPart:
    """The text of a content with another type, language or title. A new type resets the language."""
    if content.kind.items() <= shown.items():
        media_type = next((part.media_type for part in before.parts if isinstance(part, TextPart)), "")
        return text_part(content.text, media_type, content.kind)
    reset: dict[str, JsonValue] = {"language": ""} if content.type != shown["type"] else {}
    return text_part(content.text, MEDIA_TYPES[content.type], {**reset, **content.kind})
