"""The tools of the agent's folder in its own loop: each call is a model's call, and a step."""

import asyncio
import json

import pytest

from a2a_canvas import Canvas, ToolError, tool
from a2a_canvas.server.accounts.access import Level
from a2a_canvas.server.agent.events import State, ToolFailed, ToolStep, ToolSucceeded, ToolUseStarted, UserMessage
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.model import ToolResult
from a2a_canvas.server.tasks.answering import may_answer
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.functions.results import RESULT_LIMIT
from tests.fakes import Hold, said
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.loops.test_run_function import moment


@tool
async def water(port: str) -> str:
    """High water in a port."""
    if port != "Brest":
        raise ToolError(f"There is no port {port}. There is Brest.")
    return "5.9 m"


class Berths:
    """Tools that write and ask, and count what they do."""

    def __init__(self, **options) -> None:
        self.booked: list[str] = []

        @tool(**options)
        async def book(port: str, canvas: Canvas) -> str:
            """Books a berth."""
            log = canvas.artifact("log")
            await log.append("Berth", name="log.md")
            nights = await canvas.ask("How many nights?")
            number = await canvas.once("book", lambda: self._book(port))
            await moment()
            await log.append(f" {number} for {nights} nights")
            return f"Booked {number}."

        self.book = book.tool

    async def _book(self, port: str) -> int:
        self.booked.append(port)
        await moment()
        return len(self.booked)


def life_of(agent, *tools) -> AgentLife:
    return AgentLife(agent, tools=[getattr(each, "tool", each) for each in tools])


async def ended(agent, *tools) -> AgentLife:
    life = life_of(agent, *tools)
    await life.run()
    life.check()
    return life


async def test_the_tools_have_what_a_framework_needs() -> None:
    async def agent(turn: Turn) -> None:
        [each] = turn.tools
        await turn.say(json.dumps([each.name, each.description, each.input_schema["required"], each.needs_approval]))

    life = await ended(agent, water)
    assert json.loads(life.reply) == ["water", "High water in a port.", ["port"], False]


async def test_a_call_looks_as_one_of_a_model_and_returns_what_a_model_would_read() -> None:
    async def agent(turn: Turn) -> None:
        await turn.stream("I look.")
        await turn.stream(f"High water: {await turn.tools.find('water').call({'port': 'Brest'})}")

    life = await ended(agent, water)
    assert life.said == ["I look.", "High water: 5.9 m"]
    assert [each.name for each in life.told.of(ToolUseStarted)] == ["water"]
    assert [each.content for each in life.told.of(ToolSucceeded)] == ["5.9 m"]
    assert "Running water…" in life.told.tool_labels


@pytest.mark.parametrize(("given", "text"), [({"port": "Rome"}, "There is no port Rome"), ({}, "port: is missing")])
async def test_a_call_that_fails_raises_what_a_model_would_read(given, text) -> None:
    async def agent(turn: Turn) -> None:
        with pytest.raises(ToolError) as failed:
            await turn.tools.find("water").call(given)
        await turn.say(str(failed.value))

    life = await ended(agent, water)
    assert text in life.reply
    assert [each.error for each in life.told.of(ToolFailed)] == [life.reply]


async def test_a_tool_that_there_is_not_and_an_input_that_is_no_json_are_errors_that_name_it() -> None:
    async def agent(turn: Turn) -> None:
        with pytest.raises(ToolError, match="no tool 'wind'"):
            turn.tools.find("wind")
        with pytest.raises(ValueError, match="input of water is not JSON"):
            await turn.tools.find("water").call({"port": object()})
        await turn.say("Done.")

    assert (await ended(agent, water)).reply == "Done."


async def test_a_call_in_once_is_an_error() -> None:
    async def agent(turn: Turn) -> None:
        with pytest.raises(RuntimeError, match="Steps cannot contain each other"):
            await turn.once("look", lambda: turn.tools.find("water").call({"port": "Brest"}))
        await turn.say("Done.")

    assert (await ended(agent, water)).reply == "Done."


async def test_a_long_result_is_an_artifact() -> None:
    @tool
    def long() -> str:
        """Long."""
        return "x" * (RESULT_LIMIT + 1)

    async def agent(turn: Turn) -> None:
        await turn.say((await turn.tools.find("long").call({}))[-200:])

    life = await ended(agent, long)
    assert "is in artifact 'long-long-call" in life.reply


