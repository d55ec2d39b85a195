"""Steps of an agent's function: what they record, what a rerun repeats, and what is an error."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import pytest

from a2a_canvas.server.agent.events import LlmCallCompleted, MessageStarted, State, TextAdded
from a2a_canvas.server.agent.loops.agent_function import agent_function
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.model import Usage
from a2a_canvas.tools.functions.results import ToolError
from tests.server.agent.loops.agent_life import AgentLife, ended
from tests.server.agent.turn.cut_harness import Cut

KILLED: ContextVar[asyncio.Event] = ContextVar("killed")


async def kill() -> None:
    """The server is killed here."""
    KILLED.get().set()
    await asyncio.Event().wait()


async def crashed(function) -> AgentLife:
    """What the server finds that takes the task over after `kill`."""
    life = AgentLife(function)
    KILLED.set(killed := asyncio.Event())
    running = asyncio.create_task(life.run())
    await killed.wait()
    left = life.crash(Cut(len(life.told.events), life.store.documents))
    running.cancel()
    await asyncio.wait((running,))
    return left


async def rerun(first, second) -> AgentLife:
    """The task after a crash of `first`; `second` is the function's code then."""
    life = await crashed(first)
    life.agent = agent_function(second)
    await life.run()
    return life


async def after_a_crash(work: Callable[[Turn, int], Awaitable[None]]) -> AgentLife:
    """The task of a function that is given how often it has run, and is killed in its run 0."""
    runs: list[int] = []

    async def agent(turn: Turn) -> None:
        runs.append(len(runs))
        await work(turn, runs[-1])

    return await rerun(agent, agent)


async def nothing() -> None:
    pass


# ------------------------------------------------------------------- what a step records


@pytest.mark.parametrize("of_tool", [False, True])
async def test_a_step_takes_an_async_function_and_not_its_result(of_tool: bool) -> None:
    async def fetch() -> int:
        return 1

    async def agent(turn: Turn) -> None:
        async def step(fn) -> None:
            if not of_tool:
                await turn.once("rate", fn)
            else:
                async with turn.tool("rate", {}) as call:
                    await call.run(fn)

        with pytest.raises(
            TypeError, match=r"The function of 'rate' is not async\. Write async def, or lambda: asyncio"
        ):
            await step(lambda: 1)
        with pytest.raises(
            TypeError, match=r"'rate.*' got a call's coroutine, not a function\. Write lambda: in front"
        ):
            await step(fetch())

    life = await ended(agent)
    assert life.record.state is State.COMPLETED


async def test_the_change_after_a_skipped_step_that_wrote_is_made() -> None:
    async def work(turn: Turn, run: int) -> None:
        report = turn.artifact("report")
        await turn.once("first", lambda: report.append("a"))
        if run == 0:
            await kill()
        await report.append("b")

    assert (await after_a_crash(work)).texts() == {"report": "ab"}


async def test_a_rerun_opens_a_round_that_begins_with_what_the_step_has_recorded() -> None:
    async def work(turn: Turn, run: int) -> None:
        await turn.once("look", lambda: turn.stream("Looked. "))
        await turn.stream(f"Lost {run}.")
        if run == 0:
            await kill()

    life = await after_a_crash(work)
    assert [event.text for event in life.told.of(TextAdded)] == ["Looked. ", "Lost 0.", "Looked. ", "Lost 1."]
    assert [event.round for event in life.told.of(MessageStarted)] == [1, 2]
    assert life.said == ["Looked. Lost 1."]


async def test_tokens_of_a_recorded_step_are_reported_once_and_not_spent_again() -> None:
    async def work(turn: Turn, run: int) -> None:
        await turn.once("model", lambda: turn.usage(7))
        if run == 0:
            await kill()

    life = await after_a_crash(work)
    assert sum((event.usage for event in life.told.of(LlmCallCompleted)), Usage()) == Usage(7)
    assert life.spent == (0, 0)


async def test_reasoning_that_a_step_has_shown_is_shown_again() -> None:
    async def work(turn: Turn, run: int) -> None:
        await turn.once("think", lambda: turn.think("Hm."))
        if run == 0:
            await kill()
        await turn.say("Done.")

    life = await after_a_crash(work)
    blocks = [type(block).__name__ for item in life.record.transcript for block in getattr(item, "blocks", ())]
    assert blocks == ["Thinking", "ModelText"]


async def test_the_nth_step_of_a_name_is_not_the_step_whose_name_ends_so() -> None:
    async def agent(turn: Turn) -> None:
        names = ("a 2", "a#2", "a", "a")
        results = [await turn.once(name, lambda n=n: value(n)) for n, name in enumerate(names)]
        await turn.say(str(results))

    async def value(n: int) -> int:
        return n

    life = await ended(agent)
    assert life.reply == "[0, 1, 2, 3]"


