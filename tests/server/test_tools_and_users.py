"""Function tools of a server with users: for whom a call runs, and what becomes of a user's credentials."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from a2a.client import Client, ClientCallContext
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.agent.model import ToolResult
from a2a_canvas.server.agent.turn.history import CREDENTIALS
from a2a_canvas.server.tasks.kept_files import LARGE_BYTES
from a2a_canvas.store.sql.compression import decompress
from tests.server.app_server import Served, Stream, agent_options, asking, every_way, history_of, said, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYS = {name: new_key(name) for name in ("ann", "bob")}
TOOLS = '''
from a2a_canvas import Canvas, ToolError, tool


@tool
async def who(canvas: Canvas) -> str:
    """Says for whom it runs."""
    return f"for {canvas.caller}"


@tool(approval="ask")
async def publish(canvas: Canvas) -> str:
    """Says for whom it publishes."""
    return f"for {canvas.caller!r}"


@tool
async def pay(canvas: Canvas) -> str:
    """Pays with the user's code."""
    code = await canvas.ask("Your code?", authentication=True)
    sure = await canvas.ask("Are you sure?")
    return f"{canvas.caller} paid with {len(code)} digits: {code == '4711-secret'}, {sure}."


@tool
async def log_in(canvas: Canvas) -> str:
    """Logs in with the user's code."""
    code = await canvas.ask("Your code?", authentication=True)
    return f"{canvas.caller} is known: {code == '4711-secret'}."


@tool
async def tell(how: str, canvas: Canvas) -> str:
    """Repeats the user's code."""
    code = await canvas.ask("Your code?", authentication=True)
    await canvas.progress(f"Trying {code}")
    match how:
        case "raises":
            raise ValueError(f"{code} is wrong")
        case "refuses":
            raise ToolError(f"{code} is wrong")
        case "asks":
            await canvas.ask(f"Is {code} right?")
    return f"{code} is right"
