"""docs/langgraph.md: its agent runs as shown, and its table has the arguments of the function."""

import inspect
import sys
from collections.abc import AsyncIterator
from functools import partial
from types import ModuleType
from typing import Any, TypedDict

import pytest
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

from a2a_canvas import Turn
from a2a_canvas.frameworks import langgraph_agent
from a2a_canvas.testing import agent
from tests.docs.pages import blocks, page, rows

PAGE = page("langgraph")
AGENT, WRITER = blocks(PAGE, "python")


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
