"""The refusals of requests for contexts and artifacts: errors of A2A, and some that A2A lacks."""

from __future__ import annotations

from a2a.utils.errors import A2AError, ContentTypeNotSupportedError, TaskNotFoundError

from a2a_canvas.server.accounts.errors import (
    AccountError,
    ContextNotFound,
    NobodyToShare,
    OwnerOnly,
    ReadOnly,
    ShareNotFound,
)
from a2a_canvas.server.protocols.edge.availability import UnavailableError
from a2a_canvas.server.protocols.edge.error_tables import PermissionDeniedError, register_error
from a2a_canvas.server.protocols.guard.checks import Refusal, invalid
from a2a_canvas.server.tasks.errors import ChangesGone, ContextInUse, StreamLost, TaskError, TaskNotFound


def _new_kind(reason: str, http_status: int, status: str) -> type[A2AError]:
    """An error that A2A lacks."""
    kind = type(reason.title().replace("_", ""), (A2AError,), {})
    register_error(kind, http_status, status, reason)
    return kind


PATH_NOT_FOUND = _new_kind("PATH_NOT_FOUND", 404, "NOT_FOUND")
CONTEXT_NOT_FOUND = _new_kind("CONTEXT_NOT_FOUND", 404, "NOT_FOUND")
ARTIFACT_NOT_FOUND = _new_kind("ARTIFACT_NOT_FOUND", 404, "NOT_FOUND")
VERSION_NOT_FOUND = _new_kind("VERSION_NOT_FOUND", 404, "NOT_FOUND")
ANNOTATION_NOT_FOUND = _new_kind("ANNOTATION_NOT_FOUND", 404, "NOT_FOUND")
NOT_EXPORTABLE = _new_kind("NOT_EXPORTABLE", 409, "FAILED_PRECONDITION")
CONVERTER_MISSING = _new_kind("CONVERTER_MISSING", 501, "UNIMPLEMENTED")
CONVERSION_FAILED = _new_kind("CONVERSION_FAILED", 422, "FAILED_PRECONDITION")


_KINDS: dict[type[TaskError | AccountError], type[A2AError]] = {
    ContextNotFound: CONTEXT_NOT_FOUND,
    ContextInUse: _new_kind("CONTEXT_IN_USE", 409, "FAILED_PRECONDITION"),
    ReadOnly: PermissionDeniedError,
    OwnerOnly: PermissionDeniedError,
    NobodyToShare: PermissionDeniedError,
    TaskNotFound: TaskNotFoundError,
    ChangesGone: _new_kind("OFFSET_GONE", 410, "OUT_OF_RANGE"),
    StreamLost: UnavailableError,
    ShareNotFound: _new_kind("SHARE_NOT_FOUND", 404, "NOT_FOUND"),
}
CONTEXT_ERRORS: tuple[type[TaskError | AccountError], ...] = (*_KINDS,)


class ResourceError(Exception):
    """Carries a refusal to the answer."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


def context_refusal(error: TaskError | AccountError) -> Refusal:
    return Refusal(_KINDS[type(error)], str(error))


def invalid_value(field: str, reason: str) -> ResourceError:
    return ResourceError(invalid([(field, reason)]))


def not_acceptable(sentence: str) -> ResourceError:
    return ResourceError(Refusal(ContentTypeNotSupportedError, sentence, http_status=406))
