"""Server-sent events of every route: what a client hears that gives up after a few seconds of silence."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Message

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.protocols.edge import sse_response
from a2a_canvas.server.protocols.edge.sse_response import SseResponse, sse_event, wait_for_start
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.models import text_part
from tests.server.protocols.bindings_harness import MESSAGE, MESSAGE_03, REST_03, RUN, V10, Edge, edge, rpc

Route = tuple[str, str, Any, dict[str, str]]

SENDING: dict[str, Route] = {
    "JSON-RPC 1.0": ("POST", "/", rpc("SendStreamingMessage", {"message": MESSAGE}), V10),
    "JSON-RPC 0.3": ("POST", "/", rpc("message/stream", {"message": MESSAGE_03}), {}),
    "REST 1.0": ("POST", "/rest/message:stream", {"message": MESSAGE}, V10),
    "REST 0.3": ("POST", "/rest/v1/message:stream", {"message": REST_03}, {}),
    "AG-UI": ("POST", "/canvas/stream", RUN, {}),
    "AG-UI, older": ("POST", "/canvas/stream", {"message": "Go", "thread_id": "c"}, {}),
}
FOLLOWING: dict[str, Route] = {
    "JSON-RPC 1.0": ("POST", "/", rpc("SubscribeToTask", {"id": "TASK"}), V10),
    "JSON-RPC 0.3": ("POST", "/", rpc("tasks/resubscribe", {"id": "TASK"}), {}),
    "REST 1.0": ("GET", "/rest/tasks/TASK:subscribe", None, V10),
    "REST 1.0, POST": ("POST", "/rest/tasks/TASK:subscribe", None, V10),
    "REST 0.3": ("GET", "/rest/v1/tasks/TASK:subscribe", None, {}),
    "REST 0.3, POST": ("POST", "/rest/v1/tasks/TASK:subscribe", None, {}),
    "artifacts": ("GET", "/artifacts/c/events", None, {}),
}
LATE_ERRORS = {
    "JSON-RPC 1.0": -32603,
    "JSON-RPC 0.3": -32603,
    "REST 1.0": 503,
    "REST 0.3": 503,
    "AG-UI": "unavailable",
    "AG-UI, older": "unavailable",
}


def asked(http: httpx.AsyncClient, route: Route, task_id: str = "") -> Any:
    method, path, body, headers = json.loads(json.dumps(route).replace("TASK", task_id))
    return http.stream(method, path, json=body, headers=headers)


async def until(lines: AsyncIterator[str], prefix: str) -> str:
    """The next line that begins so, without this beginning."""
    while not (line := await anext(lines)).startswith(prefix):
        pass
    return line.removeprefix(prefix)


@pytest.fixture
async def here() -> AsyncIterator[Edge]:
    async with edge() as served:
        yield served


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """No first event comes in time, and a silence is long at once."""
    for name in ("PING_SECONDS", "FIRST_PING_SECONDS", "FIRST_EVENT_SECONDS"):
        monkeypatch.setattr(sse_response, name, 0.01)


def test_a_silence_is_shorter_than_what_clients_wait() -> None:
    assert sse_response.FIRST_EVENT_SECONDS + sse_response.FIRST_PING_SECONDS < 5
    assert sse_response.PING_SECONDS < 5


# ----------------------------------------------------------------------- every route


@pytest.mark.parametrize("route", SENDING.values(), ids=SENDING)
async def test_a_task_that_says_nothing_is_heard_of(here: Edge, short: None, route: Route) -> None:
    async with asked(here.http, route) as response:
        await here.hold.reached.wait()
        lines = response.aiter_lines()
        assert [await until(lines, ": ping") for _ in range(3)] == [""] * 3


@pytest.mark.parametrize("route", FOLLOWING.values(), ids=FOLLOWING)
async def test_so_is_one_that_is_joined(here: Edge, short: None, route: Route) -> None:
    async with asked(here.http, route, await here.begin()) as response:
        lines = response.aiter_lines()
        assert [await until(lines, ": ping") for _ in range(3)] == [""] * 3


@pytest.mark.parametrize("route", SENDING.values(), ids=SENDING)
async def test_a_stream_whose_first_event_takes_long_begins_without_it(here: Edge, short: None, route: Route) -> None:
    here.journal.answers.clear()
    async with asked(here.http, route) as response:
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        lines = response.aiter_lines()
        await until(lines, ": ping")
        here.journal.answers.set()
        first = json.loads(await until(lines, "data: "))
    assert "error" not in first
    assert first.get("type", "RUN_STARTED") == "RUN_STARTED"


@pytest.mark.parametrize("route", FOLLOWING.values(), ids=FOLLOWING)
async def test_so_does_one_that_joins(here: Edge, short: None, route: Route) -> None:
    task_id = await here.begin()
    here.journal.answers.clear()
    async with asked(here.http, route, task_id) as response:
        lines = response.aiter_lines()
        await until(lines, ": ping")
        here.journal.answers.set()
        assert "Half" in await until(lines, "data: ")


LARGE = ev.ArtifactChanged("large", "large.txt", "", False, (text_part("x" * 2**20),), False, 1, "agent", 0)


async def wait_for_more(app: Starlette, route: Route, task_id: str, large: asyncio.Event) -> None:
    """Stay a client that forgets what it is sent; `large` is set when it has been sent `LARGE`."""
    method, path, body, headers = json.loads(json.dumps(route).replace("TASK", task_id))
    sent = [json.dumps(body).encode() if body else b""]
    given = {"host": "127.0.0.1", "content-type": "application/json", "content-length": str(len(sent[0])), **headers}
    raw = [(name.lower().encode(), value.encode()) for name, value in given.items()]
    of_url = {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}

    async def receive() -> Message:
        if sent:
            return {"type": "http.request", "body": sent.pop(), "more_body": False}
        return await asyncio.get_running_loop().create_future()

    async def forget(message: Message) -> None:
        if len(message.get("body", b"")) > 2**20:
            large.set()

    await app({"type": "http", "method": method, "headers": raw, **of_url}, receive, forget)


@pytest.mark.parametrize("route", FOLLOWING.values(), ids=FOLLOWING)
async def test_a_stream_that_waits_does_not_hold_what_it_has_sent(here: Edge, route: Route) -> None:
    task_id, sent = await here.begin(), [asyncio.Event() for _ in range(8)]
    await here.journal.append(task_id, LARGE)
    tracemalloc.start()
    waiting = [asyncio.create_task(wait_for_more(here.app, route, task_id, each)) for each in sent]
    try:
        for each in sent:
            await each.wait()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        for task in waiting:
            task.cancel()
    assert held < len(sent) * 2**20 / 2


@pytest.mark.parametrize("binding", SENDING)
async def test_what_fails_after_that_is_the_streams_last_event(here: Edge, short: None, binding: str) -> None:
    here.journal.answers.clear()
    here.journal.error = Unavailable("connection to secret.internal refused")
    async with asked(here.http, SENDING[binding]) as response:
        lines = response.aiter_lines()
        await until(lines, ": ping")
        here.journal.answers.set()
        (last,) = [json.loads(line.removeprefix("data: ")) async for line in lines if line.startswith("data: ")]
    assert "secret" not in str(last)
    assert last.get("error", last)["code"] == LATE_ERRORS[binding]


async def test_the_events_of_a_context_that_cannot_be_read_end(here: Edge, short: None) -> None:
    await here.begin()
    here.journal.answers.clear()
    here.journal.error = Unavailable("away")
    async with asked(here.http, FOLLOWING["artifacts"]) as response:
        lines = response.aiter_lines()
        await until(lines, ": ping")
        here.journal.answers.set()
        assert [line async for line in lines if line.startswith("data: ")] == []


@pytest.mark.parametrize("name", ["REST 1.0", "REST 0.3", "artifacts"])
async def test_head_is_answered_without_a_stream(here: Edge, name: str) -> None:
    _, path, _, headers = FOLLOWING[name]
    response = await here.http.head(path.replace("TASK", await here.begin()), headers=headers)
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-type"].startswith("text/event-stream")


# ---------------------------------------------------------------------- the response


class Connection:
    """A client of one response. `sent`: what it got, `sent_all` after `of` messages; it is gone when `gone` is set."""

    def __init__(self, of: int = 0) -> None:
        self.sent: list[Message] = []
        self.sent_all = asyncio.Event()
        self.gone = asyncio.Event()
        self._of = of

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if len(self.sent) == self._of:
            self.sent_all.set()

    async def answer(self, response: SseResponse) -> list[bytes]:
        await response({"type": "http", "method": "GET"}, self.receive, self.send)
        return [message["body"] for message in self.sent[1:]]


class Events:
    """Events that end, or wait for ever, or fail. `closed`: set when they have been closed."""

    def __init__(self, *events: bytes | Exception, wait: bool = False) -> None:
        self._events, self._wait = events, wait
        self.closed = asyncio.Event()

    async def __call__(self) -> AsyncGenerator[bytes, None]:
        try:
            for event in self._events:
                if isinstance(event, Exception):
                    raise event
                yield event
            if self._wait:
                await asyncio.Event().wait()
        finally:
            self.closed.set()


def test_an_event_has_its_id_before_its_data() -> None:
    assert sse_event(b"{}") == b"data: {}\r\n\r\n"
    assert sse_event(b"{}", name="error") == b"event: error\r\ndata: {}\r\n\r\n"
    assert sse_event(b"{}", event_id="7-1", line_end="\n") == b"id: 7-1\ndata: {}\n\n"


async def test_what_is_sent_are_the_events_and_an_end() -> None:
    client = Connection()
    assert await client.answer(SseResponse(Events(b"one", b"two")(), headers={"X-Own": "1"})) == [b"one", b"two", b""]
    assert [message.get("more_body") for message in client.sent[1:]] == [True, True, False]
    headers = dict(client.sent[0]["headers"])
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert (headers[b"cache-control"], headers[b"x-accel-buffering"], headers[b"x-own"]) == (b"no-store", b"no", b"1")


async def test_events_beside_are_sent_as_they_come_and_end_with_the_first() -> None:
    client, events, beside = Connection(of=3), Events(b"one", wait=True), Events(b"beside", wait=True)
    running = asyncio.create_task(client.answer(SseResponse(events(), beside=[beside()])))
    await client.sent_all.wait()
    client.gone.set()
    assert sorted(await running) == [b"beside", b"one"]
    await beside.closed.wait()


async def test_a_stream_ends_and_does_not_wait_for_events_beside() -> None:
    client, beside = Connection(), Events(wait=True)
    assert await client.answer(SseResponse(Events(b"one")(), beside=[beside()])) == [b"one", b""]


async def test_a_ping_is_not_sent_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_response, "PING_SECONDS", 0.0)
    monkeypatch.setattr(sse_response, "FIRST_PING_SECONDS", 0.0)
    client = Connection()

    async def slowly(message: Message) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        await client.send(message)

    await SseResponse(Events()())({"type": "http", "method": "GET"}, client.receive, slowly)
    for _ in range(10):
        await asyncio.sleep(0)
    assert [message["body"] for message in client.sent[1:]] == [b""]


async def test_an_error_beside_ends_no_stream() -> None:
    client = Connection()
    assert await client.answer(SseResponse(Events(b"one")(), beside=[Events(KeyError("x"))()])) == [b"one", b""]


async def test_a_client_that_leaves_ends_the_events_and_the_route_is_told_after_them() -> None:
    client, events, told = Connection(of=2), Events(b"one", wait=True), []

    async def left() -> None:
        told.append(events.closed.is_set())

    running = asyncio.create_task(client.answer(SseResponse(events(), on_disconnect=left)))
    await client.sent_all.wait()
    client.gone.set()
    assert await running == [b"one"]
    assert told == [True]


async def test_a_client_that_reads_to_the_end_has_not_left() -> None:
    client, told = Connection(), []

    async def left() -> None:
        told.append(True)

    await client.answer(SseResponse(Events(b"one")(), on_disconnect=left))
    client.gone.set()
    assert told == []


async def test_a_client_that_does_not_read_ends_the_events_when_it_leaves() -> None:
    client, events = Connection(), Events(b"one", b"two")

    async def never(message: Message) -> None:
        if message["type"] == "http.response.body":
            client.gone.set()
            await asyncio.Event().wait()

    await SseResponse(events())({"type": "http", "method": "GET"}, client.receive, never)
    assert events.closed.is_set()


async def test_an_error_of_the_events_is_raised_without_an_end() -> None:
    client = Connection()
    with pytest.raises(KeyError):
        await client.answer(SseResponse(Events(b"one", KeyError("x"))()))
    assert [message.get("more_body") for message in client.sent[1:]] == [True]


async def test_what_a_stream_begins_with_is_done_or_fails_or_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events(b"one")()
    assert await (await wait_for_start(anext(events))) == b"one"
    with pytest.raises(KeyError):
        await wait_for_start(anext(Events(KeyError("x"))()))
    monkeypatch.setattr(sse_response, "FIRST_EVENT_SECONDS", 0)
    waiting = Events(wait=True)
    first = await wait_for_start(anext(waiting()))
    assert not first.done()
    first.cancel()
    await asyncio.wait((first,))
    assert waiting.closed.is_set()


async def test_a_request_that_is_cancelled_meanwhile_cancels_what_it_begins_with() -> None:
    waiting = Events(wait=True)
    request = asyncio.create_task(wait_for_start(anext(waiting())))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    await waiting.closed.wait()