@pytest.mark.parametrize("of_tool", [False, True])
async def test_steps_with_keys_may_change_their_order(of_tool: bool) -> None:
    ran: list[str] = []

    async def step(turn: Turn, key: str) -> str:
        async def run() -> str:
            ran.append(key)
            return key.upper()

        if not of_tool:
            return await turn.once("step", run, key=key)
        async with turn.tool("step", {}, key=key) as call:
            return await call.run(run)

    async def work(turn: Turn, run: int) -> None:
        found = [await step(turn, key) for key in ("ab" if run == 0 else "bac")]
        if run == 0:
            await kill()
        await turn.say("".join(found))

    life = await after_a_crash(work)
    assert (life.reply, ran) == ("BAC", ["a", "b", "c"])


# ------------------------------------------------------------------- steps at the same time


async def test_of_steps_at_the_same_time_each_records_its_own_changes_and_text() -> None:
    ended = asyncio.Event()

    async def fast(turn: Turn) -> None:
        await turn.artifact("fast").append("f")
        await turn.say("Fast.")

    async def slow(turn: Turn, run: int) -> None:
        await turn.artifact("slow").append("s")
        await turn.say("Slow, first half.")
        await ended.wait()
        if run == 0:
            await kill()
        await turn.artifact("slow").append("!")
        await turn.say("Slow, second half.")

    async def work(turn: Turn, run: int) -> None:
        async def first() -> None:
            await turn.once("fast", lambda: fast(turn))
            ended.set()

        await asyncio.gather(turn.once("slow", lambda: slow(turn, run)), first())

    life = await after_a_crash(work)
    assert life.texts() == {"fast": "f", "slow": "s!"}
    assert life.said == ["Fast.\n\nSlow, first half.\n\nSlow, second half."]


async def test_two_steps_that_write_the_same_artifact_get_an_error_that_names_both() -> None:
    async def agent(turn: Turn) -> None:
        async def write(text: str) -> None:
            await turn.artifact("report").append(text)
            await asyncio.sleep(0)

        results = await asyncio.gather(
            turn.once("one", lambda: write("1")), turn.once("two", lambda: write("2")), return_exceptions=True
        )
        await turn.say(str(results[1]))

    life = await ended(agent)
    assert life.reply == "Artifact 'report' is being written by the step 'one'. Try again after it."
    assert life.texts() == {"report": "1"}


async def test_a_task_that_is_started_in_a_step_is_in_the_step() -> None:
    async def work(turn: Turn, run: int) -> None:
        async def step() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(turn.artifact("report").append("a"))
                group.create_task(turn.stream("Said."))

        await turn.once("step", step)
        if run == 0:
            await kill()

    life = await after_a_crash(work)
    assert (life.texts(), life.said) == ({"report": "a"}, ["Said."])


@pytest.mark.parametrize("use", ["once", "ask", "messages", "tool"])
async def test_a_task_that_is_started_in_a_step_cannot_begin_another_or_ask(use: str) -> None:
    async def agent(turn: Turn) -> None:
        async def inner() -> None:
            match use:
                case "once":
                    await turn.once("inner", nothing)
                case "ask":
                    await turn.ask("When?")
                case "messages":
                    await turn.messages()
                case _:
                    async with turn.tool("inner", {}):
                        pass

        with pytest.raises(RuntimeError, match="in the step 'outer'"):
            await turn.once("outer", lambda: asyncio.create_task(inner()))
        await turn.say("Done.")

    life = await ended(agent)
    assert life.reply == "Done."


async def test_a_task_that_outlives_its_step_gets_an_error() -> None:
    async def agent(turn: Turn) -> None:
        left: list[asyncio.Task[None]] = []
        ended = asyncio.Event()

        async def late() -> None:
            await ended.wait()
            await turn.artifact("report").append("lost")

        async def step() -> None:
            left.append(asyncio.create_task(late()))

        await turn.once("step", step)
        ended.set()
        with pytest.raises(RuntimeError, match=r"'step' has ended\. What it starts must end before it returns"):
            await left[0]

    life = await ended(agent)
    assert (life.record.state, life.texts()) == (State.COMPLETED, {})


async def test_a_question_waits_for_the_steps_that_run_and_they_do_not_run_again() -> None:
    ran: list[str] = []

    async def agent(turn: Turn) -> None:
        async def step() -> str:
            for _ in range(9):
                await asyncio.sleep(0)
            ran.append("step")
            return "stepped"

        answer, stepped = await asyncio.gather(turn.ask("Where?"), turn.once("step", step))
        await turn.say(f"{answer}, {stepped}")

    life = await ended(agent)
    life.answer("Brest")
    await life.run()
    assert (life.reply, ran) == ("Brest, stepped", ["step"])


