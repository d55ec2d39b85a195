"""The route of AG-UI as an ASGI application: whose tasks it serves, and what it does when a client goes away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Scope

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.model import ModelEvent
from a2a_canvas.server.protocols.agui.routes import AgUiConfig, agui_routes
from a2a_canvas.server.protocols.edge.http_requests import CALLER
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.guard.parsing import INLINE_PARSE_BYTES, ParsingThread
from a2a_canvas.server.tasks.errors import TaskNotFound
from tests.fakes import Hold, answer, ask, ids, text
from tests.server.protocols.agui.agui_runs import ScriptedRuntime

Json = dict[str, Any]


class Client:
    """One request, and what is sent for it.

    Attributes:
        events: those that have come so far.
        status: of the answer.
    """

    def __init__(self, world: ScriptedRuntime, user: str = "", app: ASGIApp | None = None, **settings: Any) -> None:
        agui = AgUiConfig(world.runtime, BodyLimits(), ids("run"), **settings)
        self._app = app or agui_routes(agui)[0].app
        self._user = user
        self._gone = asyncio.Event()
        self._news = asyncio.Event()
        self.events: list[Json] = []
        self.status = 0
        self._body = b""

    async def send(self, body: Json) -> None:
        """Send a request and take its whole answer, unless the client leaves before."""
        scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": "/canvas/stream",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
        }
        if self._user:
            scope[CALLER] = Caller(self._user)
        request = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

        async def receive() -> Message:
            if request:
                return request.pop()
            await self._gone.wait()
            return {"type": "http.disconnect"}

        await self._app(scope, receive, self._take)

    async def _take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["body"].startswith(b"data: "):
            events = message["body"].strip().split(b"\n\n")
            self.events += [json.loads(event.removeprefix(b"data: ")) for event in events]
            self._news.set()
        else:
            self._body += message["body"]

    async def until(self, kind: str) -> None:
        while not any(event["type"] == kind for event in self.events):
            self._news.clear()
            await self._news.wait()

    def leave(self) -> None:
        self._gone.set()

    @property
    def task_id(self) -> str:
        return next(str(event["snapshot"]["taskId"]) for event in self.events if event["type"] == "STATE_SNAPSHOT")

    @property
    def error(self) -> Json:
        error: Json = json.loads(self._body)["error"]
        return error


def body(text: str = "Go", run: str = "r", **fields: Any) -> Json:
    return {"threadId": "c", "runId": run, "messages": [{"id": run, "role": "user", "content": text}], **fields}


def holding() -> tuple[ScriptedRuntime, Hold]:
    """A world whose model has begun to speak and holds."""
    hold = Hold()
    first: list[ModelEvent] = text("Half")
    return ScriptedRuntime([answer(*first[:-1], hold, first[-1])]), hold


# ------------------------------------------------------------------- clients that leave


@pytest.mark.parametrize("cancels", [False, True])
async def test_a_client_that_leaves_stops_its_task_only_if_the_operator_wants_it_so(cancels: bool) -> None:
    world, hold = holding()
    client = Client(world, cancel_on_disconnect=cancels)
    sending = asyncio.create_task(client.send(body()))
    await client.until("TEXT_MESSAGE_CONTENT")
    client.leave()
    await sending
    record = await world.runtime.get(client.task_id, ANONYMOUS)
    assert record.state is (State.CANCELED if cancels else State.WORKING)
    hold.release.set()
    following = await world.runtime.follow(client.task_id, ANONYMOUS)
    ends = [entry async for entry in following]
    assert bool(ends) is not cancels
    record = await world.runtime.get(client.task_id, ANONYMOUS)
    assert record.state is (State.CANCELED if cancels else State.COMPLETED)


async def two_reading(world: ScriptedRuntime) -> tuple[list[Client], list[asyncio.Task[None]]]:
    """Two clients that read the same run, and whose leaving can cancel it."""
    routes = agui_routes(AgUiConfig(world.runtime, BodyLimits(), ids("run"), cancel_on_disconnect=True))
    clients = [Client(world, app=routes[0].app) for _ in range(2)]
    sending = []
    for client in clients:
        sending.append(asyncio.create_task(client.send(body())))
        await client.until("TEXT_MESSAGE_CONTENT")
    return clients, sending


@pytest.mark.parametrize("first", [0, 1])
async def test_only_the_last_one_that_leaves_takes_the_task_along(first: int) -> None:
    world, hold = holding()
    clients, sending = await two_reading(world)
    assert clients[0].task_id == clients[1].task_id
    clients[first].leave()
    await sending[first]
    assert (await world.runtime.get(clients[0].task_id, ANONYMOUS)).state is State.WORKING
    clients[1 - first].leave()
    await sending[1 - first]
    assert (await world.runtime.get(clients[0].task_id, ANONYMOUS)).state is State.CANCELED
    assert hold.release.is_set() is False


async def test_two_that_leave_at_the_same_time_take_the_task_along() -> None:
    world, _ = holding()
    clients, sending = await two_reading(world)
    for client in clients:
        client.leave()
    await asyncio.gather(*sending)
    assert (await world.runtime.get(clients[0].task_id, ANONYMOUS)).state is State.CANCELED


async def test_whoever_has_read_their_run_to_its_end_does_not_hold_the_task_for_those_that_leave_later() -> None:
    hold = Hold()
    world = ScriptedRuntime([answer(ask("T1", "Which?")), answer(*text("Half"), hold)])
    routes = agui_routes(AgUiConfig(world.runtime, BodyLimits(), ids("run"), cancel_on_disconnect=True))
    first, second = (Client(world, app=routes[0].app) for _ in range(2))
    await first.send(body())
    sending = asyncio.create_task(second.send(body(run="r2")))
    await second.until("TEXT_MESSAGE_CONTENT")
    assert second.task_id == first.task_id
    second.leave()
    await sending
    assert (await world.runtime.get(first.task_id, ANONYMOUS)).state is State.CANCELED


async def test_one_that_is_gone_before_its_stream_begins_is_no_exception() -> None:
    world, hold = holding()
    client = Client(world, cancel_on_disconnect=True)
    client.leave()
    await client.send(body())
    (record,) = await world.runtime.journal.context("c")
    assert record.state is State.CANCELED
    assert hold.release.is_set() is False


async def test_one_that_leaves_a_question_behind_takes_it_not_along() -> None:
    world = ScriptedRuntime([answer(ask("T1", "Which?"))])
    client = Client(world, cancel_on_disconnect=True)
    sending = asyncio.create_task(client.send(body()))
    await client.until("RUN_FINISHED")
    client.leave()
    await sending
    assert (await world.runtime.get(client.task_id, ANONYMOUS)).state is State.INPUT_REQUIRED


# --------------------------------------------------------------------------- who asks


async def test_a_task_is_its_callers_own() -> None:
    world = ScriptedRuntime([answer(ask("T1", "Which?")), answer(text("Another."))])
    anns, bobs = Client(world, "ann"), Client(world, "bob")
    await anns.send(body())
    assert (await world.runtime.get(anns.task_id, Caller("ann"))).state is State.INPUT_REQUIRED
    with pytest.raises(TaskNotFound):
        await world.runtime.get(anns.task_id, ANONYMOUS)
    await bobs.send(body(run="r2"))
    assert bobs.task_id != anns.task_id
    assert (await world.runtime.get(anns.task_id, Caller("ann"))).state is State.INPUT_REQUIRED


@pytest.mark.parametrize("status", ["resolved", "cancelled"])
async def test_nobody_else_can_answer_or_cancel_its_interrupt(status: str) -> None:
    world = ScriptedRuntime([answer(ask("T1", "Which?"))])
    anns, bobs = Client(world, "ann"), Client(world, "bob")
    await anns.send(body())
    answers = [{"interruptId": anns.task_id, "status": status, "payload": "Blue"}]
    await bobs.send(body(run="r2", resume=answers))
    assert (bobs.status, bobs.events) == (404, [])
    assert anns.task_id in bobs.error["message"]
    assert (await world.runtime.get(anns.task_id, Caller("ann"))).state is State.INPUT_REQUIRED


async def test_the_same_run_of_another_caller_is_another_task() -> None:
    world = ScriptedRuntime([answer(text("One.")), answer(text("Two."))])
    clients = [Client(world, user) for user in ("ann", "bob")]
    for client in clients:
        await client.send(body())
    assert len({client.task_id for client in clients}) == 2


async def test_what_goes_wrong_inside_is_told_without_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ScriptedRuntime()

    async def broken(key: str) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(world.runtime.journal, "find_duplicate", broken)
    client = Client(world)
    await client.send(body())
    assert client.status == 500
    assert "secret" not in json.dumps(client.error)


# ----------------------------------------------------------------------------- requests


@pytest.mark.parametrize("place", ["top", "state"])
async def test_a_selection_without_any_message_is_refused_for_the_missing_message(place: str) -> None:
    selection: Json = {"selectedText": {"start": 0, "end": 1}}
    client = Client(ScriptedRuntime())
    given: Json = {"threadId": "c", "runId": "r"}
    await client.send(given | (selection if place == "top" else {"state": selection}))
    assert client.status == 400
    assert "messages" in client.error["message"]
    assert "forwardedProps" not in client.error["message"]


class CountedParsing(ParsingThread):
    """Counts what each user has parsed in the thread."""

    def __init__(self) -> None:
        super().__init__()
        self.large: list[str] = []

    async def run(self, user: str, size: int, parse: Callable[[], Any]) -> Any:
        if size > INLINE_PARSE_BYTES:
            self.large.append(user)
        return await super().run(user, size, parse)


@pytest.mark.parametrize(("named", "translations"), [({}, 1), ({"run_id": "r"}, 2)], ids=["new", "may be known"])
async def test_an_older_request_is_translated_in_the_thread_that_users_share(named: Json, translations: int) -> None:
    parsing = CountedParsing()
    client = Client(ScriptedRuntime([answer(text("One."))]), "ann", parsing=parsing)
    await client.send({"message": "x" * INLINE_PARSE_BYTES, "thread_id": "c", **named})
    assert client.status == 200
    assert parsing.large == ["ann"] * (1 + translations)
