"""What a message asks for: an edit of a selection, a version step, a user's own edit, or a conversation. Pure.

Rule 1: the metadata decides, never the wording: a message with an operation in its metadata is that operation.
Rule 2: our metadata without `op` is a conversation; it names the artifact and the selection the user is looking at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from a2a_canvas.server.agent.annotation_operations import (
    ANNOTATION_FORMS,
    AnnotationOperation,
)
from a2a_canvas.server.agent.operation_forms import (
    ArtifactOperationForm,
    Id,
    InvalidOperation,
    SelectionForm,
    SelectionRequest,
    read_form,
    require_text,
)
from a2a_canvas.server.wire import AGENTSTACK, CANVAS
from a2a_canvas.store.annotations.critic_markup import CriticMark, CriticMarkupError, read_critic_markup
from a2a_canvas.store.changes import Redo, Restore, Undo
from a2a_canvas.store.edit_events import EditMode, Strategy
from a2a_canvas.store.models import Metadata, Parts, TextPart
from a2a_canvas.store.text.unicode import MAX_ID
from a2a_canvas.store.text.wording import choice, format_value

MAX_SELECTIONS = 50
"""Of one edit."""


@dataclass(frozen=True, slots=True)
class SelectionEdit:
    """The model rewrites a selection, or suggests how.

    Attributes:
        further: other selections that are rewritten with it, as one version.
    """

    artifact_id: str
    selection: SelectionRequest
    strategy: Strategy
    instruction: str
    base_version: int | None
    mode: EditMode = "apply"
    further: tuple[SelectionRequest, ...] = ()

    @property
    def selections(self) -> tuple[SelectionRequest, ...]:
        """All of them, as they were sent."""
        return self.selection, *self.further


@dataclass(frozen=True, slots=True)
class VersionStep:
    """Undo, redo or restore."""

    artifact_id: str
    change: Undo | Redo | Restore


@dataclass(frozen=True, slots=True)
class Put:
    """A user's own edit: the whole new text.

    Attributes:
        base_version: the version that the text is based on.
        name: of the artifact to create if it does not exist; None if it must exist.
        merge: whether to merge it with the changes that others have made since.
        marks: suggestions and comments that came with the text.
    """

    artifact_id: str
    text: str
    base_version: int | None
    name: str | None = None
    merge: bool = False
    marks: tuple[CriticMark, ...] = ()


@dataclass(frozen=True, slots=True)
class Upload:
    """A user's own files and data, which replace those of the artifact. Attributes as in `Put`."""

    artifact_id: str
    parts: Parts
    base_version: int | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Focus:
    """The artifact that the user is looking at, and the selection in it."""

    artifact_id: str
    base_version: int | None = None
    selection: SelectionRequest | None = None


@dataclass(frozen=True, slots=True)
class Converse:
    """A conversation with the model."""

    focus: Focus | None = None


Operation = SelectionEdit | VersionStep | Put | Upload | AnnotationOperation
Intent = Operation | Converse


def intent_of(metadata: Metadata, parts: Parts) -> Intent:
    """What a message with these metadata and parts requests (`UserMessage.intent`).

    Raises:
        InvalidOperation: it has an operation in its metadata that cannot be read.
    """
    ours, agentstack = metadata.get(CANVAS), metadata.get(AGENTSTACK)
    if ours is not None:
        return _intent(_object(CANVAS, ours), parts)
    if agentstack is not None:
        return read_form(_AgentStackForm, _object(AGENTSTACK, agentstack)).intent(parts)
    return Converse()


