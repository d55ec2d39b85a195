"""Edits of a selection by an agent's function: what clients see is what they see of a model's edit."""

import asyncio
import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas import Canvas, File, ToolError, Turn, tool
from a2a_canvas.server.agent.edit.edit_prompt import EDIT_SYSTEM
from a2a_canvas.server.agent.edit.rewrite import NO_TEXT
from a2a_canvas.server.agent.endings import INTERNAL_ERROR
from a2a_canvas.server.agent.events import (
    AguiSent,
    LlmCallCompleted,
    State,
    StatusChanged,
    ThinkingAdded,
    ToolUseStarted,
)
from a2a_canvas.server.agent.loops.edit_function import NOT_IN_EDITS
from a2a_canvas.server.agent.model import Usage
from a2a_canvas.tools.functions.running import HANDED_OVER
from tests.property_examples import examples
from tests.server.agent.edit.operation_harness import TEXT, edit, phases
from tests.server.agent.loops.edit_harness import Edited, edited, nothing

# ------------------------------------------------------------------------- the new text


async def generator(turn: Turn):
    yield "TW"
    yield "O!"


async def streams(turn: Turn) -> None:
    await turn.stream("TW")
    await turn.stream("O!")


async def returns(turn: Turn) -> str:
    return "TWO!"


@pytest.mark.parametrize("function", [generator, streams, returns])
async def test_what_it_yields_streams_or_returns_is_the_passage(function) -> None:
    done = await edited(function)
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO!")
    assert phases(done.told.events) == ["start", "chunk", "complete", "artifact"]
    assert done.end.state is State.COMPLETED
    assert done.end.message.text == "Edited notes.md at line 4: version 2 is saved."


async def test_each_piece_is_shown_as_it_comes() -> None:
    pieces = ["Two ", "or ", "three."]

    async def write(turn: Turn):
        for number, piece in enumerate(pieces):
            assert "".join(done.chunks) == "".join(pieces[:number])
            yield piece

    done = await Edited(write).ready()
    await done.run(edit())
    assert done.chunks == pieces


async def test_it_is_cleaned_as_a_model_s() -> None:
    async def talk(turn: Turn) -> str:
        return "Here is the revised text:\n\n```markdown\nTWO!\n```"

    assert (await (await edited(talk)).doc()).text == TEXT.replace("Two.", "TWO!")


async def test_it_reads_the_edit() -> None:
    seen = {}

    async def look(turn: Turn) -> str:
        found = turn.edit
        seen.update(whole=await found.artifact.read(), caller=turn.caller, text=turn.text, me=turn.instructions)
        seen.update(place=found.place, name=found.name, strategy=found.strategy, id=found.artifact.artifact_id)
        assert (found.before, found.passage, found.after) == ("# Notes\n\nOne.\n", "Two.", "\nThree.\n")
        assert (found.instruction, found.outline) == ("Louder", "1: # Notes")
        return "TWO."

    await edited(look)
    assert seen == {
        "whole": TEXT,
        "caller": "ann",
        "text": "Louder",
        "me": "You are Reef.",
        "place": "line 4 of 6",
        "name": "notes.md",
        "strategy": "replace",
        "id": "doc",
    }


async def test_it_has_the_prompt_that_a_model_gets() -> None:
    prompts = []

    async def look(turn: Turn) -> str:
        prompts.append((turn.edit.system_prompt, turn.edit.user_prompt, turn.edit.prompt))
        return "TWO."

    await edited(look)
    [(system, user, both)] = prompts
    assert system == EDIT_SYSTEM
    assert "<selection-1>Two.</selection-1>" in user
    assert "<request-1>Louder</request-1>" in user
    assert both == f"{system}\n\n{user}"


async def test_thinking_and_progress_are_shown_and_tools_may_be_used() -> None:
    async def work(turn: Turn) -> str:
        await turn.think("Hm.")
        await turn.progress("Looking it up…")
        async with turn.tool("search", {"query": "two"}) as call:
            found = await call.run(look_up)
        assert await turn.messages() == []
        return await turn.once("loud", lambda: loud(found))

    async def look_up() -> str:
        return "two"

    async def loud(text: str) -> str:
        return text.upper()

    done = await edited(work)
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO")
    assert [event.content for event in done.told.of(ThinkingAdded)] == ["Hm."]
    labels = [event.message.text for event in done.told.of(StatusChanged) if event.message and event.message.label]
    assert labels == ["Editing notes.md…", "Looking it up…", "Running search…"]
    assert not done.told.of(ToolUseStarted)


async def test_a_second_try_shows_agui_clients_nothing_twice() -> None:
    tries: list[str] = []

    async def work(turn: Turn) -> str:
        await turn.agui({"type": "CUSTOM", "name": "looking", "value": 1})
        tries.append(turn.text)
        return "" if len(tries) == 1 else "TWO"

    done = await edited(work)
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO")
    assert len(tries) == 2
    assert [event.event["name"] for event in done.told.of(AguiSent)] == ["looking"]


