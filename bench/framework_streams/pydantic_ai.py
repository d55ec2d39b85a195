"""The stream in pydantic-ai."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from a2a_canvas.frameworks import pydantic_ai_agent
from bench.pace import Order
from bench.paced_server import CLOSING, OPENING


async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
    """The model."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    if any(isinstance(part, ToolReturnPart) for part in parts):
        yield "Done."
        return
    [prompt] = [part.content for part in parts if isinstance(part, UserPromptPart)]
    yield {0: DeltaToolCall("artifact_update", OPENING, tool_call_id="u1")}
    async for piece in Order.read(prompt if isinstance(prompt, str) else str(prompt[0])).pieces():
        yield {0: DeltaToolCall(json_args=piece)}
    yield {0: DeltaToolCall(json_args=CLOSING)}


model = FunctionModel(stream_function=answer)
agent = pydantic_ai_agent(Agent(model, name="writer"))

tools: FunctionToolset[None] = FunctionToolset(id="own")


@tools.tool_plain
async def artifact_update(append: bool, artifact: dict[str, Any]) -> str:
    """Write."""
    return "Written."


async def alone(order: Order) -> None:
    """Consume the stream with the framework alone."""
    async with Agent(model, name="writer", toolsets=[tools]).run_stream_events(str(order)) as events:
        async for _ in events:
            pass
