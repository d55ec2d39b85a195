"""Agents on other servers as the loop: a second instance of this one, the SDK's handler, fasta2a."""

import asyncio
from contextlib import AsyncExitStack, suppress

import pytest
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import UnsupportedOperationError
from starlette.applications import Starlette

from a2a_canvas import a2a_agent
from a2a_canvas.server.accounts.api_key import new_key
from tests.loopback import serving_app
from tests.server.app_server import HTTP, WAYS, Served, asking, envelope, sent, serving, text_of
from tests.server.tool_sources.remote_agents.test_other_servers import fasta2a_app, sdk_app

WAY = ("JSONRPC", "1.0")


def reply_of(task: pb.Task) -> str:
    return "".join(part.text for part in task.status.message.parts)


async def tasks_there(other: Served) -> list[dict]:
    return (await other.rpc("ListTasks", {}))["result"]["tasks"]


# ------------------------------------------------------------------- the SDK's handler, fasta2a


@pytest.mark.parametrize("streaming", [True, False], ids=["streams", "is looked at"])
@pytest.mark.parametrize("way", HTTP, ids=" ".join)
async def test_the_sdks_handler_writes_here_and_asks(way, streaming) -> None:
    async with (
        serving_app(sdk_app(*way, streaming=streaming)) as url,
        serving(grpc=False, database="memory", loop=a2a_agent(url)) as served,
    ):
        task = await sent(served, WAY, asking("Rome"))
        assert (task.status.state, reply_of(task)) == (pb.TASK_STATE_COMPLETED, "It rains in Rome.")
        assert [(each.artifact_id, each.name) for each in task.artifacts] == [("report", "report.md")]
        assert text_of(task) == "Rain and wind."
        task = await sent(served, WAY, asking("ask", context=task.context_id))
        assert (task.status.state, reply_of(task)) == (pb.TASK_STATE_INPUT_REQUIRED, "Which city?")
        task = await sent(served, WAY, asking("Oslo", context=task.context_id, task=task.id))
        assert (task.status.state, reply_of(task)) == (pb.TASK_STATE_COMPLETED, "It rains in Oslo.")


async def test_the_address_of_its_card_does_as_well() -> None:
    async with serving_app(sdk_app(*WAY)) as url:
        loop = a2a_agent(f"{url}/.well-known/agent-card.json")
        async with serving(grpc=False, database="memory", loop=loop) as served:
            assert reply_of(await sent(served, WAY, asking("Rome"))) == "It rains in Rome."


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_fasta2a_writes_here() -> None:
    async with (
        serving_app(fasta2a_app, lifespan="on") as url,
        serving(grpc=False, database="memory", loop=a2a_agent(url)) as served,
    ):
        task = await sent(served, WAY, asking("Hello"))
        assert (reply_of(task), text_of(task)) == ("Echoed.", "Hello")


class Diary(AgentExecutor):
    """Replies with all that its conversation has said."""

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {}

    async def execute(self, context, event_queue) -> None:
        task = new_task_from_user_message(context.message)
        task.id, task.context_id = context.task_id, context.context_id
        await event_queue.enqueue_event(task)
        said = self.said.setdefault(context.context_id, [])
        said.append(context.get_user_input())
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.complete(new_text_message(" ".join(said)))

    async def cancel(self, context, event_queue) -> None: ...


def diary_app(diary: Diary):
    def make(url: str) -> Starlette:
        card = pb.AgentCard(name="Diary", version="1", capabilities=pb.AgentCapabilities(streaming=True))
        card.supported_interfaces.add(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0")
        handler = DefaultRequestHandler(diary, InMemoryTaskStore(), card)
        return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])

    return make


async def test_two_users_with_equal_context_ids_never_share_a_conversation_with_the_agent() -> None:
    diary = Diary()
    keys = {"ann": new_key("ann"), "bob": new_key("bob")}
    options = {"api_keys": ",".join(f"{name}={key}" for name, key in keys.items()), "database": "memory"}

    async def says(user: str, text: str) -> str:
        message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}], "contextId": "tides"}
        headers = {"A2A-Version": "1.0", "Authorization": f"Bearer {keys[user]}"}
        response = await served.http.post("/", json=envelope("SendMessage", {"message": message}), headers=headers)
        return response.json()["result"]["task"]["status"]["message"]["parts"][0]["text"]

    async with (
        serving_app(diary_app(diary)) as url,
        serving(grpc=False, loop=a2a_agent(url), **options) as served,
    ):
        assert [await says(user, text) for user, text in (("ann", "one"), ("bob", "two"), ("ann", "three"))] == [
            "one",
            "two",
            "one three",
        ]
        assert await says("bob", "four") == "two four"
    assert len(diary.said) == 2
    assert not {"tides"} & diary.said.keys()


async def test_messages_sent_at_once_are_of_one_conversation_with_the_agent() -> None:
    diary = Diary()
    async with (
        serving_app(diary_app(diary)) as url,
        serving(grpc=False, database="memory", loop=a2a_agent(url)) as served,
    ):
        await asyncio.gather(*(sent(served, WAY, asking(f"{number}", context="tides")) for number in range(3)))
    [said] = diary.said.values()
    assert sorted(said) == ["0", "1", "2"]