async def test_questions_of_a_task_group_are_asked_together() -> None:
    async def agent(turn: Turn) -> None:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(turn.ask(question)) for question in ("When?", "Where?")]
        await turn.say("/".join(each.result() for each in asked))

    life = await ended(agent)
    assert (life.record.state, life.reply) == (State.INPUT_REQUIRED, "When?\nWhere?")
    life.answer("now")
    await life.run()
    assert life.reply == "now/now"


# ------------------------------------------------------------------- steps that fail


async def test_a_step_that_raises_leaves_nothing() -> None:
    async def agent(turn: Turn) -> None:
        async def fails() -> None:
            await turn.artifact("report").append("lost")
            await turn.stream("Lost. ")
            raise ZeroDivisionError

        await turn.artifact("report").append("kept")
        await turn.stream("Before. ")
        with pytest.raises(ZeroDivisionError):
            await turn.once("step", fails)
        await turn.stream("After.")

    life = await ended(agent)
    assert (life.texts(), life.said) == ({"report": "kept"}, ["Before. After."])


async def test_a_step_of_a_key_may_be_tried_again() -> None:
    async def agent(turn: Turn) -> None:
        for attempt in range(2):
            try:
                await turn.once("step", lambda attempt=attempt: work(turn, attempt), key="k")
            except ZeroDivisionError:
                continue

    async def work(turn: Turn, attempt: int) -> None:
        await turn.artifact("report").append(str(attempt))
        if attempt == 0:
            raise ZeroDivisionError

    life = await ended(agent)
    assert life.texts() == {"report": "1"}


# ------------------------------------------------------------------- outside of steps


async def write_and_record(turn: Turn, *texts: str) -> None:
    for text in texts:
        await turn.artifact("report").append(text)
    await turn.once("step", nothing)


async def test_what_no_step_has_recorded_is_discarded() -> None:
    async def work(turn: Turn, run: int) -> None:
        await write_and_record(turn, "kept ")
        await turn.artifact("report").append(f"lost {run}")
        if run == 0:
            await kill()

    assert (await after_a_crash(work)).texts() == {"report": "kept lost 1"}


@pytest.mark.parametrize(
    "texts", [("a", "x"), ("a",), ("b", "a"), ()], ids=["other", "fewer", "in another order", "none"]
)
async def test_a_rerun_that_does_not_repeat_its_recorded_changes_fails_and_names_the_artifact(texts) -> None:
    async def first(turn: Turn) -> None:
        await write_and_record(turn, "a", "b")
        await kill()

    async def second(turn: Turn) -> None:
        await write_and_record(turn, *texts)

    life = await rerun(first, second)
    assert life.record.state is State.FAILED
    assert "'report'" in life.reply
    assert "put it into `once`" in life.reply
    assert life.texts() == {"report": "ab"}


async def test_that_failure_is_caught_by_nothing_in_the_function() -> None:
    async def first(turn: Turn) -> None:
        await write_and_record(turn, "a")
        await kill()

    async def second(turn: Turn) -> None:
        try:
            await write_and_record(turn, "b")
        except BaseException:
            await turn.say("Caught.")

    async def agent(turn: Turn) -> None:
        await second(turn)

    life = await rerun(first, agent)
    assert (life.record.state, "put it into `once`" in life.reply) == (State.FAILED, True)


async def test_a_change_that_failed_fails_again_in_a_rerun() -> None:
    async def work(turn: Turn, run: int) -> None:
        report = turn.artifact("report")
        await report.append("a")
        try:
            await report.edit("absent", "b")
        except ToolError as error:
            await report.append(str(error)[:0] + "c")
        await turn.once("step", nothing)
        if run == 0:
            await kill()
        await report.append("d")

    life = await after_a_crash(work)
    assert (life.record.state, life.texts()) == (State.COMPLETED, {"report": "acd"})


async def test_recorded_steps_that_the_function_no_longer_asks_for_are_ignored_and_logged_once(caplog) -> None:
    async def first(turn: Turn) -> None:
        await turn.once("old", lambda: turn.stream("Old. "))
        await kill()

    async def second(turn: Turn) -> None:
        await turn.once("new", lambda: turn.stream("New. "))
        await turn.stream("Done.")

    life = await rerun(first, second)
    assert life.said == ["Old. New. Done."]
    [line] = [each.getMessage() for each in caplog.records if "recorded steps are ignored" in each.getMessage()]
    assert line.endswith(": old")


async def test_what_was_changed_before_a_call_of_a_model_wrote_the_same_artifact_is_not_changed_again() -> None:
    given = {"append": True, "artifact": {"artifact_id": "report", "parts": [{"kind": "text", "text": "b"}]}}

    async def work(turn: Turn, run: int) -> None:
        await turn.artifact("report").append("a")
        await turn.model.run_artifact_call("c1", "artifact_update", given)
        await turn.artifact("report").append("c")
        if run == 0:
            await kill()

    assert (await after_a_crash(work)).texts() == {"report": "abc"}
