"""The agent as a graph of LangGraph. Its unit is the node, so the tool has a node after the one that writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from a2a_canvas.frameworks import canvas_tools, langgraph_agent
from bench.framework_agents import ledger


async def note(task: str, number: int) -> str:
    """Take a note."""
    return await ledger.note(task, number)


def text_of(message: BaseMessage) -> str:
    """The user's text."""
    content = message.content
    return content if isinstance(content, str) else "".join(part["text"] for part in content if isinstance(part, dict))


class Model(SimpleChatModel):
    """The model."""

    _llm_type = _call = "bench"  # type: ignore[assignment]

    async def _astream(self, messages: list[BaseMessage], *args: Any, **options: Any) -> AsyncIterator[Any]:
        task = next(text_of(each) for each in messages if isinstance(each, HumanMessage))
        number = sum(isinstance(each, ToolMessage) and each.name == "note" for each in messages)
        ledger.enter(task, 2 * number)
        for word in ledger.words(number) if number < ledger.ROUNDS else [ledger.CLOSING]:
            await ledger.pause()
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        if number < ledger.ROUNDS:
            given = f'{{"task": "{task}", "number": {number}}}'
            calls = (("artifact_update", "u", ledger.update(number)), ("note", "n", given))
            for index, (name, prefix, text) in enumerate(calls):
                for at, piece in enumerate(ledger.pieces(text)):
                    await ledger.pause()
                    head = {"id": None, "name": None} if at else {"id": f"{prefix}{number}", "name": name}
                    chunk: Any = {"index": index, "args": piece, **head}
                    yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[chunk]))


model = Model()


async def think(state: MessagesState) -> dict[str, Any]:
    """The node of the model."""
    return {"messages": [await model.ainvoke(state["messages"])]}


tools: list[Any] = [note, *canvas_tools()]
graph = StateGraph(MessagesState).add_node("think", think).add_node("tools", ToolNode(tools))
graph.add_edge(START, "think").add_conditional_edges("think", tools_condition).add_edge("tools", "think")
agent = langgraph_agent(graph.compile(name="notes"))