# ------------------------------------------------------------------------- what changes nothing


async def test_a_reply_without_text_changes_nothing_and_the_mark_deletes() -> None:
    done = await edited(nothing)
    assert (done.end.state, done.end.message.text) == (State.FAILED, NO_TEXT)
    assert (await done.doc()).text == TEXT

    async def delete(turn: Turn) -> str:
        return turn.edit.deletion_mark

    assert (await (await edited(delete)).doc()).text == TEXT.replace("Two.", "")


REFUSED: list[tuple[str, Callable]] = [
    ("A change of artifact 'doc' is not allowed while turn.edit is set", lambda turn: turn.edit.artifact.append("x")),
    ("A change of artifact 'doc' is not allowed", lambda turn: turn.edit.artifact.edit("One", "1")),
    ("A change of artifact 'new' is not allowed", lambda turn: turn.artifact("new").replace("x")),
    ("A change of turn.state is not allowed while turn.edit is set", lambda turn: turn.state.set("x")),
    ("A change of turn.values of 'x' is not allowed", lambda turn: turn.values.set("x", b"")),
    ("ask is not allowed while turn.edit is set", lambda turn: turn.ask("Which?")),
]


@pytest.mark.parametrize(("message", "call"), REFUSED)
async def test_nothing_but_the_passage_may_change(message: str, call, caplog) -> None:
    async def meddle(turn: Turn) -> str:
        await call(turn)
        return "TWO."

    done = await edited(meddle)
    assert message in caplog.text
    assert (done.end.state, done.end.message.text) == (State.FAILED, NOT_IN_EDITS)
    assert [each.artifact_id for each in await done.store.list("context")] == ["doc"]
    assert len(await done.versions()) == 1
    assert phases(done.told.events)[:2] == ["start", "abort"]


async def test_a_file_is_no_passage() -> None:
    async def give(turn: Turn):
        yield File("x.csv", "text/csv", "1\n")

    assert (await edited(give)).end.state is State.FAILED


async def test_an_error_fails_the_edit_and_its_text_is_in_the_log_only(caplog) -> None:
    async def fail(turn: Turn):
        yield "TW"
        raise ZeroDivisionError("the secret")

    done = await edited(fail)
    assert (done.end.state, done.end.message.text) == (State.FAILED, INTERNAL_ERROR)
    assert "the secret" in caplog.text
    assert phases(done.told.events)[:3] == ["start", "chunk", "abort"]
    assert len(await done.versions()) == 1


async def test_an_error_for_the_user_is_the_reason() -> None:
    async def fail(turn: Turn) -> None:
        raise ToolError("The dictionary is closed.")

    done = await edited(fail)
    assert (done.end.state, done.end.message.text) == (State.FAILED, "The dictionary is closed.")


async def test_it_may_decline() -> None:
    async def decline(turn: Turn) -> None:
        await turn.stream("TW")
        try:
            await turn.decline("This is a quotation.")
        except BaseException:
            await turn.stream("O")

    done = await edited(decline)
    assert (done.end.state, done.end.message.text) == (State.REJECTED, "This is a quotation.")
    assert len(await done.versions()) == 1


# ------------------------------------------------------------------------- limits and the end


async def test_its_tokens_are_counted_and_reported() -> None:
    async def work(turn: Turn) -> str:
        await turn.usage(100, 5)
        await turn.usage(10, 2)
        return "TWO."

    done = await edited(work)
    assert done.spent == [(100, 5), (10, 2)]
    assert [event.usage for event in done.told.of(LlmCallCompleted)] == [Usage(110, 7)]


async def test_a_limit_ends_it_and_nothing_has_changed() -> None:
    async def work(turn: Turn) -> str:
        done.reason_to_stop = "Stopped before the end."
        await turn.usage(100, 5)
        return "TWO."

    done = await Edited(work).ready()
    await done.run(edit())
    assert (done.end.state, done.end.message.text) == (State.FAILED, "Stopped before the end.")
    assert done.spent == [(100, 5)]
    assert len(await done.versions()) == 1


@pytest.mark.parametrize("handed_over", [False, True])
async def test_a_cancelled_edit_ends_the_function(handed_over: bool) -> None:
    ended, began = [], asyncio.Event()

    async def work(turn: Turn):
        try:
            yield "TW"
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.append(turn.handed_over)
            with pytest.raises(RuntimeError):
                await turn.ask("May I?")

    done = await Edited(work).ready()
    running = asyncio.create_task(done.run(edit()))
    await began.wait()
    done.is_handed_over = handed_over
    running.cancel(*((HANDED_OVER,) if handed_over else ()))
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == [handed_over]
    assert phases(done.told.events) == ["start", "chunk", "abort", "artifact"]
    assert (await done.doc()).text == TEXT


