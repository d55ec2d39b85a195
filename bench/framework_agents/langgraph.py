"""The agent in LangGraph."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from a2a_canvas.frameworks import canvas_tools, langgraph_agent
from bench.framework_agents import ledger


class Model(BaseChatModel):
    """The model."""

    _llm_type = "ledger"

    def _generate(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        task = next(str(each.content) for each in messages if isinstance(each, HumanMessage))
        number = sum(isinstance(each, ToolMessage) and each.name == "note" for each in messages)
        ledger.enter(task, 2 * number)
        if number == ledger.ROUNDS:
            yield ChatGenerationChunk(message=AIMessageChunk(content=ledger.CLOSING))
            return
        for word in ledger.words(number):
            await ledger.pause()
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        for index, piece in enumerate(ledger.pieces(ledger.update(number))):
            await ledger.pause()
            yield _call(0, f"u{number}", None if index else "artifact_update", piece)
        yield _call(1, f"n{number}", "note", f'{{"task": "{task}", "round_number": {number}}}')


def _call(index: int, call_id: str, name: str | None, piece: str) -> ChatGenerationChunk:
    call: Any = {"index": index, "id": call_id, "name": name, "args": piece, "type": "tool_call_chunk"}
    return ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))


async def note(task: str, round_number: int) -> str:
    """Take a note."""
    return await ledger.note(task, round_number)


model = Model()


async def think(state: MessagesState) -> dict[str, Any]:
    """Ask the model."""
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node("think", think).add_node("tools", ToolNode([note, *canvas_tools()]))
graph.add_edge(START, "think").add_conditional_edges("think", tools_condition).add_edge("tools", "think")
agent = langgraph_agent(graph.compile(name="notes"))
