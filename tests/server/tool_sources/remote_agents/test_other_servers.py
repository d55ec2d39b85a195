"""Agents on other servers: a second instance of this one, the SDK's handler, the JavaScript SDK's, fasta2a."""

import asyncio
import uuid
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from unittest import mock

import pytest
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import UnsupportedOperationError
from fasta2a import FastA2A, Worker
from fasta2a.broker import InMemoryBroker
from fasta2a.storage import InMemoryStorage
from starlette.applications import Starlette

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.agent.events import State, ToolStep, TranscriptAppended
from a2a_canvas.server.tool_sources.remote_agents import agents_source
from a2a_canvas.server.tool_sources.remote_agents.agent_client import AgentClient
from a2a_canvas.server.tool_sources.remote_agents.agents_source import RemoteAgents
from a2a_canvas.tools.registry import TOOLS
from tests.loopback import serving_app
from tests.node_tools import need_node
from tests.server.agent.turn.turn_harness import TurnHarness
from tests.server.app_server import HTTP, WAYS, Served, sent, serving, text_of
from tests.server.app_server import asking as app_asking
from tests.server.tool_sources.remote_agents.asking import asked, asking, calls, life, only, result, texts

WRITTEN = {"report": "# report\n\nHello, wörld 😀.\n"}


# ------------------------------------------------------------------- this server


@asynccontextmanager
async def our_agent(way=("JSONRPC", "1.0"), **settings):
    """A second instance of this server, and the source that has it as a tool."""
    async with serving(grpc=False, frame_ms=0, **settings) as served:
        source = RemoteAgents([served.url])
        only(source, *way)
        await source.start()
        try:
            yield served, source
        finally:
            await source.stop()


@pytest.mark.parametrize("way", HTTP, ids=" ".join)
async def test_it_writes_its_artifact_here(way) -> None:
    async with our_agent(way) as (served, source):
        served.gate.open()
        turn = await asked(source, "write report")
        assert result(turn).startswith("I wrote report.\n[Its artifacts here: 'report']")
        assert await texts(turn) == WRITTEN
        [report] = await turn.store.list("context")
        assert report.name == "report.md"


@pytest.mark.parametrize("way", HTTP, ids=" ".join)
async def test_its_artifact_grows_here_while_it_is_written_there(way) -> None:
    async with our_agent(way) as (served, source):
        running = asyncio.create_task(asked(source, "slowly log"))
        await served.gate.reached.wait()
        served.gate.open()
        turn = await running
        grown = [event.append for event in turn.told.events if type(event).__name__ == "ArtifactChanged"]
        assert grown.count(True) >= 5
        assert await texts(turn) == {"log": "0123456789" * 10}


@pytest.mark.parametrize("way", HTTP, ids=" ".join)
@pytest.mark.parametrize(
    ("message", "question", "state", "answer", "said"),
    [
        ("ask", "Which colour?", State.INPUT_REQUIRED, "Blue", "As you like it."),
        ("secret", "Log in at the desk.", State.AUTH_REQUIRED, "password 1", "Only for you."),
    ],
)
async def test_what_it_asks_is_asked_here(way, message, question, state, answer, said) -> None:
    async with our_agent(way) as (served, source):
        served.gate.open()
        task = life(source, message)
        await task.run()
        assert (task.record.state, task.record.message.text) == (state, question)
        task.answer(answer)
        await task.run()
        assert task.record.state is State.COMPLETED
        given = task.llm._llm.requests[-1].messages[-1].content[0]
        assert given.content.startswith(said)
        tasks = (await served.rpc("ListTasks", {}))["result"]["tasks"]
        assert len(tasks) == 1
        kept = f"{task.record}{task.llm._llm.requests}"
        assert (answer in kept) == (state is State.INPUT_REQUIRED)


async def test_it_is_cancelled_with_ours() -> None:
    async with our_agent() as (served, source):
        turn = TurnHarness(*calls(source, "slowly log"), tools=(*TOOLS, *source.tools()))
        running = turn.start()
        while not any(step.name == "task" for step in steps(turn)):  # noqa: ASYNC110  the recorder has no event
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        [task] = (await served.rpc("ListTasks", {}))["result"]["tasks"]
        assert task["status"]["state"] == "TASK_STATE_CANCELED"


