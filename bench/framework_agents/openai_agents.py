"""The agent in the OpenAI Agents SDK. Its scripted model shows an answer at once, so it pauses before each."""

from __future__ import annotations

import json
from typing import Any

from agents import Agent, function_tool
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from a2a_canvas import Turn
from a2a_canvas.frameworks import openai_agent
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from bench.framework_agents import ledger


@function_tool
async def note(task: str, number: int) -> str:
    """Take a note."""
    return await ledger.note(task, number)


async def answer(call: ModelCall) -> list[Any]:
    """The model."""
    items: list[Any] = list(call.input)
    task = next(item["content"][0]["text"] for item in items if item.get("role") == "user")
    number = sum(item.get("type") == "function_call_output" and item["call_id"].startswith("n") for item in items)
    ledger.enter(task, 2 * number)
    for _ in range(6):
        await ledger.pause()
    if number == ledger.ROUNDS:
        return [assistant_message(ledger.CLOSING)]
    return [
        assistant_message("".join(ledger.words(number))),
        function_call("artifact_update", json.loads(ledger.update(number)), call_id=f"u{number}"),
        function_call("note", {"task": task, "number": number}, call_id=f"n{number}"),
    ]


async def _run(turn: Turn) -> None:
    model = ScriptedModel([ModelStep.respond(answer) for _ in range(ledger.ROUNDS + 1)])  # it counts its steps
    await openai_agent(Agent(name="notes", model=model, tools=[note])).run(turn)


agent = AgentFunction("notes", _run)
