"""An agent of the OpenAI Agents SDK behind the canvas: what clients see, wherever a crash cuts it off."""

from dataclasses import dataclass, field

import pytest
from agents import Agent, function_tool
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseOutputMessage, ResponseOutputRefusal
from pydantic import BaseModel

from a2a_canvas.server.agent.edit.edit_prompt import EDIT_SYSTEM
from a2a_canvas.server.agent.events import State, ToolFailed, ToolSucceeded, ToolUseStarted
from a2a_canvas.server.frameworks.canvas_tools import NO_QUESTIONS
from a2a_canvas.server.frameworks.openai_agents import openai_agent
from tests.server.agent.edit.operation_harness import TEXT
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.loops.edit_harness import edited
from tests.server.frameworks.folder_tools import CHECKS

REPORT = {"artifact_id": "report", "name": "report.md", "parts": [{"kind": "text", "text": "# Tides\nHigh and low."}]}
UPDATE = {"append": False, "artifact": REPORT}


def results(call: ModelCall) -> dict[str, str]:
    """What the model reads of calls, by id."""
    return {item["call_id"]: item["output"] for item in call.input if item.get("type") == "function_call_output"}


def model(answer) -> ScriptedModel:
    """A model that answers by what it has read."""
    return ScriptedModel([ModelStep.respond(answer) for _ in range(200)])


def tides(call: ModelCall):
    read = results(call)
    if "u1" in read:
        return [assistant_message(f"Written, with {read['s1']}.")]
    return [
        assistant_message("I look."),
        function_call("search", {"query": "tides"}, call_id="s1"),
        function_call("artifact_update", UPDATE, call_id="u1"),
    ]


@dataclass
class Reef:
    """An agent with one tool, which counts its calls and the requests to its model."""

    requests: list[int] = field(default_factory=list)
    searches: list[str] = field(default_factory=list)

    def agent(self):
        @function_tool
        async def search(query: str) -> str:
            """Search."""
            self.searches.append(query)
            return f"hits for {query}"

        def counted(call: ModelCall):
            self.requests.append(len(call.input))
            return tides(call)

        return openai_agent(Agent(name="reef", instructions="You know tides.", model=model(counted), tools=[search]))


async def run(agent) -> AgentLife:
    life = AgentLife(agent)
    await life.run()
    life.check()
    return life


async def test_it_writes_and_says_what_its_model_streams() -> None:
    reef = Reef()
    life = await run(reef.agent())
    assert (life.record.state, life.said) == (State.COMPLETED, ["I look.", "Written, with hits for tides."])
    assert life.texts() == {"report": "# Tides\nHigh and low."}
    assert [event.name for event in life.told.of(ToolUseStarted)] == ["search", "artifact_update"]
    assert sorted(event.content for event in life.told.of(ToolSucceeded)) == [
        "Written; the draft stays open.",
        "hits for tides",
    ]


async def test_wherever_a_crash_cuts_it_off_no_recorded_request_or_call_is_made_again() -> None:
    first = AgentLife(Reef().agent())
    cuts = await first.run()
    resumed = 0
    for cut in cuts:
        reef = Reef()
        life = AgentLife(reef.agent(), cut.documents)
        life.told.events = first.told.events[: cut.told]
        if life.record.state.terminal:
            continue
        kept = {item.name for item in life.record.transcript if getattr(item, "kind", "") == "kept"}
        resumed += 1
        await life.run()
        life.check()
        assert (life.texts(), life.said) == (first.texts(), first.said)
        assert len(reef.requests) == 2 - len(kept & {"reef model", "reef model#2"})
        assert reef.searches == ([] if "#call s1" in kept else ["tides"])
    assert resumed > 4


