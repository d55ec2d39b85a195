"""One model call: its stream in, turn events out, and what it has completed."""

from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.blocks import BlockError, Progress
from a2a_canvas.server.agent.endings import NOTHING_VISIBLE
from a2a_canvas.server.agent.events import (
    AssistantOutput,
    BlockPosition,
    BlockStopped,
    FinalMessageStarted,
    LlmCallCompleted,
    MessageDelta,
    MessageStarted,
    TextAdded,
    TextBlockStarted,
    ThinkingAdded,
    ToolFailed,
    ToolInputAdded,
    ToolInputCompleted,
    ToolSucceeded,
    ToolUseStarted,
    TranscriptAppended,
)
from a2a_canvas.server.agent.model import (
    BlockStart,
    BlockStop,
    InputDelta,
    MessageStop,
    ModelError,
    ModelEvent,
    ModelText,
    SignatureDelta,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolResult,
    ToolUse,
    Usage,
)
from a2a_canvas.server.agent.phases import Phase
from a2a_canvas.server.agent.turn.call import ModelCall, TurnOutput
from a2a_canvas.server.agent.turn.turn import TurnLimits
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.tools.registry import TOOLS
from a2a_canvas.tools.tool import Ask, Decline, Failed, Workspace
from tests.fakes import BROKEN, EventRecorder, answer, ask, broken, decline, stop, text, thinking, tool, write
from tests.property_examples import examples
from tests.server.agent.turn.turn_harness import TurnHarness


class Unlabelled(TurnOutput):
    async def label(self, label: str, *, of_tool: bool = False) -> None: ...


def call_of(
    told: EventRecorder, mode: Literal["delta", "accumulated"] = "delta", progress: Progress | None = None
) -> ModelCall:
    async def ignore(thing: object) -> None: ...

    store = EventedArtifactStore(InMemoryArtifactStore(), ignore)
    tools = {tool.name: tool for tool in TOOLS}
    return ModelCall(
        progress or Progress(round=1), tools, Workspace(store, "context", "task"), Unlabelled(told, lambda: "id"), mode
    )


async def play(call: ModelCall, *steps: ModelEvent | list[ModelEvent]) -> ModelCall:
    for event in broken(*steps):
        await call.take(event)
    return call


# ------------------------------------------------------------------------ blocks


async def test_the_index_example_of_the_design() -> None:
    told = EventRecorder()
    await play(call_of(told), thinking("hm", at=0), tool("T1", "artifact_list", at=1), text("Hi", at=0), stop())
    starts = [event.place for event in told.events if isinstance(event, TextBlockStarted | ToolUseStarted)]
    assert starts == [BlockPosition(0, 1, 0), BlockPosition(1, 1, 1), BlockPosition(2, 1, 0)]
    assert told.of(ToolSucceeded) == [ToolSucceeded(1, "T1", "[]")]
    assert told.of(TextAdded) == [TextAdded(BlockPosition(2, 1, 0), "Hi")]


async def test_everything_a_call_says_in_its_order() -> None:
    told = EventRecorder()
    usage = Usage(3, 4)
    await play(call_of(told), thinking("hm"), tool("T1", "artifact_list", at=1), text("Hi", at=2), stop(usage=usage))
    first, second, third = BlockPosition(0, 1, 0), BlockPosition(1, 1, 1), BlockPosition(2, 1, 2)
    assert told.events == [
        MessageStarted(1),
        TextBlockStarted(first, "thinking"),
        ThinkingAdded(first, "hm"),
        BlockStopped(first),
        ToolUseStarted(second, "T1", "artifact_list"),
        ToolInputAdded(second, "T1", "{}"),
        BlockStopped(second),
        ToolInputCompleted(1, "T1", {}),
        ToolSucceeded(1, "T1", "[]"),
        TranscriptAppended(
            (AssistantOutput(1, (Thinking("hm"), ToolUse("T1", "artifact_list", {}))), ToolResult("T1", "[]"))
        ),
        TextBlockStarted(third, "text"),
        FinalMessageStarted(),
        TextAdded(third, "Hi"),
        BlockStopped(third),
        MessageDelta(1),
        LlmCallCompleted(1, "end_turn", usage),
    ]


