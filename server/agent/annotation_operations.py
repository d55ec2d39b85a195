"""Operations on annotations: what is asked for, and the forms in which it is sent. Pure.

`operation_forms.py` has what all operations have in common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeGuard

from pydantic import Field

from a2a_canvas.server.agent.operation_forms import (
    ArtifactOperationForm,
    Id,
    InvalidOperation,
    OperationForm,
    SelectionForm,
    SelectionRequest,
    instruction_of,
    require_text,
)
from a2a_canvas.store.annotations.annotation import MAX_REMARK_BYTES
from a2a_canvas.store.models import Parts, TextPart
from a2a_canvas.store.text.unicode import MAX_ID

Verb = Literal["resolve", "accept", "reject", "withdraw"]


@dataclass(frozen=True, slots=True)
class Annotate:
    """Comment on a passage, or suggest a replacement for it.

    Attributes:
        text: the comment; empty for a suggestion without one.
        replacement: None for a comment.
        ask: the comment is for the agent to answer.
    """

    artifact_id: str
    selection: SelectionRequest
    text: str
    replacement: str | None
    base_version: int | None
    ask: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """Add to the thread of an annotation.

    Attributes:
        ask: the reply is for the agent to answer.
    """

    artifact_id: str
    annotation_id: str
    text: str
    ask: bool = False


@dataclass(frozen=True, slots=True)
class Decide:
    """Resolve a comment, accept or reject a suggestion, or withdraw either."""

    artifact_id: str
    annotation_id: str
    verb: Verb


@dataclass(frozen=True, slots=True)
class AcceptAll:
    """Accept all open suggestions of an artifact.

    Attributes:
        by: those of this author only, by the name that annotations show; None for all.
    """

    artifact_id: str
    by: str | None


AnnotationOperation = Annotate | Reply | Decide | AcceptAll


def is_annotation_operation(intent: object) -> TypeGuard[AnnotationOperation]:
    """Whether a message changes annotations: then its task is not shown to the model."""
    return isinstance(intent, Annotate | Reply | Decide | AcceptAll)


def asks_agent(intent: object, name: str) -> TypeGuard[Annotate | Reply]:
    """Whether a message is a comment or a reply for the agent to answer: it says so, or mentions the agent.

    Args:
        name: of the agent; empty if it is unknown.
    """
    return isinstance(intent, Annotate | Reply) and (intent.ask or is_mentioned(name, intent.text))


def is_mentioned(name: str, text: str) -> bool:
    """Whether a text has `@` and the name, in capitals or not, as words of their own."""
    words = r"\s+".join(map(re.escape, name.split()))
    return bool(words) and re.search(rf"(?<!\w)@{words}(?!-?\w)", text, re.IGNORECASE) is not None


class _AnnotateForm(ArtifactOperationForm):
    op: Literal["annotate"]
    selection: SelectionForm
    replacement: str | None = None
    ask: bool = False

    def intent(self, parts: Parts) -> Annotate:
        _check_text_only(parts)
        may_be_empty = self.replacement is not None and not self.ask
        text = instruction_of(parts) if may_be_empty else require_text(parts, needed="what the comment is")
        _check_size(text)
        selection = self.selection.to_request()
        return Annotate(self.artifact_id, selection, text, self.replacement, self.base_version, self.ask)


class _ReplyForm(OperationForm):
    op: Literal["reply"]
    artifact_id: Id
    annotation_id: Id
    ask: bool = False

    def intent(self, parts: Parts) -> Reply:
        _check_text_only(parts)
        text = require_text(parts, needed="what the reply is")
        _check_size(text)
        return Reply(self.artifact_id, self.annotation_id, text, self.ask)


class _DecideForm(OperationForm):
    op: Verb
    artifact_id: Id
    annotation_id: Id

    def intent(self, parts: Parts) -> Decide:
        _check_text_only(parts)
        return Decide(self.artifact_id, self.annotation_id, self.op)


class _AcceptAllForm(OperationForm):
    op: Literal["accept-all"]
    artifact_id: Id
    by: Annotated[str, Field(max_length=MAX_ID)] | None = None

    def intent(self, parts: Parts) -> AcceptAll:
        _check_text_only(parts)
        return AcceptAll(self.artifact_id, self.by)


def _check_text_only(parts: Parts) -> None:
    """Files would be kept in the name of the owner, by somebody who may only comment."""
    if not all(isinstance(part, TextPart) for part in parts):
        raise InvalidOperation("message.parts", "must have text only: an annotation has no files or data")


def _check_size(text: str) -> None:
    size = len(text.encode())
    if size > MAX_REMARK_BYTES:
        reason = f"have {size} bytes of text and may have {MAX_REMARK_BYTES}: shorten it"
        raise InvalidOperation("message.parts", reason)


ANNOTATION_FORMS: Mapping[str, type[_AnnotateForm | _ReplyForm | _DecideForm | _AcceptAllForm]] = {
    "annotate": _AnnotateForm,
    "reply": _ReplyForm,
    "resolve": _DecideForm,
    "accept": _DecideForm,
    "reject": _DecideForm,
    "withdraw": _DecideForm,
    "accept-all": _AcceptAllForm,
}
