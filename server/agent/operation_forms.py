"""The forms of operations in a message's metadata: what all have in common. Pure.

Rule 1: an operation is parsed strictly. An unknown or misspelt field, or one of the wrong type, is an error that names
        it: silently ignoring a precondition such as `baseVersion` would overwrite someone's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from a2a_canvas.store.models import Parts, TextPart
from a2a_canvas.store.text.spans import Unit
from a2a_canvas.store.text.unicode import MAX_ID, valid_id
from a2a_canvas.store.text.wording import choice
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
        fields: the sender's names of the offsets; `name` is that of the whole selection.
    """

    start: int | None = None
    end: int | None = None
    unit: Unit = "utf16"
    text: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    fields: tuple[str, str] = ("selection.start", "selection.end")
    name: str = "selection"


class OperationForm(BaseModel):
    """The fields of an operation, as sent."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


Id = Annotated[str, Field(min_length=1, max_length=MAX_ID), AfterValidator(valid_id)]


class SelectionForm(OperationForm):
    """A selection, as sent."""

    start: int | None = None
    end: int | None = None
    unit: Unit = "utf16"
    text: str | None = None
    line_start: int | None = None
    line_end: int | None = None

    @model_validator(mode="after")
    def _says_where(self) -> SelectionForm:
        if (self.start is None) != (self.end is None):
            raise ValueError("needs both start and end, or neither")
        if self.start is None and self.line_start is None:
            raise ValueError("needs start and end, or lineStart and lineEnd")
        if self.line_start is None and self.line_end is not None:
            raise ValueError("needs lineStart where it has lineEnd")
        return self

    def to_request(self, name: str = "selection") -> SelectionRequest:
        last_line = self.line_start if self.line_end is None else self.line_end
        fields = f"{name}.start", f"{name}.end"
        return SelectionRequest(self.start, self.end, self.unit, self.text, self.line_start, last_line, fields, name)


class ArtifactOperationForm(OperationForm):
    """The fields of an operation on one artifact."""

    artifact_id: Id
    base_version: int | None = None


def instruction_of(parts: Parts) -> str:
    """The texts of a message."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart) and part.text.strip())


def require_text(parts: Parts, description: str = "", needed: str = "what is to be changed") -> str:
    """The texts of a message, after the description that came with it.

    Raises:
        InvalidOperation: there is none.
    """
    texts = dict.fromkeys(words for words in (description.strip(), instruction_of(parts)) if words)
    if not texts:
        raise InvalidOperation("message.parts", f"must say in a text {needed}")
    return "\n".join(texts)


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
        here = form if len(first["loc"]) == 1 else SelectionForm
        names = [info.alias or name for name, info in here.model_fields.items()]
        raise InvalidOperation(field, f"is no field of this operation, which has {choice(names, 'and')}")
    raise InvalidOperation(field, reason_of(first))
