"""An AG-UI agent as the loop: what clients see of its runs, and what it is sent."""

import asyncio
import re
from dataclasses import replace

import pytest

from a2a_canvas.server.agent.events import (
    LlmCallCompleted,
    State,
    ThinkingAdded,
    ToolFailed,
    ToolInputAdded,
    ToolInputCompleted,
    ToolStep,
    ToolSucceeded,
    ToolUseStarted,
)
from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError, AgentFunction
from a2a_canvas.server.agent.loops.conversation import to_history
from a2a_canvas.server.agent.loops.run_function import NOT_RESTARTABLE
from a2a_canvas.server.agent.loops.run_record import run_record
from a2a_canvas.server.tool_sources.agui_agents.agui_client import AguiClient
from a2a_canvas.server.tool_sources.agui_agents.agui_loop import AguiAgent, agui_agent
from a2a_canvas.server.tool_sources.agui_agents.documents import document_rules
from a2a_canvas.server.tool_sources.agui_agents.run_mapping import NO_RESULT
from a2a_canvas.server.tool_sources.remote_agents.remote_task import DELAYS, RESENDS
from a2a_canvas.tools.functions.results import RESULT_LIMIT
from a2a_canvas.tools.tool import to_json
from tests.free_port import free_port
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.tool_sources.agui_agents.agui_server import (
    FINISHED,
    STARTED,
    agui_server,
    called,
    interrupted,
    said,
    whole,
)

TEXT = "# Tide pools\n" + "".join(f"Line {number}.\n" for number in range(30))


async def ended(*scripts, status: int = 200, **options) -> tuple[AgentLife, list[dict]]:
    async with agui_server(*scripts, status=status) as server:
        life = AgentLife(agui_agent(server.url, **options))
        await life.run()
        return life, server.bodies


async def test_its_text_is_the_reply() -> None:
    life, [body] = await ended(whole(*said("High ", "tide.")))
    assert (life.record.state, life.reply) == (State.COMPLETED, "High tide.")
    assert [(each["role"], each["content"]) for each in body["messages"]] == [("user", "Go")]


async def test_neither_the_clients_ids_nor_the_context_key_leave_the_server() -> None:
    _, [body] = await ended(whole(*said("Yes.")))
    assert not {"context", "task", "m-1"} & {body["threadId"], body["runId"], body["messages"][0]["id"]}


