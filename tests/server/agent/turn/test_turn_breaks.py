"""The turn when its model's stream breaks: what was completed stays, the rest is asked for again, at most twice."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    AssistantOutput,
    FinalMessageStarted,
    MessageStarted,
    TextAdded,
    ToolSucceeded,
    TranscriptAppended,
)
from a2a_canvas.server.agent.model import BlockStart, ModelError, ModelText, TextDelta, Thinking, ToolResult, ToolUse
from tests.fakes import BROKEN, REFUSED, answer, ask, broken, text, thinking, tool, write
from tests.server.agent.turn.turn_harness import TurnHarness

NEVER_STARTED = [TextDelta(7, "?")]
WAYS = {
    "an error in mid-stream": [BROKEN],
    "an end without a word": [],
    "a delta for a block that never started": NEVER_STARTED,
    "a delta of another kind than its block": [BlockStart(9, "thinking"), TextDelta(9, "?")],
}
every_way = pytest.mark.parametrize("break_", WAYS.values(), ids=WAYS)


@every_way
async def test_the_model_is_asked_again_and_its_next_answer_counts(break_) -> None:
    harness = TurnHarness(broken(text("Hel"), break_), answer(text("Hello")))
    told = await harness.run()
    assert told.statuses == [("completed", "Hello")]
    assert told.stop_reasons == ["error", "end_turn"]
    assert harness.llm.requests[0] == harness.llm.requests[1]


async def test_a_stream_that_breaks_before_it_says_anything_is_asked_for_again() -> None:
    told = await TurnHarness([BROKEN], [], answer(text("Hello"))).run()
    assert told.statuses == [("completed", "Hello")]
    assert told.stop_reasons == ["error", "error", "end_turn"]


@every_way
async def test_completed_calls_and_their_results_stay_and_no_tool_runs_twice(break_) -> None:
    first = broken(text("I write."), write("T1", "Hello"), text("and I", at=1), break_)
    harness = TurnHarness(first, answer(text("Done.")))
    told = await harness.run()
    user, assistant, results = harness.llm.requests[1].messages
    assert user == harness.llm.requests[0].messages[0]
    assert [type(block) for block in assistant.content] == [ModelText, ToolUse]
    assert results.content == (ToolResult("T1", "Written; the draft stays open."),)
    assert [event.tool_use_id for event in told.of(ToolSucceeded)] == ["T1"]
    assert (await harness.doc()).text == "Hello"
    assert told.statuses == [("completed", "Done.")]


async def test_the_thinking_that_led_to_a_completed_call_stays_with_its_signature() -> None:
    first = broken(thinking("hm", signature="sig"), tool("T1", "artifact_list"), thinking("so"), BROKEN)
    harness = TurnHarness(first, answer())
    await harness.run()
    assert harness.llm.requests[1].messages[1].content == (Thinking("hm", "sig"), ToolUse("T1", "artifact_list", {}))


async def test_a_retried_round_keeps_its_number_and_goes_on_with_the_indices() -> None:
    told = await TurnHarness(broken(text("Hel"), BROKEN), answer(text("Hello"))).run()
    assert [event.round for event in told.of(MessageStarted)] == [1, 1]
    assert [(event.place.index, event.text) for event in told.of(TextAdded)] == [(0, "Hel"), (1, "Hello")]
    assert len(told.of(FinalMessageStarted)) == 1


@every_way
async def test_after_three_tries_the_task_fails_with_a_message_a_user_understands(break_) -> None:
    harness = TurnHarness(*[broken(text("Hel"), break_)] * 3)
    told = await harness.run()
    [(state, message)] = told.statuses
    assert state == "failed"
    assert message.startswith("The ")
    assert message.endswith(".")
    assert told.stop_reasons == ["error"] * 3


async def test_the_tries_are_counted_for_every_call_anew() -> None:
    bad = broken(BROKEN)
    harness = TurnHarness(bad, bad, answer(tool("T1", "artifact_list")), bad, bad, answer(text("Done.")))
    told = await harness.run()
    assert told.statuses == [("completed", "Done.")]
    assert len(harness.llm.requests) == 6


async def test_an_error_that_cannot_be_helped_fails_the_task_at_once() -> None:
    harness = TurnHarness(broken(text("Hel"), REFUSED))
    told = await harness.run()
    assert told.statuses == [("failed", REFUSED.reason)]
    assert len(harness.llm.requests) == 1


async def test_a_question_in_a_broken_stream_is_not_asked() -> None:
    harness = TurnHarness(broken(ask("T1", "Which?"), BROKEN), answer(text("Never mind.")))
    assert (await harness.run()).statuses == [("completed", "Never mind.")]


# ----------------------------------------------------------------- cut-off artifacts


@every_way
async def test_a_cut_off_call_leaves_the_artifact_where_the_last_completed_call_left_it(break_) -> None:
    cut_off = write("T2", "World", cut=4, stopped=False)
    harness = TurnHarness(broken(write("T1", "Hello"), cut_off, break_), answer(text("Done.")))
    told = await harness.run()
    _, end, begun, *_, back = told.of(ArtifactChanged)
    assert (end.append, end.parts[0].text, end.last_chunk, end.version) == (True, "", True, 1)
    assert (begun.append, begun.last_chunk, begun.version) == (False, False, 2)
    assert "World".startswith(begun.parts[0].text)
    assert (back.append, back.parts[0].text, back.last_chunk, back.version) == (False, "Hello", True, 1)
    assert (await harness.doc()).text == "Hello"
    assert not (await harness.versions())[-1].incomplete


async def test_a_cut_off_append_is_taken_back_and_told_as_a_replacement() -> None:
    cut_off = write("T2", " World", append=True, stopped=False)
    harness = TurnHarness(broken(write("T1", "Hello"), cut_off, BROKEN), answer())
    told = await harness.run()
    written, appended, back, closing = told.of(ArtifactChanged)
    assert (written.append, written.parts[0].text) == (False, "Hello")
    assert (appended.append, appended.parts[0].text) == (True, " World")
    assert (back.append, back.parts[0].text, back.last_chunk) == (False, "Hello", False)
    assert (closing.append, closing.parts[0].text, closing.last_chunk, closing.version) == (True, "", True, 1)


async def test_a_cut_off_call_returns_to_the_version_where_no_call_of_the_draft_was_complete() -> None:
    first = broken(write("T1", "Hello", last_chunk=True), write("T2", "Bye", stopped=False), BROKEN)
    harness = TurnHarness(first, answer())
    await harness.run()
    assert [version.content.parts[0].text for version in await harness.versions()] == ["Hello"]


async def test_without_any_version_the_partial_text_stays_and_becomes_an_incomplete_version() -> None:
    harness = TurnHarness(broken(write("T1", "Hel", cut=5, stopped=False), REFUSED))
    told = await harness.run()
    assert told.statuses == [("failed", REFUSED.reason)]
    [version] = await harness.versions()
    assert (version.number, version.content.parts[0].text, version.incomplete) == (1, "Hel", True)
    assert told.of(ArtifactChanged)[-1].last_chunk


async def test_a_partial_text_is_overwritten_when_the_call_is_made_again() -> None:
    partial = broken(write("T1", "Hel", stopped=False), BROKEN)
    harness = TurnHarness(partial, answer(write("T2", "Hello", append=True, last_chunk=True)), answer())
    told = await harness.run()
    [version] = await harness.versions()
    assert (version.content.parts[0].text, version.incomplete) == ("Hello", False)
    assert [event.append for event in told.of(ArtifactChanged)][:2] == [False, False]


@given(st.data())
async def test_wherever_a_stream_breaks_every_call_of_it_has_run_once_or_not_at_all(data) -> None:
    whole = answer(
        thinking("hm", signature="s"),
        write("T1", "one ", cut=7),
        write("T2", "two ", append=True, cut=9),
        tool("T3", "artifact_list"),
        text("Well."),
    )
    cut = data.draw(st.integers(0, len(whole) - 1))
    harness = TurnHarness([*whole[:cut], BROKEN], answer(text("Done.")))
    told = await harness.run()
    ran = [event.tool_use_id for event in told.of(ToolSucceeded)]
    assert ran == ["T1", "T2", "T3"][: len(ran)]
    items = [item for event in told.of(TranscriptAppended) for item in event.items if isinstance(item, AssistantOutput)]
    kept = [block for item in items for block in item.blocks if isinstance(block, ToolUse)]
    assert [call.id for call in kept] == ran
    assert [result.tool_use_id for result in harness.results(1)] == ran
    whole_text = "one two "[: 4 * min(len(ran), 2)]
    if whole_text:
        assert (await harness.doc()).text == whole_text


# ---------------------------------------------------------------------------- waits


async def test_before_each_further_try_the_turn_waits_longer() -> None:
    harness = TurnHarness(broken(BROKEN), broken(text("Hel"), NEVER_STARTED), answer(text("Hello")))
    assert (await harness.run()).statuses == [("completed", "Hello")]
    first, second = harness.slept
    assert 0.3 < first < 0.7
    assert 1.4 < second < 2.6


async def test_it_waits_as_long_as_the_provider_asks_for() -> None:
    harness = TurnHarness(broken(ModelError("busy", retryable=True, retry_after=9)), answer(text("Hello")))
    await harness.run()
    assert harness.slept == [9]


async def test_nothing_is_waited_for_after_the_last_try_or_where_no_try_could_help() -> None:
    in_vain, refused = TurnHarness(*[broken(BROKEN)] * 3), TurnHarness([REFUSED])
    await in_vain.run()
    await refused.run()
    assert (len(in_vain.slept), refused.slept) == (2, [])


async def test_what_the_broken_call_did_is_taken_back_before_the_wait() -> None:
    harness = TurnHarness(broken(write("T1", "half", stopped=False), BROKEN), answer(text("Hello")))
    at_the_wait: list[list[str]] = []
    harness.slept = Recording(lambda: at_the_wait.append(harness.told.stop_reasons))
    await harness.run()
    assert at_the_wait == [["error"]]


class Recording(list[float]):
    """Calls `do` whenever something is added."""

    def __init__(self, do: Callable[[], None]) -> None:
        super().__init__()
        self._do = do

    def append(self, value: float) -> None:
        super().append(value)
        self._do()
