"""The turn: rounds of model calls and tool calls, and every way in which they end."""

import asyncio
from dataclasses import replace

import pytest

from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    FinalMessageStarted,
    MessageStarted,
    TextAdded,
    ToolFailed,
    ToolInputCompleted,
    ToolSucceeded,
    TranscriptAppended,
)
from a2a_canvas.server.agent.model import NOT_ASKED, BlockStop, ModelText, ToolResult, ToolUse
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.agent.turn.turn import INTERNAL_ERROR, TurnLimits
from a2a_canvas.server.agent.turn.turn_requests import SYSTEM
from a2a_canvas.store.changes import AppendParts
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Limits
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import (
    Hold,
    answer,
    ask,
    broken,
    decline,
    parts,
    said,
    text,
    thinking,
    tool,
    write,
)
from tests.server.agent.turn.turn_harness import DOC, TurnHarness

# ------------------------------------------------------------------ replies


async def test_a_simple_text_is_the_message_of_the_completed_status() -> None:
    told = await TurnHarness(answer(text("Hel", "lo"))).run()
    assert told.statuses == [("completed", "Hello")]
    assert (told.labels, told.tool_labels) == (["Working…", "Writing reply…"], [])
    assert [event.text for event in told.of(TextAdded)] == ["Hel", "lo"]


async def test_thinking_tags_in_a_text_never_reach_the_reader_however_they_are_cut() -> None:
    written = "<think>secret</think>Hello <tool_call>{}</tool_call>world"
    told = await TurnHarness(answer(text(*written))).run()
    assert told.statuses == [("completed", "Hello world")]
    assert "".join(event.text for event in told.of(TextAdded)) == "Hello world"


async def test_a_json_reply_is_a_text_like_any_other() -> None:
    told = await TurnHarness(answer(text('{"a": [1, ', '"<b>"]}'))).run()
    assert told.statuses == [("completed", '{"a": [1, "<b>"]}')]


@pytest.mark.parametrize("nothing", [[], text(), text("\n\n"), text("<think>only", " this</think>"), thinking("hm")])
async def test_a_turn_without_visible_text_ends_without_a_message(nothing) -> None:
    told = await TurnHarness(answer(nothing)).run()
    assert told.statuses == [("completed", "")]
    assert told.of(FinalMessageStarted) == []


async def test_two_texts_of_one_answer_are_parted_by_a_blank_line() -> None:
    told = await TurnHarness(answer(text("First."), text("\nSecond.", at=1), text(at=2), text("Third.", at=3))).run()
    assert told.statuses == [("completed", "First.\n\nSecond.\n\nThird.")]
    assert "".join(event.text for event in told.of(TextAdded)) == "First.\n\nSecond.\n\nThird."


# -------------------------------------------------------------------- tools


async def test_a_tool_acts_and_its_result_goes_back_to_the_model() -> None:
    harness = TurnHarness(answer(write("T1", "Hello", last_chunk=True), reason="tool_use"), answer(text("Done.")))
    told = await harness.run()
    assert told.statuses == [("completed", "Done.")]
    assert (await harness.doc()).text == "Hello"
    assert harness.results() == [ToolResult("T1", "Written; version 1 of doc is saved.")]
    assert harness.llm.requests[1].messages[1].content[0].id == "T1"


async def test_an_artifact_grows_while_its_call_is_being_written() -> None:
    hold = Hold()
    harness = TurnHarness(answer([*write("T1", "Hello", cut=1, stopped=False)[:-4], hold]), answer())
    turn = harness.start()
    await hold.reached.wait()
    grown = [str(event.parts[0].body) for event in harness.told.of(ArtifactChanged)]
    assert grown == ["H", "e", "l", "l", "o"]
    assert [event.append for event in harness.told.of(ArtifactChanged)] == [False, True, True, True, True]
    assert harness.told.labels[-1] == "Writing doc…"
    assert harness.told.tool_labels == ["Writing doc…"]
    hold.release.set()
    await turn


async def test_several_tools_of_a_round_get_their_results_in_one_message_in_their_order() -> None:
    calls = (tool("T1", "artifact_list"), write("T2", "x", at=1), tool("T3", "artifact_read", {"artifact_id": "doc"}))
    harness = TurnHarness(answer(text("Let me see."), *calls, reason="tool_use"), answer(text("Done.")))
    await harness.run()
    assert [result.tool_use_id for result in harness.results()] == ["T1", "T2", "T3"]
    assert harness.results()[0].content == "[]"
    assert '"text": "x"' in harness.results()[2].content
    assert [type(block) for block in harness.llm.requests[1].messages[1].content] == [
        ModelText,
        ToolUse,
        ToolUse,
        ToolUse,
    ]