'''
SCRIPT = """
rules:
  - match: {text: '^who, slowly$'}
    rounds:
      - {tools: [{name: who, input: {}}]}
      - {text: "So it is.", chunk: 3, delay: 1, tools: [{name: who, input: {}}]}
      - {tools: [{name: who, input: {}}]}
      - {text: "Done."}
  - match: {text: '^(?P<tool>pay|log_in|publish)$'}
    rounds:
      - {tools: [{name: "{tool}", input: {}}]}
      - {text: "Done."}
  - match: {text: '^tell (?P<how>.+)$'}
    rounds:
      - {tools: [{name: tell, input: {how: "{how}"}}]}
      - {text: "Done."}
"""
CODE = "4711-secret"


@pytest.fixture(scope="module")
def app_options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("agent")
    return agent_options(folder, SCRIPT, TOOLS, KEYS) | {"database": f"sqlite:///{folder}/tasks.db"}


def as_user(name: str) -> ClientCallContext:
    return ClientCallContext(service_parameters=bearer(name))


def sending(served: Served, user: str, text: str, **where: str) -> Stream:
    return Stream(served.client().send_message(asking(text, **where), context=as_user(user)))


async def shared_with_bob(served: Served, context: str) -> None:
    share = {"user": "bob", "level": "edit"}
    made = await served.http.post(f"/artifacts/{context}/shares", json=share, headers=bearer("ann"))
    assert made.status_code == 201


async def answered(client: Client, text: str, user: str = "ann", **where: str) -> pb.Task:
    [event] = [event async for event in client.send_message(asking(text, **where), context=as_user(user))]
    return event.task


def bearer(user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[user]}"}


def results(served: Served) -> list[str]:
    """Those of the tools, in the order in which the model has read them."""
    messages = served.model.requests[-1].messages
    return [str(each.content) for message in messages for each in message.content if isinstance(each, ToolResult)]


async def test_a_call_runs_for_the_user_whose_message_the_model_read_last(served: Served, context: str) -> None:
    """Else a guest who writes to the owner's working task would have the owner's tools do what it says."""
    anns = sending(served, "ann", "who, slowly", context=context)
    await anns.next()
    await shared_with_bob(served, context)
    await served.gate.reached.wait()
    await sending(served, "bob", "and for me", context=context, task=anns.task.id).next()
    served.gate.open()
    await anns.rest()
    assert results(served) == ["for ann", "for ann", "for bob"]


async def test_a_call_of_an_anonymous_caller_does_not_run_for_the_user_who_approves_it(
    app_options: dict[str, Any], tmp_path: Path, context: str
) -> None:
    options = app_options | {"database": f"sqlite:///{tmp_path}/tasks.db", "grpc": False}
    async with serving(**options, allow_anonymous=True, adopt_anonymous="ann") as served:
        client = served.client(streaming=False)
        [event] = [event async for event in client.send_message(asking("publish", context=context))]
        assert states(event.task) == ("INPUT_REQUIRED", "May I run publish()? Answer yes or no.")
        assert states(await answered(client, "yes", task=event.task.id)) == ("COMPLETED", "Done.")
        assert results(served) == ["for ''"]


async def listed(served: Served, context: str) -> list[dict[str, Any]]:
    asked = {"contextId": context, "historyLength": 100, "includeArtifacts": True}
    tasks: list[dict[str, Any]] = (await served.rpc("ListTasks", asked, **bearer("ann")))["result"]["tasks"]
    return tasks


def stored(options: dict[str, Any]) -> str:
    """All that the database has."""
    with closing(sqlite3.connect(options["database"].removeprefix("sqlite:///"))) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [row for name in tables for row in connection.execute(f'SELECT * FROM "{name}"')]
    return "\n".join(decompress(each) if isinstance(each, bytes) else str(each) for row in rows for each in row)


def states(task: pb.Task) -> tuple[str, str]:
    return pb.TaskState.Name(task.status.state).removeprefix("TASK_STATE_"), said(task.status)


@every_way
async def test_credentials_that_a_tool_asks_for_reach_the_tool_and_nobody_else(
    served: Served, context: str, way: tuple[str, str], app_options: dict[str, Any]
) -> None:
    served.gate.open()
    client = served.client(*way, streaming=False)
    task = await answered(client, "log_in", context=context)
    assert states(task) == ("AUTH_REQUIRED", "For ann: Your code?")
    task = await answered(client, CODE, task=task.id)
    assert states(task) == ("COMPLETED", "Done.")
    assert results(served) == ["ann is known: True."]
    assert history_of(task)[2] == ("user", CREDENTIALS)
    assert CODE not in f"{task}{served.model.requests}"
    everything = [
        await served.http.get(path, headers=bearer("ann"))
        for path in (f"/artifacts/{context}", "/artifacts", "/metrics")
    ]
    assert not any(CODE in each.text for each in everything)
    assert "Your code?" in stored(app_options)
    assert CODE not in stored(app_options)


async def test_files_that_come_with_credentials_are_not_stored(
    served: Served, context: str, app_options: dict[str, Any]
) -> None:
    served.gate.open()
    task = await answered(served.client(streaming=False), "log_in", context=context)
    key = {"raw": base64.b64encode(b"key!" * LARGE_BYTES).decode()}
    message = {"messageId": "with a file", "taskId": task.id, "role": "ROLE_USER", "parts": [{"text": CODE}, key]}
    ended = await served.rpc("SendMessage", {"message": message}, **bearer("ann"))
    assert ended["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert "key!" not in stored(app_options)


async def test_so_do_they_over_agui(served: Served, context: str, app_options: dict[str, Any]) -> None:
    served.gate.open()

    async def run(**more: Any) -> str:
        body = {"threadId": context, "runId": str(uuid4()), "messages": [], **more}
        return (await served.http.post("/canvas/stream", json=body, headers=bearer("ann"))).text

    asked = await run(messages=[{"id": "1", "role": "user", "content": "log_in"}])
    [task] = [task for task in (await listed(served, context)) if task["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"]
    assert "Your code?" in asked
    ended = await run(resume=[{"interruptId": task["id"], "status": "resolved", "payload": CODE}])
    assert results(served) == ["ann is known: True."]
    assert CODE not in f"{ended}{await listed(served, context)}{served.model.requests}"
    assert CODE not in stored(app_options)


async def test_a_call_keeps_its_user_no_matter_who_answers_its_questions(served: Served, context: str) -> None:
    """Bob answers a question of the call that ann's message made: it asks ann again for hers."""
    served.gate.open()
    client = served.client(streaming=False)
    task = await answered(client, "pay", context=context)
    await shared_with_bob(served, context)
    assert states(await answered(client, CODE, task=task.id)) == ("INPUT_REQUIRED", "Are you sure?")
    assert states(await answered(client, "yes", "bob", task=task.id)) == ("AUTH_REQUIRED", "For ann: Your code?")
    with pytest.raises(A2AError, match="waits for ann to log in"):
        await answered(client, "0815", "bob", task=task.id)
    assert states(await answered(client, CODE, task=task.id))[0] == "COMPLETED"
    assert results(served) == ["ann paid with 11 digits: True, yes."]


async def test_other_messages_of_a_task_that_asked_for_them_are_kept(served: Served, context: str) -> None:
    served.gate.open()
    client = served.client(streaming=False)
    task = await answered(client, "pay", context=context)
    for text in (CODE, "yes", CODE):
        task = await answered(client, text, task=task.id)
    assert results(served) == ["ann paid with 11 digits: True, yes."]
    assert [text for who, text in history_of(task) if who == "user"] == ["pay", CREDENTIALS, "yes", CREDENTIALS]


@pytest.mark.parametrize("how", ["returns", "raises", "refuses", "asks"])
async def test_what_a_tool_repeats_of_them_is_hidden(
    served: Served, context: str, how: str, app_options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    served.gate.open()
    client = served.client(streaming=False)
    task = await answered(client, f"tell {how}", context=context)
    watcher = Stream(served.client().subscribe(pb.SubscribeToTaskRequest(id=task.id), context=as_user("ann")))
    await watcher.next()
    task = await answered(client, CODE, task=task.id)
    seen = f"{task}{served.model.requests}{stored(app_options)}{watcher.seen}{caplog.text}"
    assert CODE not in seen
    assert "***" in seen or how == "raises"
    await watcher.close()
