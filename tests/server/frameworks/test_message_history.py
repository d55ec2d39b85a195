"""The messages of a framework's agent: conflicts, and what is dropped when they outgrow the state."""

import json
import logging

import pytest

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.loops.turn_values import STATE, SavedValues
from a2a_canvas.server.frameworks.message_history import MessageHistory
from tests.server.agent.loops.agent_life import AgentLife


async def other_task_sets(life: AgentLife, value: object) -> None:
    await life.values.hold("context", "other")
    life.values.stage("context", "other", SavedValues({STATE: json.dumps(value).encode()}))


def history_of(*turns: list, dropped: bool = False) -> dict:
    return {"key": {"turns": list(turns), "dropped": dropped}}


async def run(life: AgentLife) -> object:
    await life.run()
    assert life.record.state is State.COMPLETED
    return await life.state()


async def test_the_messages_of_a_task_are_a_turn_after_those_before_and_other_keys_stay() -> None:
    async def agent(turn: Turn) -> None:
        history = MessageHistory(turn, "key")
        loaded = await history.load(list)
        assert loaded == ["a", "b"]
        await history.save([*loaded, "c"])

    life = AgentLife(agent)
    await other_task_sets(life, {"mine": 1, **history_of(["a"], ["b"])})
    assert await run(life) == {"mine": 1, **history_of(["a"], ["b"], ["c"])}


@pytest.mark.parametrize("state", [None, {"mine": 1}, []])
async def test_without_messages_nothing_is_loaded(state: object) -> None:
    async def agent(turn: Turn) -> None:
        history = MessageHistory(turn, "key")
        assert await history.load(list) is None
        await history.save(["a"])

    life = AgentLife(agent)
    if state is not None:
        await other_task_sets(life, state)
    assert await run(life) == {**(state or {}), **history_of(["a"])}


async def test_messages_that_the_framework_cannot_read_are_replaced_and_no_text_of_them_is_logged(caplog) -> None:
    def parse(kept: list) -> list:
        raise ValueError(f"{kept} is of an older version")

    async def agent(turn: Turn) -> None:
        history = MessageHistory(turn, "key")
        assert await history.load(parse) is None
        await history.save(["all texts", "new"])

    life = AgentLife(agent)
    await other_task_sets(life, {"mine": 1, **history_of(["the user's text"])})
    assert await run(life) == {"mine": 1, **history_of(["all texts", "new"])}
    assert "cannot be read: ValueError" in caplog.text
    assert "the user's text" not in caplog.text


async def test_messages_are_added_to_those_that_another_task_has_saved_meanwhile() -> None:
    async def agent(turn: Turn) -> None:
        history = MessageHistory(turn, "key")
        await history.load(list)
        await other_task_sets(life, history_of(["a"], ["theirs"]))
        await history.save(["a", "ours"])

    life = AgentLife(agent)
    await other_task_sets(life, history_of(["a"]))
    assert await run(life) == history_of(["a"], ["theirs"], ["ours"])


async def test_a_history_that_the_framework_has_shortened_replaces_the_one_before() -> None:
    async def agent(turn: Turn) -> None:
        history = MessageHistory(turn, "key")
        await history.load(list)
        await history.save(["summary", "c"])

    life = AgentLife(agent)
    await other_task_sets(life, history_of(["a"], ["b"]))
    assert await run(life) == history_of(["summary", "c"])


async def test_the_oldest_turns_are_dropped_and_that_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    async def agent(turn: Turn) -> None:
        history = MessageHistory(turn, "key")
        await history.save([*(await history.load(list) or []), "x" * 30])

    kept = None
    for number in range(1, 6):
        life = AgentLife(agent)
        life.state_bytes = len(json.dumps(history_of(["x" * 30], ["x" * 30]), separators=(",", ":")))
        if kept:
            await other_task_sets(life, kept)
        kept = await run(life)
        assert kept == history_of(*[["x" * 30]] * min(number, 2), dropped=number > 2)
    assert [record.getMessage() for record in caplog.records] == [
        "The messages of this conversation exceed --max-state-bytes; from now on its oldest turns are dropped."
    ]


async def test_a_large_turn_is_kept_without_its_files() -> None:
    image = {"type": "image", "data": "x" * 60}

    async def agent(turn: Turn) -> None:
        history = MessageHistory(turn, "key", is_file=lambda value: value.get("type") == "image")
        await history.save([*(await history.load(list) or []), {"content": ["See", image]}])

    for limit, content in ((1_000, ["See", image]), (300, ["See"])):
        life = AgentLife(agent)
        life.state_bytes = limit
        assert await run(life) == history_of([{"content": content}])
