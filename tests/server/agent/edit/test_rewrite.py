"""An edit of a selection by the model: one model call whose reply is the passage's new text."""

import asyncio
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.edit.edit_prompt import edit_prompt, edit_request
from a2a_canvas.server.agent.edit.rewrite import NO_TEXT, NOT_ONLY_THE_PASSAGE
from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    BlockStopped,
    LlmCallCompleted,
    StatusChanged,
    TextAdded,
    ThinkingAdded,
)
from a2a_canvas.server.agent.intent import SelectionEdit
from a2a_canvas.server.agent.model import InputDelta, ModelError, NothingToChange, SignatureDelta
from a2a_canvas.server.agent.operation_forms import SelectionRequest
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import AppendParts
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, Selection
from a2a_canvas.store.models import DataPart, Limits, text_part
from a2a_canvas.store.text.spans import Span, from_codepoints, splice
from tests.fakes import BROKEN, REFUSED, Hold, answer, broken, text, thinking, tool
from tests.server.agent.edit.operation_harness import (
    TEXT,
    TWO,
    OperationHarness,
    check_edits,
    edit,
    edits_of,
    landed,
    phases,
)
from tests.server.agent.turn.cut_harness import WaitingStore

LOUDER = answer(text("TW", "O!"))
NEW = TEXT.replace("Two.", "TWO!")
STRATEGIES = ["replace", "insert_before", "insert_after"]


async def edited(*calls, **options) -> OperationHarness:
    harness = await OperationHarness(*calls).ready()
    await harness.run(edit(**options))
    return harness


# --------------------------------------------------------------------- what it comes to


async def test_the_log_has_what_the_operator_reads_of_a_failed_call(caplog):
    refused = ModelError("The model is away.", retryable=False, detail="The provider answered with HTTP 418.")
    harness = await edited([refused])
    assert harness.told.statuses == [("failed", "The model is away.")]
    assert [each.message for each in caplog.records] == [
        "The model call of an edit failed: The provider answered with HTTP 418."
    ]


async def test_the_model_is_asked_for_the_passage_and_nothing_else() -> None:
    harness = await edited(LOUDER)
    passage = edit_prompt(TEXT, TWO, name="notes.md", language="markdown", instruction="Louder", strategy="replace")
    assert harness.llm.requests == [edit_request(passage, "m-1")]


async def test_its_reply_streams_as_start_chunks_complete_and_then_the_whole_artifact() -> None:
    harness = await edited(LOUDER)
    here = Selection(14, 18)
    start, *chunks, complete = edits_of(harness.told.events)
    edit_id = start.edit_id
    assert start == EditStarted(edit_id, "doc", here, "replace", 1)
    assert [chunk.chunk for chunk in chunks] == ["TW", "O!"]
    assert all(chunk == EditChunk(edit_id, "doc", here, chunk.chunk) for chunk in chunks)
    assert complete == EditCompleted(edit_id, "doc", here, "TWO!", here, "replace", 1)
    [changed] = harness.told.of(ArtifactChanged)
    assert (changed.append, changed.last_chunk, changed.version, changed.author) == (False, True, 2, "agent")
    assert changed.parts[0].text == (await harness.doc()).text == NEW
    assert phases(harness.told.events) == ["start", "chunk", "complete", "artifact"]


async def test_the_task_says_what_it_is_doing_and_at_the_end_what_it_did() -> None:
    harness = await edited(LOUDER)
    assert harness.told.labels == ["Editing notes.md…"]
    assert harness.told.statuses == [("completed", "Edited notes.md at line 4: version 2 is saved.")]
    lines = await edited(LOUDER, span=Span(9, 18))
    assert lines.end.message.text == "Edited notes.md at lines 3-4: version 2 is saved."


async def test_one_version_is_made_and_all_but_the_text_stays() -> None:
    harness = await edited(LOUDER)
    first, second = await harness.versions()
    assert (second.number, second.parent, second.author, second.task_id) == (2, 1, "agent", "task")
    assert (second.content.name, second.content.description) == ("notes.md", "Notes")
    assert second.content.parts == (text_part(NEW, "text/markdown", {"k": "v"}), DataPart({"a": 1}))
    assert first.content.text == TEXT