async def test_a_tool_may_write_what_the_function_has_written_and_fails_without_harm_to_it() -> None:
    @tool
    async def sign(canvas: Canvas, fail: bool = False) -> str:
        """Signs the report."""
        await canvas.artifact("report").append(" Signed.")
        if fail:
            raise ToolError("No ink.")
        return "signed"

    async def agent(turn: Turn) -> None:
        report = turn.artifact("report")
        await report.append("Tides.")
        with pytest.raises(ToolError, match="No ink"):
            await turn.tools.find("sign").call({"fail": True})
        await turn.tools.find("sign").call({})
        await report.append(" Sent.")

    assert (await ended(agent, sign)).texts() == {"report": "Tides. Signed. Sent."}


async def test_the_function_cannot_write_what_a_running_call_writes() -> None:
    hold = Hold()

    @tool
    async def write(canvas: Canvas) -> str:
        """Writes."""
        await canvas.artifact("report").append("A")
        await hold()
        return ""

    async def agent(turn: Turn) -> None:
        call = asyncio.create_task(turn.tools.find("write").call({}))
        await hold.reached.wait()
        with pytest.raises(ToolError, match="being written"):
            await turn.artifact("report").append("B")
        hold.release.set()
        await call
        await turn.say("Written.")

    life = await ended(agent, write)
    assert (life.reply, life.texts()) == ("Written.", {"report": "A"})


# ------------------------------------------------------------------------------ questions


async def test_a_tool_asks_and_its_call_returns_when_the_function_runs_again() -> None:
    berths = Berths()

    async def agent(turn: Turn) -> None:
        await turn.stream("I book.")
        await turn.stream(await turn.tools.find("book").call({"port": "Brest"}))

    life = life_of(agent, berths.book)
    await life.run()
    assert (life.record.state, life.reply) == (State.INPUT_REQUIRED, "How many nights?")
    life.answer("two")
    await life.run()
    life.check()
    assert life.said == ["I book.", "How many nights?", "Booked 1."]
    assert life.texts() == {"log": "Berth 1 for two nights"}


async def test_a_tool_that_needs_approval_asks_as_for_a_models_call() -> None:
    calls: list[str] = []

    @tool(approval="ask", idempotent=False)
    def pay(euros: int) -> str:
        """Pays."""
        calls.append(f"{euros} €")
        return "paid"

    async def agent(turn: Turn) -> None:
        await turn.say(await turn.tools.find("pay").call({"euros": 5}))

    life = life_of(agent, pay)
    life.owner, life.caller = "ann", "bob"
    await life.run()
    assert life.reply.startswith("May I run pay(euros=5) for bob? This waits for the owner")
    [approval] = life.record.message.metadata[CANVAS]["approvals"]
    assert (approval["tool"], approval["input"]) == ("pay", {"euros": 5})
    assert calls == []
    assert not may_answer(life.record, "bob", Level.EDIT)
    assert may_answer(life.record, "eve", Level.APPROVE)
    assert not may_answer(life.record, "eve", Level.APPROVE, of_model=True)
    life.answer("yes")
    await life.run()
    assert (life.reply, calls) == ("paid", ["5 €"])


async def test_a_call_that_is_not_approved_raises_the_answer_and_one_with_a_wrong_input_does_not_ask() -> None:
    @tool(approval="ask")
    def pay(euros: int) -> str:
        """Pays."""
        raise AssertionError

    async def agent(turn: Turn) -> None:
        for euros in ("five", 5):
            try:
                await turn.tools.find("pay").call({"euros": euros})
            except ToolError as error:
                await turn.say(str(error))

    life = life_of(agent, pay)
    await life.run()
    assert life.reply.startswith("May I run pay(euros=5)?")
    life.answer("no, too much")
    await life.run()
    assert life.reply == "The user did not approve this call, and answered: no, too much"
    assert "must be a whole number" in "".join(life.said)


async def test_a_message_sent_before_the_question_does_not_approve_the_call() -> None:
    @tool(approval="ask")
    def pay() -> str:
        """Pays."""
        raise AssertionError

    sent: list[UserMessage] = []

    async def agent(turn: Turn) -> None:
        if turn.text == "yes":
            return
        if not sent:
            sent.append(said("m-2", "yes"))
            life.send(sent[0])
        try:
            await turn.tools.find("pay").call({})
        except ToolError as error:
            await turn.say(str(error))

    life = life_of(agent, pay)
    await life.run()
    assert life.record.state is State.INPUT_REQUIRED
    life.answer("no")
    await life.run()
    assert life.said[-1] == "The user did not approve this call, and answered: no"


