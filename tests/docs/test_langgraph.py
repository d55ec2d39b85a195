"""docs/langgraph.md: its agent runs as shown, and its table has the arguments of the function."""

import inspect
import re
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

import pytest
from langchain_core.language_models import FakeMessagesListChatModel, SimpleChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime

from a2a_canvas import Turn
from a2a_canvas.frameworks import canvas_tools, langgraph_agent
from a2a_canvas.testing import agent
from tests.docs.pages import blocks, page, rows

PAGE = page("langgraph")
AGENT, FOLDER, WRITER = blocks(PAGE, "python")
TOOLS = '''
from a2a_canvas import tool

@tool
def water(port: str) -> str:
    """High water in a port."""
    return "5.9 m"
'''


class Model(SimpleChatModel):
    _llm_type = _call = "fake"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        assert {"artifact_update", "ask_user"} < {getattr(tool, "name", "") for tool in tools}
        return self

    async def _astream(self, *args: Any, **options: Any) -> AsyncIterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk("Hello."))


def search(query: str) -> str:
    """Search."""
    return query


def test_the_agent_that_is_shown_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    reef = ModuleType("reef")
    reef.model, reef.search = Model(), search
    monkeypatch.setitem(sys.modules, "reef", reef)
    names: dict[str, Any] = {}
    exec(AGENT, names)
    with agent(loop=names["agent"]) as it:
        assert it.send("Hello").text == "Hello."


def test_the_arguments_are_those_of_the_function() -> None:
    assert [row[0].strip("`") for row in rows(PAGE, "Options")] == [*inspect.signature(langgraph_agent).parameters]


def test_three_lines_are_added() -> None:
    assert AGENT.count("  # added") == 3
    assert "Add three lines" in PAGE


def test_the_nodes_that_are_shown_have_the_tools_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    offered: list[set[str]] = []

    class Caller(FakeMessagesListChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            offered.append({tool.name for tool in tools})
            return self

    call = {"id": "w", "name": "water", "args": {"port": "Brest"}}
    names: dict[str, Any] = {each.__name__: each for each in (MessagesState, StateGraph, ToolNode, canvas_tools)}
    names["model"] = Caller(responses=[AIMessage("", tool_calls=[call]), AIMessage("High.")])
    exec(FOLDER, names)
    graph = names["graph"].add_edge(START, "think").add_conditional_edges("think", tools_condition)
    with agent(tmp_path, loop=langgraph_agent(graph.add_edge("tools", "think").compile())) as it:
        answer = it.send("Brest?")
    assert (answer.text, answer.state) == ("High.", "completed")
    assert all({"water", "artifact_update"} < each for each in offered)


def test_the_tools_that_are_named_are_ours() -> None:
    [names] = re.findall(r"A `ToolNode` runs `canvas_tools\(\)`: (.*?)\. Your own", PAGE, re.DOTALL)
    assert re.findall(r"`(\w+)`", names) == [each.name for each in canvas_tools()]


def test_the_node_that_is_shown_writes() -> None:
    class State(TypedDict):
        text: str

    names: dict[str, Any] = {"State": State, "Runtime": Runtime, "Turn": Turn}
    names["langgraph_agent"] = partial(langgraph_agent, input=lambda turn: {"text": turn.text})
    node, agent_line = WRITER.rsplit("\n\n", 1)
    exec(node, names)
    names["graph"] = StateGraph(State, context_schema=Turn).add_sequence([names["write"]]).add_edge(START, "write")
    exec(agent_line, names)
    with agent(loop=names["agent"]) as it:
        assert it.send("High.").artifacts == {"report": "High."}