async def test_the_reply_is_no_text_of_the_conversation_but_its_thinking_is_told() -> None:
    harness = await edited(answer(thinking("Hm", "m"), text("TWO!", at=1)))
    assert harness.told.of(TextAdded) == []
    assert [event.content for event in harness.told.of(ThinkingAdded)] == ["Hm", "m"]
    assert harness.told.stop_reasons == ["end_turn"]


@given(st.data())
async def test_only_the_selected_range_changes_and_a_client_can_do_it_itself(data) -> None:
    old = data.draw(st.text("ab \né😀", max_size=12), label="text")
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(old))] * 2), label="range"))
    unit, strategy = data.draw(st.sampled_from(["utf16", "codepoint"])), data.draw(st.sampled_from(STRATEGIES))
    deltas = data.draw(st.lists(st.text("xé😀 \n", max_size=3), max_size=4).filter("".join), label="deltas")
    span = Span(*(from_codepoints(old, offset, unit) for offset in (start, end)))
    harness = await OperationHarness(answer(text(*deltas)), text=old).ready()
    await harness.run(edit(span, strategy, unit=unit))
    now = (await harness.doc()).text
    if harness.end.message.text.startswith("Nothing has changed"):
        assert (now, harness.told.of(EditCompleted)) == (old, [])
        return
    [completed] = harness.told.of(EditCompleted)
    assert completed.selection == Selection(span.start, span.end, unit)
    assert now == landed(old, completed) == splice(old, Span(start, end), completed.updated_content)
    written = "".join(chunk.chunk for chunk in harness.told.of(EditChunk))
    at = end if strategy == "insert_after" else start
    assert completed.written.start == from_codepoints(old, at, unit)
    place = Span(at, at + len(written))
    assert place.extract(now) == written
    assert completed.written.end == from_codepoints(now, place.end, unit)
    if strategy != "replace":
        assert now == old[:at] + written + old[at:]


@pytest.mark.parametrize(
    ("strategy", "new"), [("replace", "+ed"), ("insert_before", "+abed"), ("insert_after", "ab+ed")]
)
async def test_what_the_strategies_make_of_a_passage(strategy, new) -> None:
    harness = await OperationHarness(answer(text("+")), text="abed").ready()
    await harness.run(edit(Span(0, 2), strategy))
    assert (await harness.doc()).text == new


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("at", [0, 2, 4])
async def test_an_empty_selection_is_a_place_to_insert_at(strategy, at) -> None:
    harness = await OperationHarness(answer(text("\nnew\n")), text="abed").ready()
    await harness.run(edit(Span(at, at), strategy))
    assert (await harness.doc()).text == "abed"[:at] + "\nnew\n" + "abed"[at:]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_a_selection_that_ended_in_a_line_end_keeps_it(end) -> None:
    harness = await OperationHarness(answer(text("B")), text=f"a{end}b{end}c").ready()
    start = 1 + len(end)
    await harness.run(edit(Span(start, start + 1 + len(end))))
    assert (await harness.doc()).text == f"a{end}B{end}c"


@pytest.mark.parametrize(
    ("strategy", "text_after"),
    [("insert_before", "a\r\nx\r\ny\r\nb\r\nc"), ("insert_after", "a\r\nb\r\nx\r\ny\r\nc")],
)
async def test_beside_lines_it_stands_on_lines_of_its_own_which_end_as_all_the_others(strategy, text_after) -> None:
    harness = await OperationHarness(answer(text("x\ny")), text="a\r\nb\r\nc").ready()
    await harness.run(SelectionEdit("doc", SelectionRequest(line_start=2, line_end=2), strategy, "More", 1))
    assert (await harness.doc()).text == text_after
    assert harness.llm.requests[0].edit.selected_by_lines