async def test_a_conversation_with_the_agent_is_continued_after_a_restart(tmp_path) -> None:
    diary = Diary()
    ours = {"grpc": False, "database": f"sqlite:///{tmp_path}/ours.db"}
    async with serving_app(diary_app(diary)) as url:
        async with serving(loop=a2a_agent(url), **ours) as served:
            await sent(served, WAY, asking("one", context="tides"))
        async with serving(loop=a2a_agent(url), **ours) as served:
            assert reply_of(await sent(served, WAY, asking("two", context="tides"))) == "one two"
            assert reply_of(await sent(served, WAY, asking("three", context="reefs"))) == "three"


async def test_an_agent_that_is_not_there_fails_the_task_with_a_sentence(monkeypatch) -> None:
    monkeypatch.setattr("a2a_canvas.server.tool_sources.remote_agents.reconnection.DELAYS", (0.0, 0.0))
    async with serving(grpc=False, database="memory", loop=a2a_agent("http://127.0.0.1:9")) as served:
        task = await sent(served, WAY, asking("Hello"))
    assert task.status.state == pb.TASK_STATE_FAILED
    assert reply_of(task) == "The agent cannot be asked: the connection to it was lost, or nothing answers there."


# ------------------------------------------------------------------- this server behind itself


async def test_this_server_behind_itself_writes_and_its_artifact_grows() -> None:
    async with (
        serving(grpc=False, frame_ms=0) as other,
        serving(grpc=False, database="memory", loop=a2a_agent(other.url)) as served,
    ):
        grown = 0
        async for event in served.client().send_message(asking("slowly log")):
            other.gate.open()
            grown += event.HasField("artifact_update") and event.artifact_update.append
            task_id = event.task.id or event.status_update.task_id or event.artifact_update.task_id
        task = await served.client().get_task(pb.GetTaskRequest(id=task_id))
        assert task.status.state == pb.TASK_STATE_COMPLETED
        assert text_of(task) == "0123456789" * 10
        assert grown >= 5


async def test_a_restart_of_our_server_leaves_its_task_alone_and_follows_it_on(tmp_path) -> None:
    async with serving(grpc=False) as other:
        ours = {"grpc": False, "database": f"sqlite:///{tmp_path}/ours.db", "shutdown_grace": 0.1}
        async with serving(loop=a2a_agent(other.url), **ours) as served:
            task = await sent(served, WAY, asking("slowly log", now=True))
            await other.gate.reached.wait()
            other.gate.let(18)
            async for event in served.client().subscribe(pb.SubscribeToTaskRequest(id=task.id)):
                if event.HasField("artifact_update") or text_of(event.task):
                    break
        [there] = await tasks_there(other)
        assert there["status"]["state"] == "TASK_STATE_WORKING"
        other.gate.open()
        async with serving(loop=a2a_agent(other.url), **ours) as served:
            with suppress(UnsupportedOperationError):  # it has ended already
                async for _ in served.client().subscribe(pb.SubscribeToTaskRequest(id=task.id)):
                    pass
            task = await served.client().get_task(pb.GetTaskRequest(id=task.id))
            assert (task.status.state, text_of(task)) == (pb.TASK_STATE_COMPLETED, "0123456789" * 10)
        assert len(await tasks_there(other)) == 1


async def test_it_is_cancelled_with_ours() -> None:
    async with (
        serving(grpc=False) as other,
        serving(grpc=False, database="memory", loop=a2a_agent(other.url)) as served,
    ):
        task = await sent(served, WAY, asking("slowly log", now=True))
        await other.gate.reached.wait()
        other.gate.let(18)
        async for event in served.client().subscribe(pb.SubscribeToTaskRequest(id=task.id)):
            if event.HasField("artifact_update") or text_of(event.task):
                break
        await served.client().cancel_task(pb.CancelTaskRequest(id=task.id))
        [there] = await tasks_there(other)
        assert there["status"]["state"] == "TASK_STATE_CANCELED"


@pytest.mark.parametrize("restarted", [False, True], ids=["at once", "after a restart"])
@pytest.mark.parametrize("way", WAYS, ids=" ".join)
async def test_a_task_that_waits_for_the_user_is_cancelled_with_ours(tmp_path, way, restarted) -> None:
    async with serving(grpc=False) as other, AsyncExitStack() as stack:
        other.gate.open()
        ours = {"loop": a2a_agent(other.url), "database": f"sqlite:///{tmp_path}/ours.db"}
        served = await stack.enter_async_context(serving(**ours))
        task = await sent(served, WAY, asking("draft then ask"))
        assert task.status.state == pb.TASK_STATE_INPUT_REQUIRED
        if restarted:
            await stack.aclose()
            served = await stack.enter_async_context(serving(**ours))
        cancelled = await served.client(*way).cancel_task(pb.CancelTaskRequest(id=task.id))
        assert cancelled.status.state == pb.TASK_STATE_CANCELED
        [there] = await tasks_there(other)
        assert there["status"]["state"] == "TASK_STATE_CANCELED"
