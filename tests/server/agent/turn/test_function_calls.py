"""Calls of function tools in a turn: when they run, what the model and the user see, and what a crash leaves."""

import asyncio
import json
from collections.abc import Callable

import pytest
from pydantic import BaseModel

from a2a_canvas import Canvas, File, ToolError, tool
from a2a_canvas.server.agent.events import ArtifactChanged, State, ToolFailed, ToolStep, ToolSucceeded
from a2a_canvas.server.agent.turn.function_calls import abandon
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall
from a2a_canvas.server.wire import CANVAS, is_yes
from a2a_canvas.store.models import Limits
from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.functions.results import RESULT_LIMIT
from a2a_canvas.tools.functions.running import HANDED_OVER
from a2a_canvas.tools.registry import TOOLS
from tests.extreme_values import deep
from tests.fakes import BROKEN, FakeLLM, Hold, answer, broken, decline, text, write
from tests.fakes import tool as call
from tests.server.agent.turn.cut_harness import YieldingModel
from tests.server.agent.turn.turn_harness import TurnHarness, check_request
from tests.server.agent.turn.turn_life import Life
from tests.server.agent.turn.turn_scripts import START


class Forecast(BaseModel):
    city: str
    degrees: int


@tool
async def weather(city: str, days: int = 3) -> str:
    """The forecast for a city."""
    return f"{city}: rain for {days} days"


@tool
async def fails(how: str, canvas: Canvas) -> str:
    """Fails."""
    await canvas.artifact("doc").append("half")
    match how:
        case "told":
            raise ToolError("There is no such city. Ask for its country.")
        case "cancelled":
            raise asyncio.CancelledError
        case _:
            raise ZeroDivisionError("the secret")


def harness(*calls, tools=(), **options) -> TurnHarness:
    return TurnHarness(*calls, tools=(*TOOLS, *(each.tool for each in tools)), **options)


async def run(function, given=None, **options) -> TurnHarness:
    turn = harness([*answer(call("T1", function.tool.name, given))], answer(text("Done.")), tools=[function], **options)
    await turn.run()
    return turn


async def test_the_model_reads_what_a_function_returns() -> None:
    turn = await run(weather, {"city": "Rome"})
    [result] = turn.results()
    assert (result.content, result.is_error) == ("Rome: rain for 3 days", False)
    assert turn.told.statuses == [("completed", "Done.")]
    assert "Running weather…" in turn.told.tool_labels


async def test_a_plain_function_runs_in_a_thread() -> None:
    @tool
    def where() -> str:
        """Where it runs."""
        return str(asyncio._get_running_loop())

    assert (await run(where)).results()[0].content == "None"


async def test_a_model_of_pydantic_is_read_as_json_and_nothing_as_a_sentence() -> None:
    @tool
    def forecast() -> list[Forecast]:
        """Forecasts."""
        return [Forecast(city="Rome", degrees=20), Forecast(city="Oslo", degrees=5)]

    @tool
    def nothing() -> None:
        """Nothing."""

    assert (await run(forecast)).results()[0].content == '{"city":"Rome","degrees":20}\n{"city":"Oslo","degrees":5}'
    assert (await run(nothing)).results()[0].content == "Done; it returned nothing."


async def test_a_wrong_input_is_explained_to_the_model_by_field() -> None:
    turn = await run(weather, {"days": "x", "more": 1})
    [result] = turn.results()
    assert result.is_error
    assert "city: is missing" in result.content
    assert "days: is 'x' and must be a whole number" in result.content
    assert "more: is unknown" in result.content


async def test_an_input_that_is_no_json_is_explained() -> None:
    turn = await run(weather, '{"city": ')
    assert "is not complete, valid JSON" in turn.results()[0].content


async def test_functions_run_when_the_message_is_complete_in_its_order_and_before_what_ends_the_turn() -> None:
    order: list[str] = []

    @tool
    async def note(what: str) -> str:
        """Notes."""
        order.append(what)
        return what

    calls = [
        call("T1", "note", {"what": "one"}, at=0),
        write("T2", "text", at=1),
        call("T3", "note", {"what": "two"}, at=2),
        decline("T4", "Enough.", at=3),
    ]
    turn = harness(answer(*calls), tools=[note])
    await turn.run()
    assert order == ["one", "two"]
    assert [event.tool_use_id for event in turn.told.of(ToolSucceeded)] == ["T2", "T1", "T3", "T4"]
    assert turn.told.statuses == [("rejected", "Enough.")]


