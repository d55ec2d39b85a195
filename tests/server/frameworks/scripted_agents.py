"""Agents of each framework whose model follows a script: what holds for all adapters is tested with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

from agents import Agent as OpenAIAgent
from agents import function_tool
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.genai import types
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import tool as langchain_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Send
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.frameworks.google_adk import adk_agent
from a2a_canvas.server.frameworks.langgraph import canvas_tools, langgraph_agent
from a2a_canvas.server.frameworks.openai_agents import openai_agent
from a2a_canvas.server.frameworks.pydantic_ai import pydantic_ai_agent
from tests.server.agent.loops.agent_life import AgentLife

TEXT_PIECE, INPUT_PIECE = 5, 9
"""Characters of a piece that a model streams, of a text and of a call's input."""


class Call(NamedTuple):
    """A call that the model makes."""

    id: str
    name: str
    given: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """An answer of the model."""

    text: str = ""
    calls: Sequence[Call] = ()
    thinking: str = ""


@dataclass(frozen=True)
class Request:
    """What the model reads.

    Attributes:
        results: of the calls of its last answer, by their ids.
        instructions, tools: the system prompt, and the names of the tools.
    """

    results: Mapping[str, str]
    instructions: str = ""
    tools: Sequence[str] = ()


Script = Callable[[Request], Answer]


class OwnTool(NamedTuple):
    """A tool of the framework's agent; the user approves its calls if it `asks`."""

    function: Callable[..., Awaitable[str]]
    asks: bool = False


@dataclass(frozen=True)
class Framework:
    """A framework and its adapter.

    Attributes:
        make: the adapter's agent of a script and tools.
        count_recorded: how many answers of the model and how many calls of its own tool a crash has left recorded.
        cuts: there are more than so many places for a crash before the end.
        thinks: its model can stream thinking.
        starts_artifacts_first: calls that write artifacts stream, and others do not.
        asks_in_order: its questions are in the order of the calls.
        instructions: what its model reads of instructions in an edit, besides ours.
        rejection: what its model reads if the user answers "no".
    """

    make: Callable[..., AgentFunction]
    count_recorded: Callable[[AgentLife], tuple[int, int]]
    cuts: int
    thinks: bool = True
    starts_artifacts_first: bool = False
    asks_in_order: bool = True
    instructions: str = ""
    rejection: str = "The user did not approve this call, and answered: no"


async def run(agent: AgentFunction) -> AgentLife:
    """A task from its beginning to its end, or to a question."""
    life = AgentLife(agent)
    await life.run()
    life.check()
    return life


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def steps_of(life: AgentLife) -> list[str]:
    """The names of the recorded steps."""
    return [item.name for item in life.record.transcript if getattr(item, "kind", "") == "kept"]


def counter(*requests: str) -> Callable[[AgentLife], tuple[int, int]]:
    """Counts the steps of a framework whose requests to the model are steps of these names."""

    def count(life: AgentLife) -> tuple[int, int]:
        steps = steps_of(life)
        return sum(step in requests for step in steps), steps.count("#call s1")

    return count


# --------------------------------------------------------------------------------- pydantic-ai


def pydantic_reef(script: Script, tools: Sequence[OwnTool] = ()) -> AgentFunction:
    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        results = {part.tool_call_id: str(part.content) for part in last.parts if isinstance(part, ToolReturnPart)}
        answer = script(Request(results, info.instructions or "", [each.name for each in info.function_tools]))
        if answer.thinking:
            yield {0: DeltaThinkingPart(content=answer.thinking)}
        for piece in pieces(answer.text, TEXT_PIECE):
            yield piece
        for index, call in enumerate(answer.calls, 1):
            first, *rest = pieces(json.dumps(call.given), INPUT_PIECE)
            yield {index: DeltaToolCall(call.name, first, tool_call_id=call.id)}
            for piece in rest:
                yield {index: DeltaToolCall(json_args=piece)}

    own = FunctionToolset[None](id="reef")
    for each in tools:
        own.add_function(each.function, requires_approval=each.asks)
    return pydantic_ai_agent(PydanticAgent(FunctionModel(stream_function=model), name="reef", toolsets=[own]))


# --------------------------------------------------------------------------------- OpenAI Agents SDK


