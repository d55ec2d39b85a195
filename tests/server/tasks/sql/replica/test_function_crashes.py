"""How often a task of an agent's function is taken over: what counts is the crashes since its last step."""

import asyncio

import pytest

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.loops.run_function import NOT_RESTARTABLE
from a2a_canvas.server.tasks.runtime.turns import MAX_RESUMPTIONS, TOO_MANY_RESUMPTIONS
from tests.server.tasks.sql.replica_harness import SOON, Replicas, ended

CRASHES = MAX_RESUMPTIONS + 1


async def nothing() -> None:
    pass


class Agent:
    """A function whose servers end: it waits at the end of each run, up to a number of runs.

    Args:
        runs: how many of its runs wait.
        steps: whether each run records a step of its own before it waits.
    """

    def __init__(self, runs: int, *, steps: bool) -> None:
        self.runs = runs
        self.steps = steps
        self.began = 0
        self.reached = asyncio.Event()

    async def run(self, turn: Turn) -> None:
        self.began += 1
        for _ in range(self.began if self.steps else 1):
            await turn.once("step", nothing)
        self.reached.set()
        if self.began <= self.runs:
            await asyncio.Event().wait()
        await turn.say("Done.")


async def end_servers(started: Replicas, agent: Agent, count: int, *, crash: bool) -> str:
    """The id of a task after so many of its servers have ended."""
    task_id = ""
    for _ in range(count):
        agent.reached.clear()
        replica = await started.start(agent=agent.run)
        if not task_id:
            task_id = (await replica.send("Go")).snapshot.task_id
        async with asyncio.timeout(SOON):
            await agent.reached.wait()
        await replica.backend.commits.flushed()
        if crash:
            await replica.crash()
        else:
            await replica.stop()
            replica.dead = True
    return task_id


async def test_three_crashes_without_a_new_step_end_the_task(started: Replicas) -> None:
    agent = Agent(CRASHES, steps=False)
    task_id = await end_servers(started, agent, CRASHES, crash=True)
    record = await ended(await started.start(agent=agent.run), task_id)
    assert record.message
    assert (record.state, record.message.text) == (State.FAILED, TOO_MANY_RESUMPTIONS)
    assert agent.began == CRASHES


async def test_a_step_between_them_resets_the_count(started: Replicas) -> None:
    agent = Agent(2 * CRASHES, steps=True)
    task_id = await end_servers(started, agent, 2 * CRASHES, crash=True)
    record = await ended(await started.start(agent=agent.run), task_id)
    assert record.message
    assert (record.state, record.message.text) == (State.COMPLETED, "Done.")


async def test_servers_that_stop_with_notice_do_not_count(started: Replicas) -> None:
    agent = Agent(CRASHES + 1, steps=False)
    task_id = await end_servers(started, agent, CRASHES + 1, crash=False)
    record = await ended(await started.start(agent=agent.run), task_id)
    assert record.state is State.COMPLETED


@pytest.mark.parametrize("crash", [True, False])
async def test_one_that_is_not_restartable_fails_at_the_first_crash_or_stop(started: Replicas, crash: bool) -> None:
    agent = Agent(1, steps=False)
    agent.run = AgentFunction("agent", agent.run, restartable=False)  # type: ignore[method-assign, assignment]
    task_id = await end_servers(started, agent, 1, crash=crash)
    record = await ended(await started.start(agent=agent.run), task_id)
    assert record.message
    assert (record.state, record.message.text) == (State.FAILED, NOT_RESTARTABLE)