def steps(turn: TurnHarness) -> list[ToolStep]:
    items = [item for event in turn.told.of(TranscriptAppended) for item in event.items]
    return [item for item in items if isinstance(item, ToolStep)]


async def test_its_card_says_what_the_model_reads_of_it() -> None:
    async with our_agent() as (_, source):
        [tool] = source.tools()
        assert tool.name == "ask_a2a_canvas"
        assert tool.description.startswith("Ask another agent, ")


ASKS = """
rules:
  - match: {text: '^ask it$'}
    rounds:
      - tools: [{name: ask_a2a_canvas, input: {message: "write report"}}]
      - {text: "It has written."}
  - match: {text: '^draft then ask$'}
    rounds:
      - tools: [{name: ask_a2a_canvas, input: {message: "draft then ask"}}]
      - {text: "It has drafted."}
  - match: {text: '^slowly log$'}
    rounds:
      - tools: [{name: ask_a2a_canvas, input: {message: "slowly log"}}]
      - {text: "It has logged."}
"""


async def test_the_setting_agents_makes_it_a_tool_of_the_whole_server(tmp_path) -> None:
    script = tmp_path / "asks.yaml"
    script.write_text(ASKS)
    async with (
        serving(grpc=False) as other,
        serving(script, grpc=False, agents=(other.url,), database="memory") as served,
    ):
        other.gate.open()
        served.gate.open()
        task = await sent(served, ("JSONRPC", "1.0"), app_asking("ask it"))
        assert "".join(part.text for part in task.status.message.parts) == "It has written."
        assert text_of(task) == WRITTEN["report"]
        task = await sent(served, ("JSONRPC", "1.0"), app_asking("draft then ask"))
        assert task.status.state == pb.TASK_STATE_INPUT_REQUIRED
        task = await sent(served, ("JSONRPC", "1.0"), app_asking("yes", context=task.context_id, task=task.id))
        assert task.status.state == pb.TASK_STATE_COMPLETED
        assert text_of(task) == "one two"


async def test_a_restart_of_our_server_leaves_its_task_alone_and_follows_it_on(tmp_path) -> None:
    script = tmp_path / "asks.yaml"
    script.write_text(ASKS)
    async with serving(grpc=False) as other:
        ours = {"agents": (other.url,), "database": f"sqlite:///{tmp_path}/ours.db", "shutdown_grace": 0.1}
        async with serving(script, grpc=False, **ours) as served:
            served.gate.open()
            task = await sent(served, ("JSONRPC", "1.0"), app_asking("slowly log", now=True))
            await other.gate.reached.wait()
            other.gate.let(18)
            async for event in served.client().subscribe(pb.SubscribeToTaskRequest(id=task.id)):
                if event.HasField("artifact_update") or text_of(event.task):
                    break
        [there] = (await other.rpc("ListTasks", {}))["result"]["tasks"]
        assert there["status"]["state"] == "TASK_STATE_WORKING"
        other.gate.open()
        async with serving(script, grpc=False, **ours) as served:
            with suppress(UnsupportedOperationError):  # it has ended already
                async for event in served.client().subscribe(pb.SubscribeToTaskRequest(id=task.id)):
                    status = event.status_update.status if event.HasField("status_update") else event.task.status
                    if status.state == pb.TASK_STATE_COMPLETED:
                        break
            task = await served.client().get_task(pb.GetTaskRequest(id=task.id))
            assert "".join(part.text for part in task.status.message.parts) == "It has logged."
            assert text_of(task) == "0123456789" * 10
        assert len((await other.rpc("ListTasks", {}))["result"]["tasks"]) == 1


async def state_there(other: Served) -> str:
    [there] = (await other.rpc("ListTasks", {}))["result"]["tasks"]
    return str(there["status"]["state"]).removeprefix("TASK_STATE_")


