"""An agent of the OpenAI Agents SDK that writes notes about tides.

.venv/bin/pip install 'a2a-canvas[openai-agents]'
.venv/bin/a2a-canvas serve examples/openai_agents
"""

import os
import re
from typing import Any

from agents import Agent, function_tool
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from a2a_canvas.frameworks import openai_agent

HIGH_WATER = {"Brest": "5.9 m", "Cuxhaven": "3.3 m"}


def offline(call: ModelCall) -> list[Any]:
    """Answers in place of a model: looks high water up, writes the note, says so. Passages become upper case."""
    model.enqueue(ModelStep.respond(offline))
    last: dict[str, Any] = call.input[-1]
    if passage := re.search(r"<selection-\d+>(.*)</selection", str(last.get("content", "")), re.DOTALL):
        return [assistant_message(passage[1].upper())]
    if last.get("type") != "function_call_output":
        return [assistant_message("I look it up."), function_call("high_water", {"port": "Brest"}, call_id="look")]
    if last["call_id"] == "look":
        text = f"# Tides\n\nHigh water in Brest: {last['output']}.\nLow water: six hours later.\n"
        note = {"artifact_id": "tides", "name": "tides.md", "parts": [{"kind": "text", "text": text}]}
        return [function_call("artifact_update", {"append": False, "artifact": note}, call_id="write")]
    return [assistant_message("The note is ready.")]


model = ScriptedModel([ModelStep.respond(offline)])


@function_tool
def high_water(port: str) -> str:
    """The height of high water in a port."""
    return HIGH_WATER.get(port, "unknown")


reef = Agent(
    name="reef",
    instructions="You write short notes about tides. Look heights up with high_water.",
    model=None if "OPENAI_API_KEY" in os.environ else model,  # None: the default of the SDK
    tools=[high_water],
)

agent = openai_agent(reef)