async def test_a_framework_that_has_its_own_approvals_asks_one_question() -> None:
    @tool(approval="ask")
    def pay(euros: int) -> str:
        """Pays."""
        return f"paid {euros}"

    async def agent(turn: Turn) -> None:
        pay = turn.tools.find("pay")
        calls = {"a": {"euros": 1}, "b": {"euros": 2}}
        approved = await asyncio.gather(*(pay.approve(given, call_id) for call_id, given in calls.items()))
        paid = [await pay.call(given, call_id) for call_id, given in calls.items()]
        await turn.say(f"{approved} {paid} {await pay.call({'euros': 3}, approved=True)}")

    life = life_of(agent, pay)
    await life.run()
    assert len(life.record.message.metadata[CANVAS]["approvals"]) == 2
    life.answer("yes")
    await life.run()
    life.check()
    assert life.reply == "[True, True] ['paid 1', 'paid 2'] paid 3"
    assert len(life.told.of(ToolUseStarted)) == 3


async def test_calls_at_once_that_ask_are_one_message_and_the_others_run_to_their_ends() -> None:
    ran: list[str] = []

    @tool(parallel=True)
    async def slow() -> str:
        """Takes longer than the others."""
        for _ in range(20):
            await moment()
        ran.append("slow")
        return "slow"

    @tool(parallel=True)
    async def where(canvas: Canvas, of: str) -> str:
        """Asks."""
        return f"{of}: {await canvas.ask(f'Where is {of}?')}"

    async def agent(turn: Turn) -> None:
        calls = [("where", {"of": "A"}), ("slow", {}), ("where", {"of": "B"})]
        await turn.say(
            " ".join(
                await asyncio.gather(
                    *(turn.tools.find(name).call(given, f"c{n}") for n, (name, given) in enumerate(calls))
                )
            )
        )

    life = life_of(agent, slow, where)
    await life.run()
    assert life.reply == "Where is A?\nWhere is B?"
    life.answer("here")
    await life.run()
    assert (life.reply, ran) == ("A: here slow B: here", ["slow"])


@pytest.mark.parametrize("of_tool", [True, False])
async def test_credentials_are_not_recorded(of_tool, caplog) -> None:
    used: list[str] = []

    @tool
    async def login(canvas: Canvas) -> str:
        """Logs in."""
        used.append(await canvas.ask("Your password?", authentication=True))
        return "logged in"

    async def agent(turn: Turn) -> None:
        if of_tool:
            await turn.tools.find("login").call({})
        else:
            used.append(await turn.ask("Your password?", authentication=True))
            await turn.once("log in", moment)
        await turn.say("Logged in.")

    life = life_of(agent, login)
    life.caller = "bob"
    await life.run()
    assert (life.record.state, life.reply) == (State.AUTH_REQUIRED, "For bob: Your password?")
    assert may_answer(life.record, "bob", Level.EDIT)
    assert not may_answer(life.record, "bob", Level.EDIT, of_model=True)
    life.answer("opensesame")
    await life.run()
    assert (life.reply, used) == ("Logged in.", ["opensesame"])
    assert "opensesame" not in repr(life.told.events)


# ------------------------------------------------------------------------------ what a crash leaves


class Voyage:
    """A function that calls tools, one after another and at once, says and writes in between."""

    def __init__(self, **options) -> None:
        self.berths = Berths(**options)
        self.looks = 0

        @tool(parallel=True)
        async def look(at: str, canvas: Canvas) -> str:
            """Looks."""
            self.looks += 1
            await moment()
            await canvas.artifact(at).append("seen")
            return f"saw {at}"

        self.tools = [look.tool, self.berths.book]

    async def agent(self, turn: Turn) -> None:
        await turn.stream("I look. ")
        await turn.artifact("report").append("Seen: ")
        await moment()
        look = turn.tools.find("look")
        seen = await asyncio.gather(*(look.call({"at": at}, at) for at in ("port", "sea")))
        await turn.stream("Seen. ")
        await moment()
        await turn.artifact("report").append(", ".join(seen))
        booked = await turn.tools.find("book").call({"port": "Brest"})
        await moment()
        await turn.stream(booked)


async def on(life: AgentLife) -> list:
    found = []
    while not life.record.state.terminal:
        if life.record.state.paused:
            life.answer("two")
        found += [(life, cut) for cut in await life.run()]
    return found


