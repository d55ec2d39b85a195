"""An agent of ADK behind the canvas: what clients see, and what is left wherever a crash cuts it off."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

import pytest
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from a2a_canvas.server.agent.edit.edit_prompt import EDIT_SYSTEM
from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    State,
    ThinkingAdded,
    ToolInputAdded,
    ToolSucceeded,
    ToolUseStarted,
)
from a2a_canvas.server.frameworks.google_adk import adk_agent
from tests.server.agent.edit.operation_harness import TEXT
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.loops.edit_harness import edited
from tests.server.frameworks.folder_tools import CHECKS

REPORT = {"artifact_id": "report", "name": "report.md", "parts": [{"kind": "text", "text": "# Tides\nHigh and low."}]}
UPDATE = {"append": False, "artifact": REPORT}


def results(request: LlmRequest) -> dict[str, object]:
    """What the model reads of calls since the user's last message, by tool."""
    found: dict[str, object] = {}
    for content in request.contents:
        for part in content.parts or ():
            if part.text and content.role == "user":
                found = {}
            if part.function_response:
                found[part.function_response.name] = (part.function_response.response or {}).get("result")
    return found


def answer(*parts: types.Part, partial: bool = False) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[*parts]), partial=partial)


def call(name: str, args: dict, call_id: str) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=args))


class Model(BaseLlm):
    """A model that answers by what it has read."""

    respond: Callable[[LlmRequest], list[LlmResponse]]

    async def generate_content_async(self, llm_request, stream=False) -> AsyncGenerator[LlmResponse, None]:
        for response in self.respond(llm_request):
            await asyncio.sleep(0)
            yield response


def partial_call(name: str | None, path: str, text: str, more: bool, call_more: bool = True) -> LlmResponse:
    """A piece of the arguments of `artifact_update`, as Gemini streams them."""
    arg = types.PartialArg(json_path=path, string_value=text, will_continue=more)
    made = types.FunctionCall(id="u1", name=name, partial_args=[arg], will_continue=call_more)
    return answer(types.Part(function_call=made), partial=True)


def tides(request: LlmRequest) -> list[LlmResponse]:
    read = results(request)
    if "artifact_update" in read:
        pieces = ["Written, ", f"{read['search']}."]
        partials = [answer(types.Part(text=piece), partial=True) for piece in pieces]
        return [*partials, answer(types.Part(text="".join(pieces)))]
    begun = types.FunctionCall(
        id="u1",
        name="artifact_update",
        partial_args=[types.PartialArg(json_path="$.append", bool_value=False)],
        will_continue=True,
    )
    return [
        answer(types.Part(text="Hm.", thought=True), partial=True),
        answer(types.Part(text="I "), partial=True),
        answer(types.Part(text="look."), partial=True),
        answer(types.Part(function_call=begun), partial=True),
        partial_call(None, "$.artifact.artifact_id", "report", False),
        partial_call(None, "$.artifact.name", "report.md", False),
        partial_call(None, "$.artifact.parts[0].kind", "text", False),
        partial_call(None, "$.artifact.parts[0].text", "# Tides\n", True),
        partial_call(None, "$.artifact.parts[0].text", "High ", True),
        partial_call(None, "$.artifact.parts[0].text", "and low.", False, call_more=False),
        answer(
            types.Part(text="Hm.", thought=True),
            types.Part(text="I look."),
            call("artifact_update", UPDATE, "u1"),
            call("search", {"query": "tides"}, "s1"),
        ),
    ]


@dataclass
class Reef:
    """An agent with one tool, which counts its calls and the requests to its model."""

    requests: list[int] = field(default_factory=list)
    searches: list[str] = field(default_factory=list)

    def agent(self):
        async def search(query: str, tool_context: ToolContext) -> str:
            """Search."""
            self.searches.append(query)
            tool_context.state["searched"] = query
            return f"hits for {query}"

        def counted(request: LlmRequest) -> list[LlmResponse]:
            self.requests.append(len(request.contents))
            return tides(request)

        return adk_agent(LlmAgent(name="reef", model=Model(model="fake", respond=counted), tools=[search]))


async def run(agent) -> AgentLife:
    life = AgentLife(agent)
    await life.run()
    life.check()
    return life


async def test_it_writes_and_says_what_its_model_streams() -> None:
    reef = Reef()
    life = await run(reef.agent())
    assert (life.record.state, life.said) == (State.COMPLETED, ["I look.", "Written, hits for tides."])
    assert life.texts() == {"report": "# Tides\nHigh and low."}
    assert [event.content for event in life.told.of(ThinkingAdded)] == ["Hm."]
    assert [event.name for event in life.told.of(ToolUseStarted)] == ["artifact_update", "search"]
    assert {event.content for event in life.told.of(ToolSucceeded)} == {
        "Written; the draft stays open.",
        "hits for tides",
    }