async def test_a_tool_error_goes_back_as_an_error_result_and_the_turn_goes_on() -> None:
    harness = TurnHarness(
        answer(tool("T1", "artifact_read", {"artifact_id": "gone"})), answer(text("It is not there."))
    )
    told = await harness.run()
    assert told.statuses == [("completed", "It is not there.")]
    [failed] = told.of(ToolFailed)
    assert (failed.index, failed.tool_use_id) == (0, "T1")
    assert harness.results() == [ToolResult("T1", failed.error, is_error=True)]


async def test_an_unknown_tool_is_answered_with_the_names_of_those_there_are() -> None:
    harness = TurnHarness(answer(tool("T1", "web_search", {"q": "x"})), answer(text("Then not.")))
    told = await harness.run()
    assert told.statuses[-1] == ("completed", "Then not.")
    assert harness.results()[0].is_error
    assert "artifact_update" in harness.results()[0].content


@pytest.mark.parametrize("name", ["artifact_update", "artifact_read", "ask_user", "decline_task"])
@pytest.mark.parametrize("given", ['{"append": tru', "[1]", "{}", "nonsense", '{"append": "maybe", "question": " "}'])
async def test_input_that_is_wrong_or_cut_off_is_answered_with_an_error_result(name, given) -> None:
    harness = TurnHarness(answer(tool("T1", name, given, cut=3)), answer(text("Sorry.")))
    told = await harness.run()
    assert told.statuses == [("completed", "Sorry.")]
    assert harness.results()[0].is_error
    assert name in harness.results()[0].content


async def test_only_input_that_is_a_json_object_is_told_as_complete() -> None:
    written = [tool("T1", "artifact_list", ""), tool("T2", "artifact_list", "[]"), tool("T3", "artifact_list", "{")]
    told = await TurnHarness(answer(*written), answer()).run()
    assert told.of(ToolInputCompleted) == [ToolInputCompleted(0, "T1", {})]


async def test_a_call_that_the_provider_leaves_open_ends_with_the_answer() -> None:
    harness = TurnHarness(answer(write("T1", "Hello", stopped=False)), answer(text("Done.")))
    await harness.run()
    assert [result.is_error for result in harness.results()] == [False]
    assert (await harness.doc()).text == "Hello"


# ------------------------------------------------------------- texts of rounds


async def test_only_the_text_of_the_last_round_is_the_reply() -> None:
    rounds = [answer(text(f"Step {n}."), tool(f"T{n}", "artifact_list")) for n in (1, 2)]
    told = await TurnHarness(*rounds, answer(text("All done."))).run()
    assert told.statuses == [("working", "Step 1."), ("working", "Step 2."), ("completed", "All done.")]
    assert len(told.of(FinalMessageStarted)) == 1


async def test_the_text_of_a_round_is_one_message_however_many_blocks_and_tools_it_has() -> None:
    first = answer(text("One."), tool("T1", "artifact_list", at=1), text("Two.", at=2), tool("T2", "artifact_list"))
    told = await TurnHarness(first, answer(text("Done."))).run()
    assert told.statuses == [("working", "One.\n\nTwo."), ("completed", "Done.")]


async def test_a_last_round_without_text_says_what_was_written_and_never_an_earlier_rounds_text() -> None:
    told = await TurnHarness(answer(text("Let me write."), write("T1", "x")), answer()).run()
    assert told.statuses == [("working", "Let me write."), ("completed", "Wrote doc, version 1.")]
    told = await TurnHarness(answer(write("T1", "x", last_chunk=True)), answer(thinking("Hm."))).run()
    assert told.statuses == [("completed", "Wrote doc, version 1.")]


async def test_an_answer_that_is_empty_after_tools_that_wrote_nothing_says_so() -> None:
    told = await TurnHarness(answer(tool("T1", "artifact_list")), answer()).run()
    assert told.statuses == [("completed", "Done; no artifact was changed.")]


async def test_a_text_that_the_adapter_marks_as_the_final_message_wins() -> None:
    told = await TurnHarness(answer(text("Aside."), text("The answer.", at=1, final=True), text("More.", at=2))).run()
    assert told.statuses == [("completed", "The answer.")]


async def test_a_final_message_marked_in_an_earlier_round_wins_over_the_last_rounds_text() -> None:
    first = answer(text("The answer.", final=True), write("T1", "x"))
    told = await TurnHarness(first, answer(text("Saved it."))).run()
    assert told.statuses[-1] == ("completed", "The answer.")


