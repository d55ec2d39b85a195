"""The meaning of a failed call of another server: a reason in words, and whether another try may succeed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import grpc
import httpx
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.utils.errors import A2AError, MethodNotFoundError, TaskNotFoundError, UnsupportedOperationError

from a2a_canvas.server.outbound.over_httpx import UnreadableAnswer

_REFUSALS = frozenset(
    (
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
    )
)
"""The gRPC statuses of a server that has answered; with any other, the connection may have failed."""
_TEMPORARY = frozenset(
    (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
)
"""The gRPC statuses with which another try may succeed even if they name an A2A error."""


class AgentFault(Exception):
    """An agent cannot be reached, refuses, or does not answer with A2A; `str()` is for a model and the log.

    Attributes:
        retryable: another try may succeed.
        streamless: it does not stream this task, which may have ended.
    """

    def __init__(self, reason: str, *, retryable: bool = False, streamless: bool = False) -> None:
        super().__init__(reason)
        self.retryable = retryable
        self.streamless = streamless


@contextmanager
def agent_faults() -> Iterator[None]:
    """Raises an `AgentFault` in place of what the SDK's client raises."""
    try:
        yield
    except AgentFault:
        raise
    except Exception as error:
        raise fault_of(error) from error


def fault_of(error: Exception) -> AgentFault:
    """The fault of an exception of the SDK's client. An A2A error says more than its status."""
    cause = _cause(error)
    match error:
        case TaskNotFoundError():
            return AgentFault("it does not know the task")
        case MethodNotFoundError() if isinstance(cause, httpx.HTTPStatusError):  # its message has the address
            return AgentFault(_status(cause.response.status_code), streamless=True)
        case A2AError() if not isinstance(error, A2AClientError):
            streamless = isinstance(error, UnsupportedOperationError | MethodNotFoundError)
            retryable = _has(error.data, "retryable") or _is_retryable(cause)
            return AgentFault(f"it refuses: {error.message[:500]}", retryable=retryable, streamless=streamless)
    match cause:
        case UnreadableAnswer():
            return AgentFault(str(cause))
        case httpx.HTTPStatusError():
            retryable = cause.response.status_code >= 500 or _is_retryable(cause)
            return AgentFault(_status(cause.response.status_code), retryable=retryable)
        case httpx.TimeoutException() | TimeoutError() | A2AClientTimeoutError():
            return AgentFault("it does not answer", retryable=True)
        case grpc.aio.AioRpcError() if cause.code() in _REFUSALS:
            return AgentFault("it refuses")
        case httpx.RequestError() | OSError() | grpc.aio.AioRpcError():
            return AgentFault("the connection to it was lost, or nothing answers there", retryable=True)
        case _:
            return AgentFault("its answer is not A2A")


def _is_retryable(cause: BaseException) -> bool:
    """Whether an A2A error with this status may be temporary."""
    match cause:
        case httpx.HTTPStatusError(response=response):
            return response.status_code in (408, 429, 503)
        case grpc.aio.AioRpcError():
            return cause.code() in _TEMPORARY
        case _:
            return False


def _cause(error: Exception) -> BaseException:
    # The cause of an asyncio time-out is only the cancellation.
    return error if isinstance(error, TimeoutError) else error.__cause__ or error


def _has(data: object, mark: str) -> bool:
    """Whether `mark` is true anywhere in an error's data, whose shape depends on binding and version."""
    if isinstance(data, Mapping):
        return data.get(mark) in (True, "true") or any(_has(value, mark) for value in data.values())
    return isinstance(data, list | tuple) and any(_has(value, mark) for value in data)


def _status(status: int) -> str:
    if status in (401, 403):
        return f"it refuses access (HTTP {status}); the operator of this server can set a token for it"
    if 300 <= status < 400:
        return f"it redirects (HTTP {status}); redirects are not followed"
    return f"it answers with HTTP {status}"
