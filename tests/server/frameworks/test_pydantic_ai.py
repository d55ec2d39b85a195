"""An agent of pydantic-ai behind the canvas: what clients see, and what is left wherever a crash cuts it off."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, FunctionToolset, ModelRetry, RunContext
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from a2a_canvas.server.agent.edit.edit_prompt import EDIT_SYSTEM
from a2a_canvas.server.agent.events import State, ThinkingAdded, ToolFailed, ToolSucceeded, ToolUseStarted
from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError
from a2a_canvas.server.frameworks.canvas_tools import NO_QUESTIONS
from a2a_canvas.server.frameworks.pydantic_ai import pydantic_ai_agent
from tests.server.agent.edit.operation_harness import TEXT
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.loops.edit_harness import edited
from tests.server.frameworks.folder_tools import CHECKS

REPORT = {"artifact_id": "report", "name": "report.md", "parts": [{"kind": "text", "text": "# Tides\nHigh and low."}]}
UPDATE = json.dumps({"append": False, "artifact": REPORT})


def last_results(messages: list[ModelMessage]) -> dict[str, str]:
    """What the model reads of the calls of its last answer, by tool."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    return {part.tool_name: str(part.content) for part in last.parts if isinstance(part, ToolReturnPart)}


async def tides(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
    """A model that answers by what it has read."""
    results = last_results(messages)
    if "artifact_update" in results:
        yield "Written, "
        yield f"with {results['search']}."
    else:
        yield {0: DeltaThinkingPart(content="Hm.")}
        yield "I look. "
        yield {1: DeltaToolCall("search", '{"query":', tool_call_id="s1")}
        yield {1: DeltaToolCall(json_args=' "tides"}')}
        for at in range(0, len(UPDATE), 9):
            yield {2: DeltaToolCall("artifact_update" if at == 0 else None, UPDATE[at : at + 9], tool_call_id="u1")}


@dataclass
class Reef:
    """An agent with one tool, which counts its calls and the requests to its model."""

    requests: list[int] = field(default_factory=list)
    searches: list[str] = field(default_factory=list)

    def agent(self, model=tides):
        async def counted(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
            self.requests.append(len(messages))
            async for piece in model(messages, info):
                yield piece

        tools = FunctionToolset(id="reef")

        @tools.tool_plain
        async def search(query: str) -> str:
            """Search."""
            self.searches.append(query)
            return f"hits for {query}"

        return pydantic_ai_agent(Agent(FunctionModel(stream_function=counted), name="reef", toolsets=[tools]))


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
    assert [event.content for event in life.told.of(ThinkingAdded)] == ["Hm."]
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
        assert len(reef.requests) == 2 - len(kept & {"reef__model.request_stream", "reef__model.request_stream#2"})
        assert reef.searches == ([] if "#call s1" in kept else ["tides"])
    assert resumed > 20


async def test_the_user_approves_a_call_and_answers_a_question_in_one_message() -> None:
    tools = FunctionToolset(id="reef")
    ran = []

    @tools.tool
    async def delete(context: RunContext, name: str) -> str:
        """Delete."""
        if not context.tool_call_approved:
            raise ApprovalRequired
        ran.append(name)
        return f"{name} is gone"

    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
        if results := last_results(messages):
            yield f"Now {results['delete']}; {results['ask_user']}."
        else:
            yield {0: DeltaToolCall("delete", '{"name": "all"}', tool_call_id="d1")}
            yield {1: DeltaToolCall("ask_user", '{"question": "Sure?"}', tool_call_id="q1")}

    life = AgentLife(pydantic_ai_agent(Agent(FunctionModel(stream_function=model), name="reef", toolsets=[tools])))
    await life.run()
    assert (life.record.state, ran) == (State.INPUT_REQUIRED, [])
    assert life.reply == 'May I run delete(name="all")? Answer yes or no.\nSure?'
    life.answer("yes")
    await life.run()
    assert (life.record.state, life.reply, ran) == (State.COMPLETED, "Now all is gone; yes.", ["all"])


async def test_a_call_that_the_framework_has_retried_is_a_failed_call() -> None:
    tools = FunctionToolset(id="reef")

    @tools.tool_plain
    async def search(query: str) -> str:
        """Search."""
        if query == "":
            raise ModelRetry("Say what to search.")
        return "hits"

    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
        if "hits" in last_results(messages).values():
            yield "hits"
        else:
            query = '{"query": ""}' if len(messages) == 1 else '{"query": "tides"}'
            yield {0: DeltaToolCall("search", query, tool_call_id=f"s{len(messages)}")}

    life = await run(pydantic_ai_agent(Agent(FunctionModel(stream_function=model), name="reef", toolsets=[tools])))
    assert life.said == ["hits"]
    assert [event.error for event in life.told.of(ToolFailed)] == ["Say what to search."]


async def test_structured_output_is_the_reply_as_json() -> None:
    class Tide(BaseModel):
        high: float

    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
        yield {0: DeltaToolCall(info.output_tools[0].name, '{"high": 5.9}', tool_call_id="o1")}

    life = await run(pydantic_ai_agent(Agent(FunctionModel(stream_function=model), name="reef", output_type=Tide)))
    assert life.said == ['{"high": 5.9}']


async def test_a_passage_is_rewritten_by_the_agent_without_the_tools_that_write_documents() -> None:
    tools = FunctionToolset(id="reef")
    seen = []

    @tools.tool_plain
    async def search(query: str) -> str:
        """Search."""
        return f"2 = {query}"

    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
        seen.append((info.instructions, [each.name for each in info.function_tools]))
        if results := last_results(messages):
            yield "TWO"
            yield f" ({results['search']})."
        else:
            yield "I look. "
            yield {1: DeltaToolCall("search", '{"query": "two"}', tool_call_id="s1")}

    reef = pydantic_ai_agent(Agent(FunctionModel(stream_function=model), name="reef", toolsets=[tools]))
    done = await edited(reef.editor)
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO (2 = two).")
    assert seen == [(EDIT_SYSTEM.strip(), ["search"])] * 2
    assert done.spent


async def test_an_edit_that_would_have_to_ask_says_so() -> None:
    tools = FunctionToolset(id="reef")

    @tools.tool_plain(requires_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
        yield {0: DeltaToolCall("pay", "{}", tool_call_id="p1")}

    reef = pydantic_ai_agent(Agent(FunctionModel(stream_function=model), name="reef", toolsets=[tools]))
    done = await edited(reef.editor)
    assert (done.end.state, done.end.message.text) == (State.FAILED, NO_QUESTIONS)


def test_a_toolset_without_an_id_is_an_error_before_the_server_starts() -> None:
    with pytest.raises(AgentDefinitionError, match=r"Write FunctionToolset\(…, id='tools'\)"):
        pydantic_ai_agent(Agent("test", toolsets=[FunctionToolset().prefixed("my")]))


def calling(calls):
    async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        if results := [str(part.content) for part in last.parts if isinstance(part, ToolReturnPart)]:
            yield " ".join(results)
        else:
            for number, (name, given) in enumerate(calls):
                yield {number: DeltaToolCall(name, json.dumps(given), tool_call_id=f"c{number}")}

    return pydantic_ai_agent(Agent(FunctionModel(stream_function=model), name="reef"))


@pytest.mark.parametrize("check", CHECKS)
async def test_its_model_has_the_tools_of_the_folder(check) -> None:
    await check(calling)
