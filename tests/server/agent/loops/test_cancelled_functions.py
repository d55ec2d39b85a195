"""A cancelled function: what it gets, what is left, and what of its `Turn` works from then on."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.tools.functions import running
from a2a_canvas.tools.functions.running import HANDED_OVER
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.turn.cut_harness import Cut


async def nothing() -> None:
    pass


async def cancelled(life: AgentLife, waits: asyncio.Event, *reason: str) -> AgentLife:
    """The task is cancelled where its function waits."""
    task = asyncio.create_task(life.run())
    await waits.wait()
    task.cancel(*reason)
    with pytest.raises(asyncio.CancelledError):
        await task
    return life


async def wait_forever(reached: asyncio.Event) -> None:
    reached.set()
    await asyncio.Event().wait()


@pytest.mark.parametrize("reason", [(), (HANDED_OVER,)], ids=["cancelled", "handed over"])
async def test_it_gets_a_cancelled_error_and_learns_whether_another_server_continues(reason) -> None:
    reached, seen = asyncio.Event(), []

    async def agent(turn: Turn) -> None:
        try:
            await wait_forever(reached)
        except asyncio.CancelledError:
            seen.append(turn.handed_over)
            raise

    await cancelled(AgentLife(agent), reached, *reason)
    assert seen == [bool(reason)]


async def test_a_generator_gets_it_at_its_await_and_is_closed() -> None:
    reached, seen = asyncio.Event(), []

    async def agent(turn: Turn):
        try:
            yield "Text."
            await wait_forever(reached)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            seen.append("closed")

    await cancelled(AgentLife(agent), reached)
    assert seen == ["cancelled", "closed"]


async def test_artifacts_stay_as_the_last_step_left_them() -> None:
    reached = asyncio.Event()

    async def agent(turn: Turn) -> None:
        report = turn.artifact("report")
        await turn.once("step", lambda: report.append("kept"))
        await report.append(" lost")
        await wait_forever(reached)

    life = await cancelled(AgentLife(agent), reached)
    assert life.texts() == {"report": "kept"}


async def test_without_a_step_one_with_a_version_returns_to_it_and_a_new_one_is_incomplete() -> None:
    async def before(turn: Turn) -> None:
        await turn.artifact("old").append("version")

    reached = asyncio.Event()

    async def agent(turn: Turn) -> None:
        await turn.artifact("old").append(" lost")
        await turn.artifact("new").append("half")
        await wait_forever(reached)

    first = AgentLife(before)
    await first.run()
    life = await cancelled(AgentLife(agent, first.store.documents), reached)
    assert life.texts() == {"old": "version", "new": "half"}
    versions = {name: [each.incomplete for each in one.versions] for name, one in life.store.documents.items()}
    assert versions == {"old": [False], "new": [True]}


USES: dict[str, Callable[[Turn], Awaitable[object]]] = {
    "stream": lambda turn: turn.stream("x"),
    "say": lambda turn: turn.say("x"),
    "think": lambda turn: turn.think("x"),
    "take_back": lambda turn: turn.take_back(),
    "progress": lambda turn: turn.progress("x"),
    "ask": lambda turn: turn.ask("x"),
    "ask_approval": lambda turn: turn.ask_approval("id", "name", {}),
    "decline": lambda turn: turn.decline("x"),
    "once": lambda turn: turn.once("new", nothing),
    "a recorded once": lambda turn: turn.once("step", nothing, key="recorded"),
    "tool": lambda turn: turn.tool("new", {}).__aenter__(),
    "messages": lambda turn: turn.messages(),
    "usage": lambda turn: turn.usage(1),
    "agui": lambda turn: turn.agui({"type": "CUSTOM", "name": "x", "value": 1}),
    "artifacts": lambda turn: turn.artifacts(),
    "append": lambda turn: turn.artifact("report").append("x"),
    "replace": lambda turn: turn.artifact("report").replace("x"),
    "edit": lambda turn: turn.artifact("report").edit("a", "b"),
    "read": lambda turn: turn.artifact("report").read(),
    "versions": lambda turn: turn.artifact("report").versions(),
    "state.get": lambda turn: turn.state.get(),
    "state.set": lambda turn: turn.state.set(1),
}


@pytest.mark.parametrize("name", [*USES, "a handle", "a call"])
async def test_one_that_does_not_end_is_abandoned_and_its_turn_raises_from_then_on(name, monkeypatch, caplog) -> None:
    monkeypatch.setattr(running, "GRACE", 0.01)
    reached, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    errors: list[BaseException] = []

    async def agent(turn: Turn) -> None:
        handle = turn.artifact("report")
        await turn.once("step", nothing, key="recorded")
        async with turn.tool("search", {}) as call:
            reached.set()
            while not go_on.is_set():
                try:
                    await go_on.wait()
                except asyncio.CancelledError:
                    continue
            uses = {**USES, "a handle": lambda turn: handle.append("x"), "a call": lambda turn: call.run(nothing)}
            try:
                await uses[name](turn)
            except BaseException as error:
                errors.append(error)
            ended.set()

    life = await cancelled(AgentLife(agent), reached)
    events, texts = len(life.told.events), life.texts()
    go_on.set()
    await ended.wait()
    await asyncio.sleep(0)
    assert [type(error) for error in errors] == [RuntimeError]
    assert (len(life.told.events), life.texts()) == (events, texts)
    assert "The agent agent was cancelled and has not ended" in caplog.text


async def test_a_step_of_an_abandoned_function_is_not_recorded_and_undoes_nothing_of_a_later_run(monkeypatch) -> None:
    monkeypatch.setattr(running, "GRACE", 0.01)
    reached, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def agent(turn: Turn) -> None:
        async def step() -> None:
            reached.set()
            while not go_on.is_set():
                try:
                    await go_on.wait()
                except asyncio.CancelledError:
                    continue

        with pytest.raises(RuntimeError, match="has ended"):
            await turn.once("step", step)
        ended.set()

    async def again(turn: Turn) -> None:
        await turn.artifact("report").append("new")
        go_on.set()
        await ended.wait()

    life = AgentLife(agent)
    await cancelled(life, reached)
    later = life.crash(Cut(len(life.told.events), life.store.documents), again)
    await later.run()
    assert later.texts() == {"report": "new"}