@pytest.mark.parametrize("restarted", [False, True], ids=["at once", "after a restart"])
@pytest.mark.parametrize("way", WAYS, ids=" ".join)
async def test_a_task_that_waits_for_the_user_is_cancelled_with_its_task(tmp_path, way, restarted) -> None:
    script = tmp_path / "asks.yaml"
    script.write_text(ASKS)
    async with serving(grpc=False) as other:
        other.gate.open()
        ours = {"agents": (other.url,), "database": f"sqlite:///{tmp_path}/ours.db"}
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(serving(script, **ours))
            task = await sent(served, ("JSONRPC", "1.0"), app_asking("draft then ask"))
            assert (task.status.state, await state_there(other)) == (pb.TASK_STATE_INPUT_REQUIRED, "INPUT_REQUIRED")
            if restarted:
                await stack.aclose()
                served = await stack.enter_async_context(serving(script, **ours))
            cancelled = await served.client(*way).cancel_task(pb.CancelTaskRequest(id=task.id))
            assert cancelled.status.state == pb.TASK_STATE_CANCELED
            assert await state_there(other) == "CANCELED"


async def test_a_task_that_waits_is_cancelled_also_when_the_agent_is_gone(tmp_path, caplog) -> None:
    script = tmp_path / "asks.yaml"
    script.write_text(ASKS)
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(serving(grpc=False))
        other.gate.open()
        served = await stack.enter_async_context(serving(script, grpc=False, agents=(other.url,)))
        task = await sent(served, ("JSONRPC", "1.0"), app_asking("draft then ask"))
        with mock.patch.object(AgentClient, "cancel", side_effect=AgentFault("it does not answer", retryable=True)):
            cancelled = await served.client().cancel_task(pb.CancelTaskRequest(id=task.id))
        assert cancelled.status.state == pb.TASK_STATE_CANCELED
        assert "is not cancelled: it does not answer" in caplog.text


@pytest.mark.parametrize(
    ("comes_back", "said"),
    [
        (True, "one two"),
        (False, "ask_a2a_canvas could not continue: the agent at {url} cannot be asked (it does not answer)."),
    ],
    ids=["comes back", "stays away"],
)
async def test_a_call_waits_for_an_agent_whose_card_cannot_be_read_after_a_restart(
    tmp_path, monkeypatch, comes_back, said
) -> None:
    script = tmp_path / "asks.yaml"
    script.write_text(ASKS)
    monkeypatch.setattr(agents_source, "RETRIES", (0.01,))
    monkeypatch.setattr(agents_source, "WAIT", 30 if comes_back else 0.1)
    away, read = asyncio.Event(), AgentClient.read_card

    async def read_card(self: AgentClient) -> pb.AgentCard:
        if away.is_set():
            raise AgentFault("it does not answer", retryable=True)
        return await read(self)

    monkeypatch.setattr(AgentClient, "read_card", read_card)
    async with serving(grpc=False) as other:
        other.gate.open()
        ours = {"agents": (other.url,), "database": f"sqlite:///{tmp_path}/ours.db"}
        async with serving(script, grpc=False, **ours) as served:
            task = await sent(served, ("JSONRPC", "1.0"), app_asking("draft then ask"))
        away.set()
        async with serving(script, grpc=False, **ours) as served:
            served.gate.open()
            answer = app_asking("yes", context=task.context_id, task=task.id)
            async for event in served.client().send_message(answer):
                label = said_in(event)
                if comes_back and label == "Waiting for ask_a2a_canvas…":
                    away.clear()
            task = await served.client().get_task(pb.GetTaskRequest(id=task.id))
            assert task.status.state == pb.TASK_STATE_COMPLETED
            read_by_model = str(served.model.requests[-1].messages)
            assert said.format(url=other.url) in (text_of(task) if comes_back else read_by_model)
            assert "There is no tool" not in read_by_model
            assert await state_there(other) == ("COMPLETED" if comes_back else "INPUT_REQUIRED")


def said_in(event: pb.StreamResponse) -> str:
    return "".join(part.text for part in event.status_update.status.message.parts)


# ------------------------------------------------------------------- the SDK's handler