async def test_the_label_is_told_again_after_a_rounds_text_has_overwritten_it() -> None:
    told = await TurnHarness(answer(text("Now."), tool("T1", "artifact_list")), answer(text("Done."))).run()
    assert told.labels == ["Working…", "Writing reply…", "Writing reply…"]


# -------------------------------------------------------------- ask and decline


async def test_a_question_pauses_the_turn() -> None:
    told = await TurnHarness(answer(text("Hm."), ask("T1", "Which colour?"))).run()
    assert told.statuses == [("working", "Hm."), ("input-required", "Which colour?")]
    assert told.of(ToolSucceeded) == [ToolSucceeded(1, "T1", "The user has been asked.")]


async def test_drafts_are_closed_before_the_question_is_asked() -> None:
    harness = TurnHarness(answer(write("T1", "So far"), ask("T2", "Go on?")))
    told = await harness.run()
    closing = told.of(ArtifactChanged)[-1]
    assert closing.last_chunk
    assert told.events.index(closing) < len(told.events) - 1
    assert not (await harness.doc()).open


async def test_declining_rejects_the_task_with_the_reason() -> None:
    told = await TurnHarness(answer(decline("T1", "I do not write spam."))).run()
    assert told.statuses == [("rejected", "I do not write spam.")]


async def test_a_question_is_asked_after_all_other_calls_of_its_answer() -> None:
    harness = TurnHarness(answer(ask("T1", "Right?"), write("T2", "x", at=1), tool("T3", "artifact_list", at=2)))
    told = await harness.run()
    assert [event.tool_use_id for event in told.of(ToolSucceeded)] == ["T2", "T3", "T1"]
    assert told.statuses == [("input-required", "Right?")]
    assert (await harness.doc()).text == "x"


async def test_a_question_wins_over_other_calls_and_their_errors() -> None:
    limits = TurnLimits(tool_errors_in_a_row=1)
    told = await TurnHarness(answer(tool("T1", "nope"), ask("T2", "Which?", at=1)), limits=limits).run()
    assert told.statuses == [("input-required", "Which?")]


@pytest.mark.parametrize("first", ["ask", "decline"])
async def test_to_decline_wins_over_to_ask(first) -> None:
    both = [ask("T1", "Which?"), decline("T2", "I must not.", at=1)]
    told = await TurnHarness(answer(*(both if first == "ask" else reversed(both)))).run()
    assert told.statuses == [("rejected", "I must not.")]
    assert {event.tool_use_id for event in told.of(ToolSucceeded)} == {"T1", "T2"}


async def test_two_questions_are_asked_together() -> None:
    told = await TurnHarness(answer(ask("T1", "Which colour?"), ask("T2", "Which size?", at=1))).run()
    assert told.statuses == [("input-required", "Which colour?\nWhich size?")]


@pytest.mark.parametrize(("give_back", "state"), [(ask, "input-required"), (decline, "rejected")])
async def test_the_user_sees_neither_thinking_nor_tags_in_a_question_or_a_reason(give_back, state) -> None:
    told = await TurnHarness(answer(give_back("T1", "<think>Hm.</think>Blue?", cut=3))).run()
    assert told.statuses == [(state, "Blue?")]


# ----------------------------------------------------------- refusals and limits


async def test_a_refusal_rejects_the_task_and_keeps_what_was_said() -> None:
    told = await TurnHarness(answer(text("I will not"), reason="refusal")).run()
    assert told.statuses == [("working", "I will not"), ("rejected", "The model declined to answer this request.")]


async def test_the_output_limit_fails_the_task_and_keeps_what_was_said() -> None:
    told = await TurnHarness(answer(text("Once upon"), reason="max_tokens")).run()
    assert [state for state, _ in told.statuses] == ["working", "failed"]
    assert "output limit" in told.statuses[-1][1]


@pytest.mark.parametrize("stopped", [True, False])
async def test_the_output_limit_inside_a_tool_input_takes_the_call_back(stopped) -> None:
    cut_off = write("T2", "World", append=True, stopped=False)
    cut_off[-1] = replace(cut_off[-1], partial_json=cut_off[-1].partial_json[:-6])
    end = [BlockStop(0)] if stopped else []
    harness = TurnHarness(answer(write("T1", "Hello "), cut_off, end, reason="max_tokens"))
    told = await harness.run()
    assert [state for state, _ in told.statuses] == ["failed"]
    assert (await harness.doc()).text == "Hello "
    assert [event.tool_use_id for event in told.of(ToolFailed)] == ["T2"]