async def test_what_a_broken_stream_called_is_not_run() -> None:
    ran: list[str] = []

    @tool
    async def note(what: str) -> str:
        """Notes."""
        ran.append(what)
        return what

    turn = harness(
        broken(call("T1", "note", {"what": "lost"}), BROKEN),
        answer(call("T2", "note", {"what": "kept"})),
        answer(text("Done.")),
        tools=[note],
    )
    await turn.run()
    assert ran == ["kept"]


async def test_calls_that_may_run_at_once_do() -> None:
    both = asyncio.Barrier(2)

    @tool(parallel=True)
    async def meet(name: str) -> str:
        """Waits for the other."""
        await both.wait()
        return name

    calls = [call(f"T{n}", "meet", {"name": str(n)}, at=n) for n in (1, 2)]
    turn = harness(answer(*calls), answer(text("Done.")), tools=[meet])
    await turn.run()
    assert [result.content for result in turn.results()] == ["1", "2"]


@pytest.mark.parametrize("kind", ["function", "tool"])
async def test_other_calls_run_one_after_another(kind: str) -> None:
    steps: list[str] = []

    async def note(name: str) -> str:
        """Notes when it begins and ends."""
        steps.append(f"{name} begins")
        for _ in range(20):
            await asyncio.sleep(0)
        steps.append(f"{name} ends")
        return name

    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    of_kind = {
        "function": tool(note).tool,
        "tool": FunctionTool("note", "Notes.", schema, lambda given, _: note(given["name"])),
    }
    calls = [call(f"T{n}", "note", {"name": str(n)}, at=n) for n in (1, 2)]
    await TurnHarness(answer(*calls), answer(text("Done.")), tools=(*TOOLS, of_kind[kind])).run()
    assert steps == ["1 begins", "1 ends", "2 begins", "2 ends"]


# ------------------------------------------------------------------------------ failures


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("told", "There is no such city. Ask for its country."),
        ("crash", "fails failed with an unexpected error. The operator's log has the details."),
        ("cancelled", "fails was cancelled by itself."),
    ],
)
async def test_a_failure_is_told_without_what_the_operator_alone_may_see_and_its_changes_are_undone(how, told) -> None:
    turn = await run(fails, {"how": how})
    [result] = turn.results()
    assert result.is_error
    assert result.content.startswith(told)
    assert "secret" not in result.content
    assert turn.told.statuses == [("completed", "Done.")]
    assert "half" not in "".join(version.content.text for version in await turn.versions() if not version.incomplete)


async def test_a_failure_undoes_the_changes_since_the_call_last_recorded_something() -> None:
    @tool
    async def works(canvas: Canvas) -> str:
        """Works in two steps."""
        await canvas.artifact("doc").append("The first step. ")
        await canvas.remember("steps", 1)
        await canvas.artifact("doc").append("The second")
        raise ToolError("The second step failed.")

    turn = await run(works)
    assert turn.results()[0].is_error
    assert (await turn.doc()).text == "The first step. "


