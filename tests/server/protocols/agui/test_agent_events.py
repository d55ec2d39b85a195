"""What an agent's function sends to AG-UI clients: wherever they join they have the same, and nobody else sees it."""

import json
from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas import Settings, Turn, create_app
from a2a_canvas.server.agent.events import AguiSent
from a2a_canvas.server.agent.loops.agent_function import agent_function
from a2a_canvas.server.protocols.a2a_v1.projection.turn_ext import to_turn_event
from a2a_canvas.server.tasks.push_configs import is_notified
from a2a_canvas.tools.json_patching import apply_patch
from tests.fakes import said
from tests.loopback import serving_app
from tests.property_examples import examples
from tests.server.agui_client import agent as client_after
from tests.server.protocols.agui.agui_runs import Json, Played, ScriptedRuntime, of
from tests.server.protocols.agui.agui_verifier import CLIENTS, verify

PLAN = {"messageId": "plan", "activityType": "PLAN"}
EVENTS: tuple[Json, ...] = (
    {"type": "STATE_SNAPSHOT", "snapshot": {"stage": "begun", "seen": []}},
    {"type": "CUSTOM", "name": "weather", "value": {"wind": None}},
    {"type": "ACTIVITY_SNAPSHOT", **PLAN, "content": {"steps": []}},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/seen/-", "value": "a"}]},
    {"type": "ACTIVITY_DELTA", **PLAN, "patch": [{"op": "add", "path": "/steps/-", "value": 1}]},
    {
        "type": "STATE_DELTA",
        "delta": [
            {"op": "test", "path": "/stage", "value": "begun"},
            {"op": "copy", "from": "/seen", "path": "/copied"},
            {"op": "move", "from": "/stage", "path": "/ended"},
        ],
    },
    {"type": "STATE_DELTA", "delta": [{"op": "test", "path": "/seen/0", "value": "a"}]},
    {"type": "ACTIVITY_SNAPSHOT", **PLAN, "content": {"steps": ["ignored"]}, "replace": False},
)
END = {"seen": ["a"], "copied": ["a"], "ended": "begun"}


async def played(events: Sequence[Json] = EVENTS) -> Played:
    """A task whose function sends events, and says and writes something in between."""

    async def agent(turn: Turn) -> None:
        for number, event in enumerate(events):
            await turn.stream(f"{number} ")
            await turn.agui(event)
            if number % 3 == 0:
                await turn.artifact("doc").append("x", name="doc.md")
        async with turn.tool("look", {}):
            pass
        await turn.say("Done.")

    return await ScriptedRuntime(agent=agent_function(agent)).play()


def state_of(run: list[Json]) -> Json:
    [snapshot] = of(run, "STATE_SNAPSHOT")
    state = snapshot["snapshot"]
    for event in of(run, "STATE_DELTA"):
        state = apply_patch(state, event["delta"])
    return state


def activities_of(run: list[Json]) -> dict[str, Any]:
    """As AG-UI's client folds them."""
    found: dict[str, Any] = {}
    for event in run:
        match event:
            case {"type": "ACTIVITY_SNAPSHOT", "messageId": message_id}:
                if message_id not in found or event.get("replace", True):
                    found[message_id] = event["content"]
            case {"type": "ACTIVITY_DELTA", "messageId": message_id}:
                found[message_id] = apply_patch(found[message_id], event["patch"])
    return found


async def test_wherever_a_client_joins_it_has_the_same_in_the_end() -> None:
    task = await played()
    runs = task.runs() + task.runs(older="doc")
    verify(*runs)
    for run in runs:
        assert state_of(run)["agent"] == END
        assert activities_of(run) == {"plan": {"steps": [1]}}
        assert of(run, "weather") == [{"wind": None}]


async def test_the_agents_state_leaves_ours_as_it_is() -> None:
    wild = [
        {"type": "STATE_SNAPSHOT", "snapshot": {"artifacts": {}, "phase": "failed"}},
        {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/artifacts"}]},
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "", "value": None}]},
    ]
    run = (await played(wild)).run()
    state = state_of(run)
    assert state["agent"] is None
    assert (state["phase"], list(state["artifacts"])) == ("completed", ["doc"])