async def test_a_turn_ends_when_it_has_had_its_rounds() -> None:
    rounds = [answer(text(f"Step {n}."), tool(f"T{n}", "artifact_list")) for n in range(3)]
    harness = TurnHarness(*rounds, limits=TurnLimits(rounds=3))
    told = await harness.run()
    assert told.statuses[-2][1] == "Step 2."
    assert told.statuses[-1] == ("failed", "Stopped after 3 rounds without an end. Ask for less at a time.")
    assert len(harness.llm.requests) == 3


async def test_a_turn_ends_after_too_many_tool_errors_in_a_row() -> None:
    rounds = [answer(tool(f"T{n}", "nope")) for n in range(3)]
    harness = TurnHarness(*rounds, limits=TurnLimits(tool_errors_in_a_row=3))
    told = await harness.run()
    state, message = told.statuses[-1]
    assert state == "failed"
    assert "3 tool errors in a row" in message
    assert "There is no tool 'nope'" in message


async def test_a_call_that_succeeds_begins_the_count_of_errors_anew() -> None:
    rounds = [answer(tool(f"T{n}", "nope"), tool(f"U{n}", "artifact_list", at=1)) for n in range(5)]
    told = await TurnHarness(*rounds, answer(text("Done.")), limits=TurnLimits(tool_errors_in_a_row=2)).run()
    assert told.statuses == [("completed", "Done.")]


async def test_the_size_limit_of_artifacts_ends_the_turn_and_says_what_to_do() -> None:
    too_long = write("T2", "x" * 100, append=True, cut=10, at=2)
    harness = TurnHarness(
        answer(text("I write."), write("T1", "Hello", at=1), too_long), artifact_limits=Limits(artifact_bytes=50)
    )
    told = await harness.run()
    said_before, (state, message) = told.statuses
    assert said_before == ("working", "I write.")
    assert state == "failed"
    assert "50 are allowed. Split it into several artifacts." in message
    assert harness.llm.ends == ["GeneratorExit"]
    assert (await harness.doc()).text == "Hello"
    assert told.stop_reasons == ["error"]


async def test_the_part_limit_of_artifacts_ends_the_turn_too() -> None:
    items = [{"kind": "data", "data": n} for n in range(4)]
    given = {"append": False, "artifact": {"artifact_id": "doc", "parts": items}}
    harness = TurnHarness(answer(tool("T1", "artifact_update", given)), artifact_limits=Limits(parts=3))
    assert (await harness.run()).statuses[-1][0] == "failed"


async def test_an_error_that_nobody_foresaw_fails_the_task_without_its_text() -> None:
    told = await TurnHarness(broken(text("Hi"), ZeroDivisionError("secret"))).run()
    assert told.statuses == [("failed", INTERNAL_ERROR)]


async def test_an_artifact_that_another_task_is_writing_is_busy_and_the_model_is_told() -> None:
    store = InMemoryArtifactStore()
    await store.apply(DOC, AppendParts(parts("theirs")))
    harness = TurnHarness(answer(write("T1", "mine")), answer(text("Later.")), store=store)
    told = await harness.run()
    assert "being written by another task" in harness.results()[0].content
    assert told.statuses == [("completed", "Later.")]
    assert (await harness.doc()).text == "theirs"


# ------------------------------------------------------ messages while it works


async def test_a_message_that_comes_during_a_round_is_given_before_the_next() -> None:
    hold = Hold()
    harness = TurnHarness(answer(tool("T1", "artifact_list"), hold), answer(text("Shorter, then.")))
    turn = harness.start()
    await hold.reached.wait()
    harness.new_messages.append(said("m-2", "Make it short"))
    hold.release.set()
    await turn
    last = harness.llm.requests[1].messages[-1]
    assert (last.content, last.message_id) == ((ToolResult("T1", "[]"), ModelText("Make it short")), "m-2")
    assert harness.told.statuses == [("completed", "Shorter, then.")]


async def test_a_message_that_comes_during_the_last_round_keeps_the_turn_going() -> None:
    hold = Hold()
    harness = TurnHarness(answer(text("Done."), hold), answer(text("Shorter: done.")))
    turn = harness.start()
    await hold.reached.wait()
    harness.new_messages.append(said("m-2", "Make it short"))
    hold.release.set()
    await turn
    said_so_far = [message.content for message in harness.llm.requests[1].messages]
    assert said_so_far == [(ModelText("Go"),), (ModelText("Done."),), (ModelText("Make it short"),)]
    assert harness.told.statuses == [("working", "Done."), ("completed", "Shorter: done.")]
    assert harness.closed


