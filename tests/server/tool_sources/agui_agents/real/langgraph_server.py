"""A graph of LangGraph behind ag-ui-langgraph, with a fake model. Run it with the port to listen on."""

import sys
from typing import Annotated

import uvicorn
from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from fastapi import FastAPI
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from typing_extensions import TypedDict


class FakeModel(BaseChatModel):
    """Answers by what it is sent, not by a counter."""

    @property
    def _llm_type(self) -> str:
        return "fake"

    def _generate(self, messages, stop=None, run_manager=None, **more):
        raise NotImplementedError

    async def _agenerate(self, messages, stop=None, run_manager=None, **more):
        whole = None
        async for chunk in self._astream(messages):
            whole = chunk.message if whole is None else whole + chunk.message
        return ChatResult(generations=[ChatGeneration(message=AIMessage(**whole.model_dump(exclude={"type"})))])

    async def _astream(self, messages, stop=None, run_manager=None, **more):
        for piece in pieces(messages):
            message = AIMessageChunk(piece) if isinstance(piece, str) else AIMessageChunk("", tool_call_chunks=[piece])
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                await run_manager.on_llm_new_token(message.text, chunk=chunk)
            yield chunk


def pieces(messages):
    prompts = [message.text for message in messages if isinstance(message, HumanMessage)]
    if isinstance(messages[-1], ToolMessage):
        return [f"{messages[-1].name}: ", messages[-1].text]
    match prompts[-1]:
        case "tide":
            call = {"name": "tide", "args": "", "id": f"call-{len(messages)}", "index": 0}
            rest = [{"name": None, "args": piece, "id": None, "index": 0} for piece in ('{"port": ', '"Brest"}')]
            return [call, *rest]
        case "delete":
            return [{"name": "delete", "args": '{"name": "reef"}', "id": f"call-{len(messages)}", "index": 0}]
        case "write":
            return ["# Tide pools\n", *(f"Line {number}.\n" for number in range(20))]
        case _:
            return [f"You said {', '.join(prompts)}."]


class State(TypedDict):
    messages: Annotated[list, add_messages]


async def think(state: State):
    return {"messages": [await FakeModel().ainvoke(state["messages"])]}


async def act(state: State):
    [call] = state["messages"][-1].tool_calls
    if call["name"] == "tide":
        content = f"high in {call['args']['port']}"
    else:
        approved = interrupt("Delete reef?")
        content = "reef is gone" if approved == "yes" else "kept"
    return {"messages": [ToolMessage(content, name=call["name"], tool_call_id=call["id"])]}


graph = StateGraph(State)
graph.add_node("think", think)
graph.add_node("act", act)
graph.add_edge(START, "think")
graph.add_conditional_edges("think", lambda state: "act" if state["messages"][-1].tool_calls else END)
graph.add_edge("act", "think")

app = FastAPI()
agent = LangGraphAgent(name="tides", graph=graph.compile(checkpointer=InMemorySaver()))
add_langgraph_fastapi_endpoint(app, agent, "/")
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
