"""A graph of LangGraph that writes notes about tides.

.venv/bin/pip install 'a2a-canvas[langgraph]'
.venv/bin/a2a-canvas serve examples/langgraph
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from a2a_canvas.frameworks import canvas_tools, langgraph_agent


def high_water(port: str) -> str:
    """The height of high water in a port."""
    return {"Brest": "5.9 m", "Cuxhaven": "3.3 m"}.get(port, "unknown")


def answer(last: BaseMessage) -> tuple[str, str, str]:
    """A text and a call in place of a model's: high water, the note, that it is ready. Passages become upper case."""
    if passage := re.search(r"<selection-\d+>(.*)</selection", str(last.content), re.DOTALL):
        return passage[1].upper(), "", ""
    if not isinstance(last, ToolMessage):
        return "I look it up.", "high_water", '{"port": "Brest"}'
    if last.name != "high_water":
        return "The note is ready.", "", ""
    text = f"# Tides\n\nHigh water in Brest: {last.content}.\nLow water: six hours later.\n"
    note = {"artifact_id": "tides", "name": "tides.md", "parts": [{"kind": "text", "text": text}]}
    return "", "artifact_update", json.dumps({"append": False, "artifact": note})


class Offline(SimpleChatModel):
    _llm_type = _call = "offline"  # type: ignore[assignment]

    async def _astream(self, messages: list[BaseMessage], *args: Any, **options: Any) -> AsyncIterator[Any]:
        text, name, call = answer(messages[-1])
        yield ChatGenerationChunk(message=AIMessageChunk(content=text))
        for at in range(0, len(call), 5):
            piece: Any = {"index": 0, "id": f"{len(messages)}", "name": None if at else name, "args": call[at : at + 5]}
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[piece]))
            await asyncio.sleep(0.03)  # as slowly as a model


model: Any = Offline()
tools: list[Any] = [high_water, *canvas_tools()]
if "ANTHROPIC_API_KEY" in os.environ:
    from langchain_anthropic import ChatAnthropic  # type: ignore[import-not-found]

    model = ChatAnthropic(model="claude-opus-5-5").bind_tools(tools)


async def think(state: MessagesState) -> dict[str, Any]:
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node("think", think).add_node("tools", ToolNode(tools))
graph.add_edge(START, "think").add_conditional_edges("think", tools_condition).add_edge("tools", "think")
agent = langgraph_agent(graph.compile(name="reef"))
