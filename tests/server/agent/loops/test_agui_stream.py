"""Events for AG-UI clients: each is shown once, however often the function runs."""

import pytest

from a2a_canvas import tool
from a2a_canvas.server.agent.events import AguiSent, State, TranscriptAppended
from a2a_canvas.server.agent.loops.agent_turn import Turn
from tests.server.agent.loops.agent_life import AgentLife, ended
from tests.server.agent.loops.test_run_function import moment

SNAPSHOT = {"type": "STATE_SNAPSHOT", "snapshot": []}


def custom(value: object) -> dict:
    return {"type": "CUSTOM", "name": "n", "value": value}


def added(value: object) -> dict:
    return {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/-", "value": value}]}


async def nothing() -> None:
    pass


class Crash(BaseException):
    """As if the process had ended here."""


async def sent_over(*runs: object) -> tuple[list, object]:
    """What a function sends that has these runs, all but the last of which end in a crash; the state in the end."""
    life = AgentLife(runs[0])
    for function in runs[1:]:
        with pytest.raises(Crash):
            await life.run()
        events = life.told.events  # the process has gone: it could not emit how the turn ended
        kept = max(n for n, each in enumerate(events, 1) if isinstance(each, AguiSent | TranscriptAppended))
        life = AgentLife(function)
        life.told.events = events[:kept]
    await life.run()
    assert life.record.state is State.COMPLETED
    sent, state, _ = life.agui_events()
    return sent, state


async def test_a_rerun_shows_nothing_twice() -> None:
    crashed = False

    async def agent(turn: Turn) -> None:
        nonlocal crashed
        await turn.agui(custom(1))
        await turn.agui(SNAPSHOT)
        await turn.once("step", lambda: step(turn))
        await turn.agui(added(2))
        await turn.agui(custom(2))
        if not crashed:
            crashed = True
            raise Crash
        await turn.agui(custom(3))

    async def step(turn: Turn) -> None:
        await turn.agui(added(1))

    sent, state = await sent_over(agent, agent)
    assert sent == [custom(1), SNAPSHOT, added(1), added(2), custom(2), custom(3)]
    assert state == [1, 2]


async def test_a_rerun_that_differs_continues_from_what_was_recorded() -> None:
    def agent(value: int, crash: bool):
        async def run(turn: Turn) -> None:
            await turn.agui(SNAPSHOT)
            await turn.once("step", nothing)
            await turn.agui(added(0))
            await turn.agui(added(value))
            if crash:
                raise Crash

        return run

    _, state = await sent_over(agent(1, crash=True), agent(2, crash=True), agent(3, crash=False))
    assert state == [0, 3]


async def test_a_call_of_a_tool_records_what_was_sent_before_it() -> None:
    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    async def agent(turn: Turn) -> None:
        await turn.agui(SNAPSHOT)
        await turn.agui(added(1))
        await turn.tools[0]()
        await turn.agui(added(2))
        await moment()
        await turn.agui(custom(3))

    life = AgentLife(agent, tools=[look.tool])
    for cut in await life.run():
        after = life.crash(cut)
        if not after.record.state.terminal:
            await after.run()
        assert after.agui_events() == life.agui_events()


async def test_after_a_question_everything_continues() -> None:
    async def agent(turn: Turn) -> None:
        await turn.agui(SNAPSHOT)
        await turn.agui(custom("asked"))
        await turn.ask("Which?")
        await turn.agui(added(1))

    life = await ended(agent)
    life.answer("this")
    await life.run()
    sent, state, late = life.agui_events()
    assert sent == [SNAPSHOT, custom("asked"), added(1)]
    assert state == [1]
    assert late == []  # the client that answered has the CUSTOM event


async def test_an_error_reaches_the_function_and_nothing_is_sent() -> None:
    async def agent(turn: Turn) -> None:
        for wrong in (added(1), {"type": "RUN_FINISHED"}):
            with pytest.raises(ValueError, match=r"Send the snapshot first|return from the function"):
                await turn.agui(wrong)

    sent, _ = await sent_over(agent)
    assert sent == []
