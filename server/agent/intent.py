"""What a message asks for: an edit of a selection, a version step, a user's own edit, or a conversation. Pure.

Rule 1: the metadata decides, never the wording: a message with an operation in its metadata is that operation.
Rule 2: operations are parsed strictly. An unknown or misspelt field, or one of the wrong type, is an error that names
        it: silently ignoring a precondition such as `baseVersion` would overwrite someone's work.
Rule 3: our metadata without `op` is a conversation; it names the artifact and the selection the user is looking at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from a2a_canvas.server.wire import AGENTSTACK, CANVAS
from a2a_canvas.store.changes import Redo, Restore, Undo
from a2a_canvas.store.edits import Strategy
from a2a_canvas.store.models import Metadata, Parts, TextPart
from a2a_canvas.store.text.spans import Unit
from a2a_canvas.store.text.unicode import MAX_ID, valid_id
from a2a_canvas.store.text.wording import choice, format_value
from a2a_canvas.tools.faults import reason_of


class InvalidOperation(Exception):
    """The operation of a message is invalid; nothing has changed.

    Args:
        field: the invalid field, as the sender names it.
        reason: the rest of the sentence, such as "is missing".
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}.")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SelectionRequest:
    """A selection as the sender gave it: offsets, lines, or both, and the selected `text`.

    Attributes:
        fields: the sender's names of the offsets.
    """

    start: int | None = None
    end: int | None = None
    unit: Unit = "utf16"
    text: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    fields: tuple[str, str] = ("selection.start", "selection.end")


@dataclass(frozen=True, slots=True)
class SelectionEdit:
    """The model rewrites a selection."""

    artifact_id: str
    selection: SelectionRequest
    strategy: Strategy
    instruction: str
    base_version: int | None


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
    """

    artifact_id: str
    text: str
    base_version: int | None
    name: str | None = None
    merge: bool = False


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


Operation = SelectionEdit | VersionStep | Put | Upload
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


def instruction_of(parts: Parts) -> str:
    """The texts of a message."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart) and part.text.strip())


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


class OperationForm(BaseModel):
    """The fields of an operation, as sent."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


Id = Annotated[str, Field(min_length=1, max_length=MAX_ID), AfterValidator(valid_id)]


class _SelectionForm(OperationForm):
    start: int | None = None
    end: int | None = None
    unit: Unit = "utf16"
    text: str | None = None
    line_start: int | None = None
    line_end: int | None = None

    @model_validator(mode="after")
    def _says_where(self) -> _SelectionForm:
        if (self.start is None) != (self.end is None):
            raise ValueError("needs both start and end, or neither")
        if self.start is None and self.line_start is None:
            raise ValueError("needs start and end, or lineStart and lineEnd")
        if self.line_start is None and self.line_end is not None:
            raise ValueError("needs lineStart where it has lineEnd")
        return self

    def to_request(self) -> SelectionRequest:
        last_line = self.line_start if self.line_end is None else self.line_end
        return SelectionRequest(self.start, self.end, self.unit, self.text, self.line_start, last_line)


class _ArtifactOperationForm(OperationForm):
    artifact_id: Id
    base_version: int | None = None


class _FocusForm(_ArtifactOperationForm):
    selection: _SelectionForm | None = None

    def focus(self) -> Focus:
        return Focus(self.artifact_id, self.base_version, self.selection.to_request() if self.selection else None)


class _EditForm(_ArtifactOperationForm):
    op: Literal["edit"]
    selection: _SelectionForm
    strategy: Strategy = "replace"

    def intent(self, parts: Parts) -> SelectionEdit:
        selection, instruction = self.selection.to_request(), _instruction(parts)
        return SelectionEdit(self.artifact_id, selection, self.strategy, instruction, self.base_version)


class _StepForm(_ArtifactOperationForm):
    op: Literal["undo", "redo"]
    group: bool = False

    def intent(self, parts: Parts) -> VersionStep:
        step = Undo if self.op == "undo" else Redo
        return VersionStep(self.artifact_id, step(self.base_version, self.group))


class _RestoreForm(_ArtifactOperationForm):
    op: Literal["restore"]
    version: int

    def intent(self, parts: Parts) -> VersionStep:
        return VersionStep(self.artifact_id, Restore(self.version, self.base_version))


class _PutForm(_ArtifactOperationForm):
    op: Literal["put"]
    text: str | None = None
    name: Annotated[str, Field(min_length=1, max_length=MAX_ID)] | None = None
    merge: bool = False

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
        return Put(self.artifact_id, self.text, self.base_version, self.name, self.merge)

    def _upload(self, parts: Parts) -> Upload:
        if not parts:
            raise InvalidOperation("text", "is missing: a put has a text, or files or data in message.parts")
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
        return SelectionEdit(self.artifact_id, selection, "replace", _instruction(parts, self.description), None)


def _instruction(parts: Parts, description: str = "") -> str:
    texts = dict.fromkeys(words for words in (description.strip(), instruction_of(parts)) if words)
    if not texts:
        raise InvalidOperation("message.parts", "must say in a text what is to be changed")
    return "\n".join(texts)


OPERATIONS: Mapping[str, type[_EditForm | _StepForm | _RestoreForm | _PutForm]] = {
    "edit": _EditForm,
    "undo": _StepForm,
    "redo": _StepForm,
    "restore": _RestoreForm,
    "put": _PutForm,
}

F = TypeVar("F", bound=BaseModel)


def read_form(form: type[F], given: Mapping[str, Any]) -> F:
    """The fields that were sent.

    Raises:
        InvalidOperation: one is unknown, missing or invalid.
    """
    try:
        return form.model_validate(given)
    except ValidationError as error:
        faults = error.errors()
    unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    first = (unknown or faults)[0]
    field = ".".join(str(step) for step in first["loc"]) or "''"
    if unknown:
        # A misspelt name causes two errors, an unknown and a missing field: the unknown one helps.
        here = form if len(first["loc"]) == 1 else _SelectionForm
        names = [info.alias or name for name, info in here.model_fields.items()]
        raise InvalidOperation(field, f"is no field of this operation, which has {choice(names, 'and')}")
    raise InvalidOperation(field, reason_of(first))
