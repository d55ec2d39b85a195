"""What a graph remembers between the tasks of a conversation, and which rows it leaves."""

import asyncio
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from a2a_canvas import Turn
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.frameworks.langgraph import langgraph_agent
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.server.test_own_loop import call, send, served


def texts(state: MessagesState) -> list[str]:
    return [str(each.content) for each in state["messages"] if isinstance(each, HumanMessage | AIMessage)]


class Diary:
    """A graph of two nodes that repeats what it has read. Some messages make it fail, ask or wait.

    Attributes:
        rows: the names of the rows when it last ran.
        waits: the second node of a task that is to wait has begun; `go` lets it end.
    """

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.ran: list[str] = []
        self.waits, self.go = asyncio.Event(), asyncio.Event()

    def agent(self):
        async def note(state: MessagesState, runtime: Runtime[Turn]):
            text = texts(state)[-1]
            self.ran.append(text)
            self.rows = [*await runtime.context.values.list("langgraph/")]
            return {"messages": [AIMessage(f"{text} noted")]}

        async def tell(state: MessagesState, runtime: Runtime[Turn]):
            match texts(state)[-2]:
                case "fail":
                    raise ConnectionError
                case "ask":
                    return {"messages": [AIMessage(f"You say {interrupt('Yes?')}.")]}
                case "wait":
                    self.waits.set()
                    await self.go.wait()
            return {"messages": [AIMessage(", ".join(texts(state)))]}

        builder = StateGraph(MessagesState, context_schema=Turn).add_sequence([note, tell]).add_edge(START, "note")
        return langgraph_agent(builder.compile(), context=lambda turn: turn)


def reply(task: dict) -> str:
    return task["status"]["message"]["parts"][0]["text"].rpartition("\n\n")[2]


def url_of(database: str, folder: Path) -> str:
    if database != "postgresql":
        return sqlite_url(folder) if database == "sqlite" else database
    url = postgresql_url()
    assert main(["db", "upgrade", "--database", url]) == 0
    return url


@pytest.mark.parametrize("database", ["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_the_next_task_begins_with_the_checkpoints_of_the_last_one_that_completed(database, tmp_path) -> None:
    diary = Diary()
    with served(diary.agent(), database=url_of(database, tmp_path)) as client:
        assert reply(send(client, "one")) == "one, one noted"
        assert send(client, "fail")["status"]["state"] == "TASK_STATE_FAILED"
        assert reply(send(client, "two")) == "one, one noted, one, one noted, two, two noted"


def test_the_rows_of_a_conversation_do_not_grow_with_its_tasks() -> None:
    diary = Diary()
    with served(diary.agent()) as client:
        for text in ("one", "two", "fail", "fail again", "three", "four"):
            send(client, text)
        send(client, "other", contextId="elsewhere")
        elsewhere = diary.rows
        send(client, "five")
    assert len(elsewhere) == 2
    assert [name.count("/") for name in diary.rows] == [2, 2, 1, 1]


def test_a_task_that_waits_for_an_answer_keeps_its_checkpoints() -> None:
    diary = Diary()
    with served(diary.agent()) as client:
        task = send(client, "ask")
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert reply(send(client, "sure", taskId=task["id"])) == "You say sure."
        assert reply(send(client, "two")).startswith("ask, ask noted, You say sure., two")
    assert diary.ran == ["ask", "two"]


def test_a_second_task_of_the_conversation_waits_for_the_first() -> None:
    diary = Diary()
    with served(diary.agent()) as client:
        first = send(client, "wait", wait=False)
        client.portal.call(diary.waits.wait)
        second = send(client, "two", wait=False)
        call(client, "GetTask", {"id": second["id"]})
        assert diary.ran == ["wait"]
        client.portal.call(diary.go.set)
        while not (done := call(client, "GetTask", {"id": second["id"]}))["status"]["state"].endswith("COMPLETED"):
            pass
    assert first["id"] != second["id"]
    assert reply(done) == "wait, wait noted, wait, wait noted, two, two noted"


def test_after_a_cancelled_task_the_conversation_continues_from_the_last_completed_one() -> None:
    diary = Diary()
    with served(diary.agent()) as client:
        send(client, "one")
        first = send(client, "wait", wait=False)
        client.portal.call(diary.waits.wait)
        assert call(client, "CancelTask", {"id": first["id"]})["status"]["state"] == "TASK_STATE_CANCELED"
        assert reply(send(client, "two")) == "one, one noted, one, one noted, two, two noted"


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_a_server_that_restarts_continues_after_the_node_that_had_ended(database, tmp_path) -> None:
    url = url_of(database, tmp_path)
    diary = Diary()
    with served(diary.agent(), database=url) as client:
        task = send(client, "wait", wait=False)
        client.portal.call(diary.waits.wait)
    diary.go = asyncio.Event()
    diary.go.set()
    with served(diary.agent(), database=url) as client:
        while not (done := call(client, "GetTask", {"id": task["id"]}))["status"]["state"].endswith("COMPLETED"):
            pass
    assert reply(done) == "wait, wait noted"
    assert diary.ran == ["wait"]


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_checkpoints_are_removed_with_their_conversation(database, tmp_path) -> None:
    diary = Diary()
    with served(diary.agent(), database=url_of(database, tmp_path)) as client:
        task = send(client, "one")
        assert client.delete(f"/artifacts/{task['contextId']}").status_code == 204
        assert reply(send(client, "two", contextId=task["contextId"])) == "two, two noted"
