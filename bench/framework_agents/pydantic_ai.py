"""The agent in pydantic-ai."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from a2a_canvas.frameworks import pydantic_ai_agent
from bench.framework_agents import ledger

tools: FunctionToolset[None] = FunctionToolset(id="notes")


@tools.tool_plain
async def note(task: str, number: int) -> str:
    """Take a note."""
    return await ledger.note(task, number)


async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
    """The model."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    task = next(str(part.content[0]) for part in parts if isinstance(part, UserPromptPart))
    number = sum(isinstance(part, ToolReturnPart) and part.tool_name == "note" for part in parts)
    ledger.enter(task, 2 * number)
    if number == ledger.ROUNDS:
        yield ledger.CLOSING
        return
    for word in ledger.words(number):
        await ledger.pause()
        yield word
    for index, piece in enumerate(ledger.pieces(ledger.update(number))):
        await ledger.pause()
        name, call_id = ("artifact_update", f"u{number}") if index == 0 else (None, None)
        yield {1: DeltaToolCall(name, piece, tool_call_id=call_id)}
    yield {2: DeltaToolCall("note", f'{{"task": "{task}", "number": {number}}}', tool_call_id=f"n{number}")}


agent = pydantic_ai_agent(Agent(FunctionModel(stream_function=answer), name="notes", toolsets=[tools]))