async def test_a_later_call_goes_on_with_the_indices_and_numbers_its_own_blocks() -> None:
    first = await play(call_of(EventRecorder()), text("One"), stop())
    told = EventRecorder()
    second = await play(call_of(told, progress=first.progress.next_round()), text("Two"), stop())
    assert told.of(TextAdded) == [TextAdded(BlockPosition(1, 2, 0), "Two")]
    assert second.progress.call == 2


async def test_blocks_may_interleave() -> None:
    told = EventRecorder()
    call = call_of(told)
    starts = [BlockStart(0, "thinking"), BlockStart(1, "text"), BlockStart(2, "tool_use", "T1", "artifact_list")]
    deltas = [TextDelta(1, "Hi"), ThinkingDelta(0, "hm"), InputDelta(2, "{}"), TextDelta(1, " you")]
    await play(call, starts, deltas, [BlockStop(2), BlockStop(0), BlockStop(1)], stop())
    assert call.text == "Hi you"
    assert [event.place.index for event in told.of(BlockStopped)] == [2, 0, 1]
    assert told.of(ToolSucceeded) == [ToolSucceeded(2, "T1", "[]")]


@pytest.mark.parametrize("stray", [TextDelta(4, "x"), ThinkingDelta(4, "x"), InputDelta(4, "x"), BlockStop(4)])
async def test_an_event_for_a_block_that_never_started_is_an_error_and_never_guessed(stray) -> None:
    with pytest.raises(BlockError, match="its block 4 never started"):
        await play(call_of(EventRecorder()), text("Hi"), [stray])


@pytest.mark.parametrize("stray", [TextDelta(0, "x"), BlockStop(0)])
async def test_an_event_for_a_block_that_has_stopped_is_an_error(stray) -> None:
    with pytest.raises(BlockError, match="has already stopped"):
        await play(call_of(EventRecorder()), text("Hi"), [stray])


@pytest.mark.parametrize("kind", ["text", "thinking", "tool_use"])
@pytest.mark.parametrize(
    "piece", [TextDelta(0, "x"), ThinkingDelta(0, "x"), InputDelta(0, "x"), SignatureDelta(0, "x")]
)
async def test_a_piece_of_another_kind_than_its_block_is_an_error(kind, piece) -> None:
    kinds = {TextDelta: "text", ThinkingDelta: "thinking", SignatureDelta: "thinking", InputDelta: "tool_use"}
    call = call_of(EventRecorder())
    await call.take(BlockStart(0, kind, "T1", "artifact_list"))
    if kinds[type(piece)] == kind:
        await call.take(piece)
    else:
        with pytest.raises(BlockError, match=f"its block 0 is a {kind} block"):
            await call.take(piece)


# ---------------------------------------------------------------- text and thinking


@pytest.mark.parametrize(
    ("mode", "sent", "told_pieces"),
    [("delta", ["ha", "ha"], ["ha", "ha"]), ("accumulated", ["A", "AB", "AB", "ABC", "X"], ["A", "B", "C", "X"])],
)
async def test_thinking_is_told_as_its_newest_piece(mode, sent, told_pieces) -> None:
    told = EventRecorder()
    call = await play(call_of(told, mode), thinking(*sent), stop())
    assert [event.content for event in told.of(ThinkingAdded)] == told_pieces
    assert call.unsaved_blocks() == (AssistantOutput(1, (Thinking("".join(told_pieces)),)),)


async def test_accumulated_thinking_begins_anew_with_every_block() -> None:
    told = EventRecorder()
    await play(call_of(told, "accumulated"), thinking("A", "AB"), thinking("AB", "ABC", at=1))
    assert [event.content for event in told.of(ThinkingAdded)] == ["A", "B", "AB", "C"]


async def test_the_final_message_starts_once_just_before_the_first_visible_text() -> None:
    told = EventRecorder()
    call = call_of(told)
    await play(call, thinking("hm"), text("<think>no</think>", "\n", "Hi"), thinking("again"), text("you"), stop())
    first = next(n for n, event in enumerate(told.events) if isinstance(event, TextAdded))
    assert told.events[first - 1] == FinalMessageStarted()
    assert len(told.of(FinalMessageStarted)) == 1
    assert call.progress.phase is Phase.ASSISTANT


