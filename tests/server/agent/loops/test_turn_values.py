"""`turn.state` and `turn.values`: when they are committed, what a run that begins again sees, conflicts and limits."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.loops.run_function import STATE_CONFLICT
from a2a_canvas.server.agent.loops.turn_values import STATE, SavedValues, StateConflict, fit_turns
from tests.fakes import said
from tests.server.agent.loops.agent_life import AgentLife, ended


async def result(value="done"):
    return value


async def other_task_sets(life: AgentLife, value: object) -> None:
    await life.values.hold("context", "other")
    life.values.stage("context", "other", SavedValues({STATE: json.dumps(value).encode()}))


# ------------------------------------------------------------------------------- committing


async def test_a_state_is_committed_at_the_end_of_the_function() -> None:
    async def agent(turn: Turn) -> None:
        assert await turn.state.get() is None
        await turn.state.set({"messages": ["tides"]})
        assert await turn.state.get() == {"messages": ["tides"]}
        assert await life.state() is None

    life = AgentLife(agent)
    await life.run()
    assert await life.state() == {"messages": ["tides"]}


@pytest.mark.parametrize("step", ["once", "tool", "ask"])
async def test_a_state_is_committed_with_the_next_step(step: str) -> None:
    async def agent(turn: Turn) -> None:
        await turn.state.set(1)
        match step:
            case "once":
                await turn.once("step", result)
            case "tool":
                async with turn.tool("search", {}):
                    pass
            case "ask":
                await turn.ask("Where?")
        raise ValueError("after the step")

    life = await ended(agent)
    assert await life.state() == 1


async def test_what_a_failed_function_has_set_since_its_last_step_is_dropped() -> None:
    async def agent(turn: Turn) -> None:
        await turn.state.set("kept")
        await turn.values.set("kept", b"1")
        await turn.once("step", result)
        await turn.state.set("dropped")
        await turn.values.set("dropped", b"1")
        raise ValueError("here")

    life = await ended(agent)
    assert life.record.state is State.FAILED
    assert await life.state() == "kept"
    assert await life.values.list("context", "") == ["kept"]
    await asyncio.wait_for(life.values.hold("context", "other"), 5)  # and nothing is held


async def test_what_is_set_in_a_step_is_committed_with_that_step_alone() -> None:
    other_ended = asyncio.Event()

    async def agent(turn: Turn) -> None:
        async def slow() -> None:
            await turn.values.set("slow", b"1")
            await other_ended.wait()
            raise ValueError("the step has failed")

        async def quick() -> None:
            await turn.values.set("quick", b"1")

        running = asyncio.create_task(turn.once("slow", slow))
        await asyncio.sleep(0)
        await turn.once("quick", quick)
        assert await turn.values.list() == ["quick", "slow"]
        other_ended.set()
        with pytest.raises(ValueError, match="failed"):
            await running
        assert await turn.values.list() == ["quick"]

    life = await ended(agent)
    assert life.record.state is State.COMPLETED
    assert await life.values.list("context", "") == ["quick"]


async def test_a_turn_that_has_ended_sets_nothing() -> None:
    turns: list[Turn] = []

    async def agent(turn: Turn) -> None:
        turns.append(turn)

    await AgentLife(agent).run()
    with pytest.raises(RuntimeError, match="ended"):
        await turns[0].state.set(1)
    with pytest.raises(RuntimeError, match="ended"):
        await turns[0].state.get()


async def test_the_run_for_a_new_message_reads_what_the_run_before_has_set() -> None:
    async def agent(turn: Turn) -> None:
        heard = await turn.state.get() or []
        if turn.text == "Go":
            life.send(said("m-2", "More"))
        await turn.state.set([*heard, turn.text])

    life = AgentLife(agent)
    await life.run()
    assert await life.state() == ["Go", "More"]


# -------------------------------------------------------------------------------- runs again


async def test_a_run_that_begins_again_reads_what_the_first_one_read() -> None:
    seen: list[object] = []

    async def agent(turn: Turn) -> None:
        history = await turn.state.get()
        seen.append(history)
        await turn.state.set([*history, "mine"])
        seen.append(await turn.state.get())
        await turn.ask("Where?")
        await turn.state.set([*history, "mine", "more"])

    life = AgentLife(agent)
    await other_task_sets(life, ["before"])
    await life.run()
    assert await life.state() == ["before", "mine"]
    life.answer("Brest")
    await life.run()
    assert seen == [["before"], ["before", "mine"]] * 2
    assert await life.state() == ["before", "mine", "more"]


async def test_a_run_that_begins_again_makes_unrecorded_sets_again_and_others_not() -> None:
    async def agent(turn: Turn) -> None:
        history = await turn.state.get() or []
        await turn.state.set([*history, "recorded"])
        await turn.once("step", result)
        await turn.state.set([*history, "recorded", "not recorded"])
        await asyncio.sleep(0)

    whole = AgentLife(agent)
    lives = [whole.crash(cut) for cut in await whole.run()]
    again = [life for life in lives if not life.record.state.terminal][-1]
    before = [saved.values for _, saved in again.values.staged if saved.values]
    assert before == [{STATE: b'["recorded"]'}]
    await again.run()
    after = [saved.values for _, saved in again.values.staged if saved.values]
    assert after == [*before, {STATE: b'["recorded","not recorded"]'}]


async def test_named_values_are_the_newest_in_a_run_that_begins_again() -> None:
    async def agent(turn: Turn) -> None:
        if not await turn.values.list("checkpoint"):
            await turn.values.set("checkpoint 0", b"1")
            await turn.ask("Where?")
        await turn.values.set("checkpoint 1", b"2")
        assert await turn.values.get("checkpoint 0") == b"1"
        await turn.values.delete("checkpoint 0")
        assert await turn.values.get("checkpoint 0") is None

    life = await ended(agent)
    life.answer("Brest")
    await life.run()
    assert life.record.state is State.COMPLETED
    assert await life.values.list("context", "") == ["checkpoint 1"]


# --------------------------------------------------------------------------------- conflicts


@pytest.mark.parametrize("reads", [True, False], ids=["read", "not read"])
async def test_a_set_after_that_of_another_task_is_a_conflict_and_overwrites_nothing(reads: bool) -> None:
    async def agent(turn: Turn) -> None:
        mine = (await turn.state.get() if reads else None) or []
        await other_task_sets(life, ["other"])
        with pytest.raises(StateConflict, match="Read it again") as error:
            await turn.state.set([*mine, "mine"])
        assert "turn.state.get(), append your new messages to that value, and set the result" in str(error.value)
        await turn.state.set([*await turn.state.get(), "mine"])

    life = AgentLife(agent)
    await life.run()
    assert life.record.state is State.COMPLETED
    assert await life.state() == ["other", "mine"]


async def test_a_conflict_that_the_function_does_not_handle_fails_the_task_with_a_sentence() -> None:
    async def agent(turn: Turn) -> None:
        await other_task_sets(life, "other")
        await turn.state.set("mine")

    life = AgentLife(agent)
    await life.run()
    assert (life.record.state, life.reply) == (State.FAILED, STATE_CONFLICT)
    assert await life.state() == "other"


async def test_a_run_that_begins_again_does_not_overwrite_what_another_task_has_set_since() -> None:
    async def agent(turn: Turn) -> None:
        await turn.state.set(["mine"])
        await turn.ask("Where?")
        with pytest.raises(StateConflict):
            await turn.state.set(["mine", "more"])
        await turn.state.set([*await turn.state.get(), "more"])

    life = await ended(agent)
    await other_task_sets(life, ["mine", "other"])
    life.answer("Brest")
    await life.run()
    assert await life.state() == ["mine", "other", "more"]


async def test_a_set_waits_for_the_commit_of_another_tasks_set() -> None:
    async def agent(turn: Turn) -> None:
        await life.values.hold("context", "other")
        setting = asyncio.create_task(turn.state.set("mine"))
        await asyncio.sleep(0)
        life.values.stage("context", "other", SavedValues({STATE: b'"other"'}))
        with pytest.raises(StateConflict):
            await setting

    life = AgentLife(agent)
    await life.run()
    assert await life.state() == "other"


# ------------------------------------------------------------------------------------ limits


async def test_all_values_together_have_a_limit_which_the_error_names() -> None:
    async def agent(turn: Turn) -> None:
        await turn.values.set("name", b"x" * 96)  # 100 with its name
        await turn.state.set("y" * 898)  # 900 as JSON
        await turn.state.set("z" * 898)  # in its place
        await turn.values.set("n", b"")

    life = AgentLife(agent)
    life.state_bytes = 1000
    await life.run()
    assert life.record.state is State.FAILED
    assert life.reply == (
        "The agent's state of this conversation would have 1,001 bytes, and the limit is 1,000 (--max-state-bytes). "
        "Store less of it, for example only the newest messages."
    )
    assert await life.state() is None


async def test_a_value_that_is_no_json_is_an_error_that_names_the_key() -> None:
    async def agent(turn: Turn) -> None:
        with pytest.raises(ValueError, match=r'state\["messages"\]\[0\] is set, which is no JSON value'):
            await turn.state.set({"messages": [{1}]})  # type: ignore[dict-item]

    life = await ended(agent)
    assert life.record.state is State.COMPLETED


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb"], ids=["empty", "long", "line"])
async def test_a_bad_name_is_an_error(name: str) -> None:
    async def agent(turn: Turn) -> None:
        with pytest.raises(ValueError, match="The name of a value"):
            await turn.values.set(name, b"")

    life = await ended(agent)
    assert life.record.state is State.COMPLETED


@given(st.lists(st.lists(st.text("ab", max_size=5), max_size=4), max_size=5), st.integers(0, 80))
@settings(deadline=None)
def test_the_oldest_whole_turns_are_dropped_until_the_rest_fits(turns: list[list[str]], limit: int) -> None:
    def size(some: list[list[str]]) -> int:
        return len(json.dumps(some, separators=(",", ":")).encode())

    kept = list(fit_turns(turns, limit))
    assert kept == turns[len(turns) - len(kept) :]
    assert not kept or size(kept) <= limit
    dropped = turns[: len(turns) - len(kept)]
    assert not dropped or size([dropped[-1], *kept]) > limit