async def test_wherever_a_crash_cuts_it_off_it_comes_to_the_same_end_and_no_recorded_result_is_made_again() -> None:
    voyage = Voyage()
    first = life_of(voyage.agent, *voyage.tools)
    cuts = await on(first)
    texts = {"report": "Seen: saw port, saw sea", "port": "seen", "sea": "seen", "log": "Berth 1 for two nights"}
    assert (first.said, first.texts()) == (["I look.", "Seen.", "How many nights?", "Booked 1."], texts)
    resumed = 0
    for interrupted, cut in cuts:
        voyage = Voyage()
        life = life_of(voyage.agent, *voyage.tools)
        life.store = type(life.store)(None, cut.documents)
        life.told.events = interrupted.told.events[: cut.told]
        if life.record.state.terminal:
            continue
        booked = any(isinstance(item, ToolStep) and item.name == "book" for item in life.record.transcript)
        voyage.berths.booked += [""] * booked
        recorded = {item.content for item in life.record.transcript if isinstance(item, ToolResult)}
        resumed += 1
        await on(life)
        life.check()
        assert (life.said, life.texts()) == (first.said, texts)
        assert len(voyage.berths.booked) == 1
        assert voyage.looks == sum(f"saw {at}" not in recorded for at in ("port", "sea"))
    assert resumed > 20


async def test_a_call_that_is_not_idempotent_is_not_run_again_after_a_crash() -> None:
    ran: list[str] = []

    @tool(idempotent=False)
    async def pay() -> str:
        """Pays."""
        ran.append("pay")
        await moment()
        return "paid"

    async def agent(turn: Turn) -> None:
        try:
            await turn.say(await turn.tools.find("pay").call({}))
        except ToolError as error:
            await turn.say(str(error))

    first = life_of(agent, pay)
    cuts = await on(first)
    assert first.reply == "paid"
    unknown = 0
    for interrupted, cut in cuts:
        life = life_of(agent, pay)
        life.store = type(life.store)(None, cut.documents)
        life.told.events = interrupted.told.events[: cut.told]
        steps = [item for item in life.record.transcript if isinstance(item, ToolStep) and item.tool_use_id]
        began = any(item.kind == "began" for item in steps)
        ran.clear()
        if life.record.state.terminal:
            continue
        await on(life)
        if began:
            assert ran == []
            assert life.reply == "paid" or "outcome is unknown" in life.reply
            unknown += life.reply != "paid"
        else:
            assert (life.reply, ran) == ("paid", ["pay"])
    assert unknown


async def test_a_tool_that_is_missing_after_a_restart_is_waited_for_and_its_result_needs_none() -> None:
    asked: list[str] = []

    async def agent(turn: Turn) -> None:
        high = await turn.tools.find("water").call({"port": "Brest"})
        await turn.say(f"{high} {await turn.ask('Where?')}")

    async def find(name: str) -> str:
        asked.append(name)
        return f"the server of {name} is not there"

    life = life_of(agent, water)
    await life.run()
    life.tools, life.find_tool = [], find
    life.answer("here")
    await life.run()
    assert (life.reply, asked) == ("5.9 m here", ["water"])


async def test_a_turn_that_is_cancelled_ends_its_calls_and_gives_up_those_that_wait() -> None:
    hold, ended_calls = Hold(), []

    async def wait(given, canvas) -> str:
        try:
            await hold()
        except asyncio.CancelledError:
            ended_calls.append("cancelled")
            raise
        return ""

    async def give_up(record) -> None:
        ended_calls.append("given up")

    waits = FunctionTool("waits", "Waits.", {"type": "object"}, wait, abandon=give_up)

    async def agent(turn: Turn) -> None:
        await turn.tools.find("waits").call({})

    life = life_of(agent, waits)
    running = asyncio.create_task(life.run())
    await hold.reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended_calls == ["cancelled", "given up"]


async def test_a_call_that_the_function_did_not_wait_for_is_cancelled_at_its_end() -> None:
    hold, ended_calls = Hold(), []

    @tool
    async def waits() -> str:
        """Waits."""
        try:
            await hold()
        except asyncio.CancelledError:
            ended_calls.append("cancelled")
            raise
        return ""

    background = []

    async def agent(turn: Turn) -> None:
        background.append(asyncio.create_task(turn.tools.find("waits").call({})))
        await hold.reached.wait()

    life = await ended(agent, waits)
    assert (life.record.state, ended_calls) == (State.COMPLETED, ["cancelled"])
    await asyncio.wait(background)


async def test_a_tool_shows_its_progress_and_has_its_time_limit() -> None:
    @tool(timeout=0.01)
    async def slow(canvas: Canvas) -> str:
        """Never ends."""
        await canvas.progress("Waiting for the tide…")
        await asyncio.Event().wait()
        return ""

    async def agent(turn: Turn) -> None:
        with pytest.raises(ToolError, match="took longer than"):
            await turn.tools.find("slow").call({})
        await turn.say("Done.")

    life = await ended(agent, slow)
    assert life.reply == "Done."
    assert "Waiting for the tide…" in life.told.tool_labels
