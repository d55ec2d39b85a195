"""From one end to the other: a front end's run over AG-UI, whose agent is another AG-UI agent."""

import asyncio
import json

from a2a_canvas import agui_agent
from a2a_canvas.tools.json_patching import apply_patch
from tests.server.protocols.agui.agui_verifier import verify
from tests.server.test_own_loop import served
from tests.server.tool_sources.agui_agents.agui_server import agui_server, called, interrupted, said, whole

TEXT = "# Tide pools\n" + "".join(f"Line {number}.\n" for number in range(30))
REASONING = {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Hm."}


async def events_of(url: str, *threads: str) -> list[list[dict]]:
    """What a front end gets for a run in each thread."""

    def run() -> list[list[dict]]:
        with served(agui_agent(url)) as client:
            return [_events(client, thread) for thread in threads]

    return await asyncio.to_thread(run)


def _events(client, thread: str) -> list[dict]:
    message = {"id": f"u-{thread}", "role": "user", "content": "Go"}
    response = client.post("/canvas/stream", json={"threadId": thread, "runId": "run", "messages": [message]})
    lines = response.text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


async def test_a_front_end_gets_well_formed_runs_also_when_text_is_taken_back() -> None:
    call = called("tide", '{"port": "Brest"}')
    script = whole(REASONING, *said("I look it up."), *call, *said(*TEXT.splitlines(keepends=True), message="m-2"))
    async with agui_server(script) as server:
        [events] = await events_of(server.url, "tides")
    verify(events)
    [end] = [event for event in events if event["type"] == "MESSAGES_SNAPSHOT"]
    assert end["messages"][-1]["content"].endswith("The answer is in the document tide-pools.md.")
    assert events[-1]["outcome"]["type"] == "success"


async def test_its_tool_calls_state_activities_and_custom_events_reach_the_front_end() -> None:
    plan = {"type": "ACTIVITY_SNAPSHOT", "messageId": "plan", "activityType": "PLAN", "content": {"steps": []}}
    state = {"type": "STATE_SNAPSHOT", "snapshot": {"port": ""}}
    delta = {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/port", "value": "Brest"}]}
    custom = {"type": "CUSTOM", "name": "weather", "value": 1}
    call = called("tide", '{"port": ', '"Brest"}', result="high")
    async with agui_server(whole(plan, state, *said("I look."), *call, delta, custom, *said("High."))) as server:
        [events] = await events_of(server.url, "tides")
    verify(events)
    kinds = [event["type"] for event in events]
    assert [each for each in kinds if each.startswith("TOOL_CALL")] == [
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT")
    ]
    [snapshot] = [event["snapshot"] for event in events if event["type"] == "STATE_SNAPSHOT"]
    for event in events:
        if event["type"] == "STATE_DELTA":
            snapshot = apply_patch(snapshot, event["delta"])
    assert (snapshot["agent"], snapshot["phase"]) == ({"port": "Brest"}, "completed")
    assert plan in events
    assert custom in events
    [end] = [event["messages"] for event in events if event["type"] == "MESSAGES_SNAPSHOT"]
    assert [(each["role"], each.get("content")) for each in end] == [
        ("user", "Go"),
        ("activity", {"steps": []}),
        ("assistant", None),
        ("tool", "high"),
        ("assistant", "High."),
    ]


async def test_an_interrupt_is_one_for_the_front_end() -> None:
    async with agui_server([*whole()[:1], interrupted("Where?")]) as server:
        [events] = await events_of(server.url, "tides")
    verify(events)
    assert [each["message"] for each in events[-1]["outcome"]["interrupts"]] == ["Where?"]


async def test_each_thread_is_another_one_of_the_agent_and_not_the_clients() -> None:
    async with agui_server(whole(*said("Yes."))) as server:
        await events_of(server.url, "one", "two")
    threads = {body["threadId"] for body in server.bodies}
    assert len(threads) == 2
    assert not threads & {"one", "two"}
