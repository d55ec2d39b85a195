"""An agent of the OpenAI Agents SDK behind the canvas: what this framework alone has."""

from agents import Agent
from agents.testing import assistant_message, function_call
from openai.types.responses import ResponseOutputMessage, ResponseOutputRefusal
from pydantic import BaseModel

from a2a_canvas.server.agent.events import State, ToolUseStarted
from a2a_canvas.server.frameworks.openai_agents import openai_agent
from tests.server.agent.edit.operation_harness import TEXT
from tests.server.agent.loops.edit_harness import edited
from tests.server.frameworks.scripted_agents import Answer, openai_model, openai_reef, run


async def test_a_handoff_is_progress_and_its_agent_goes_on() -> None:
    expert = Agent(name="expert", model=openai_model(lambda call: [assistant_message("High at eight.")]))
    front = Agent(
        name="front",
        model=openai_model(lambda call: [function_call("transfer_to_expert", {}, call_id="h1")]),
        handoffs=[expert],
    )
    life = await run(openai_agent(front))
    assert life.said == ["High at eight."]
    assert life.told.of(ToolUseStarted) == []


async def test_structured_output_is_the_reply() -> None:
    class Tide(BaseModel):
        high: float

    agent = Agent(name="reef", model=openai_model(lambda call: [assistant_message('{"high": 5.9}')]), output_type=Tide)
    assert (await run(openai_agent(agent))).said == ['{"high": 5.9}']


async def test_a_refusal_of_the_model_rejects_the_task() -> None:
    refusal = ResponseOutputRefusal(type="refusal", refusal="I cannot say.")
    message = ResponseOutputMessage(id="m1", type="message", role="assistant", status="completed", content=[refusal])
    life = await run(openai_agent(Agent(name="reef", model=openai_model(lambda call: [message]))))
    assert (life.record.state, life.said) == (State.REJECTED, ["I cannot say."])


async def test_a_passage_is_text_though_the_agent_has_structured_output() -> None:
    class Tide(BaseModel):
        high: float

    reef = openai_reef(lambda request: Answer("TWO."), output_type=Tide)
    assert (await (await edited(reef.editor)).doc()).text == TEXT.replace("Two.", "TWO.")
