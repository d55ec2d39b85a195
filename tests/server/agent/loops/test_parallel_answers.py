"""Sub-agents that run at the same time: their answers and calls, however they interleave."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import State, ToolFailed, ToolSucceeded, ToolUseStarted
from a2a_canvas.server.agent.loops.agent_turn import Turn
from tests.server.agent.loops.agent_life import AgentLife, ended
from tests.server.agent.loops.test_model_steps import Call, Framework, Reply, update


def sub_agent(name: str, text: str = "") -> Framework:
    calls = (Call(f"{name}-s", "search", {"for": name}), update(f"{name}-u", f"{name} writes. " * 3, name))
    return Framework([Reply(text, calls), Reply("", (Call(f"{name}-t", "search", {"again": name}),)), Reply("")])


def in_parallel(agents: dict[str, Framework], delays: list[int]):
    async def run(turn: Turn, name: str, framework: Framework, delay: int) -> None:
        for _ in range(delay):
            await asyncio.sleep(0)
        await framework.run_as(turn, name)

    async def agent(turn: Turn) -> None:
        runs = zip(agents.items(), delays, strict=True)
        await asyncio.gather(*(run(turn, name, each, delay) for (name, each), delay in runs))
        await turn.say("Both are done.")

    return agent


@given(st.lists(st.integers(0, 60), min_size=3, max_size=3))
async def test_sub_agents_that_run_at_the_same_time_have_their_calls_and_artifacts(delays: list[int]) -> None:
    agents = {name: sub_agent(name, f"{name} looks at it.") for name in ("a", "b", "c")}
    life = await ended(in_parallel(agents, delays))
    assert life.record.state is State.COMPLETED
    assert [" ".join(life.said).count(f"{name} looks at it.") for name in agents] == [1, 1, 1]
    assert life.texts() == {name: f"{name} writes. " * 3 for name in agents}
    calls = Counter(f"{name}-{call}" for name in agents for call in "sut")
    assert Counter(event.tool_use_id for event in life.told.of(ToolUseStarted)) == calls
    assert Counter(event.tool_use_id for event in life.told.of(ToolSucceeded)) == calls
    assert not life.told.of(ToolFailed)
    assert {name: each.ran for name, each in agents.items()} == {name: [f"{name}-s", f"{name}-t"] for name in agents}
    assert {name: each.asked for name, each in agents.items()} == {name: [0, 1, 2] for name in agents}


async def test_wherever_a_crash_cuts_them_off_what_they_have_recorded_is_not_made_again() -> None:
    names = ("a", "b")
    whole = AgentLife(in_parallel({name: sub_agent(name, f"{name} looks at it.") for name in names}, [0, 7]))
    resumed = 0
    for cut in await whole.run():
        agents = {name: sub_agent(name, f"{name} looks at it.") for name in names}
        life = AgentLife(in_parallel(agents, [0, 7]), cut.documents)
        life.told.events = whole.told.events[: cut.told]
        if life.record.state.terminal:
            continue
        resumed += 1
        kept = {item.name for item in life.record.transcript if getattr(item, "kind", "") == "kept"}
        await life.run()
        life.check()
        assert (life.record.state, life.texts()) == (State.COMPLETED, whole.texts())
        assert [" ".join(life.said).count(f"{name} looks at it.") for name in names] == [1, 1]
        for name, framework in agents.items():
            assert framework.asked == [n for n, step in enumerate((name, f"{name}#2", f"{name}#3")) if step not in kept]
            assert framework.ran == [f"{name}-{call}" for call in "st" if f"#call {name}-{call}" not in kept]
    assert resumed > 30


async def test_calls_that_run_at_the_same_time_may_write_the_same_artifact() -> None:
    calls = (update("u1", "one. "), update("u2", "two. "), update("u3", "three. "))

    async def agent(turn: Turn) -> None:
        framework = Framework([Reply("", calls)])
        await turn.model.respond("model", lambda: framework._stream(turn, 0, framework.replies[0]))
        await asyncio.gather(*(framework._run(turn, call) for call in calls))

    life = await ended(agent)
    assert sorted(life.texts()["report"].split()) == ["one.", "three.", "two."]
    assert [event.tool_use_id for event in life.told.of(ToolSucceeded)] == ["u1", "u2", "u3"]
