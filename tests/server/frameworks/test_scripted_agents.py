"""What holds for all adapters: what clients see, wherever a crash cuts an agent off, and its calls and questions."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from a2a_canvas.server.agent.edit.edit_prompt import EDIT_SYSTEM
from a2a_canvas.server.agent.events import State, ThinkingAdded, ToolFailed, ToolSucceeded, ToolUseStarted
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.frameworks.canvas_tools import NO_QUESTIONS
from tests.server.agent.edit.operation_harness import TEXT
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.loops.edit_harness import edited
from tests.server.frameworks.folder_tools import CHECKS
from tests.server.frameworks.scripted_agents import (
    ADK,
    LANGGRAPH,
    OPENAI,
    PYDANTIC_AI,
    Answer,
    Call,
    Framework,
    OwnTool,
    Request,
    run,
)

FRAMEWORKS = {"pydantic-ai": PYDANTIC_AI, "openai-agents": OPENAI, "google-adk": ADK, "langgraph": LANGGRAPH}


def over(*frameworks: Framework) -> pytest.MarkDecorator:
    names = {name: each for name, each in FRAMEWORKS.items() if each in frameworks}
    return pytest.mark.parametrize("framework", names.values(), ids=names)


every = over(*FRAMEWORKS.values())
with_approval = over(PYDANTIC_AI, OPENAI, ADK)
"""The frameworks that ask for the approval of calls themselves; the graph's author asks by `interrupt`."""
with_edit_tools = over(PYDANTIC_AI, OPENAI, ADK)
"""Those whose agent may call tools in an edit; a graph's last answer is the passage (`test_langgraph.py`)."""


@dataclass
class Reef:
    """An agent with one tool, which counts its calls and the requests to its model."""

    framework: Framework
    requests: list[Request] = field(default_factory=list)
    searches: list[str] = field(default_factory=list)

    def agent(self) -> AgentFunction:
        async def search(query: str) -> str:
            """Search."""
            self.searches.append(query)
            return f"hits for {query}"

        return self.framework.make(self._answer, [OwnTool(search)])

    def _answer(self, request: Request) -> Answer:
        self.requests.append(request)
        if "u1" in request.results:
            return Answer(f"Written, with {request.results['s1']}.")
        artifact = {"artifact_id": "report", "name": "report.md", "parts": [{"kind": "text", "text": REPORT}]}
        update = {"append": False, "artifact": artifact}
        calls = [Call("s1", "search", {"query": "tides"}), Call("u1", "artifact_update", update)]
        return Answer("I look.", calls, thinking="Hm." if self.framework.thinks else "")


REPORT = "# Tides\nHigh and low."


@every
async def test_it_writes_and_says_what_its_model_streams(framework: Framework) -> None:
    life = await run(Reef(framework).agent())
    assert (life.record.state, life.said) == (State.COMPLETED, ["I look.", "Written, with hits for tides."])
    assert life.texts() == {"report": REPORT}
    assert [event.content for event in life.told.of(ThinkingAdded)] == (["Hm."] if framework.thinks else [])
    started = [event.name for event in life.told.of(ToolUseStarted)]
    assert started == sorted(["search", "artifact_update"], reverse=not framework.starts_artifacts_first)
    succeeded = sorted(event.content for event in life.told.of(ToolSucceeded))
    assert succeeded == ["Written; the draft stays open.", "hits for tides"]


@every
async def test_wherever_a_crash_cuts_it_off_no_recorded_request_or_call_is_made_again(framework: Framework) -> None:
    reef = Reef(framework)
    first = AgentLife(reef.agent())
    cuts = await first.run()
    assert len(reef.requests) == 2
    recorded: list[tuple[int, int]] = []
    for cut in cuts:
        reef = Reef(framework)
        life = first.crash(cut, reef.agent())
        if life.record.state.terminal:
            continue
        answers, searches = framework.count_recorded(life)
        recorded.append((answers, searches))
        await life.run()
        life.check()
        assert (life.record.state, life.texts(), life.said) == (State.COMPLETED, first.texts(), first.said)
        assert len(reef.requests) == 2 - answers
        assert reef.searches == ["tides"][searches:]
    assert len(recorded) > framework.cuts
    assert {*recorded} >= {(0, 0), (1, 0), (1, 1)}


@with_approval
@pytest.mark.parametrize("reply", ["yes", "no"])
async def test_the_user_approves_a_call_and_answers_a_question_in_one_message(framework: Framework, reply: str) -> None:
    ran: list[str] = []

    async def delete(name: str) -> str:
        """Delete."""
        ran.append(name)
        return f"{name} is gone"

    def answer(request: Request) -> Answer:
        if {"d1", "q1"} <= request.results.keys():
            return Answer(f"Now {request.results['d1']}; {request.results['q1']}.")
        return Answer(calls=[Call("d1", "delete", {"name": "all"}), Call("q1", "ask_user", {"question": "Sure?"})])

    life = AgentLife(framework.make(answer, [OwnTool(delete, asks=True)]))
    await life.run()
    assert (life.record.state, ran) == (State.INPUT_REQUIRED, [])
    asked = life.reply.splitlines()
    assert (asked if framework.asks_in_order else sorted(asked)) == [
        'May I run delete(name="all")? Answer yes or no.',
        "Sure?",
    ]
    life.answer(reply)
    await life.run()
    result = "all is gone" if reply == "yes" else framework.rejection
    assert (life.record.state, life.reply) == (State.COMPLETED, f"Now {result}; {reply}.")
    assert ran == (["all"] if reply == "yes" else [])
    assert [event.tool_use_id for event in life.told.of(ToolFailed)] == ([] if reply == "yes" else ["d1"])


@with_edit_tools
async def test_a_passage_is_rewritten_by_the_agent_without_the_tools_that_write_documents(
    framework: Framework,
) -> None:
    seen: list[Request] = []

    async def search(query: str) -> str:
        """Search."""
        return f"2 = {query}"

    def answer(request: Request) -> Answer:
        seen.append(request)
        if request.results:
            return Answer(f"TWO ({request.results['s1']}).")
        return Answer("I look. ", [Call("s1", "search", {"query": "two"})])

    done = await edited(framework.make(answer, [OwnTool(search)]).editor)
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO (2 = two).")
    assert [each.tools for each in seen] == [["search"]] * 2
    for each in seen:
        own, ours, more = each.instructions.partition(EDIT_SYSTEM.strip())
        assert (own.strip(), bool(ours), more.strip()) == (framework.instructions, True, "")
    assert done.spent


@with_approval
async def test_an_edit_that_would_have_to_ask_says_so(framework: Framework) -> None:
    async def pay() -> str:
        """Pay."""
        return "paid"

    reef = framework.make(lambda request: Answer(calls=[Call("p1", "pay", {})]), [OwnTool(pay, asks=True)])
    done = await edited(reef.editor)
    assert (done.end.state, done.end.message.text) == (State.FAILED, NO_QUESTIONS)


@every
@pytest.mark.parametrize("check", CHECKS)
async def test_its_model_has_the_tools_of_the_folder(framework: Framework, check) -> None:
    def calling(calls):
        made = [Call(f"c{number}", name, given) for number, (name, given) in enumerate(calls)]

        def answer(request: Request) -> Answer:
            return Answer(" ".join(request.results.values())) if request.results else Answer(calls=made)

        return framework.make(answer, **({"split": True} if framework is LANGGRAPH else {}))

    await check(calling)
