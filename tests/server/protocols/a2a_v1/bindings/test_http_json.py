"""The HTTP+JSON route behind the guard. That its answers are those of the SDK's routes: test_http_pipeline.py."""

import json

import httpx
import pytest
from a2a.utils.errors import TaskNotFoundError
from starlette.applications import Starlette

from a2a_canvas.server.protocols.a2a_v1.bindings.http_json import rest_route
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.pipeline.http_pipeline import HttpPipeline
from tests.server.protocols.echo_handler import Failing

PATHS = [("/rest/tasks/t:subscribe", "1.0"), ("/rest/v1/tasks/t:subscribe", "0.3")]


async def subscribe(handler: Failing, path: str, version: str) -> httpx.Response:
    app = HttpPipeline(Starlette(routes=[rest_route(handler, "/rest")]), limits=BodyLimits())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        return await client.get(path, headers={"A2A-Version": version})


@pytest.mark.parametrize(("path", "version"), PATHS)
@pytest.mark.parametrize(
    ("error", "status", "message"),
    [(TaskNotFoundError("Gone."), 404, "Gone."), (RuntimeError("secret text"), 500, "Internal error")],
)
async def test_a_stream_fails_with_its_own_status_before_its_first_event_and_as_its_last_event_after(
    path: str, version: str, error: Exception, status: int, message: str
) -> None:
    at_once = await subscribe(Failing(0, error), path, version)
    assert (at_once.status_code, at_once.headers["content-type"]) == (status, "application/json")
    assert at_once.json()["error"]["message"] == message
    later = await subscribe(Failing(2, error), path, version)
    events = [
        dict(line.split(": ", 1) for line in event.splitlines()) for event in later.text.strip().split("\r\n\r\n")
    ]
    assert [event.get("event") for event in events] == [None, None, "error"]
    assert json.loads(events[0]["data"])["task"]["id"] == "t"
    last = json.loads(events[-1]["data"])["error"]
    assert (last["code"], last["message"]) == (status, message)