def openai_model(respond: Callable[[ModelCall], list[Any]]) -> ScriptedModel:
    """A model that answers by what it has read."""
    return ScriptedModel([ModelStep.respond(respond) for _ in range(200)])


def openai_reef(script: Script, tools: Sequence[OwnTool] = (), **options: Any) -> AgentFunction:
    def respond(call: ModelCall) -> list[Any]:
        outputs = [item for item in call.input if item.get("type") == "function_call_output"]
        results = {item["call_id"]: item["output"] for item in outputs}
        answer = script(Request(results, call.system_instructions or "", [each.name for each in call.tools]))
        text = [assistant_message(answer.text)] if answer.text else []
        return [*text, *(function_call(each.name, each.given, call_id=each.id) for each in answer.calls)]

    own = [function_tool(needs_approval=each.asks)(each.function) for each in tools]
    reef = OpenAIAgent(
        name="reef", instructions="You know tides.", model=openai_model(respond), tools=[*own], **options
    )
    return openai_agent(reef)


# --------------------------------------------------------------------------------- ADK


ADK_USAGE = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=5)


def adk_answer(
    *parts: types.Part, partial: bool = False, usage: types.GenerateContentResponseUsageMetadata | None = None
) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[*parts]), partial=partial, usage_metadata=usage)


def adk_call(name: str, given: Mapping[str, Any], call_id: str) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=dict(given)))


def adk_results(request: LlmRequest) -> dict[str, str]:
    """What the model reads of calls since the user's last message, by id."""
    found: dict[str, str] = {}
    for content in request.contents:
        for part in content.parts or ():
            if part.text and content.role == "user":
                found = {}
            if response := part.function_response:
                told = response.response or {}
                found[response.id or ""] = str(told.get("result", told.get("error")))
    return found


class AdkModel(BaseLlm):
    """A model that answers by what it has read."""

    model: str = "fake"
    respond: Callable[[LlmRequest], Sequence[LlmResponse]]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        for response in self.respond(llm_request):
            await asyncio.sleep(0)
            yield response


def adk_input(call: Call) -> Iterator[LlmResponse]:
    """The arguments of a call in pieces, as Gemini streams them."""
    leaves = [*adk_leaves("$", call.given)]
    for number, (path, value) in enumerate(leaves):
        texts = ([*pieces(value, INPUT_PIECE)] or [""]) if isinstance(value, str) else [value]
        for at, piece in enumerate(texts):
            kind = "bool_value" if isinstance(piece, bool) else "string_value"
            arg = types.PartialArg(json_path=path, will_continue=at + 1 < len(texts), **{kind: piece})
            more = number + 1 < len(leaves) or at + 1 < len(texts)
            name = call.name if number == at == 0 else None
            made = types.FunctionCall(id=call.id, name=name, partial_args=[arg], will_continue=more)
            yield adk_answer(types.Part(function_call=made), partial=True)


def adk_leaves(path: str, value: object) -> Iterator[tuple[str, str | bool]]:
    match value:
        case dict():
            for key, inner in value.items():
                yield from adk_leaves(f"{path}.{key}", inner)
        case list():
            for at, inner in enumerate(value):
                yield from adk_leaves(f"{path}[{at}]", inner)
        case str() | bool():
            yield path, value
        case _:
            raise TypeError(f"{path} is neither a text nor true or false")


def adk_reef(script: Script, tools: Sequence[OwnTool] = ()) -> AgentFunction:
    def respond(request: LlmRequest) -> list[LlmResponse]:
        system = str(request.config.system_instruction or "")
        answer = script(Request(adk_results(request), system, [*request.tools_dict]))
        thought = [types.Part(text=answer.thinking, thought=True)] if answer.thinking else []
        text = [types.Part(text=answer.text)] if answer.text else []
        streamed = [each for each in answer.calls if each.name == "artifact_update"]
        calls = [*streamed, *(each for each in answer.calls if each not in streamed)]
        return [
            *(adk_answer(part, partial=True) for part in thought),
            *(adk_answer(types.Part(text=piece), partial=True) for piece in pieces(answer.text, TEXT_PIECE)),
            *(partial for each in streamed for partial in adk_input(each)),
            adk_answer(*thought, *text, *(adk_call(each.name, each.given, each.id) for each in calls), usage=ADK_USAGE),
        ]

    def note(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, tool_response: Any) -> None:
        tool_context.state[tool.name] = args

    own = [FunctionTool(each.function, require_confirmation=each.asks) for each in tools]
    model = AdkModel(respond=respond)
    return adk_agent(
        LlmAgent(name="reef", instruction="You know tides.", model=model, tools=[*own], after_tool_callback=note)
    )