async def test_a_final_message_that_was_marked_before_the_user_spoke_again_is_no_longer_final() -> None:
    hold = Hold()
    harness = TurnHarness(answer(text("Done.", final=True), hold), answer(text("Shorter.")))
    turn = harness.start()
    await hold.reached.wait()
    harness.new_messages.append(said("m-2", "Make it short"))
    hold.release.set()
    await turn
    assert harness.told.statuses == [("working", "Done."), ("completed", "Shorter.")]


async def test_a_message_that_comes_before_the_question_is_asked_does_not_answer_it() -> None:
    hold = Hold()
    harness = TurnHarness(
        answer(text("Let me see."), ask("T1", "Delete all?", at=1), hold), answer(text("I will not."))
    )
    turn = harness.start()
    await hold.reached.wait()
    harness.new_messages.append(said("m-2", "yes, and hurry"))
    hold.release.set()
    await turn
    assert harness.results() == [ToolResult("T1", NOT_ASKED)]
    assert harness.llm.requests[-1].messages[-1].content[-1] == ModelText("yes, and hurry")
    assert harness.told.statuses == [("working", "Let me see."), ("completed", "I will not.")]


async def test_a_message_that_comes_too_late_for_a_round_is_remembered_for_the_next_task() -> None:
    hold = Hold()
    harness = TurnHarness(answer(decline("T1", "No."), hold))
    turn = harness.start()
    await hold.reached.wait()
    harness.new_messages.append(said("m-2", "Please"))
    hold.release.set()
    await turn
    assert harness.told.statuses == [("rejected", "No.")]
    assert harness.told.of(TranscriptAppended)[-1].items[0].message_id == "m-2"
    assert harness.closed


# ----------------------------------------------------------------- being stopped


async def cancelled(harness: TurnHarness, hold: Hold) -> None:
    turn = harness.start()
    await hold.reached.wait()
    turn.cancel()
    await asyncio.wait([turn])
    assert turn.cancelled()


async def test_cancelling_closes_the_models_stream_at_once() -> None:
    hold = Hold()
    harness = TurnHarness(broken(text("Hi"), hold))
    await cancelled(harness, hold)
    assert harness.llm.ends == ["CancelledError"]
    assert harness.told.stop_reasons == ["error"]
    assert harness.told.statuses == []


async def test_cancelling_takes_back_the_unfinished_call_and_closes_the_draft() -> None:
    hold = Hold()
    unfinished = write("T2", " World", append=True, cut=3, stopped=False)
    harness = TurnHarness(broken(write("T1", "Hello"), unfinished, hold))
    await cancelled(harness, hold)
    back, closing = harness.told.of(ArtifactChanged)[-2:]
    assert (back.append, back.parts[0].text) == (False, "Hello")
    assert closing.last_chunk
    assert [version.content.parts[0].text for version in await harness.versions()] == ["Hello"]


async def test_a_turn_that_is_cancelled_while_it_closes_its_drafts_closes_them_all_the_same() -> None:
    class SlowStore(InMemoryArtifactStore):
        closing = Hold()

        async def discard(self, ref):
            await self.closing()
            return await super().discard(ref)

    harness = TurnHarness(answer(write("T1", "Hello")), answer(text("Done.")), store=SlowStore())
    turn = harness.start()
    await SlowStore.closing.reached.wait()
    turn.cancel()
    SlowStore.closing.release.set()
    await asyncio.wait([turn])
    assert turn.cancelled()
    assert not (await harness.doc()).open


async def test_the_model_is_told_the_rules_the_tools_and_what_was_said_before_in_the_context() -> None:
    before = TurnHarness(answer(text("I write."), write("T1", "x")), answer(text("Written.")))
    told = await before.run()
    earlier = (
        to_user_input(said("m-0", "Write x")),
        *(item for event in told.of(TranscriptAppended) for item in event.items),
    )
    harness = TurnHarness(answer(text("Again.")), earlier=(earlier,))
    await harness.run()
    [request] = harness.llm.requests
    assert request.system == SYSTEM
    assert {spec.name for spec in request.tools} == {tool.name for tool in TOOLS}
    assert [spec.name for spec in request.tools if spec.eager] == ["artifact_update", "artifact_edit", "suggest"]
    assert [message.content[0] for message in request.messages] == [
        ModelText("Write x"),
        ModelText("I write."),
        ToolResult("T1", "Written; the draft stays open."),
        ModelText("Written."),
        ModelText("Go"),
    ]


async def test_rounds_count_from_one() -> None:
    told = await TurnHarness(answer(tool("T1", "artifact_list")), answer(text("Done."))).run()
    assert [event.round for event in told.of(MessageStarted)] == [1, 2]
