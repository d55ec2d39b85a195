"""The stream in the OpenAI Agents SDK."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents import Agent, FunctionTool, RunConfig, Runner
from agents.testing import ModelStep, ScriptedModel, assistant_message
from openai.types import responses as r

from a2a_canvas import Turn
from a2a_canvas.frameworks import openai_agent
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from bench.pace import PIECE, Order
from bench.paced_server import CLOSING, OPENING


def events(order: Order) -> Sequence[Any]:
    """The stream of one call."""
    pieces = [OPENING, *[PIECE] * order.count, CLOSING]
    call = r.ResponseFunctionToolCall(
        arguments="", call_id="u1", name="artifact_update", type="function_call", id="item_1"
    )
    whole = call.model_copy(update={"arguments": "".join(pieces)})
    response = r.Response(
        id="response_1",
        created_at=0,
        model="writer",
        object="response",
        output=[whole],
        parallel_tool_calls=True,
        tool_choice="auto",
        tools=[],
    )
    deltas = [
        r.ResponseFunctionCallArgumentsDeltaEvent(
            delta=piece,
            item_id="item_1",
            output_index=0,
            sequence_number=number,
            type="response.function_call_arguments.delta",
        )
        for number, piece in enumerate(pieces, start=1)
    ]
    number = len(deltas) + 1
    return [
        r.ResponseOutputItemAddedEvent(item=call, output_index=0, sequence_number=0, type="response.output_item.added"),
        *deltas,
        r.ResponseOutputItemDoneEvent(
            item=whole, output_index=0, sequence_number=number, type="response.output_item.done"
        ),
        r.ResponseCompletedEvent(response=response, sequence_number=number + 1, type="response.completed"),
    ]


def model(order: Order) -> ScriptedModel:
    """The model, for one run."""
    return ScriptedModel([ModelStep.stream(events(order)), [assistant_message("Done.")]])


async def _run(turn: Turn) -> None:
    await openai_agent(Agent(name="writer", model=model(Order.read(turn.text)))).run(turn)


agent = AgentFunction("writer", _run)


async def _write(context: Any, given: str) -> str:
    json.loads(given)
    return "Written."


TOOL = FunctionTool("artifact_update", "Write.", {"type": "object"}, _write, strict_json_schema=False)


async def alone(order: Order) -> None:
    """Consume the stream with the framework alone."""
    writer = Agent(name="writer", model=model(order), tools=[TOOL])
    async for _ in Runner.run_streamed(writer, str(order), run_config=RunConfig(tracing_disabled=True)).stream_events():
        pass
