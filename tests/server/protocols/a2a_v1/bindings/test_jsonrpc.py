"""The JSON-RPC route behind the guard. That its answers are those of the SDK's route: test_http_pipeline.py."""

import json
from typing import Any

import httpx
import pytest
from a2a.utils.errors import TaskNotFoundError
from starlette.applications import Starlette

from a2a_canvas.server.protocols.a2a_v1.bindings.jsonrpc import jsonrpc_route
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.pipeline.http_pipeline import HttpPipeline
from tests.server.protocols.echo_handler import Failing


async def subscribe(handler: Failing) -> httpx.Response:
    app = HttpPipeline(Starlette(routes=[jsonrpc_route(handler)]), limits=BodyLimits())
    body = {"jsonrpc": "2.0", "id": "x", "method": "SubscribeToTask", "params": {"id": "t"}}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        return await client.post("/", json=body, headers={"A2A-Version": "1.0"})


TASK = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}


def error_of(answer: dict[str, Any]) -> tuple[str, int, str]:
    return answer["id"], answer["error"]["code"], answer["error"]["message"]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(TaskNotFoundError("Gone."), -32001, "Gone."), (RuntimeError("secret text"), -32603, "Internal error")],
)
async def test_a_stream_fails_as_an_answer_before_its_first_event_and_as_its_last_event_after(
    error: Exception, code: int, message: str
) -> None:
    at_once = await subscribe(Failing(0, error))
    assert at_once.headers["content-type"] == "application/json"
    assert error_of(at_once.json()) == ("x", code, message)
    later = await subscribe(Failing(2, error))
    events = [
        dict(line.split(": ", 1) for line in event.splitlines()) for event in later.text.strip().split("\r\n\r\n")
    ]
    assert [event.get("event") for event in events] == [None, None, "error"]
    assert json.loads(events[0]["data"]) == {"jsonrpc": "2.0", "id": "x", "result": {"task": TASK}}
    assert error_of(json.loads(events[-1]["data"])) == ("x", code, message)