class Weather(AgentExecutor):
    """Says what it does, writes a report in chunks, and asks for the city if it is not told."""

    async def execute(self, context, event_queue) -> None:
        if context.current_task is None:
            task = new_task_from_user_message(context.message)
            task.id, task.context_id = context.task_id, context.context_id
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        said = context.get_user_input()
        await updater.start_work(updater.new_agent_message([new_text_part(f"Looking at {said}…")]))
        if said == "ask":
            await updater.requires_input(updater.new_agent_message([new_text_part("Which city?")]))
            return
        for number, piece in enumerate(("Rain ", "and ", "wind.")):
            await updater.add_artifact([new_text_part(piece)], "report", "report.md", append=number > 0)
        await updater.complete(new_text_message(f"It rains in {said}."))

    async def cancel(self, context, event_queue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def sdk_app(binding: str, version: str, *, streaming: bool = True):
    def make(url: str) -> Starlette:
        card = pb.AgentCard(name="Weather", version="1", capabilities=pb.AgentCapabilities(streaming=streaming))
        card.supported_interfaces.add(
            url=f"{url}/rest" if binding == "HTTP+JSON" else f"{url}/",
            protocol_binding=binding,
            protocol_version=version,
        )
        handler = DefaultRequestHandler(Weather(), InMemoryTaskStore(), card)
        routes = [
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True),
            *create_rest_routes(handler, enable_v0_3_compat=True, path_prefix="/rest"),
        ]
        return Starlette(routes=routes)

    return make


async def writes_here_and_asks(source) -> None:
    turn = await asked(source, "Rome")
    assert result(turn).startswith("It rains in Rome.\n[Its artifacts here: 'report']")
    assert await texts(turn) == {"report": "Rain and wind."}
    task = life(source, "ask")
    await task.run()
    assert (task.record.state, task.record.message.text) == (State.INPUT_REQUIRED, "Which city?")
    task.answer("Oslo")
    await task.run()
    assert task.record.state is State.COMPLETED
    assert task.llm._llm.requests[-1].messages[-1].content[0].content.startswith("It rains in Oslo.")
    assert task.texts() == {"report": "Rain and wind."}


@pytest.mark.parametrize("streaming", [True, False], ids=["streams", "is looked at"])
@pytest.mark.parametrize("way", HTTP, ids=" ".join)
async def test_the_sdks_handler_writes_here_and_asks(way, streaming) -> None:
    async with serving_app(sdk_app(*way, streaming=streaming)) as url, asking(url) as source:
        await writes_here_and_asks(source)


# ------------------------------------------------------------------- the SDK for JavaScript


@asynccontextmanager
async def js_agent():
    need_node("@a2a-js/sdk")
    program = Path(__file__).parent / "js_agent.mjs"
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec("node", program, **pipes)
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.communicate()


@pytest.mark.process
@pytest.mark.parametrize("way", [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")], ids=" ".join)
async def test_the_sdk_for_javascript_writes_here_and_asks(way) -> None:
    async with js_agent() as url, asking(url) as source:
        only(source, *way)
        await writes_here_and_asks(source)


# ------------------------------------------------------------------- fasta2a


class Echo(Worker):
    async def run_task(self, params) -> None:
        task = await self.storage.load_task(params["id"])
        await self.storage.update_task(task["id"], state="working")
        said = "".join(part.get("text", "") for part in params["message"]["parts"])
        artifacts = self.build_artifacts(said)
        await self.publish_artifact(task["id"], task["context_id"], artifacts[0])
        message = {
            "role": "agent",
            "parts": [{"kind": "text", "text": "Echoed."}],
            "kind": "message",
            "message_id": str(uuid.uuid4()),
        }
        await self.storage.update_task(task["id"], state="completed", new_artifacts=artifacts, new_messages=[message])

    async def cancel_task(self, params) -> None: ...

    def build_message_history(self, history):
        return history

    def build_artifacts(self, result):
        return [{"artifact_id": "echo", "name": "echo.txt", "parts": [{"kind": "text", "text": result}]}]


def fasta2a_app(url: str):
    storage, broker = InMemoryStorage(), InMemoryBroker()
    worker = Echo(broker=broker, storage=storage)

    @asynccontextmanager
    async def lifespan(app):
        async with app.task_manager, worker.run():
            yield

    return FastA2A(storage=storage, broker=broker, name="Echo", url=f"{url}/", lifespan=lifespan)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_fasta2a_writes_here() -> None:
    async with serving_app(fasta2a_app, lifespan="on") as url, asking(url) as source:
        turn = await asked(source, "Hello")
        assert result(turn).startswith("Echoed.")
        assert await texts(turn) == {"echo": "Hello"}
