"""What a failed call means, whatever the binding: a reason, and whether another try may succeed."""

from __future__ import annotations

import grpc
import httpx
import pytest
from a2a.client import A2AClientError
from a2a.utils import errors as a2a

from a2a_canvas.server.a2a_client.agent_fault import fault_of
from a2a_canvas.server.outbound.over_httpx import UnreadableAnswer


def http(status: int) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "http://secret@h/")
    return httpx.HTTPStatusError("no", request=request, response=httpx.Response(status, request=request))


def call(code: grpc.StatusCode) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata())


@pytest.mark.parametrize(
    ("error", "cause", "reason", "retryable", "streamless"),
    [
        (A2AClientError("x"), httpx.ReadError("x"), "the connection to it was lost", True, False),
        (A2AClientError("x"), httpx.ReadTimeout("x"), "it does not answer", True, False),
        (TimeoutError(), RuntimeError(), "it does not answer", True, False),
        (A2AClientError("x"), UnreadableAnswer("it is too large"), "it is too large", False, False),
        (A2AClientError("x"), http(502), "it answers with HTTP 502", True, False),
        (A2AClientError("x"), http(403), "it refuses access (HTTP 403)", False, False),
        (A2AClientError("x"), call(grpc.StatusCode.UNAVAILABLE), "the connection to it was lost", True, False),
        (A2AClientError("x"), call(grpc.StatusCode.NOT_FOUND), "it refuses", False, False),
        (A2AClientError("x"), None, "its answer is not A2A", False, False),
        (a2a.TaskNotFoundError("x"), http(404), "it does not know the task", False, False),
        (a2a.InternalError("Busy."), http(503), "it refuses: Busy.", True, False),
        (a2a.InternalError("Broken."), http(500), "it refuses: Broken.", False, False),
        (a2a.InternalError("Lost.", data={"retryable": "true"}), None, "it refuses: Lost.", True, False),
        (a2a.InternalError("Broken."), call(grpc.StatusCode.INTERNAL), "it refuses: Broken.", False, False),
        (a2a.InternalError("Broken."), call(grpc.StatusCode.UNKNOWN), "it refuses: Broken.", False, False),
        (a2a.InternalError("Busy."), call(grpc.StatusCode.UNAVAILABLE), "it refuses: Busy.", True, False),
        (a2a.InternalError("Busy."), call(grpc.StatusCode.RESOURCE_EXHAUSTED), "it refuses: Busy.", True, False),
        (a2a.InternalError("Slow."), call(grpc.StatusCode.DEADLINE_EXCEEDED), "it refuses: Slow.", True, False),
        (A2AClientError("x"), call(grpc.StatusCode.INTERNAL), "the connection to it was lost", True, False),
        (a2a.UnsupportedOperationError("Ended."), None, "it refuses: Ended.", False, True),
        (a2a.MethodNotFoundError("http://secret@h/"), http(404), "it answers with HTTP 404", False, True),
    ],
)
def test_a_fault_has_a_reason_and_says_whether_another_try_may_succeed(error, cause, reason, retryable, streamless):
    error.__cause__ = cause
    fault = fault_of(error)
    assert str(fault).startswith(reason)
    assert (fault.retryable, fault.streamless) == (retryable, streamless)