async def test_a_turn_that_has_shown_text_does_not_start_its_final_message_again() -> None:
    told = EventRecorder()
    await play(call_of(told, progress=Progress(phase=Phase.ASSISTANT)), thinking("hm"), text("Hi"), stop())
    assert told.of(FinalMessageStarted) == []


async def test_what_the_model_wrote_is_remembered_as_it_wrote_it() -> None:
    call = await play(call_of(EventRecorder()), text("<think>no</think>", " Hi "), stop())
    assert call.text == "Hi"
    assert call.unsaved_blocks() == (AssistantOutput(1, (ModelText("<think>no</think> Hi "),)),)


async def test_a_redacted_thinking_block_is_remembered_whole() -> None:
    call = await play(
        call_of(EventRecorder()), [BlockStart(0, "thinking"), SignatureDelta(0, redacted="x"), BlockStop(0)]
    )
    assert call.unsaved_blocks() == (AssistantOutput(1, (Thinking("", "", "x"),)),)


# -------------------------------------------------------------- what is remembered


async def test_a_completed_call_is_remembered_with_what_led_to_it_and_its_result() -> None:
    told = EventRecorder()
    await play(call_of(told), thinking("hm", signature="s"), text("So."), tool("T1", "artifact_list"))
    led_to_it = AssistantOutput(1, (Thinking("hm", "s"), ModelText("So."), ToolUse("T1", "artifact_list", {})))
    assert told.of(TranscriptAppended) == [TranscriptAppended((led_to_it, ToolResult("T1", "[]")))]


async def test_what_follows_the_last_completed_call_is_the_rest_of_a_whole_answer() -> None:
    told = EventRecorder()
    call = await play(call_of(told), tool("T1", "artifact_list"), text("Done."), stop())
    assert len(told.of(TranscriptAppended)) == 1
    assert call.unsaved_blocks() == (AssistantOutput(1, (ModelText("Done."),)),)
    assert call.unsaved_blocks() == ()


async def test_of_calls_that_end_together_each_is_remembered_before_the_next_acts() -> None:
    told = EventRecorder()
    calls = [tool(f"T{n}", "artifact_list", at=n, stopped=False) for n in range(3)]
    await play(call_of(told), *calls, stop())
    happened = [event for event in told.events if isinstance(event, ToolSucceeded | TranscriptAppended)]
    assert [type(event) for event in happened] == [ToolSucceeded, TranscriptAppended] * 3


async def test_calls_that_give_the_turn_back_wait_until_they_are_let() -> None:
    told = EventRecorder()
    call = await play(call_of(told), ask("T1", "Which?"), decline("T2", "No."), tool("T3", "artifact_list"), stop())
    assert [event.tool_use_id for event in told.of(ToolInputCompleted)] == ["T1", "T2", "T3"]
    assert [event.tool_use_id for event in told.of(ToolSucceeded)] == ["T3"]
    assert await call.act_last() == [Ask("Which?"), Decline("No.")]
    assert [event.tool_use_id for event in told.of(ToolSucceeded)] == ["T3", "T1", "T2"]
    assert await call.act_last() == []
    items = [item for event in told.of(TranscriptAppended) for item in event.items]
    assert [item.tool_use_id for item in items if isinstance(item, ToolResult)] == [
        "T3",
        "T2",
    ]  # the answer to a question is its result


TAGGED = "<think>The user wants <b>a</b> colour.</think>Which </tool_call>colour?<|im_end|>"


@pytest.mark.parametrize("cut", [0, 1, 2, 7])
async def test_questions_and_reasons_are_free_of_tags_wherever_their_input_is_cut(cut: int) -> None:
    calls = [ask("T1", TAGGED, cut=cut), decline("T2", TAGGED, at=1, cut=cut)]
    call = await play(call_of(EventRecorder()), *calls, stop())
    assert await call.act_last() == [Ask("Which colour?"), Decline("Which colour?")]