async def test_a_call_that_takes_too_long_is_stopped() -> None:
    ended: list[str] = []

    @tool(timeout=0.01)
    async def slow() -> str:
        """Never ends."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")
        return ""

    turn = await run(slow)
    assert "took longer than 0.01 seconds" in turn.results()[0].content
    assert ended == ["stopped"]


async def test_a_turn_that_is_cancelled_ends_its_tools() -> None:
    hold, ended = Hold(), []

    @tool
    async def waits(canvas: Canvas) -> str:
        """Waits."""
        await canvas.artifact("doc").append("half")
        try:
            await hold()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return ""

    turn = harness(answer(call("T1", "waits")), tools=[waits])
    running = turn.start()
    await hold.reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == ["cancelled"]
    assert [version.incomplete for version in await turn.versions()] == [True]


async def test_a_result_that_is_too_long_is_a_file_that_the_model_is_told_of() -> None:
    @tool
    def long() -> str:
        """Long."""
        return "x" * (RESULT_LIMIT + 1)

    turn = await run(long)
    [result] = turn.results()
    assert len(result.content) < 3_000
    assert "of 50001 characters" in result.content
    assert "is in artifact 'long-T1.txt'" in result.content
    [changed] = [event for event in turn.told.of(ArtifactChanged) if event.last_chunk]
    assert (changed.artifact_id, len(changed.parts[0].content)) == ("long-T1.txt", RESULT_LIMIT + 1)


async def test_a_result_larger_than_an_artifact_may_be_fails_and_the_turn_goes_on() -> None:
    @tool
    def huge() -> File:
        """Huge."""
        return File("huge.bin", content=b"x" * 2_000)

    turn = await run(huge, artifact_limits=Limits(artifact_bytes=1_000))
    assert turn.results()[0].is_error
    assert turn.told.statuses == [("completed", "Done.")]


# ------------------------------------------------------------------------------ the canvas


async def test_a_tool_writes_artifacts_which_grow_while_it_runs_and_become_one_version() -> None:
    @tool
    async def writes(canvas: Canvas) -> str:
        """Writes."""
        report = canvas.artifact("report")
        await report.append("# Report\n", name="report.md")
        await report.append("one ")
        await report.append("two", {"rows": [1, 2]})
        await report.edit("one", "1")
        await canvas.progress("Nearly\n done")
        return await report.read()

    turn = await run(writes)
    changes = [(event.append, event.last_chunk, event.version) for event in turn.told.of(ArtifactChanged)]
    assert changes == [(False, False, 1), (True, False, 1), (True, False, 1), (True, True, 1), (False, True, 2)]
    assert turn.results()[0].content == "# Report\n1 two"
    assert await_names(turn) == ["report.md"]


def await_names(turn: TurnHarness) -> list[str]:
    return sorted({event.name for event in turn.told.of(ArtifactChanged)})


async def test_two_calls_at_once_cannot_write_the_same_artifact() -> None:
    both = asyncio.Barrier(2)

    @tool(parallel=True)
    async def writes(canvas: Canvas) -> str:
        """Writes."""
        try:
            await canvas.artifact("doc").append("x")
        finally:
            await both.wait()
        return "written"

    turn = harness(answer(*(call(f"T{n}", "writes", at=n) for n in (1, 2))), answer(text("Done.")), tools=[writes])
    await turn.run()
    assert sorted(result.is_error for result in turn.results()) == [False, True]
    assert (await turn.doc()).text == "x"


async def test_a_canvas_cannot_be_used_after_its_call() -> None:
    kept: list[Canvas] = []

    @tool
    async def keeps(canvas: Canvas) -> str:
        """Keeps it."""
        kept.append(canvas)
        return ""

    await run(keeps)
    with pytest.raises(RuntimeError):
        await kept[0].artifact("doc").append("late")


# ------------------------------------------------------------------------------ questions


class Booking:
    """A tool that asks twice, writes before, between and after, and counts what it does."""

    def __init__(self) -> None:
        self.paid = 0
        self.runs = 0

        @tool
        async def book(canvas: Canvas) -> str:
            """Books a table."""
            self.runs += 1
            plan = canvas.artifact("plan")
            await plan.append("Table. ", name="plan.md")
            when = await canvas.ask("When?")
            await plan.append(f"{when}. ")
            number = await canvas.once("pay", self.pay)
            await plan.edit("Table", "A table")
            where = await canvas.ask("Inside or outside?")
            await plan.append(f"{where}. ")
            return f"booked {number}"

        self.tool = book.tool

    async def pay(self) -> int:
        self.paid += 1
        return 42


def booking() -> tuple[Booking, Callable[[], Life]]:
    book = Booking()

    def life() -> Life:
        llm = FakeLLM([answer(text("I book."), call("T1", "book", at=1)), answer(text("Booked."))])
        return Life(llm, START, tools=(*TOOLS, book.tool))

    return book, life


PLAN = "A table. at eight. outside. "


async def test_a_tool_asks_and_is_run_again_with_the_answers() -> None:
    book, begin = booking()
    life = begin()
    await life.run()
    assert (life.record.state, life.record.message.text) == (State.INPUT_REQUIRED, "When?")
    assert life.texts() == {"plan": "Table. "}
    life.answer("at eight")
    await life.run()
    assert (life.record.state, life.record.message.text) == (State.INPUT_REQUIRED, "Inside or outside?")
    life.answer("outside")
    await life.run()
    assert (life.record.state, life.record.message.text) == (State.COMPLETED, "Booked.")
    assert life.texts() == {"plan": PLAN}
    assert (book.paid, book.runs) == (1, 3)
    [_, last] = life.llm._llm.requests
    check_request(last.messages)
    result, *said = last.messages[-1].content
    assert result.content == "booked 42"
    assert [each.text for each in said] == [
        '[A tool asked the user: "When?" The answer:]',
        "at eight",
        '[A tool asked the user: "Inside or outside?" The answer:]',
        "outside",
    ]
    assert all(each.note for each in said)  # what a tool was told is no new message, for the offline models


async def test_wherever_a_crash_cuts_it_off_it_comes_to_the_same_end() -> None:
    async def on(life: Life) -> list:
        """All that can be cut off from here on, to the end; the answers are given."""
        found = []
        while life.record.state is not State.COMPLETED:
            if life.record.state.paused:
                life.answer("at eight" if life.record.message.text == "When?" else "outside")
            found += [(life, cut) for cut in await life.run()]
        return found

    _, begin = booking()
    first = begin()
    calls = [answer(text("I book."), call("T1", "book", at=1)), answer(text("Booked."))]
    resumed = 0
    for interrupted, cut in await on(first):
        life = interrupted.crash(cut)
        if life.record.state.terminal:
            continue
        resumed += 1
        begun = any(type(item).__name__ == "ToolStep" for item in life.record.transcript)
        life.llm = YieldingModel(FakeLLM(calls[1:] if begun else calls))
        await on(life)
        life.check()
        assert life.record.state is State.COMPLETED
        assert life.texts() == {"plan": PLAN}
    assert resumed > 20


async def test_what_is_skipped_with_once_does_not_count_as_made_outside_of_it() -> None:
    @tool
    async def writes(canvas: Canvas) -> str:
        """Writes in `once`, asks, and writes more."""
        doc = canvas.artifact("doc")

        async def begin() -> None:
            await doc.append("In once. ")

        await canvas.once("begin", begin)
        await doc.append(f"{await canvas.ask('What else?')}.")
        return await doc.read()

    life = Life(FakeLLM([answer(call("T1", "writes")), answer(text("Done."))]), START, tools=(*TOOLS, writes.tool))
    await life.run()
    life.answer("Outside")
    await life.run()
    assert life.texts() == {"doc": "In once. Outside."}


async def test_a_crash_undoes_what_another_once_has_not_finished() -> None:
    """Two of them write two artifacts at the same time; each saves its own only."""
    runs: list[str] = []
    begun, first_ended = asyncio.Event(), asyncio.Event()

    @tool
    async def writes(canvas: Canvas) -> str:
        """Writes two artifacts at once."""

        async def slow() -> None:
            runs.append("slow")
            await canvas.artifact("slow").append(f"{len(runs)}, ")
            begun.set()
            await first_ended.wait()
            await canvas.artifact("slow").append("ended")

        async def fast() -> None:
            runs.append("fast")
            await begun.wait()
            await canvas.artifact("fast").append("ended")

        async def then() -> None:
            await canvas.once("fast", fast)
            first_ended.set()

        await asyncio.gather(canvas.once("slow", slow), then())
        return "written"

    life = Life(FakeLLM([answer(call("T1", "writes")), answer(text("Done."))]), START, tools=(*TOOLS, writes.tool))
    cuts = await life.run()
    for cut in cuts:
        again = life.crash(cut)
        if not any(step.kind == "kept" for step in again.record.transcript if isinstance(step, ToolStep)):
            continue
        runs[:] = ["slow", "fast"]
        again.llm = YieldingModel(FakeLLM([answer(text("Done."))]))
        await again.run()
        assert again.texts()["fast"] == "ended"
        assert again.texts()["slow"] in ("1, ended", "3, ended")
        assert runs.count("fast") == 1


async def test_another_message_instead_of_the_answer_is_the_answer() -> None:
    book, begin = booking()
    life = begin()
    await life.run()
    life.answer("never mind, at nine")
    await life.run()
    assert "never mind, at nine. " in life.texts()["plan"]
    assert book.runs == 2


# ------------------------------------------------------------------------------ approval


def approved_tool(ran: list[str], **options):
    @tool(approval="ask", **options)
    async def delete(path: str) -> str:
        """Deletes a file."""
        ran.append(path)
        return "deleted"

    return delete.tool


@pytest.mark.parametrize("words", ["yes", "Yes, please", "ok.", '{"approved": true}', "true"])
async def test_a_call_runs_when_the_user_has_approved_it(words) -> None:
    ran: list[str] = []
    llm = FakeLLM([answer(call("T1", "delete", {"path": "a.txt"})), answer(text("Done."))])
    life = Life(llm, START, tools=(*TOOLS, approved_tool(ran)))
    await life.run()
    assert (life.record.state, ran) == (State.INPUT_REQUIRED, [])
    assert life.record.message.text == 'May I run delete(path="a.txt")? Answer yes or no.'
    asked = {"toolCallId": "T1", "tool": "delete", "input": {"path": "a.txt"}}
    assert life.record.message.metadata == {CANVAS: {"approvals": [asked]}}
    life.answer(words)
    await life.run()
    assert (life.record.state, ran) == (State.COMPLETED, ["a.txt"])


async def test_a_call_that_is_not_approved_does_not_run_and_the_model_is_told() -> None:
    ran: list[str] = []
    llm = FakeLLM([answer(call("T1", "delete", {"path": "a.txt"})), answer(text("I left it."))])
    life = Life(llm, START, tools=(*TOOLS, approved_tool(ran)))
    await life.run()
    life.answer("No, keep it")
    await life.run()
    assert ran == []
    [failed] = life.told.of(ToolFailed)
    assert failed.error == "The user did not approve this call, and answered: No, keep it"


async def test_the_user_is_not_asked_about_a_call_that_its_tool_would_refuse() -> None:
    ran: list[str] = []
    wrong, right = call("T1", "delete", {"file": "a.txt"}), call("T2", "delete", {"path": "a.txt"})
    life = Life(
        FakeLLM([answer(wrong), answer(right), answer(text("Done."))]), START, tools=(*TOOLS, approved_tool(ran))
    )
    await life.run()
    [failed] = life.told.of(ToolFailed)
    assert failed.error.startswith("The input of delete is not valid, nothing was changed. path: is missing")
    assert life.record.message.text == 'May I run delete(path="a.txt")? Answer yes or no.'
    life.answer("yes")
    await life.run()
    assert ran == ["a.txt"]


NO = ("no", "", "nope", "not yes", '{"approved": false}', "{}", "[1]", "yesterday", deep(100_000))


@pytest.mark.parametrize("words", NO, ids=lambda words: words[:20])
def test_what_is_no_approval(words) -> None:
    assert not is_yes(words)


def test_an_approval_may_come_with_a_reason() -> None:
    reason = "The release was announced. " * 20
    assert is_yes(json.dumps({"approved": True, "reason": reason}))
    assert is_yes(f"Yes. {reason}")


# ------------------------------------------------------------------------------ crashes


async def test_a_call_that_is_not_idempotent_is_not_run_again_and_its_outcome_is_told_as_unknown() -> None:
    ran: list[str] = []

    @tool(idempotent=False)
    async def pay() -> str:
        """Pays."""
        ran.append("paid")
        await asyncio.sleep(0)
        return "paid"

    calls = [answer(call("T1", "pay")), answer(text("Done."))]
    first = Life(FakeLLM(calls), START, tools=(*TOOLS, pay.tool))
    cuts = await first.run()
    outcomes = set()
    for cut in cuts:
        life = first.crash(cut)
        if life.record.state.settled:
            continue
        steps = [item.kind for item in life.record.transcript if type(item).__name__ == "ToolStep"]
        life.llm = YieldingModel(FakeLLM(calls[1:] if steps else calls))
        ran.clear()
        await life.run()
        failed = [event.error for event in life.told.of(ToolFailed)]
        interrupted = "began" in steps and failed != []
        assert ran == ([] if "began" in steps else ["paid"])
        outcomes |= {interrupted}
        assert all("its outcome is unknown" in error for error in failed)
    assert outcomes == {True, False}


async def test_a_tool_that_is_gone_after_a_restart_is_told_to_the_model() -> None:
    ran: list[str] = []
    llm = FakeLLM([answer(call("T1", "delete", {"path": "a.txt"})), answer(text("Sorry."))])
    life = Life(llm, START, tools=(*TOOLS, approved_tool(ran)))
    await life.run()
    life.answer("yes")
    life.tools = TOOLS
    await life.run()
    assert life.told.of(ToolFailed)[0].error == "The tool 'delete' no longer exists."
    assert life.record.state is State.COMPLETED


async def restarted_without(tools, find_tool) -> Life:
    """A task whose call was approved, and goes on where its tool is not there yet."""
    llm = FakeLLM([answer(call("T1", "delete", {"path": "a.txt"})), answer(text("Done."))])
    life = Life(llm, START, tools=tools)
    await life.run()
    life.answer("yes")
    life.tools, life.find_tool = TOOLS, find_tool
    await life.run()
    assert life.record.state is State.COMPLETED
    return life


async def test_a_tool_that_is_not_there_yet_after_a_restart_is_waited_for() -> None:
    ran: list[str] = []
    tools = (*TOOLS, approved_tool(ran))

    async def find_tool(name: str):
        assert (name, ran) == ("delete", [])
        await asyncio.sleep(0)
        return tools[-1]

    life = await restarted_without(tools, find_tool)
    assert ran == ["a.txt"]
    assert "Waiting for delete…" in life.told.tool_labels


async def test_a_tool_that_does_not_come_is_told_with_the_reason() -> None:
    async def find_tool(name: str) -> str:
        return "the agent at http://a.example cannot be asked"

    life = await restarted_without((*TOOLS, approved_tool([])), find_tool)
    [failed] = life.told.of(ToolFailed)
    reason = "delete could not continue: the agent at http://a.example cannot be asked."
    assert failed.error == f"{reason} Do without it, or tell the user."


# ------------------------------------------------------------------------------ giving up


def asking_with_abandon(abandon, name: str = "book") -> FunctionTool:
    async def run(given, canvas):
        await canvas.remember("task", {"id": "7"})
        return await canvas.ask("When?")

    return FunctionTool(name, "Books.", {"type": "object"}, run, parallel=True, abandon=abandon)


@pytest.mark.parametrize(("reason", "given_up"), [((), ['{"id":"7"}']), ((HANDED_OVER,), [])])
async def test_a_call_that_waits_gives_up_when_its_turn_is_cancelled_and_not_when_it_goes_on_elsewhere(
    reason, given_up
) -> None:
    hold, found = Hold(), []

    async def abandon(record) -> None:
        found.append(record.kept["task"])

    @tool
    async def later() -> str:
        """Takes long."""
        await hold()
        return ""

    calls = answer(call("T1", "book"), call("T2", "later", at=1))
    running = TurnHarness(calls, tools=(*TOOLS, asking_with_abandon(abandon), later.tool)).start()
    await hold.reached.wait()
    running.cancel(*reason)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert found == given_up


async def test_a_call_that_cannot_give_up_is_logged_and_keeps_no_other_from_it(caplog) -> None:
    done = []

    async def fails(record) -> None:
        raise ZeroDivisionError

    async def works(record) -> None:
        done.append(record)

    calls = [FunctionCall("T1", 0, "fails", {}), FunctionCall("T2", 1, "gone", {}), FunctionCall("T3", 2, "works", {})]
    await abandon(calls, {each: asking_with_abandon(way, each) for each, way in (("fails", fails), ("works", works))})
    assert (len(done), caplog.messages) == (
        1,
        ["Cannot end what a call of gone has started elsewhere: the tool is missing", "A call could not be abandoned"],
    )
