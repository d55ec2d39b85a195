"""Maps errors of tasks, operations and the store to A2A's errors.

Rule 1: clients get our own sentences only, never the text of other exceptions.
Rule 2: a cancellation is not an error and never becomes an answer.
Rule 3: fields are named as in JSON (`messageId`), in every binding.
"""

from __future__ import annotations

import logging

from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from a2a_canvas.server.accounts.errors import (
    AccountError,
    ContextNotFound,
    InvalidShare,
    NobodyToShare,
    OwnerOnly,
    QuotaReached,
    ReadOnly,
    ShareNotFound,
    StorageFull,
)
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.protocols.edge.availability import (
    SECONDS,
    OverloadedError,
    StorageFullError,
    TooManyRequestsError,
    UnavailableError,
    unavailable_error,
)
from a2a_canvas.server.protocols.edge.error_tables import PermissionDeniedError
from a2a_canvas.server.protocols.guard.checks import invalid
from a2a_canvas.server.tasks.errors import (
    AnswerNotAllowed,
    ContextMismatch,
    EditsOff,
    PushConfigNotFound,
    QuestionChanged,
    QueueFull,
    RunsNoTurns,
    StreamLost,
    TaskError,
    TaskFinished,
    TaskNotCancelable,
    TaskNotFound,
    TaskTakesNoMessages,
    TooManyPushConfigs,
    Unreadable,
    Unwritable,
)
from a2a_canvas.store.errors import ArtifactUnreadable, Unavailable

logger = logging.getLogger(__name__)

ERRORS: dict[type[TaskError | AccountError], type[A2AError]] = {
    TaskNotFound: TaskNotFoundError,
    TaskFinished: UnsupportedOperationError,
    TaskNotCancelable: TaskNotCancelableError,
    TaskTakesNoMessages: UnsupportedOperationError,
    EditsOff: UnsupportedOperationError,
    ContextMismatch: InvalidParamsError,
    ContextNotFound: InvalidParamsError,
    ShareNotFound: InvalidParamsError,
    ReadOnly: PermissionDeniedError,
    OwnerOnly: PermissionDeniedError,
    AnswerNotAllowed: PermissionDeniedError,
    QuestionChanged: UnsupportedOperationError,
    NobodyToShare: PermissionDeniedError,
    Unwritable: InternalError,
    PushConfigNotFound: TaskNotFoundError,
    TooManyPushConfigs: InvalidParamsError,
    QueueFull: OverloadedError,
    RunsNoTurns: OverloadedError,
    StorageFull: StorageFullError,
    StreamLost: UnavailableError,
    Unreadable: InternalError,
}
"""A2A 1.0, section 3.3.2 and the operations' own lists of errors; `availability.py` has those that A2A lacks."""


def invalid_field(field: str, reason: str) -> A2AError:
    """The refusal of one field of a request; `reason` follows its name in a sentence."""
    return invalid([(field, reason)]).error()


def to_a2a_error(error: Exception) -> A2AError:
    """The error that a client gets."""
    if isinstance(error, A2AError):
        return error
    if isinstance(error, InvalidOperation | InvalidShare):
        return invalid_field(error.field, error.reason)
    if isinstance(error, Unreadable):
        logger.error("%s It says: %r", error, error.__cause__)
    if isinstance(error, QuotaReached):
        return TooManyRequestsError(str(error), {SECONDS: error.retry_after})
    if isinstance(error, TaskError | AccountError):
        return ERRORS[type(error)](str(error))
    if isinstance(error, ArtifactUnreadable):
        return InternalError(str(error))
    if isinstance(error, Unavailable):
        return unavailable_error(error)
    logger.error("A request failed", exc_info=error)
    return InternalError("Internal error")