@pytest.mark.parametrize(("reply", "left"), [([" "], "a b\n"), (["<del", "ete/", ">\n"], "ab\n")])
async def test_a_blank_reply_is_text_and_the_mark_deletes_and_is_never_seen(reply, left) -> None:
    harness = await OperationHarness(answer(text(*reply)), text="a—b\n").ready()
    await harness.run(edit(Span(1, 2)))
    assert (await harness.doc()).text == left
    assert harness.end.state.value == "completed"
    assert "delete" not in "".join(chunk.chunk for chunk in harness.told.of(EditChunk))


SILENT = {
    "thinking alone": answer(thinking("Hm")),
    "a call alone": answer(tool("T1", "artifact_list", {"a": 1}), reason="tool_use"),
    "no block": answer(),
    "an empty text": answer(text("")),
    "thinking in tags": answer(text("<think>Away with it.</think>\n")),
    "an empty fence": answer(text("```\n```")),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("reply", SILENT)
async def test_a_reply_without_text_is_asked_for_once_more_and_then_failed(reply, strategy) -> None:
    harness = await edited(
        SILENT[reply], answer(text("<delete/>" if strategy == "replace" else "x")), strategy=strategy
    )
    told = [phase for phase in phases(harness.told.events) if phase != "chunk"]
    assert told == ["start", "abort", "start", "complete", "artifact"]
    assert len(await harness.versions()) == 2
    harness = await edited(*[SILENT[reply]] * 2, LOUDER, strategy=strategy)
    assert phases(harness.told.events) == ["start", "abort"] * 2 + ["artifact"]
    assert harness.told.statuses == [("failed", NO_TEXT)]
    assert len(harness.llm.requests) == 2
    await untouched(harness)


async def test_a_reply_without_text_after_a_stream_that_broke_is_asked_for_once_more_too() -> None:
    harness = await edited(broken(text("T"), BROKEN), SILENT["no block"], LOUDER)
    assert (await harness.doc()).text == NEW
    harness = await edited(SILENT["no block"], broken(text("T"), BROKEN), SILENT["no block"])
    assert harness.told.statuses == [("failed", NO_TEXT)]
    await untouched(harness)


@pytest.mark.parametrize(
    "reply", ["Here you go:\n```python\nasync def f():\n```", "<selection-1>async def f():</selection-1>"]
)
async def test_neither_a_preamble_nor_tags_of_the_message_go_into_the_document(reply) -> None:
    for deltas in ([reply], list(reply)):
        harness = await OperationHarness(
            answer(text(*deltas)), text="def f():\n    pass\n", name="f.py", media_type=""
        ).ready()
        await harness.run(edit(Span(0, 8)))
        assert (await harness.doc()).text == "async def f():\n    pass\n"
        assert "".join(chunk.chunk for chunk in harness.told.of(EditChunk)) == "async def f():"
        assert harness.end.message.text == "Edited f.py at line 1: version 2 is saved."


@pytest.mark.parametrize("reply", [TWO.extract(TEXT), f"Sure! Here's the revised version:\n\n{TWO.extract(TEXT)}"])
async def test_a_reply_that_is_the_passage_as_it_is_makes_no_version_and_says_so(reply) -> None:
    harness = await edited(answer(text(*reply)))
    assert harness.told.statuses == [
        ("completed", "Nothing has changed: the agent left notes.md at line 4 as it is in version 1.")
    ]
    assert harness.end.message.metadata[CANVAS] == {"artifactId": "doc", "artifactVersion": 1}
    assert phases(harness.told.events)[-2:] == ["abort", "artifact"]
    await untouched(harness)


async def test_thinking_that_is_written_as_text_does_not_go_into_the_document() -> None:
    harness = await edited(answer(text("<think>Lou", "der?</th", "ink>\n\nTWO!")))
    assert (await harness.doc()).text == NEW
    assert [chunk.chunk for chunk in harness.told.of(EditChunk)] == ["TWO!"]
    assert harness.end.message.text == "Edited notes.md at line 4: version 2 is saved."


FENCED = "```python\nasync def f():\n```\nI made it `async`."


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 11, 100])
async def test_a_fence_around_the_reply_is_taken_off_while_it_streams(cut) -> None:
    deltas = [FENCED[n : n + cut] for n in range(0, len(FENCED), cut)]
    harness = await OperationHarness(
        answer(text(*deltas)), text="def f():\n    pass\n", name="f.py", media_type=""
    ).ready()
    await harness.run(edit(Span(0, 8)))
    assert (await harness.doc()).text == "async def f():\n    pass\n"
    assert "".join(chunk.chunk for chunk in harness.told.of(EditChunk)) == "async def f():"
    assert harness.end.message.text == "Edited f.py at line 1: version 2 is saved.\n\nI made it `async`."