def _object(uri: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidOperation(f"metadata[{uri}]", f"is {format_value(given)} and must be an object")
    return given


def _intent(given: Mapping[str, Any], parts: Parts) -> Intent:
    if "op" not in given:
        return Converse(read_form(_FocusForm, given).focus())
    op = given["op"]
    if not isinstance(op, str) or op not in OPERATIONS:
        raise InvalidOperation("op", f"is {format_value(op)} and must be {choice(OPERATIONS)}")
    return read_form(OPERATIONS[op], given).intent(parts)


class _FocusForm(ArtifactOperationForm):
    selection: SelectionForm | None = None

    def focus(self) -> Focus:
        return Focus(self.artifact_id, self.base_version, self.selection.to_request() if self.selection else None)


class _EditForm(ArtifactOperationForm):
    op: Literal["edit"]
    selection: SelectionForm | None = None
    selections: Annotated[list[SelectionForm], Field(min_length=1, max_length=MAX_SELECTIONS)] | None = None
    strategy: Strategy = "replace"
    mode: EditMode = "apply"

    def intent(self, parts: Parts) -> SelectionEdit:
        if self.selection and self.selections:
            raise InvalidOperation("selections", "is for several passages: leave it out, or leave out selection")
        if self.selections:
            first, *further = (each.to_request(f"selections.{at}") for at, each in enumerate(self.selections))
        elif self.selection:
            first, further = self.selection.to_request(), []
        else:
            raise InvalidOperation("selection", "is missing: an edit has a selection, or several selections")
        fields = self.strategy, require_text(parts), self.base_version, self.mode
        return SelectionEdit(self.artifact_id, first, *fields, tuple(further))


class _StepForm(ArtifactOperationForm):
    op: Literal["undo", "redo"]
    group: bool = False

    def intent(self, parts: Parts) -> VersionStep:
        step = Undo if self.op == "undo" else Redo
        return VersionStep(self.artifact_id, step(self.base_version, self.group))


class _RestoreForm(ArtifactOperationForm):
    op: Literal["restore"]
    version: int

    def intent(self, parts: Parts) -> VersionStep:
        return VersionStep(self.artifact_id, Restore(self.version, self.base_version))


class _PutForm(ArtifactOperationForm):
    op: Literal["put"]
    text: str | None = None
    name: Annotated[str, Field(min_length=1, max_length=MAX_ID)] | None = None
    merge: bool = False
    format: Literal["text", "critic"] = "text"

    def intent(self, parts: Parts) -> Put | Upload:
        if self.name is not None and self.base_version is not None:
            raise InvalidOperation("name", "is for a new artifact, which has no baseVersion: leave out one of them")
        if self.merge and self.base_version is None:
            raise InvalidOperation("baseVersion", "is missing: merge needs the version that the text was made of")
        given = tuple(part for part in parts if not isinstance(part, TextPart))
        if self.text is None:
            return self._upload(given)
        if given:
            reason = "must not have files or data beside the text of a put: put them without text"
            raise InvalidOperation("message.parts", reason)
        if self.format == "text":
            return Put(self.artifact_id, self.text, self.base_version, self.name, self.merge)
        if self.merge:
            raise InvalidOperation("merge", "is for a text without marks: leave it out, or put the text without format")
        try:
            text, marks = read_critic_markup(self.text)
        except CriticMarkupError as error:
            reason = f"cannot be read as CriticMarkup: line {error.line} {error.reason}"
            raise InvalidOperation("text", reason) from None
        return Put(self.artifact_id, text, self.base_version, self.name, marks=marks)

    def _upload(self, parts: Parts) -> Upload:
        if not parts:
            raise InvalidOperation("text", "is missing: a put has a text, or files or data in message.parts")
        if self.format != "text":
            raise InvalidOperation("format", "is for a text: leave it out")
        if self.merge:
            raise InvalidOperation("merge", "is for a text: leave it out, or put a text in place of files and data")
        return Upload(self.artifact_id, parts, self.base_version, self.name)


class _AgentStackForm(BaseModel):
    """Offsets are UTF-16; further fields are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    artifact_id: Id
    start_index: int
    end_index: int
    description: str = ""

    def intent(self, parts: Parts) -> SelectionEdit:
        selection = SelectionRequest(self.start_index, self.end_index, fields=("start_index", "end_index"))
        return SelectionEdit(self.artifact_id, selection, "replace", require_text(parts, self.description), None)


EDIT_FORMS: Mapping[str, type[_EditForm | _StepForm | _RestoreForm | _PutForm]] = {
    "edit": _EditForm,
    "undo": _StepForm,
    "redo": _StepForm,
    "restore": _RestoreForm,
    "put": _PutForm,
}
OPERATIONS = {**EDIT_FORMS, **ANNOTATION_FORMS}