async def test_the_model_is_shown_the_question_as_it_wrote_it() -> None:
    told = EventRecorder()
    await (await play(call_of(told), ask("T1", TAGGED), stop())).act_last()
    [appended] = told.of(TranscriptAppended)
    assert appended.items == (AssistantOutput(1, (ToolUse("T1", "ask_user", {"question": TAGGED}),)),)


async def test_a_question_or_a_reason_of_tags_alone_fails_and_ends_nothing() -> None:
    told = EventRecorder()
    hidden = "<think>Which colour?</think>\n"
    call = await play(call_of(told), ask("T1", hidden), decline("T2", hidden, at=1), stop())
    assert await call.act_last() == [Failed(NOTHING_VISIBLE)] * 2
    assert [event.tool_use_id for event in told.of(ToolFailed)] == ["T1", "T2"]


# ----------------------------------------------------------------------- the end


async def test_a_stream_that_ends_without_saying_so_is_broken() -> None:
    call = await play(call_of(EventRecorder()), text("Hi"))
    with pytest.raises(ModelError, match="ended in the middle") as caught:
        call.check_ended()
    assert caught.value.retryable


async def test_an_aborted_call_says_once_that_it_is_over() -> None:
    told = EventRecorder()
    call = await play(call_of(told), write("T1", "x", stopped=False))
    await call.abort()
    await call.abort()
    assert told.of(LlmCallCompleted) == [LlmCallCompleted(1, "error", Usage())]
    assert told.of(ToolFailed) == []


async def test_an_abort_after_a_whole_answer_says_nothing() -> None:
    told = EventRecorder()
    call = await play(call_of(told), text("Hi"), stop("stop_sequence"))
    await call.abort()
    assert told.stop_reasons == ["stop_sequence"]


async def test_blocks_that_are_still_open_end_with_the_answer() -> None:
    told = EventRecorder()
    call = await play(
        call_of(told), [BlockStart(0, "text"), TextDelta(0, "Hi <thi")], tool("T1", "nope", stopped=False)
    )
    await call.take(MessageStop("end_turn"))
    assert call.text == "Hi <thi"
    assert [event.place.index for event in told.of(BlockStopped)] == [0, 1]
    assert isinstance(told.events[-1], LlmCallCompleted)


def remembered(told: EventRecorder, call: ModelCall) -> list[object]:
    """What the model is shown of the answer, in order."""
    items = [item for event in told.of(TranscriptAppended) for item in event.items] + list(call.unsaved_blocks())
    return [block for item in items if isinstance(item, AssistantOutput) for block in item.blocks]


async def test_blocks_are_remembered_in_the_order_in_which_they_began_and_not_in_that_of_their_ends() -> None:
    told = EventRecorder()
    open_ = [BlockStart(0, "thinking"), ThinkingDelta(0, "hm"), SignatureDelta(0, "sig")]
    call = await play(
        call_of(told), open_, text("Hi", at=1), tool("T1", "artifact_list", at=2), text("So", at=3), stop()
    )
    assert remembered(told, call) == [
        Thinking("hm", "sig"),
        ModelText("Hi"),
        ToolUse("T1", "artifact_list", {}),
        ModelText("So"),
    ]


async def test_a_block_that_is_open_when_a_call_acts_goes_with_it_as_far_as_it_has_come() -> None:
    told = EventRecorder()
    open_ = [BlockStart(0, "text"), TextDelta(0, "I look")]
    rest: list[ModelEvent] = [TextDelta(0, " again."), BlockStop(0)]
    call = await play(call_of(told), open_, tool("T1", "artifact_list", at=1), rest, stop())
    assert remembered(told, call) == [ModelText("I look"), ToolUse("T1", "artifact_list", {}), ModelText(" again.")]
    assert call.text == "I look again."


async def test_a_question_is_remembered_where_it_was_asked() -> None:
    told = EventRecorder()
    call = await play(call_of(told), thinking("hm", signature="s"), ask("T1", "Which?", at=1), text("So", at=2), stop())
    await call.act_last()
    assert [type(block) for block in remembered(told, call)] == [Thinking, ToolUse, ModelText]