# --------------------------------------------------------------------------------- LangGraph


def graph_say(text: str) -> list[AIMessageChunk]:
    return [AIMessageChunk(piece) for piece in pieces(text, TEXT_PIECE)]


def graph_call(index: int, call: Call) -> list[AIMessageChunk]:
    return [
        AIMessageChunk(
            "",
            tool_call_chunks=[
                {
                    "index": index,
                    "id": None if number else call.id,
                    "name": None if number else call.name,
                    "args": piece,
                    "type": "tool_call_chunk",
                }
            ],
        )
        for number, piece in enumerate(pieces(json.dumps(call.given), INPUT_PIECE))
    ]


class GraphModel(BaseChatModel):
    """A model that answers by what it has read."""

    answer: Any

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options) -> ChatResult:
        raise NotImplementedError

    async def _astream(self, messages, stop=None, run_manager=None, **options) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self.answer(messages):
            await asyncio.sleep(0)
            yield ChatGenerationChunk(message=chunk)


def graph_results(messages: Sequence[BaseMessage]) -> dict[str, str]:
    """What the model reads of the calls of its last answer, by id."""
    last = [*takewhile(lambda message: isinstance(message, ToolMessage), reversed(messages))]
    return {message.tool_call_id: str(message.content) for message in reversed(last)}


def graph_reef(script: Script, tools: Sequence[OwnTool] = (), *, split: bool = False) -> AgentFunction:
    """A graph of a node for the model and one for its calls; if `split`, the latter runs once for each call.

    Only then are the folder's tools called: `canvas_tools` has them while the graph runs.
    """
    own = [*(langchain_tool(each.function) for each in tools), *canvas_tools()]

    def respond(messages: list[BaseMessage]) -> list[AIMessageChunk]:
        answer = script(Request(graph_results(messages), tools=[each.name for each in own]))
        thought = [{"type": "reasoning", "reasoning": answer.thinking}]
        return [
            *([AIMessageChunk(thought)] if answer.thinking else ()),
            *graph_say(answer.text),
            *(chunk for index, each in enumerate(answer.calls) for chunk in graph_call(index, each)),
        ]

    model = GraphModel(answer=respond).bind_tools(own)

    async def agent(state: MessagesState):
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def run_tools(state: MessagesState):
        return await ToolNode(canvas_tools()).ainvoke(state)

    builder = StateGraph(MessagesState).add_node("agent", agent)
    builder.add_node("tools", run_tools if split else ToolNode(own))
    builder.add_edge(START, "agent").add_edge("tools", "agent")
    builder.add_conditional_edges("agent", each_call if split else tools_condition)
    return langgraph_agent(builder.compile(name="reef"))


def each_call(state: MessagesState) -> list[Send]:
    """A run of the node for each call, so that all that ask do so at once."""
    calls = state["messages"][-1].tool_calls
    return [Send("tools", {"messages": [AIMessage("", tool_calls=[each])]}) for each in calls]


def ended_nodes(life: AgentLife) -> int:
    """How many runs of nodes are recorded."""
    return sum(name.startswith("#checkpoint ") and "graph-" not in name for name in steps_of(life))


def count_nodes(life: AgentLife) -> tuple[int, int]:
    """The nodes of `graph_reef` run in turns: the model's, the calls', the model's."""
    nodes = ended_nodes(life)
    return (nodes > 0) + (nodes > 2), int(nodes > 1)


PYDANTIC_AI = Framework(pydantic_reef, counter("reef__model.request_stream", "reef__model.request_stream#2"), cuts=20)
OPENAI = Framework(
    openai_reef, counter("reef model", "reef model#2"), cuts=4, thinks=False, instructions="You know tides."
)
ADK = Framework(
    adk_reef,
    counter("reef model", "reef model#2"),
    cuts=10,
    starts_artifacts_first=True,
    asks_in_order=False,
    instructions='You know tides.\n\nYou are an agent. Your internal name is "reef".',
    rejection="This tool call is rejected.",
)
LANGGRAPH = Framework(graph_reef, count_nodes, cuts=20)
