"""An agent that is a function: what clients see of it, and what is left wherever a crash cuts it off."""

import asyncio
from contextlib import suppress

import pytest

from a2a_canvas import File
from a2a_canvas.server.agent.events import State, ToolFailed, ToolSucceeded, TranscriptAppended
from a2a_canvas.server.agent.loops import agent_turn
from a2a_canvas.server.agent.loops.agent_turn import MAX_REPORTED, Turn
from a2a_canvas.tools.functions import recorded_call
from a2a_canvas.tools.functions.results import ToolError
from tests.fakes import said
from tests.server.agent.loops.agent_life import AgentLife, ended


async def test_what_it_says_is_the_reply() -> None:
    async def agent(turn: Turn) -> None:
        for piece in ("You ", "said ", turn.text):
            await turn.stream(piece)
        await turn.say("A paragraph.")

    life = await ended(agent)
    assert (life.record.state, life.reply) == (State.COMPLETED, "You said Go\n\nA paragraph.")


async def test_a_generator_yields_text_and_files() -> None:
    async def agent(turn: Turn):
        yield "Here "
        yield File("tides.csv", "text/csv", "port,high\n")
        yield "it is."

    life = await ended(agent)
    assert life.reply == "Here it is."
    assert [part.name for part in life.store.documents["tides.csv"].artifact.parts] == ["tides.csv"]


async def test_a_text_that_it_returns_is_a_paragraph_of_the_reply() -> None:
    async def agent(turn: Turn) -> str:
        await turn.stream("Here.")
        return f"You said {turn.text}."

    life = await ended(agent)
    assert (life.record.state, life.reply) == (State.COMPLETED, "Here.\n\nYou said Go.")


async def test_any_other_value_that_it_returns_is_an_error_that_says_what_to_write(caplog) -> None:
    async def agent(turn: Turn) -> dict:
        return {"answer": 1}

    life = await ended(agent)
    assert life.record.state is State.FAILED
    assert "agent returned dict, and an agent's function returns text (str) or nothing." in caplog.text


@pytest.mark.parametrize("method", ["say", "stream", "think", "progress"])
async def test_a_value_to_show_that_is_no_text_is_an_error_that_says_what_to_pass(method: str) -> None:
    async def agent(turn: Turn) -> None:
        with pytest.raises(TypeError, match=r"must be a str, not int\. Use str\(…\)"):
            await getattr(turn, method)(5)

    assert (await ended(agent)).record.state is State.COMPLETED


async def test_an_edit_that_fails_has_one_sentence_for_users_and_another_in_the_log(caplog) -> None:
    async def agent(turn: Turn) -> None:
        await turn.artifact("report").append("# Tides\n", name="report.md")
        await turn.artifact("report").edit("# Waves", "# Swell")

    life = await ended(agent)
    assert life.record.state is State.FAILED
    assert life.said == ["The agent could not edit the artifact 'report'."]
    assert "artifact_read" in caplog.text


async def test_an_artifact_grows_and_is_one_version() -> None:
    async def agent(turn: Turn) -> None:
        report = turn.artifact("report")
        for piece in ("# Tides\n", "high ", "and low"):
            await report.append(piece, name="report.md")
        await turn.say("Done.")

    life = await ended(agent)
    assert life.texts() == {"report": "# Tides\nhigh and low"}
    assert life.record.artifacts["report"].closed == 1


async def test_text_before_a_tool_is_a_message_and_text_after_it_the_reply() -> None:
    async def agent(turn: Turn) -> None:
        await turn.stream("I look it up.")
        async with turn.tool("search", {"query": "tides"}) as call:
            hits = await call.run(lambda: search("tides"))
        await turn.stream(f"Found {hits}.")

    async def search(query: str) -> list[str]:
        return [query]

    life = await ended(agent)
    assert life.said == ["I look it up.", "Found ['tides']."]
    assert [event.content for event in life.told.of(ToolSucceeded)] == ['["tides"]']


async def test_an_exception_is_a_failed_task_and_its_text_is_in_the_log_only(caplog) -> None:
    async def agent(turn: Turn) -> None:
        await turn.stream("I begin.")
        raise ZeroDivisionError("the secret")

    life = await ended(agent)
    assert life.record.state is State.FAILED
    assert "secret" not in "".join(life.said)
    assert "the secret" in caplog.text


async def test_it_may_decline_and_nothing_after_that_happens() -> None:
    async def agent(turn: Turn) -> None:
        try:
            await turn.decline("Not about tides.")
        except BaseException:
            await turn.stream("never shown")

    life = await ended(agent)
    assert (life.record.state, life.reply) == (State.REJECTED, "Not about tides.")