async def test_after_the_edit_its_turn_is_closed() -> None:
    turns = []

    async def keep(turn: Turn) -> str:
        turns.append(turn)
        return "TWO."

    await edited(keep)
    with pytest.raises(RuntimeError):
        await turns[0].stream("more")


# ------------------------------------------------------------------------- others write meanwhile


async def test_the_passage_is_tracked_while_others_change_the_text() -> None:
    async def work(turn: Turn):
        yield "TW"
        await done.put(f"Before.\n{TEXT}")
        yield "O."

    done = await Edited(work).ready()
    await done.run(edit())
    assert (await done.doc()).text == f"Before.\n{TEXT}".replace("Two.", "TWO.")


async def test_an_edit_whose_passage_others_have_changed_is_rejected() -> None:
    async def work(turn: Turn):
        yield "TW"
        await done.put(TEXT.replace("Two.", "2."))
        yield "O."

    done = await Edited(work).ready()
    await done.run(edit())
    assert done.end.state is State.REJECTED
    assert (await done.doc()).text == TEXT.replace("Two.", "2.")


# ------------------------------------------------------------------------- the agent's own model


async def test_text_that_it_takes_back_is_replaced_by_what_follows() -> None:
    async def work(turn: Turn) -> None:
        await turn.take_back()  # there is none yet
        await turn.stream("wrong")
        await turn.usage(10, 2)
        await turn.take_back()
        await turn.stream("TW")
        await turn.stream("O!")

    done = await edited(work)
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO!")
    assert phases(done.told.events) == ["start", "chunk", "abort", "start", "chunk", "complete", "artifact"]
    assert done.spent == [(10, 2)]


async def test_text_before_a_tool_call_is_not_part_of_the_passage() -> None:
    async def work(turn: Turn):
        await turn.think("Hm.")
        yield "I look it up."
        async with turn.tool("search", {}) as call:
            await call.run(returns_nothing)
        yield "TWO!"

    async def returns_nothing() -> None: ...

    assert (await (await edited(work)).doc()).text == TEXT.replace("Two.", "TWO!")


async def test_its_model_streams_and_cannot_write_artifacts() -> None:
    given = {"append": False, "artifact": {"artifact_id": "new", "parts": [{"kind": "text", "text": "x"}]}}
    read = []

    async def work(turn: Turn) -> None:
        async def call() -> str:
            await turn.stream("I write it.")
            await turn.model.begin_call("c1", "artifact_update")
            await turn.model.add_input("c1", json.dumps(given))
            return "call"

        async def answer() -> str:
            await turn.stream("TWO!")
            return "answer"

        await turn.model.respond("model", call)
        read.append(await turn.model.run_artifact_call("c1", "artifact_update", given))
        await turn.model.respond("model", answer)

    done = await edited(work)
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO!")
    assert "changes its passage only" in read[0]
    assert [each.artifact_id for each in await done.store.list("context")] == ["doc"]


async def test_it_may_call_tools_that_only_read() -> None:
    @tool
    def shout(text: str) -> str:
        """Shouts."""
        return text.upper()

    @tool
    async def write(canvas: Canvas) -> str:
        """Writes."""
        await canvas.artifact("other").append("x")
        return ""

    @tool(approval="ask")
    def pay() -> str:
        """Pays."""
        return ""

    async def look(turn: Turn) -> str:
        with pytest.raises(ToolError, match="changes its passage only"):
            await turn.tools.find("write").call({})
        with pytest.raises(RuntimeError, match="not allowed while"):
            await turn.tools.find("pay").call({})
        return await turn.tools.find("shout").call({"text": turn.edit.passage})

    done = await edited(look, tools=[shout, write, pay])
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO.")
    assert len(await done.versions()) == 2


async def test_text_that_is_replaced_does_not_count_as_an_attempt(caplog) -> None:
    answers = ["", "TWO!"]
    runs = []

    async def work(turn: Turn):
        runs.append(turn.text)
        yield "wrong"
        await turn.take_back()
        yield answers[len(runs) - 1]

    done = await edited(work)
    assert (await done.doc()).text == TEXT.replace("Two.", "TWO!")
    assert phases(done.told.events).count("abort") == 3
    assert [NO_TEXT in each.message for each in caplog.records if each.levelname == "WARNING"] == [True]


PIECES = st.lists(st.sampled_from(["TWO", "\n", "`", "```\n", "<b>", " ", ".", "🐚"]), max_size=8)


@given(before=PIECES, pieces=PIECES)
@settings(max_examples=examples(100))
async def test_however_it_is_cut_the_passage_is_that_of_the_whole_text(before: list[str], pieces: list[str]) -> None:
    async def whole(turn: Turn) -> str:
        return "".join(pieces)

    async def cut(turn: Turn):
        for piece in before:
            yield piece
        await turn.take_back()
        for piece in pieces:
            yield piece

    ends = [await edited(each) for each in (whole, cut)]
    texts = {(await each.doc()).text for each in ends}
    assert len(texts) == 1
    assert len({(each.end.state, each.end.message.text) for each in ends}) == 1