# ---------------------------------------------------------------- a stream that breaks

TORN = [
    broken(text("T"), BROKEN),
    broken(text("T")),
    broken(text("T"), text("x", at=1)[1:]),
    [BROKEN],
    [],
]


@pytest.mark.parametrize("torn", TORN)
async def test_a_stream_that_breaks_is_asked_for_again_as_an_edit_of_its_own(torn) -> None:
    harness = await edited(torn, LOUDER)
    told = [phase for phase in phases(harness.told.events) if phase != "chunk"]
    assert told == ["start", "abort", "start", "complete", "artifact"]
    assert (await harness.doc()).text == NEW
    assert len(await harness.versions()) == 2
    assert harness.llm.requests[0] == harness.llm.requests[1]
    assert harness.told.stop_reasons == ["error", "end_turn"]
    one, other = harness.told.of(EditStarted)
    assert one.edit_id != other.edit_id


async def test_after_three_breaks_the_task_fails_and_the_artifact_is_shown_as_it_was() -> None:
    harness = await edited(*[broken(text("T"), BROKEN)] * 3)
    assert phases(harness.told.events) == ["start", "chunk", "abort"] * 3 + ["artifact"]
    assert harness.told.statuses == [("failed", BROKEN.reason)]
    await untouched(harness)


async def test_where_there_is_nothing_to_change_the_task_ends_well_and_the_artifact_stays() -> None:
    harness = await edited(broken(NothingToChange("I found nothing to change in this passage.")))
    assert phases(harness.told.events) == ["start", "abort", "artifact"]
    assert harness.told.statuses == [("completed", "I found nothing to change in this passage.")]
    assert harness.told.stop_reasons == ["end_turn"]
    await untouched(harness)


async def test_it_waits_before_each_further_try_and_as_long_as_it_is_asked_to() -> None:
    busy = ModelError("The model is overloaded.", retryable=True, retry_after=7.0)
    harness = await OperationHarness(broken(text("T"), BROKEN), broken(busy), LOUDER).ready()
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    harness.sleep = sleep
    await harness.run(edit())
    assert 0.3 < waited[0] < 0.7
    assert waited[1:] == [7.0]


async def test_a_cancel_while_it_waits_shows_the_artifact_as_it_was() -> None:
    harness = await OperationHarness(broken(text("T"), BROKEN)).ready()

    async def canceled(seconds: float) -> None:
        raise asyncio.CancelledError

    harness.sleep = canceled
    with pytest.raises(asyncio.CancelledError):
        await harness.run(edit())
    assert phases(harness.told.events) == ["start", "chunk", "abort", "artifact"]
    await untouched(harness)


async def untouched(harness: OperationHarness) -> None:
    """Nothing has changed, and whoever watched has been told so."""
    assert len(await harness.versions()) == 1
    assert (await harness.doc()).text == harness.text
    *_, aborted, shown = [e for e in harness.told.events if isinstance(e, EditAborted | ArtifactChanged)]
    assert isinstance(aborted, EditAborted)
    assert isinstance(shown, ArtifactChanged)
    assert (shown.append, shown.version, shown.last_chunk) == (False, 1, True)
    assert shown.parts == (await harness.doc()).parts


