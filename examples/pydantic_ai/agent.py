"""An agent of pydantic-ai that writes notes about tides.

.venv/bin/pip install 'a2a-canvas[pydantic-ai]'
.venv/bin/a2a-canvas serve examples/pydantic_ai
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from a2a_canvas.frameworks import pydantic_ai_agent

HIGH_WATER = {"Brest": "5.9 m", "Cuxhaven": "3.3 m"}


async def offline(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """Answers in place of a model: looks high water up, writes the note, says so. Passages become upper case."""
    last = messages[-1].parts[-1]
    asked = str(last.content) if isinstance(last, UserPromptPart) else ""
    if passage := re.search(r"<selection-\d+>(.*)</selection", asked, re.DOTALL):
        yield passage[1].upper()
    elif not isinstance(last, ToolReturnPart):
        yield "I look it up. "
        yield {1: DeltaToolCall("high_water", json.dumps({"port": "Brest"}))}
    elif last.tool_name == "high_water":
        part = {
            "kind": "text",
            "text": f"# Tides\n\nHigh water in Brest: {last.content}.\nLow water: six hours later.\n",
        }
        note = json.dumps({"append": False, "artifact": {"artifact_id": "tides", "name": "tides.md", "parts": [part]}})
        for at in range(0, len(note), 5):
            yield {0: DeltaToolCall("artifact_update" if at == 0 else None, note[at : at + 5])}
            await asyncio.sleep(0.03)  # as slowly as a model
    else:
        yield "The note is ready."


reef = Agent(
    "anthropic:claude-opus-5-5" if "ANTHROPIC_API_KEY" in os.environ else FunctionModel(stream_function=offline),
    name="reef",
    instructions="You write short notes about tides. Look heights up with high_water.",
)


@reef.tool_plain
def high_water(port: str) -> str:
    """The height of high water in a port."""
    return HIGH_WATER.get(port, "unknown")


agent = pydantic_ai_agent(reef)