async def test_a_messages_snapshot_keeps_the_activities() -> None:
    ends = [end for run in (await played()).runs() for end in of(run, "MESSAGES_SNAPSHOT")]
    assert len(ends) > 10
    for end in ends:
        [activity] = [each for each in end["messages"] if each["role"] == "activity"]
        assert (activity["id"], activity["content"]) == ("plan", {"steps": [1]})


async def test_a_client_that_answers_a_question_gets_no_custom_event_again() -> None:
    async def agent(turn: Turn) -> None:
        for event in EVENTS:
            await turn.agui(event)
        await turn.say(await turn.ask("Which?"))

    world = ScriptedRuntime(agent=agent_function(agent))
    asked = await world.play()
    assert of(asked.run(), "weather") == [{"wind": None}] == of(asked.run(len(asked.entries)), "weather")
    answered = await world.play(said("m-2", "This"), task_id=asked.records[0].task_id)
    run = answered.run()
    assert of(run, "weather") == []
    assert (state_of(run)["agent"], activities_of(run)) == (END, {"plan": {"steps": [1]}})


JSON = st.recursive(
    st.none() | st.integers(0, 9) | st.sampled_from(["", "a/~"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b/~", ""]), inner, max_size=3),
)
PATHS = st.lists(st.sampled_from(["a", "b~1~0", "", "0", "1", "-"]), max_size=3).map(
    lambda keys: "".join(f"/{key}" for key in keys)
)
OPERATIONS = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(["add", "replace", "test"]), "path": PATHS, "value": JSON}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": PATHS}),
    st.fixed_dictionaries({"op": st.sampled_from(["move", "copy"]), "from": PATHS, "path": PATHS}),
)
PATCHES = st.lists(OPERATIONS, max_size=3)
ANY_EVENTS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"type": st.just("STATE_SNAPSHOT"), "snapshot": JSON}),
        st.fixed_dictionaries({"type": st.just("STATE_DELTA"), "delta": PATCHES}),
        st.fixed_dictionaries({"type": st.just("CUSTOM"), "name": st.just("weather"), "value": JSON}),
        st.fixed_dictionaries(
            {
                "type": st.just("ACTIVITY_DELTA"),
                **{name: st.just(value) for name, value in PLAN.items()},
                "patch": PATCHES,
            }
        ),
    ),
    max_size=12,
)


@settings(max_examples=examples(60), deadline=None)
@given(ANY_EVENTS)
async def test_so_it_is_whatever_the_function_sends(events: list[Json]) -> None:
    async def agent(turn: Turn) -> None:
        for event in (EVENTS[0], EVENTS[2], *events):
            with suppress(ValueError):
                await turn.agui(event)
        await turn.say("Done.")

    runs = (await ScriptedRuntime(agent=agent_function(agent)).play()).runs()
    verify(*runs)
    ends = [json.dumps([state_of(run)["agent"], activities_of(run), of(run, "weather")]) for run in runs]
    assert len(set(ends)) == 1


async def test_nothing_else_shows_it() -> None:
    task = await played()
    sent = [entry.event for entry in task.entries if isinstance(entry.event, AguiSent)]
    assert len(sent) == len(EVENTS)
    for event in sent:
        assert to_turn_event(event) is None
        assert not is_notified(task.records[-1], event)


@pytest.mark.parametrize("client", CLIENTS)
async def test_agui_s_own_client_keeps_the_state_and_the_activity_over_two_runs(client: str) -> None:
    async def agent(turn: Turn) -> None:
        for event in EVENTS:
            await turn.agui(event)
        async with turn.tool("look", {}):
            pass
        await turn.say(await turn.ask("Which?"))

    options = Settings(model="rehearsal", database="memory", page=False, shared_token=None)
    app = create_app(options, loop=agent)
    async with serving_app(lambda url: app) as url, app.router.lifespan_context(app):
        thread: Any = SimpleNamespace(served=SimpleNamespace(url=url), id="tides")
        found = await client_after(thread, "Go", "resume:This", client=client)
    assert found["state"]["agent"] == END
    assert [each["content"] for each in found["messages"] if each["role"] == "activity"] == [{"steps": [1]}]
    assert len(of(found["events"], "weather")) == 1