@pytest.mark.parametrize("reply", ["```md\nTWO!\n```\nOr:\n```md\n2!\n```", "<think>Two, or"])
async def test_a_reply_that_is_not_the_passage_alone_is_asked_for_again_and_never_half_taken(reply) -> None:
    harness = await edited(answer(text(reply)), LOUDER)
    told = [phase for phase in phases(harness.told.events) if phase != "chunk"]
    assert told == ["start", "abort", "start", "complete", "artifact"]
    assert (await harness.doc()).text == NEW
    harness = await edited(*[answer(text(reply))] * 3)
    assert harness.told.statuses == [("failed", NOT_ONLY_THE_PASSAGE)]
    await untouched(harness)
    cut_off = await edited(answer(text(reply), reason="max_tokens"))
    assert "cut off" in cut_off.told.statuses[0][1]
    await untouched(cut_off)


async def test_a_call_that_cannot_succeed_is_not_made_again() -> None:
    harness = await edited(broken(text("T"), REFUSED))
    assert phases(harness.told.events) == ["start", "chunk", "abort", "artifact"]
    assert harness.told.statuses == [("failed", REFUSED.reason)]
    await untouched(harness)


@pytest.mark.parametrize(("reason", "state"), [("max_tokens", "failed"), ("refusal", "rejected")])
async def test_a_reply_that_is_cut_off_or_refused_changes_nothing(reason, state) -> None:
    harness = await edited(answer(text("T"), reason=reason))
    assert harness.told.statuses[0][0] == state
    assert len(harness.llm.requests) == 1
    await untouched(harness)


async def test_a_text_that_would_be_too_large_changes_nothing() -> None:
    harness = await OperationHarness(answer(text("x" * 100)), limits=Limits(artifact_bytes=100)).ready()
    await harness.run(edit())
    state, why = harness.told.statuses[0]
    assert state == "failed"
    assert "100 are allowed" in why
    await untouched(harness)


async def test_a_fault_of_the_house_fails_the_task_and_aborts_the_edit() -> None:
    harness = await edited(broken(text("T"), ValueError("?")))
    assert harness.told.statuses[0][0] == "failed"
    await untouched(harness)


async def test_blocks_that_the_model_leaves_open_end_with_its_reply() -> None:
    harness = await edited(
        answer(thinking("Hm")[:-1], text("TWO!", at=1)[:-1], tool("T1", "nope", at=2, stopped=False))
    )
    assert [event.place.index for event in harness.told.of(BlockStopped)] == [0, 1]
    ends = [event for event in harness.told.events if isinstance(event, BlockStopped | LlmCallCompleted)]
    assert isinstance(ends[-1], LlmCallCompleted)
    assert (await harness.doc()).text == NEW


@pytest.mark.parametrize("stray", [InputDelta(7, "{}"), SignatureDelta(7, "s")])
async def test_any_piece_for_a_block_that_never_started_breaks_the_stream(stray) -> None:
    harness = await edited(answer(text("T"), [stray]), LOUDER)
    assert harness.told.stop_reasons == ["error", "end_turn"]
    assert (await harness.doc()).text == NEW


async def test_a_call_of_a_tool_that_was_not_offered_is_no_text() -> None:
    harness = await edited(answer(tool("T1", "artifact_list", {"a": 1}), text("TWO!", at=1)))
    assert (await harness.doc()).text == NEW


# ------------------------------------------------------------------- others meanwhile


async def meanwhile(change) -> OperationHarness:
    """The edit of `Two.`, while others do something in the middle of the reply."""
    hold = Hold()
    harness = await OperationHarness(answer(text("TW"), hold, text("O!"))).ready()
    running = asyncio.create_task(harness.run(edit()))
    await hold.reached.wait()
    await change(harness)
    hold.release.set()
    await running
    return harness


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (TEXT.replace("One.", "One, and more."), TEXT.replace("One.", "One, and more.").replace("Two.", "TWO!")),
        (TEXT.replace("Three.", "3."), NEW.replace("Three.", "3.")),
        ("Two.", "TWO!"),
    ],
)
async def test_a_change_elsewhere_meanwhile_is_kept_and_the_edit_lands_by_its_quote(theirs, ours) -> None:
    harness = await meanwhile(lambda harness: harness.put(theirs))
    assert (await harness.doc()).text == ours
    [completed] = harness.told.of(EditCompleted)
    assert landed(theirs, completed) == ours
    [*_, last] = await harness.versions()
    assert (last.number, last.parent) == (3, 2)
    assert harness.end.state.value == "completed"


