"""What clients see of a server that stops while they watch it, over every transport."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import httpx
import pytest
import uvicorn
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError
from starlette.types import Message, Scope

from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.edge.shutdown import Shutdown, ShutdownMiddleware
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.store.sql import database
from tests.database_fixtures import FreezableProxy, postgresql_url
from tests.free_port import free_port
from tests.loopback import listening
from tests.new_database import with_tables
from tests.server.app_server import (
    HTTP,
    SCRIPT,
    SERVER_STOPPED,
    WAYS,
    Gate,
    Stream,
    WatchedModel,
    asking,
    clients,
    envelope,
    events_of,
    every_way,
    said,
    sent,
    stoppable,
    text_of,
)

ROOT = Path(__file__).parents[2]


# ------------------------------------------------------------------------- signals


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.process
async def test_a_signal_fails_what_works_tells_every_watcher_and_leaves_with_code_0(stop: signal.Signals) -> None:
    port, grpc_port = free_port(), free_port()
    ports = ("--port", str(port), "--grpc-port", str(grpc_port))
    options = (*ports, "--model", f"script:{SCRIPT}", "--database", "memory")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "a2a_canvas", "serve", *options),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        assert b" listens on " in await process.stdout.readline()
        model = WatchedModel(ScriptedModel(SCRIPT))
        async with clients(port, grpc_port, model, Gate()) as served:
            asked = await sent(served, ("JSONRPC", "1.0"), asking("ask"))
            idle = events_of(served, "SubscribeToTask", {"id": asked.id})
            await anext(idle)
            working = [Stream(served.client(*way).send_message(asking("slowly notes"))) for way in WAYS]
            for stream in working:
                await stream.until_state(pb.TASK_STATE_WORKING)
            process.send_signal(stop)
            for stream in working:
                await stream.rest()
            assert [event async for event in idle] == []
        errors = (await process.communicate())[1].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert [stream.seen[-1].status_update.status.state for stream in working] == [pb.TASK_STATE_FAILED] * len(WAYS)
    assert {said(stream.task.status) for stream in working} == {SERVER_STOPPED}
    assert process.returncode == 0
    assert "ERROR" not in errors
    assert "Traceback" not in errors


# ----------------------------------------------------------------------- in process


@every_way
async def test_it_also_stops_so_when_it_is_told_without_a_signal(way: tuple[str, str]) -> None:
    async with stoppable() as (server, running, served):
        stream = Stream(served.client(*way).send_message(asking("slowly notes")))
        await stream.until_state(pb.TASK_STATE_WORKING)
        server.should_exit = True
        await stream.rest()
        await running
    assert stream.seen[-1].status_update.status.state == pb.TASK_STATE_FAILED
    assert said(stream.task.status) == SERVER_STOPPED


async def test_a_call_that_waits_for_its_task_is_answered_with_the_failed_task() -> None:
    async with stoppable() as (server, running, served):
        answer = asyncio.create_task(sent(served, ("JSONRPC", "1.0"), asking("slowly notes")))
        await served.gate.reached.wait()
        server.should_exit = True
        task = await answer
        await running
    assert task.status.state == pb.TASK_STATE_FAILED
    assert said(task.status) == SERVER_STOPPED


async def test_a_watcher_of_a_task_that_waits_for_input_is_let_go_with_a_complete_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with stoppable() as (server, running, served):
        task = await sent(served, ("JSONRPC", "1.0"), asking("ask"))
        idle = events_of(served, "SubscribeToTask", {"id": task.id})
        await anext(idle)
        server.should_exit = True
        assert [event async for event in idle] == []
        await running
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_what_comes_during_the_stop_is_refused_in_plain_words() -> None:
    app = create_app(Settings(database="memory"), ScriptedModel(SCRIPT))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", trust_env=False) as http,
    ):
        await app.state.shutdown()
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "ask"}]}
        headers = {"A2A-Version": "1.0"}
        calls = [
            await http.post("/", json=envelope("SendMessage", {"message": message}), headers=headers),
            await http.post("/rest/message:send", json={"message": message}, headers=headers),
            await http.get("/healthz"),
        ]
    assert {call.status_code for call in calls} == {503}
    assert {call.json()["error"]["message"] for call in calls} == {"The server is stopping. Send it again in a moment."}
    assert {call.headers["retry-after"] for call in calls} == {"1"}


def code_of(error: BaseException) -> grpc.StatusCode:
    """The gRPC status behind an error of the SDK's client."""
    cause = error if isinstance(error, grpc.aio.AioRpcError) else error.__cause__
    assert isinstance(cause, grpc.aio.AioRpcError)
    code: grpc.StatusCode = cause.code()
    return code