async def test_its_reasoning_is_thinking() -> None:
    thought = {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Hm."}
    life, _ = await ended(whole(thought, *said("Yes.")))
    assert [event.content for event in life.told.of(ThinkingAdded)] == ["Hm."]


async def test_a_long_answer_is_a_document_from_its_heading_and_the_reply_names_it() -> None:
    life, _ = await ended(whole(*said(*TEXT.splitlines(keepends=True))))
    assert life.texts() == {"tide-pools.md": TEXT}
    assert life.reply == "The answer is in the document tide-pools.md."


async def test_a_message_before_a_long_answer_stays_in_the_reply() -> None:
    life, _ = await ended(whole(*said("I have written it."), *said(TEXT, message="m-2")))
    assert life.texts() == {"tide-pools.md": TEXT}
    assert life.reply == "I have written it.\n\nThe answer is in the document tide-pools.md."


async def test_its_tool_calls_are_ours_and_text_before_them_is_a_message() -> None:
    call = called("tide", '{"port": ', '"Brest"}', result="high")
    life, _ = await ended(whole(*said("I look it up."), *call, *said("High.", message="m-2")))
    assert [event.name for event in life.told.of(ToolUseStarted)] == ["tide"]
    assert [event.partial_json for event in life.told.of(ToolInputAdded)] == ['{"port": ', '"Brest"}']
    assert [event.input for event in life.told.of(ToolInputCompleted)] == [{"port": "Brest"}]
    assert [event.content for event in life.told.of(ToolSucceeded)] == ["high"]
    assert life.said == ["I look it up.", "High."]


async def test_calls_at_the_same_time_are_made_in_one_round() -> None:
    [start, args, end, result] = called("tide", "{}", result="high")
    [start_2, args_2, end_2, result_2] = called("wind", "{}", call="c-2", result="low")
    crossed = [start, start_2, args_2, args, end, result, end_2, result_2]
    life, _ = await ended(whole(*crossed, *said("Done.")))
    assert [event.content for event in life.told.of(ToolSucceeded)] == ["high", "low"]
    assert len(life.told.of(LlmCallCompleted)) == 2
    assert life.reply == "Done."


async def test_text_that_comes_while_a_call_is_written_stays_in_the_reply() -> None:
    start, *rest = called("tide", "{}")
    life, _ = await ended(whole(start, *said(TEXT), *rest, *said("Done.", message="m-2")))
    assert life.texts() == {}
    assert life.said == [TEXT.strip(), "Done."]


async def test_a_call_without_a_result_has_one_that_says_so() -> None:
    life, _ = await ended(whole(*called("tide", "{}")[:-1], *said("Done.")))
    assert [event.error for event in life.told.of(ToolFailed)] == [NO_RESULT]
    assert life.reply == "Done."


async def test_the_result_of_a_call_counts_even_if_its_input_was_not_valid() -> None:
    """ag-ui-langgraph leaves out the first piece of an input."""
    life, _ = await ended(whole(*called("tide", '"Brest"}', result="high"), *said("Done.")))
    assert [event.content for event in life.told.of(ToolSucceeded)] == ["high"]
    assert [event.input for event in life.told.of(ToolInputCompleted)] == [{}]


async def test_a_result_that_is_too_long_is_cut() -> None:
    life, _ = await ended(whole(*called("tide", "{}", result="x" * (RESULT_LIMIT + 1)), *said("Done.")))
    [result] = life.told.of(ToolSucceeded)
    assert result.content == "x" * RESULT_LIMIT + "\n[These are the first 50000 of 50001 characters.]"


async def test_a_call_of_a_tool_that_has_the_name_of_ours_writes_no_artifact() -> None:
    call = called("artifact_update", '{"artifact": {"artifactId": "doc", "parts": [{"kind": "text", "text": "Hi"}]}}')
    life, _ = await ended(whole(*call, *said("Done.")))
    assert (life.texts(), len(life.told.of(ToolSucceeded))) == ({}, 1)


CUSTOM = {"type": "CUSTOM", "name": "weather", "value": 1}


def changed(value: object) -> dict:
    return {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/n", "value": value}]}


async def test_its_state_activities_and_custom_events_reach_agui_clients() -> None:
    activity = {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": {}}
    life, _ = await ended(whole(changed(1), CUSTOM, changed(2), {**activity, "timestamp": 1}, *said("Done.")))
    sent, state, _ = life.agui_events()
    snapshot = {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}}
    assert sent == [snapshot, CUSTOM, changed(2), activity]
    assert state == {"n": 2}


async def test_what_agui_clients_cannot_be_sent_is_logged_once_and_skipped(caplog) -> None:
    wrong = [{**CUSTOM, "name": "completed"}, changed("x" * 70_000), changed(1), changed("x" * 70_000), changed(2)]
    life, _ = await ended(whole(changed(0), *wrong, {"type": "STATE_SNAPSHOT", "snapshot": {}}, *said("Done.")))
    sent, state, _ = life.agui_events()
    assert (len(sent), state, life.reply) == (2, {}, "Done.")
    assert caplog.text.count("bytes of JSON") == 2  # the delta, and the snapshot in its place
    assert "'completed' is the name of an event of the server" in caplog.text


async def test_a_declared_key_of_its_state_is_a_document() -> None:
    deltas = [
        {"type": "STATE_SNAPSHOT", "snapshot": {"draft": {"text": "High"}, "n": 1}},
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/draft/text", "value": "High tide."}]},
    ]
    life, _ = await ended(whole(*deltas, *said(TEXT)), artifacts={"state.draft.text": "report.md"})
    assert life.texts() == {"report.md": "High tide."}
    assert life.reply.endswith("Line 29.")


async def test_a_declared_argument_of_a_tool_is_a_document() -> None:
    call = called("write_document", '{"title": "x", "content": "High', " ti\\u0064e", '."}')
    life, _ = await ended(whole(*call, *said("Written.")), artifacts={"tool.write_document.content": "report.md"})
    assert (life.texts(), life.reply) == ({"report.md": "High tide."}, "Written.")


async def test_an_interrupt_asks_and_the_answer_resumes_it() -> None:
    snapshot = {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}}
    first = [STARTED, snapshot, *said("I need to know.")]
    async with agui_server([*first, interrupted("Where?")], whole(*said("In Brest."))) as server:
        life = AgentLife(agui_agent(server.url))
        await life.run()
        assert life.record.state is State.INPUT_REQUIRED
        assert "Where?" in life.reply
        life.answer("Brest")
        await life.run()
    assert (life.record.state, life.reply) == (State.COMPLETED, "In Brest.")
    before, body = server.bodies
    assert body["resume"] == [{"interruptId": "i-1", "status": "resolved", "payload": "Brest"}]
    assert (body["state"], body["threadId"]) == ({"n": 1}, before["threadId"])
    assert body["runId"] != before["runId"]


async def test_a_run_that_fails_is_a_failed_task_and_its_reason_is_in_the_log_only(caplog) -> None:
    life, _ = await ended([STARTED, *said("I begin."), {"type": "RUN_ERROR", "message": "the secret"}])
    assert life.record.state is State.FAILED
    assert "secret" not in life.reply
    assert "the secret" in caplog.text


@pytest.mark.parametrize(
    ("script", "status", "why"),
    [
        ([STARTED, *said("I begin.")], 200, "broke in the middle"),
        ([STARTED, ["no event"]], 200, "not AG-UI"),
        ([STARTED, {"type": "TEXT_MESSAGE_CONTENT", "delta": 7}], 200, "not AG-UI"),
        ([], 401, "refuses access"),
        ([], 302, "redirects"),
        ([], 500, "HTTP 500"),
    ],
)
async def test_an_agent_that_cannot_answer_fails_the_task_with_a_sentence(script, status: int, why: str) -> None:
    life, _ = await ended(script, status=status)
    assert life.record.state is State.FAILED
    assert why in life.reply


async def test_what_a_failed_run_has_written_stays() -> None:
    call = called("write", '{"content": "High tide."}')
    life, _ = await ended([STARTED, *call], artifacts={"tool.write.content": "report.md"})
    assert (life.record.state, life.texts()) == (State.FAILED, {"report.md": "High tide."})


async def test_an_unknown_event_is_logged_once_and_skipped(caplog) -> None:
    life, _ = await ended(whole({"type": "WEATHER"}, {"type": "WEATHER"}, *said("Yes.")))
    assert life.reply == "Yes."
    assert caplog.text.count("WEATHER") == 1


def down(restart: bool = True) -> tuple[AgentLife, list[float]]:
    """An agent at an address where nothing answers, and how long it is waited for."""
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    agent = AguiAgent(AguiClient(f"http://127.0.0.1:{free_port()}/reef/run?key=secret"), "run", document_rules({}))
    return AgentLife(AgentFunction("agui", replace(agent, sleep=wait).run, restart)), waited


async def test_an_agent_that_cannot_be_reached_is_tried_again_and_its_address_is_in_the_log_only(caplog) -> None:
    life, waited = down()
    await life.run()
    assert (life.record.state, waited) == (State.FAILED, [*DELAYS[:RESENDS]])
    assert "nothing answers there" in life.reply
    assert "127.0.0.1" not in life.reply
    assert re.search(r"The run of the agent at http://127.0.0.1:\d+/reef/run failed: ", caplog.text)
    assert "secret" not in caplog.text


async def test_after_a_crash_it_is_waited_for_as_long_as_an_a2a_agent() -> None:
    client = YieldingClient(whole(*said("Yes.")))
    life = AgentLife(AgentFunction("agui", AguiAgent(client, "agui", document_rules({})).run, restartable=True))
    *_, after = [each for cut in await life.run() if not has_recorded(each := life.crash(cut))]
    lost, waited = down()
    after.agent = lost.agent
    await after.run()
    assert (after.record.state, waited) == (State.FAILED, [*DELAYS])


async def test_a_run_that_may_have_begun_is_not_sent_again() -> None:
    for status, tries in ((500, 1), (503, 1 + RESENDS)):
        async with agui_server([], status=status) as server:
            agent = AguiAgent(AguiClient(server.url), "run", document_rules({}), sleep=do_not_wait)
            await AgentLife(AgentFunction("agui", agent.run)).run()
        assert len(server.bodies) == tries


async def do_not_wait(seconds: float) -> None: ...


class YieldingClient(AguiClient):
    """An agent in this process, which can be cut off between any two events."""

    def __init__(self, script) -> None:
        super().__init__("http://127.0.0.1/run")
        self.script = script
        self.run_ids = set()

    async def events(self, body):
        self.run_ids.add(body["runId"])
        for event in self.script:
            await asyncio.sleep(0)
            yield event


@pytest.mark.parametrize("restart", [True, False])
async def test_a_run_that_a_crash_cut_off_is_sent_again_or_fails_the_task(restart: bool) -> None:
    """Cut off anywhere, and what it had shown and written until then is taken back."""
    call = called("write", '{"content": "High', ' tide."}')
    events = [changed(1), CUSTOM, changed(2), *said("I write."), *call]
    script = whole(*events, *said("It ", "is written.", message="m-2"))
    client = YieldingClient(script)
    rules = document_rules({"tool.write.content": "report.md"})
    life = AgentLife(AgentFunction("agui", AguiAgent(client, "agui", rules).run, restart))
    cuts = await life.run()
    ends = set()
    for cut in cuts:
        after = life.crash(cut)
        if not after.record.state.terminal:
            await after.run()
            sent, _, late = after.agui_events()
            assert sum(each == CUSTOM for each in sent) <= 1
            history = to_history([after.record.history], [after.record.transcript], (), ())
            said_before = [each.text for each in history if each.role == "agent"]
            ends.add((after.record.state, after.reply, *after.texts().values(), *said_before, to_json(late)))
    whole_end = (State.COMPLETED, "It is written.", "High tide.", "I write.", "It is written.", to_json([CUSTOM]))
    assert len(cuts) > 5
    assert len(client.run_ids) == 1
    if restart:
        assert ends == {whole_end}
    else:
        assert {end[:2] for end in ends} == {whole_end[:2], (State.FAILED, NOT_RESTARTABLE)}


async def test_tool_calls_that_a_cut_off_run_has_shown_are_no_progress() -> None:
    """A run that crashes the server again and again begins from its start each time, and is given up."""
    client = YieldingClient(whole(*called("tide", "{}"), *said("High.")))
    life = AgentLife(AgentFunction("agui", AguiAgent(client, "agui", document_rules({})).run, restartable=True))
    for _ in range(3):
        crashes = [life.crash(cut) for cut in await life.run()]
        life = [each for each in crashes if not has_recorded(each)][-1]
        assert life.told.of(ToolSucceeded)
    assert (life.crashes, run_record(life.record.transcript).crashes) == (3, 0)


def has_recorded(life: AgentLife) -> bool:
    return any(isinstance(item, ToolStep) and item.kind == "kept" for item in life.record.transcript)


def test_a_url_or_a_declaration_that_cannot_be_used_is_a_sentence() -> None:
    with pytest.raises(AgentDefinitionError, match="agui:http://HOST:PORT/PATH"):
        agui_agent("reef")
    with pytest.raises(AgentDefinitionError, match="names no document"):
        agui_agent("http://localhost:1", artifacts={"document": "report.md"})


async def test_it_gets_the_token_of_its_host() -> None:
    async with agui_server([STARTED, FINISHED]) as server:
        await AgentLife(agui_agent(server.url, tokens={"127.0.0.1": "secret"})).run()
    assert server.tokens == ["Bearer secret"]