async def test_the_user_approves_a_call_and_answers_a_question_in_one_message() -> None:
    ran = []

    @function_tool(needs_approval=True)
    async def delete(name: str) -> str:
        """Delete."""
        ran.append(name)
        return f"{name} is gone"

    def answer(call: ModelCall):
        if read := results(call):
            return [assistant_message(f"Now {read['d1']}; {read['q1']}.")]
        return [
            function_call("delete", {"name": "all"}, call_id="d1"),
            function_call("ask_user", {"question": "Sure?"}, call_id="q1"),
        ]

    for reply, ending, runs in (("yes", "Now all is gone; yes.", ["all"]), ("no", None, [])):
        ran.clear()
        life = AgentLife(openai_agent(Agent(name="reef", model=model(answer), tools=[delete])))
        await life.run()
        assert (life.record.state, ran) == (State.INPUT_REQUIRED, [])
        assert life.reply == 'May I run delete(name="all")? Answer yes or no.\nSure?'
        life.answer(reply)
        await life.run()
        assert (life.record.state, ran) == (State.COMPLETED, runs)
        assert life.reply == (ending or "Now The user did not approve this call, and answered: no; no.")
    assert [event.tool_use_id for event in life.told.of(ToolFailed)] == ["d1"]


async def test_a_handoff_is_progress_and_its_agent_goes_on() -> None:
    expert = Agent(name="expert", model=model(lambda call: [assistant_message("High at eight.")]))
    front = Agent(
        name="front",
        model=model(lambda call: [function_call("transfer_to_expert", {}, call_id="h1")]),
        handoffs=[expert],
    )
    life = await run(openai_agent(front))
    assert life.said == ["High at eight."]
    assert life.told.of(ToolUseStarted) == []


async def test_structured_output_is_the_reply() -> None:
    class Tide(BaseModel):
        high: float

    agent = Agent(name="reef", model=model(lambda call: [assistant_message('{"high": 5.9}')]), output_type=Tide)
    assert (await run(openai_agent(agent))).said == ['{"high": 5.9}']


async def test_a_refusal_of_the_model_rejects_the_task() -> None:
    refusal = ResponseOutputRefusal(type="refusal", refusal="I cannot say.")
    message = ResponseOutputMessage(id="m1", type="message", role="assistant", status="completed", content=[refusal])
    life = await run(openai_agent(Agent(name="reef", model=model(lambda call: [message]))))
    assert (life.record.state, life.said) == (State.REJECTED, ["I cannot say."])


async def test_a_passage_is_rewritten_by_the_agent_without_the_tools_that_write_documents() -> None:
    class Tide(BaseModel):
        high: float

    @function_tool
    async def search(query: str) -> str:
        """Search."""
        return f"2 = {query}"

    seen = []

    def rewrite(call: ModelCall):
        seen.append((call.system_instructions, [tool.name for tool in call.tools]))
        if read := results(call):
            return [assistant_message(f"TWO ({read['s1']}).")]
        return [assistant_message("I look."), function_call("search", {"query": "two"}, call_id="s1")]

    reef = Agent(name="reef", instructions="You know tides.", model=model(rewrite), tools=[search], output_type=Tide)
    done = await edited(openai_agent(reef).editor)
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO (2 = two).")
    assert seen == [(f"You know tides.\n\n{EDIT_SYSTEM}", ["search"])] * 2


async def test_an_edit_that_would_have_to_ask_says_so() -> None:
    @function_tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    reef = Agent(name="reef", model=model(lambda call: [function_call("pay", {}, call_id="p1")]), tools=[pay])
    done = await edited(openai_agent(reef).editor)
    assert (done.end.state, done.end.message.text) == (State.FAILED, NO_QUESTIONS)


def calling(calls):
    def answer(call: ModelCall):
        if read := results(call):
            return [assistant_message(" ".join(read.values()))]
        return [function_call(name, given, call_id=f"c{number}") for number, (name, given) in enumerate(calls)]

    return openai_agent(Agent(name="reef", model=model(answer)))


@pytest.mark.parametrize("check", CHECKS)
async def test_its_model_has_the_tools_of_the_folder(check) -> None:
    await check(calling)
