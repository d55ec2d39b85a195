"""Open streams and refused requests: the same figures for every binding and version, whatever form an answer has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx
import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, TaskNotFoundError
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.edge.request_metrics import (
    binding_of,
    note_refusal,
    reason_of,
    refused_connections,
)
from a2a_canvas.server.protocols.edge.sse_response import SseResponse
from a2a_canvas.server.protocols.pipeline.http_answers import Answers
from tests.metric_values import values
from tests.server.app_server import Served, Stream, asking, envelope, every_way

pytestmark = pytest.mark.asyncio(loop_scope="module")

Figures = dict[tuple[str, ...], float]


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"max_body_bytes": 4096}


async def read(served: Served, name: str) -> Figures:
    """The figures of a metric by the values of its labels, as they are sorted by name."""
    lines = (await served.http.get("/metrics")).text.splitlines()
    found = (line.removeprefix(f"a2a_canvas_{name}{{").split("} ") for line in lines if f"a2a_canvas_{name}{{" in line)
    return {tuple(each.split('"')[1::2])[:]: float(value) for each, value in found}  # type: ignore[misc]


async def added(served: Served, name: str, step: Callable[[], Awaitable[Any]]) -> Figures:
    """What a step adds to the figures."""
    before = await read(served, name)
    await step()
    after = await read(served, name)
    return {labels: value - before.get(labels, 0) for labels, value in after.items() if value != before.get(labels, 0)}


@every_way
@pytest.mark.transports
async def test_a_task_that_there_is_not_is_the_same_refusal_over_every_binding(
    served: Served, way: tuple[str, str]
) -> None:
    before = await read(served, "requests_refused_total")

    async def ask() -> None:
        with pytest.raises(A2AError):
            await served.client(*way).get_task(pb.GetTaskRequest(id="none"))
        # A client of gRPC has read the status before the server counts it.
        while await read(served, "requests_refused_total") == before:
            pass

    assert await added(served, "requests_refused_total", ask) == {(way[0], reason_of(404)): 1}


@every_way
@pytest.mark.transports
async def test_a_stream_is_open_until_it_ends(served: Served, way: tuple[str, str]) -> None:
    served.gate.close()
    stream = Stream(served.client(*way).send_message(asking("slowly notes")))
    await stream.next()
    assert (await read(served, "open_streams"))[way[0],] == 1
    served.gate.open()
    await stream.rest()
    await until_closed(served, way[0])


async def until_closed(served: Served, binding: str) -> None:
    """A client has read the last event before the server has closed the stream."""
    while (await read(served, "open_streams"))[binding,]:
        pass


@every_way
async def test_what_is_sent_to_a_stream_is_measured(served: Served, way: tuple[str, str]) -> None:
    async def count() -> float:
        lines = (await served.http.get("/metrics")).text.splitlines()
        return next(float(line.split()[1]) for line in lines if "entry_delay_seconds_count" in line)

    before = await count()
    await Stream(served.client(*way).send_message(asking("write report"))).rest()
    assert await count() > before


Request = tuple[str, str, dict[str, Any]]
REFUSED: Mapping[str, tuple[Request, tuple[str, str]]] = {
    "a body that is no JSON": (("POST", "/", {"content": b"{"}), ("JSONRPC", "bad_request")),
    "a method that there is not": (("POST", "/", {"json": envelope("None", {})}), ("JSONRPC", "not_found")),
    "a body that is too large": (
        ("POST", "/rest/message:send", {"content": b"x" * 5000}),
        ("HTTP+JSON", "request_entity_too_large"),
    ),
    "a run that is none": (("POST", "/canvas/stream", {"json": []}), ("AG-UI", "bad_request")),
    "a context that there is not": (("GET", "/artifacts/none", {}), ("artifacts", "not_found")),
    "a path that there is not": (("GET", "/none", {}), ("other", "not_found")),
    "another host": (("GET", "/", {"headers": {"Host": "evil.example"}}), ("other", "misdirected_request")),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_refusal_is_counted_by_binding_and_reason(served: Served, name: str) -> None:
    (method, path, options), labels = REFUSED[name]
    assert await added(served, "requests_refused_total", lambda: served.http.request(method, path, **options)) == {
        labels: 1
    }


async def test_what_is_answered_is_no_refusal(served: Served) -> None:
    assert await added(served, "requests_refused_total", lambda: served.http.get("/artifacts")) == {}


# ------------------------------------------------------------------------ without a server


async def get(app: ASGIApp, path: str = "/rest/tasks") -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        return await client.get(path)


async def test_an_exception_is_an_internal_error() -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError

    metrics = Metrics()
    with pytest.raises(ValueError):
        await get(Answers(fails, metrics=metrics))
    assert values(metrics.refused) == {("HTTP+JSON", "internal_server_error"): 1}


async def test_a_refusal_with_a_status_of_success_is_counted_by_its_error() -> None:
    async def refuses(scope: Scope, receive: Receive, send: Send) -> None:
        note_refusal(scope, TaskNotFoundError)
        await PlainTextResponse("{}")(scope, receive, send)

    metrics = Metrics()
    await get(Answers(refuses, metrics=metrics))
    assert values(metrics.refused) == {("HTTP+JSON", "not_found"): 1}


async def test_a_stream_that_breaks_is_not_open_any_more() -> None:
    async def events() -> Any:
        yield b"data: 1\n\n"
        raise ValueError

    metrics = Metrics()
    with pytest.raises(ValueError):
        await get(Answers(SseResponse(events()), metrics=metrics), "/artifacts/c/events")
    assert values(metrics.open_streams) == {("artifacts",): 0}
    assert values(metrics.refused) == {}


async def test_what_is_refused_before_it_is_a_request_counts_as_other() -> None:
    metrics = Metrics()
    refused_connections(metrics)(431)
    assert values(metrics.refused) == {("other", "request_header_fields_too_large"): 1}


async def test_the_binding_of_a_path_and_the_reason_of_a_status_are_of_few() -> None:
    paths = ["/", "/rest/tasks", "/rest", "/canvas/stream", "/artifacts", "/artifacts/c/a", "/artifactsx", "/any/thing"]
    assert [binding_of("POST", path) for path in paths] == [
        *("JSONRPC", "HTTP+JSON", "HTTP+JSON", "AG-UI", "artifacts", "artifacts", "other", "other")
    ]
    assert binding_of("GET", "/") == "other"
    assert (reason_of(429), reason_of(499)) == ("too_many_requests", "other")
