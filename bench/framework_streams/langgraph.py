"""The stream as a graph of LangGraph."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from a2a_canvas.frameworks import canvas_tools, langgraph_agent
from bench.framework_agents.langgraph import text_of
from bench.pace import Order
from bench.paced_server import CLOSING, OPENING


class Writer(SimpleChatModel):
    """The model."""

    _llm_type = _call = "bench"  # type: ignore[assignment]

    async def _astream(self, messages: list[BaseMessage], *args: Any, **options: Any) -> AsyncIterator[Any]:
        if any(isinstance(each, ToolMessage) for each in messages):
            yield ChatGenerationChunk(message=AIMessageChunk(content="Done."))
            return
        yield call(OPENING, id="u1", name="artifact_update")
        async for piece in Order.read(
            next(text_of(each) for each in messages if isinstance(each, HumanMessage))
        ).pieces():
            yield call(piece)
        yield call(CLOSING)


def call(args: str, **head: str) -> ChatGenerationChunk:
    """A piece of the call."""
    chunk: Any = {"index": 0, "args": args, "id": None, "name": None, **head}
    return ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[chunk]))


model = Writer()


async def think(state: MessagesState) -> dict[str, Any]:
    """The node of the model."""
    return {"messages": [await model.ainvoke(state["messages"])]}


def build(tools: list[Any]) -> Any:
    """The graph."""
    graph = StateGraph(MessagesState).add_node("think", think).add_node("tools", ToolNode(tools))
    return graph.add_edge(START, "think").add_conditional_edges("think", tools_condition).add_edge("tools", "think")


agent = langgraph_agent(build(list(canvas_tools())).compile(name="writer"))


async def artifact_update(append: bool, artifact: dict[str, Any]) -> str:
    """Write."""
    return "Written."


plain = build([artifact_update]).compile(checkpointer=InMemorySaver())


async def alone(order: Order) -> None:
    """Consume the stream with the framework alone."""
    given = {"messages": [HumanMessage(str(order))]}
    config: Any = {"configurable": {"thread_id": str(id(given))}}
    async for _ in plain.astream(given, config, stream_mode=["messages", "updates"], version="v2", durability="sync"):
        pass
