"""An agent of pydantic-ai behind the canvas: what this framework alone has."""

from collections.abc import AsyncIterator

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, FunctionToolset, ModelRetry, RunContext
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from a2a_canvas.server.agent.events import State, ToolFailed
from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError
from a2a_canvas.server.frameworks.pydantic_ai import pydantic_ai_agent
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.frameworks.scripted_agents import run


def last_results(messages: list[ModelMessage]) -> dict[str, str]:
    """What the model reads of the calls of its last answer, by tool."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    return {part.tool_name: str(part.content) for part in last.parts if isinstance(part, ToolReturnPart)}


async def test_a_tool_may_ask_for_approval_while_it_runs() -> None:
    tools = FunctionToolset(id="reef")
    ran = []

    @tools.tool
    async def delete(context: RunContext, name: str) -> str:
        """Delete."""
        if not context.tool_call_approved:
            raise ApprovalRequired
        ran.append(name)
        return f"{name} is gone"

    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
        if results := last_results(messages):
            yield f"Now {results['delete']}; {results['ask_user']}."
        else:
            yield {0: DeltaToolCall("delete", '{"name": "all"}', tool_call_id="d1")}
            yield {1: DeltaToolCall("ask_user", '{"question": "Sure?"}', tool_call_id="q1")}

    life = AgentLife(pydantic_ai_agent(Agent(FunctionModel(stream_function=model), name="reef", toolsets=[tools])))
    await life.run()
    assert (life.record.state, ran) == (State.INPUT_REQUIRED, [])
    assert life.reply == 'May I run delete(name="all")? Answer yes or no.\nSure?'
    life.answer("yes")
    await life.run()
    assert (life.record.state, life.reply, ran) == (State.COMPLETED, "Now all is gone; yes.", ["all"])


async def test_a_call_that_the_framework_has_retried_is_a_failed_call() -> None:
    tools = FunctionToolset(id="reef")

    @tools.tool_plain
    async def search(query: str) -> str:
        """Search."""
        if query == "":
            raise ModelRetry("Say what to search.")
        return "hits"

    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
        if "hits" in last_results(messages).values():
            yield "hits"
        else:
            query = '{"query": ""}' if len(messages) == 1 else '{"query": "tides"}'
            yield {0: DeltaToolCall("search", query, tool_call_id=f"s{len(messages)}")}

    life = await run(pydantic_ai_agent(Agent(FunctionModel(stream_function=model), name="reef", toolsets=[tools])))
    assert life.said == ["hits"]
    assert [event.error for event in life.told.of(ToolFailed)] == ["Say what to search."]


async def test_structured_output_is_the_reply_as_json() -> None:
    class Tide(BaseModel):
        high: float

    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
        yield {0: DeltaToolCall(info.output_tools[0].name, '{"high": 5.9}', tool_call_id="o1")}

    life = await run(pydantic_ai_agent(Agent(FunctionModel(stream_function=model), name="reef", output_type=Tide)))
    assert life.said == ['{"high": 5.9}']


def test_a_toolset_without_an_id_is_an_error_before_the_server_starts() -> None:
    with pytest.raises(AgentDefinitionError, match=r"Write FunctionToolset\(…, id='tools'\)"):
        pydantic_ai_agent(Agent("test", toolsets=[FunctionToolset().prefixed("my")]))