async def test_a_limit_ends_it_at_its_next_step() -> None:
    async def agent(turn: Turn) -> None:
        await turn.stream("I begin.")
        await turn.usage(100, 20)
        life.stop = "Stopped before the end. Token limit reached."
        await turn.once("never", never)

    async def never() -> None:
        raise AssertionError

    life = AgentLife(agent)
    await life.run()
    assert (life.record.state, life.reply) == (State.FAILED, "Stopped before the end. Token limit reached.")
    assert life.spent == (100, 20)


@pytest.mark.parametrize("reported", [-(10**30), 10**30])
async def test_tokens_that_cannot_be_are_counted_within_bounds(reported) -> None:
    async def agent(turn: Turn) -> None:
        await turn.usage(reported, reported, cached_tokens=1)
        await turn.say("Done.")

    life = await ended(agent)
    assert all(0 <= count <= 2 * MAX_REPORTED for count in life.spent)
    assert life.record.state is State.COMPLETED


FLOODS = {
    "stream": lambda turn: turn.stream("x"),
    "think": lambda turn: turn.think("x"),
    "progress": lambda turn: turn.progress("x"),
    "agui": lambda turn: turn.agui({"type": "CUSTOM", "name": "x", "value": "x"}),
    "append": lambda turn: turn.artifact("report").append("x"),
    "replace": lambda turn: turn.artifact("report").replace("x"),
    "input of a call": lambda turn: turn.model.add_input("call", "x"),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_others_run_while_it_says_or_changes_much_without_waiting(flood, monkeypatch) -> None:
    monkeypatch.setattr(recorded_call, "LONGEST_RUN", 0)
    others: list[str] = []

    async def agent(turn: Turn) -> None:
        asyncio.get_running_loop().call_soon(others.append, "another user")
        await flood(turn)
        assert others

    assert (await ended(agent)).record.state is State.COMPLETED


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_it_is_only_so_far_ahead_of_the_database(flood, monkeypatch) -> None:
    monkeypatch.setattr(recorded_call, "MAX_AHEAD", 0)

    async def agent(turn: Turn) -> None:
        before = life.flushes
        await flood(turn)
        assert life.flushes == before + 1

    life = AgentLife(agent)
    await life.run()
    assert life.record.state is State.COMPLETED


@pytest.mark.parametrize("kind", ["stream", "think"])
async def test_a_reply_without_an_end_fails_the_task_and_long_texts_of_several_rounds_do_not(kind, monkeypatch) -> None:
    monkeypatch.setattr(agent_turn, "MAX_REPLY", 1_000)

    async def agent(turn: Turn) -> None:
        for _ in range(3):
            await getattr(turn, kind)("x" * 900)
            await turn.settle()
        with suppress(Exception):
            while True:
                await getattr(turn, kind)("x")

    life = await ended(agent)
    assert (life.record.state, life.reply) == (
        State.FAILED,
        "The agent's reply exceeds 1,000 characters. Have it write long texts to an artifact.",
    )


async def test_clients_see_why_a_tool_failed_only_if_the_function_says_so() -> None:
    async def agent(turn: Turn) -> None:
        for error in (ToolError("There is no port."), ValueError("the secret")):
            with suppress(type(error)):
                async with turn.tool("search", {}):
                    raise error

    life = await ended(agent)
    assert [event.error for event in life.told.of(ToolFailed)] == ["There is no port.", "search failed."]


async def test_what_a_step_returns_is_json_of_a_limited_length_and_an_error_names_its_key(monkeypatch) -> None:
    monkeypatch.setattr(recorded_call, "MAX_KEPT", 1_000)

    async def returned(value: object) -> object:
        return value

    async def agent(turn: Turn) -> None:
        for value in ({"files": [b""]}, {"files": ["\ud800"]}, {1: 2}):
            with pytest.raises(ValueError, match=r"^hits(#\d)?(\[\"files\"\]\[0\])? "):
                await turn.once("hits", lambda value=value: returned(value))
        await turn.once("long", lambda: returned("x" * 999))

    life = await ended(agent)
    sentence = "'long' returned 1,001 characters of JSON, and 1,000 can be kept. Write long results to an artifact."
    assert (life.record.state, life.reply) == (State.FAILED, sentence)


HALF = "a\ud800\0"


@pytest.mark.parametrize(
    "write",
    [
        lambda turn: turn.progress(HALF),
        lambda turn: turn.say(HALF),
        lambda turn: turn.ask(HALF),
        lambda turn: turn.decline(HALF),
        lambda turn: turn.artifact("report").append("x", name=HALF),
        lambda turn: turn.model.show_call(HALF, HALF, {HALF: HALF}),
    ],
)
async def test_what_no_client_could_be_sent_is_replaced(write) -> None:
    async def agent(turn: Turn) -> None:
        await write(turn)

    life = await ended(agent)
    assert life.record.state is not State.FAILED
    assert "a\ufffd" in str(life.told.events)
    assert "\\ud800" not in str([event for event in life.told.events if not isinstance(event, TranscriptAppended)])


async def test_a_message_that_it_has_not_taken_calls_it_again() -> None:
    async def agent(turn: Turn) -> None:
        if turn.text == "Go":
            life.send(said("m-2", "And more"))
        await turn.stream(f"Re: {turn.text}")

    life = AgentLife(agent)
    await life.run()
    life.check()
    assert life.said == ["Re: Go", "Re: And more"]


async def test_it_may_take_the_messages_that_arrive_meanwhile() -> None:
    async def agent(turn: Turn) -> None:
        life.send(said("m-2", "And more"))
        [message] = await turn.messages()
        await turn.stream(f"Re: {turn.text}, {message.text}")

    life = AgentLife(agent)
    await life.run()
    life.check()
    assert life.said == ["Re: Go, And more"]


async def test_questions_asked_at_the_same_time_are_one_message() -> None:
    async def agent(turn: Turn) -> None:
        await turn.stream("Two questions.")
        when, where = await asyncio.gather(turn.ask("When?"), turn.ask("Where?"))
        await turn.stream(f"{when}/{where}")

    life = await ended(agent)
    assert (life.record.state, life.reply) == (State.INPUT_REQUIRED, "When?\nWhere?")
    life.answer("at eight")
    await life.run()
    assert (life.record.state, life.reply) == (State.COMPLETED, "at eight/at eight")
    assert life.said == ["Two questions.", "When?\nWhere?", "at eight/at eight"]


@pytest.mark.parametrize("name", ["once", "ask", "tool"])
async def test_a_step_cannot_contain_another(name) -> None:
    async def agent(turn: Turn) -> None:
        async def inner() -> None:
            match name:
                case "once":
                    await turn.once("inner", nothing)
                case "ask":
                    await turn.ask("When?")
                case "tool":
                    async with turn.tool("search", {}):
                        pass

        with pytest.raises(RuntimeError, match="outer"):
            await turn.once("outer", inner)
        await turn.say("Done.")

    async def nothing() -> None:
        pass

    life = await ended(agent)
    assert life.reply == "Done."


async def moment() -> None:
    """Where a crash may come."""
    await asyncio.sleep(0)


class Report:
    """A function that does everything, and counts what it does in steps."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    async def agent(self, turn: Turn) -> None:
        report, notes = turn.artifact("report"), turn.artifact("notes")
        await report.append("# Tides\n", name="report.md")
        await moment()
        await turn.stream("I look. ")
        await moment()
        await turn.once("look", lambda: self.look(turn))
        await moment()
        await report.append("b")
        await moment()
        async with turn.tool("search", {"query": "tides"}) as call:
            hits = await call.run(self.search)
        await notes.append(hits)
        await moment()
        where = await turn.ask("Where?")
        await report.append(where)
        await moment()
        await turn.stream("Written ")
        await moment()
        for _ in range(2):
            await turn.once("sign", lambda: self.sign(turn))
            await moment()
        await report.edit("# Tides", "# The tides")
        await moment()
        await turn.stream("and signed.")
        await moment()

    async def look(self, turn: Turn) -> str:
        self.steps.append("look")
        await turn.artifact("report").append("a")
        await moment()
        await turn.stream("Looked. ")
        await moment()
        return "seen"

    async def search(self) -> str:
        self.steps.append("search")
        return "hits"

    async def sign(self, turn: Turn) -> None:
        self.steps.append("sign")
        await turn.artifact("report").append("!")
        await moment()


SAID = ["I look. Looked.", "Where?", "Written and signed."]
TEXTS = {"report": "# The tides\nabBrest!!", "notes": "hits"}


async def on(life: AgentLife) -> list:
    """All that can be cut off from here on, to the end; the answer is given."""
    found = []
    while not life.record.state.terminal:
        if life.record.state.paused:
            life.answer("Brest")
        found += [(life, cut) for cut in await life.run()]
    return found


async def test_wherever_a_crash_cuts_it_off_it_comes_to_the_same_end() -> None:
    first = AgentLife(Report().agent)
    cuts = await on(first)
    assert (first.said, first.texts()) == (SAID, TEXTS)
    resumed = 0
    for interrupted, cut in cuts:
        report = Report()
        life = AgentLife(report.agent, cut.documents)
        life.told.events = interrupted.told.events[: cut.told]
        if life.record.state.terminal:
            continue
        kept = {item.name for item in life.record.transcript if getattr(item, "kind", "") == "kept"}
        resumed += 1
        await on(life)
        life.check()
        assert life.record.state is State.COMPLETED
        assert life.texts() == TEXTS
        assert life.said == SAID
        names = {"look": "look", "search returned": "search", "sign": "sign", "sign#2": "sign"}
        left = sorted(name for step, name in names.items() if step not in kept)
        assert sorted(report.steps) == left
    assert resumed > 20