async def test_an_artifact_grows_with_the_pieces_of_its_arguments() -> None:
    life = await run(Reef().agent())
    kinds = [type(event) for event in life.told.events]
    assert kinds.index(ArtifactChanged) < len(kinds) - kinds[::-1].index(ToolInputAdded) - 1
    written = "".join(event.partial_json for event in life.told.of(ToolInputAdded) if event.tool_use_id == "u1")
    assert json.loads(written) == UPDATE


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
    assert resumed > 10


async def test_the_user_approves_a_call_and_answers_a_question() -> None:
    ran = []

    async def delete(name: str) -> str:
        """Delete."""
        ran.append(name)
        return f"{name} is gone"

    def respond(request: LlmRequest) -> list[LlmResponse]:
        read = results(request)
        if read.get("ask_user") and read.get("delete"):
            return [answer(types.Part(text=f"Now {read['delete']}; {read['ask_user']}."))]
        return [answer(call("delete", {"name": "all"}, "d1"), call("ask_user", {"question": "Sure?"}, "q1"))]

    tool = FunctionTool(delete, require_confirmation=True)
    life = AgentLife(adk_agent(LlmAgent(name="reef", model=Model(model="fake", respond=respond), tools=[tool])))
    await life.run()
    assert (life.record.state, ran) == (State.INPUT_REQUIRED, [])
    assert sorted(life.reply.splitlines()) == ['May I run delete(name="all")? Answer yes or no.', "Sure?"]
    life.answer("yes")
    await life.run()
    assert (life.record.state, life.reply, ran) == (State.COMPLETED, "Now all is gone; yes.", ["all"])


async def test_a_sub_agent_takes_over() -> None:
    expert = LlmAgent(
        name="expert",
        description="Knows tides.",
        model=Model(model="fake", respond=lambda request: [answer(types.Part(text="High at eight."))]),
    )
    front = Model(
        model="fake", respond=lambda request: [answer(call("transfer_to_agent", {"agent_name": "expert"}, "t1"))]
    )
    life = await run(adk_agent(LlmAgent(name="front", model=front, sub_agents=[expert])))
    assert life.said == ["High at eight."]
    assert life.told.of(ToolUseStarted) == []


async def test_it_writes_the_passage_of_an_edit() -> None:
    read: list[str] = []

    def respond(request: LlmRequest) -> list[LlmResponse]:
        read.append(str(request.config.system_instruction))
        return [answer(types.Part(text="TWO."), partial=True), answer(types.Part(text="TWO."))]

    done = await edited(adk_agent(LlmAgent(name="reef", model=Model(model="fake", respond=respond))).editor)
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO.")
    assert EDIT_SYSTEM in read[0]


async def test_thoughts_and_what_tools_read_count_as_tokens() -> None:
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=100,
        cached_content_token_count=10,
        tool_use_prompt_token_count=5,
        candidates_token_count=20,
        thoughts_token_count=7,
    )
    said = answer(types.Part(text="High.")).model_copy(update={"usage_metadata": usage})
    life = await run(adk_agent(LlmAgent(name="reef", model=Model(model="fake", respond=lambda request: [said]))))
    assert life.spent == (105, 27)


def calling(calls):
    def respond(request: LlmRequest) -> list[LlmResponse]:
        parts = [part for content in request.contents for part in content.parts or ()]
        if read := [str((each.response or {}).get("result")) for part in parts if (each := part.function_response)]:
            return [answer(types.Part(text=" ".join(read)))]
        return [answer(*(call(name, given, f"c{number}") for number, (name, given) in enumerate(calls)))]

    return adk_agent(LlmAgent(name="reef", model=Model(model="fake", respond=respond)))


@pytest.mark.parametrize("check", CHECKS)
async def test_its_model_has_the_tools_of_the_folder(check) -> None:
    await check(calling)


def writer(name: str) -> LlmAgent:
    """An agent that writes a document of its name, a piece at a time."""

    def respond(request: LlmRequest) -> list[LlmResponse]:
        if "artifact_update" in results(request):
            return [answer(types.Part(text=f"{name} is done."))]
        artifact = {"artifact_id": name, "name": f"{name}.md", "parts": [{"kind": "text", "text": f"By {name}."}]}
        made = call("artifact_update", {"append": False, "artifact": artifact}, f"{name}-u")
        partials = [answer(types.Part(text=piece), partial=True) for piece in (f"{name} ", "writes.")]
        return [*partials, answer(types.Part(text=f"{name} writes."), made)]

    return LlmAgent(name=name, model=Model(model="fake", respond=respond))


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