@pytest.mark.parametrize("theirs", ["", TEXT.replace("Two.", "2."), TEXT + TEXT])
async def test_a_change_of_the_passage_meanwhile_is_kept_and_the_edit_is_rejected(theirs) -> None:
    harness = await meanwhile(lambda harness: harness.put(theirs))
    assert (await harness.doc()).text == theirs
    assert phases(harness.told.events)[-2:] == ["abort", "artifact"]
    assert harness.told.of(ArtifactChanged)[-1].version == 2
    assert harness.end.state.value == "rejected"
    assert dict(harness.end.message.metadata) == {
        "urn:a2a-canvas:canvas:v1": {"artifactId": "doc", "artifactVersion": 2}
    }


async def test_a_draft_that_others_have_open_at_the_end_keeps_the_edit_out() -> None:
    harness = await meanwhile(lambda harness: harness.apply(AppendParts((text_part("Four."),))))
    assert phases(harness.told.events)[-2:] == ["abort", "artifact"]
    assert harness.end.state.value == "rejected"
    assert harness.end.message.metadata["urn:a2a-canvas:canvas:v1"]["busy"] is True
    assert (await harness.doc()).text == TEXT + "Four."


@given(st.text("TwoOne.\n", max_size=12), st.integers(0, 3))
async def test_whatever_others_make_of_it_the_edit_lands_on_its_passage_or_nowhere(theirs, keep) -> None:
    around = theirs[:keep] + "Two." * (keep > 0) + theirs[keep:]
    harness = await meanwhile(lambda harness: harness.put(around))
    now = (await harness.doc()).text
    if completed := harness.told.of(EditCompleted):
        start = completed[0].selection.start
        assert around[start : start + 4] == "Two."
        assert now == around[:start] + "TWO!" + around[start + 4 :]
    else:
        assert now == around
        assert harness.end.state.value == "rejected"


# --------------------------------------------------------------------------- a cancel


REPLIES = {
    "whole": ([LOUDER], "completed", 2),
    "again": ([broken(text("T"), BROKEN), LOUDER], "completed", 2),
    "thought": ([answer(thinking("Hm"), text("TWO!", at=1))], "completed", 2),
    "cut off": ([answer(text("T"), reason="max_tokens")], "failed", 1),
    "broken": ([broken(text("T"), BROKEN)] * 3, "failed", 1),
}


@pytest.mark.parametrize("reply", REPLIES)
async def test_wherever_a_cancel_comes_the_edit_is_whole_or_has_come_to_nothing(reply) -> None:
    calls, state, versions = REPLIES[reply]
    canceled = 0
    for at in count(1):
        harness = await OperationHarness(*calls, store=WaitingStore()).ready()
        harness.store.committed()
        running = asyncio.create_task(harness.run(edit()))
        for _ in range(at):
            await asyncio.sleep(0)
        late = running.done()
        running.cancel()
        await asyncio.wait([running])
        events = harness.told.events
        check_edits(events)
        assert len(harness.told.of(LlmCallCompleted)) == len(harness.llm.requests)
        if not running.cancelled():
            assert events[-1].state.value == state
            assert len(await harness.versions()) == versions
            assert phases(events)[-1] == "artifact"
        else:
            canceled += 1
            assert not any(isinstance(event, StatusChanged) and event.state.terminal for event in events)
            assert len(await harness.versions()) == 1
            assert phases(events)[-2:] in ([], ["abort", "artifact"])
        if late:
            break
    assert canceled > 2