async def test_thinking_with_half_a_character_is_not_what_was_sealed() -> None:
    told = EventRecorder()
    call = await play(call_of(told), thinking("hm \ud83d", signature="sig"), text("Hi", at=1), stop())
    assert remembered(told, call) == [Thinking("hm \ufffd"), ModelText("Hi")]


@pytest.mark.parametrize(
    ("given", "taken"),
    [(["T1", "T2"], ["T1", "T2"]), (["", ""], ["call_0", "call_1"]), (["T1", "T1"], ["T1", "T1_1"])],
)
async def test_every_call_of_an_answer_has_an_id_of_its_own(given: list[str], taken: list[str]) -> None:
    told = EventRecorder()
    call = await play(call_of(told), *(tool(use_id, "artifact_list", at=n) for n, use_id in enumerate(given)), stop())
    assert [block.id for block in remembered(told, call) if isinstance(block, ToolUse)] == taken
    assert [event.tool_use_id for event in told.of(ToolUseStarted)] == taken
    assert [event.tool_use_id for event in told.of(ToolSucceeded)] == taken


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
async def test_an_input_with_a_number_that_json_does_not_have_is_remembered_as_none(number: str) -> None:
    told = EventRecorder()
    parts = f'[{{"kind": "data", "data": [1, {number}]}}]'
    given = f'{{"append": true, "artifact": {{"artifact_id": "doc", "parts": {parts}}}}}'
    call = await play(call_of(told), tool("T1", "artifact_update", given), stop())
    assert remembered(told, call) == [ToolUse("T1", "artifact_update", {})]
    assert [type(outcome).__name__ for outcome in call.outcomes] == ["Failed"]


# -------------------------------------------------------- any script of any model

KINDS = ("text", "thinking", "tool_use")
NAMES = ("artifact_update", "artifact_list", "nope")
WHOLE = '{"append": true, "artifact": {"artifact_id": "doc", "parts": [{"kind": "text", "text": "x"}]}}'
PIECES = {
    "text": st.sampled_from(["Hi", "\n", "<think>", "</think>", "`"]).map(lambda t: lambda at: TextDelta(at, t)),
    "thinking": st.sampled_from(["hm", "hmm"]).map(lambda t: lambda at: ThinkingDelta(at, t)),
    "tool_use": st.sampled_from([WHOLE, WHOLE[:-9], "}"]).map(lambda t: lambda at: InputDelta(at, t)),
}


@st.composite
def any_call(draw):
    """What some provider may send: blocks that interleave, reuse numbers, and now and then make no sense."""
    open_: dict[int, str] = {}
    events = []
    for n in range(draw(st.integers(0, 12))):
        action = draw(st.sampled_from(["start", "piece", "piece", "stop"])) if open_ else "start"
        if draw(st.integers(0, 25)) == 25:
            events.append(draw(st.sampled_from([BlockStop(9), TextDelta(9, "?"), BROKEN])))
        elif action == "start":
            at, kind = draw(st.integers(0, 2)), draw(st.sampled_from(KINDS))
            open_[at] = kind
            events.append(BlockStart(at, kind, f"T{n}", draw(st.sampled_from(NAMES))))
        else:
            at = draw(st.sampled_from(sorted(open_)))
            events.append(BlockStop(at) if action == "stop" else draw(PIECES[open_[at]])(at))
            if action == "stop":
                del open_[at]
    return draw(st.sampled_from([answer, answer, answer, broken]))(events)


@settings(max_examples=examples(60))
@given(calls=st.lists(any_call(), max_size=4), mode=st.sampled_from(["delta", "accumulated"]))
async def test_whatever_models_say_the_laws_of_a_turn_hold(calls, mode) -> None:
    rest = [answer(text("Done."))] * 3
    harness = TurnHarness(*calls, *rest, thinking=mode, limits=TurnLimits(rounds=6, tool_errors_in_a_row=100))
    told = await harness.run()  # checks the laws
    assert told.statuses[-1][0] in ("completed", "failed")