async def test_grpc_lets_idle_watchers_go_and_takes_no_more_calls() -> None:
    async with stoppable() as (server, running, served):
        client = served.client("GRPC")
        task = await sent(served, ("GRPC", "1.0"), asking("ask"))
        idle = client.subscribe(pb.SubscribeToTaskRequest(id=task.id))
        await anext(idle)
        server.should_exit = True
        with pytest.raises((grpc.aio.AioRpcError, A2AError)) as let_go:
            await anext(idle)
        await running
        with pytest.raises((grpc.aio.AioRpcError, A2AError)) as refused:
            await client.get_task(pb.GetTaskRequest(id=task.id))
    assert code_of(let_go.value) == code_of(refused.value) == grpc.StatusCode.UNAVAILABLE


async def test_under_plain_uvicorn_it_ends_a_stream_that_would_not_end() -> None:
    app = create_app(Settings(database="memory"), ScriptedModel(SCRIPT))
    with listening() as (listener, port):
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as http:
            message = {"messageId": "m", "contextId": "c", "role": "ROLE_USER", "parts": [{"text": "ask"}]}
            await http.post("/rest/message:send", json={"message": message}, headers={"A2A-Version": "1.0"})
            async with http.stream("GET", "/artifacts/c/events") as response:
                server.should_exit = True
                await response.aread()
        await running


# -------------------------------------------------------------------- with a database


async def test_what_was_handed_over_is_gone_on_with_after_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = f"sqlite:///{tmp_path / 'canvas.db'}"
    async with stoppable(database=database) as (server, running, served):
        streams = [Stream(served.client(*way).send_message(asking("slowly notes"))) for way in HTTP]
        for stream in streams:
            await stream.until_state(pb.TASK_STATE_WORKING)
        server.should_exit = True
        for stream in streams:
            await stream.rest()
        await running
    assert {stream.task.status.state for stream in streams} == {pb.TASK_STATE_WORKING}
    async with stoppable(database=database) as (_, _, served):
        resumed = []
        for stream, way in zip(streams, HTTP, strict=True):
            resumed.append(Stream(served.client(*way).subscribe(pb.SubscribeToTaskRequest(id=stream.task.id))))
            await resumed[-1].next()
        served.gate.open()
        served.gate.let(len(resumed))
        for stream, way in zip(resumed, HTTP, strict=True):
            await stream.rest()
            task = await served.client(*way).get_task(pb.GetTaskRequest(id=stream.task.id))
            assert task.status.state == pb.TASK_STATE_COMPLETED
            assert text_of(stream.task) == text_of(task)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.fixture
def patient_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits until the driver gives up waits for longer than a test may take."""
    monkeypatch.setattr(database, "TIMEOUT", 3600)


@pytest.mark.usefixtures("patient_driver")
@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
@pytest.mark.postgres
async def test_it_stops_although_its_database_does_not_answer(busy: bool) -> None:
    link = FreezableProxy(await with_tables(postgresql_url()))
    async with asyncio.timeout(60), link as url:
        async with stoppable(database=url, shutdown_grace=1) as (server, running, served):
            if busy:
                stream = Stream(served.client(*HTTP[0]).send_message(asking("slowly notes")))
                await stream.until_state(pb.TASK_STATE_WORKING)
                await served.gate.reached.wait()
            link.freeze()
            served.gate.open()
            not_ready = await served.http.get("/readyz")
            asked = asyncio.create_task(served.http.get("/rest/tasks", headers={"A2A-Version": "1.0"}))
            server.should_exit = True
            await running
        await asyncio.wait([asked])
    assert not_ready.status_code == 503


@pytest.mark.usefixtures("patient_driver")
@pytest.mark.postgres
async def test_it_is_ready_again_when_its_database_answers_again() -> None:
    link = FreezableProxy(await with_tables(postgresql_url()))
    async with asyncio.timeout(60), link as url, stoppable(database=url) as (_, _, served):
        link.freeze()
        assert (await served.http.get("/readyz")).status_code == 503
        link.thaw()
        while (await served.http.get("/readyz")).status_code != 200:
            pass


# ------------------------------------------------------------------------ the middleware


@pytest.mark.parametrize("parts", [0, 1, 2])
@pytest.mark.parametrize("finished", [True, False])
async def test_an_answer_that_was_cut_is_completed_and_a_whole_one_left_alone(parts: int, finished: bool) -> None:
    whole: list[Message] = [{"type": "http.response.start", "status": 200, "headers": []}]
    whole += [{"type": "http.response.body", "body": b"x", "more_body": True}] * parts
    end: Message = {"type": "http.response.body", "body": b"", "more_body": False}
    seen: list[Message] = []

    async def cut(scope: Scope, receive: Any, send: Any) -> None:
        for message in [*whole, end] if finished else whole:
            await send(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        seen.append(message)

    shutdown = create_app(Settings(database="memory"), ScriptedModel(SCRIPT)).state.shutdown
    assert isinstance(shutdown, Shutdown)
    await ShutdownMiddleware(cut, shutdown=shutdown)({"type": "http"}, receive, send)
    assert seen == [*whole, end]
