"""An agent of ADK behind the canvas: what this framework alone has."""

import json

import pytest
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.models import LlmRequest, LlmResponse
from google.genai import types

from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    State,
    ToolInputAdded,
    ToolUseStarted,
)
from a2a_canvas.server.frameworks.google_adk import adk_agent
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.frameworks.scripted_agents import (
    AdkModel,
    Answer,
    Call,
    Request,
    adk_answer,
    adk_call,
    adk_reef,
    adk_results,
    run,
)


async def test_an_artifact_grows_with_the_pieces_of_its_arguments() -> None:
    artifact = {"artifact_id": "report", "name": "report.md", "parts": [{"kind": "text", "text": "# Tides\nHigh."}]}
    update = {"append": False, "artifact": artifact}

    def script(request: Request) -> Answer:
        return Answer("Written.") if request.results else Answer(calls=[Call("u1", "artifact_update", update)])

    life = await run(adk_reef(script))
    kinds = [type(event) for event in life.told.events]
    assert kinds.index(ArtifactChanged) < len(kinds) - kinds[::-1].index(ToolInputAdded) - 1
    written = "".join(event.partial_json for event in life.told.of(ToolInputAdded) if event.tool_use_id == "u1")
    assert json.loads(written) == update


async def test_a_sub_agent_takes_over() -> None:
    expert = LlmAgent(
        name="expert",
        description="Knows tides.",
        model=AdkModel(respond=lambda request: [adk_answer(types.Part(text="High at eight."))]),
    )
    front = AdkModel(
        respond=lambda request: [adk_answer(adk_call("transfer_to_agent", {"agent_name": "expert"}, "t1"))]
    )
    life = await run(adk_agent(LlmAgent(name="front", model=front, sub_agents=[expert])))
    assert life.said == ["High at eight."]
    assert life.told.of(ToolUseStarted) == []


async def test_thoughts_and_what_tools_read_count_as_tokens() -> None:
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=100,
        cached_content_token_count=10,
        tool_use_prompt_token_count=5,
        candidates_token_count=20,
        thoughts_token_count=7,
    )
    said = adk_answer(types.Part(text="High."), usage=usage)
    life = await run(adk_agent(LlmAgent(name="reef", model=AdkModel(respond=lambda request: [said]))))
    assert life.spent == (105, 27)


def writer(name: str) -> LlmAgent:
    """An agent that writes a document of its name, a piece at a time."""

    def respond(request: LlmRequest) -> list[LlmResponse]:
        if adk_results(request):
            return [adk_answer(types.Part(text=f"{name} is done."))]
        artifact = {"artifact_id": name, "name": f"{name}.md", "parts": [{"kind": "text", "text": f"By {name}."}]}
        made = adk_call("artifact_update", {"append": False, "artifact": artifact}, f"{name}-u")
        partials = [adk_answer(types.Part(text=piece), partial=True) for piece in (f"{name} ", "writes.")]
        return [*partials, adk_answer(types.Part(text=f"{name} writes."), made)]

    return LlmAgent(name=name, model=AdkModel(respond=respond))


@pytest.mark.filterwarnings("ignore:ParallelAgent is deprecated:DeprecationWarning")
async def test_agents_that_work_at_the_same_time_each_write_their_document_wherever_a_crash_cuts_them_off() -> None:
    def agent():
        return adk_agent(ParallelAgent(name="reefs", sub_agents=[writer("north"), writer("south")]))

    whole = AgentLife(agent())
    cuts = await whole.run()
    for cut in [None, *cuts]:
        life = AgentLife(agent(), cut.documents if cut else None)
        life.told.events = whole.told.events[: cut.told] if cut else []
        if life.record.state.terminal:
            continue
        await life.run()
        life.check()
        assert life.record.state is State.COMPLETED
        assert life.texts() == {"north": "By north.", "south": "By south."}
        said = " ".join(life.said)
        assert {
            text: said.count(text) for name in life.texts() for text in (f"{name} writes.", f"{name} is done.")
        } == (dict.fromkeys(("north writes.", "north is done.", "south writes.", "south is done."), 1))
