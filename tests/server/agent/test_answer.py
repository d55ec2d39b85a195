"""A model's answer while it streams in: its blocks, and what watchers are told of any answer."""

import pytest

from a2a_canvas.server.agent.answer import Answer, AnswerBlock
from a2a_canvas.server.agent.blocks import BlockError, Progress
from a2a_canvas.server.agent.events import (
    BlockPosition,
    BlockStopped,
    LlmCallCompleted,
    MessageDelta,
    MessageStarted,
    TextBlockStarted,
    ThinkingAdded,
)
from a2a_canvas.server.agent.model import (
    BlockStart,
    BlockStop,
    InputDelta,
    MessageStop,
    ModelError,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from tests.fakes import EventRecorder, answer, broken, text, thinking, tool


class Reader(Answer[AnswerBlock]):
    """Remembers what it is given."""

    def __init__(self, emit, mode="delta") -> None:
        super().__init__(Progress(round=1), emit, mode, AnswerBlock)
        self.given: list[tuple[int, str]] = []

    async def _text(self, block: AnswerBlock, delta: str) -> None:
        self.given.append((block.place.index, delta))

    _input = _text

    async def play(self, steps) -> "Reader":
        for step in steps:
            await self.take(step)
        return self


async def test_what_is_told_of_an_answer_and_in_which_order() -> None:
    told, usage = EventRecorder(), Usage(3, 4)
    steps = broken(thinking("hm"), tool("T1", "artifact_list", at=1), text("Hi", at=2))
    reader = await Reader(told).play([*steps, *answer(reason="stop_sequence")[1:-1], MessageStop("end_turn", usage)])
    first, third = BlockPosition(0, 1, 0), BlockPosition(2, 1, 2)
    assert told.events == [
        MessageStarted(1),
        TextBlockStarted(first, "thinking"),
        ThinkingAdded(first, "hm"),
        BlockStopped(first),
        TextBlockStarted(third, "text"),
        BlockStopped(third),
        MessageDelta(1),
        LlmCallCompleted(1, "end_turn", usage),
    ]
    assert (reader.stop_reason, reader.ended) == ("end_turn", True)


async def test_text_and_tool_input_go_to_who_asked_with_their_blocks() -> None:
    reader = await Reader(EventRecorder()).play(answer(text("Hi", " you"), tool("T1", "nope", "{}", at=4), text("!")))
    assert reader.given == [(0, "Hi"), (0, " you"), (1, "{}"), (2, "!")]


async def test_half_characters_go_no_further() -> None:
    reader = await Reader(EventRecorder()).play(broken(text("a\ud83d"), tool("T1", "nope", "\ud83d", at=1)))
    assert reader.given == [(0, "a\ufffd"), (1, "\ufffd")]


async def test_thinking_that_says_nothing_new_is_not_told() -> None:
    told = EventRecorder()
    await Reader(told, "accumulated").play(broken(thinking("A", "AB", "AB", "")))
    assert [event.content for event in told.of(ThinkingAdded)] == ["A", "B"]


@pytest.mark.parametrize("piece", [TextDelta, ThinkingDelta, InputDelta, SignatureDelta])
async def test_a_piece_for_a_block_that_is_not_there_or_is_another_is_an_error(piece) -> None:
    kinds = {TextDelta: "text", InputDelta: "tool_use"}
    reader = await Reader(EventRecorder()).play(
        [BlockStart(n, k) for n, k in enumerate(("text", "thinking", "tool_use"))]
    )
    for block in reader._open.values():
        if block.kind != kinds.get(piece, "thinking"):
            with pytest.raises(BlockError, match=f"is a {block.kind} block"):
                await reader.take(piece(block.place.llm_index, "x"))
    with pytest.raises(BlockError, match="never started"):
        await reader.take(piece(9, "x"))


async def test_blocks_that_are_still_open_end_with_the_answer_and_not_with_a_break() -> None:
    told = EventRecorder()
    left_open = [BlockStart(0, "thinking"), BlockStart(1, "text"), BlockStart(2, "text"), BlockStop(1)]
    reader = await Reader(told).play(broken(left_open))
    await reader.take(MessageStop("end_turn"))
    assert [event.place.index for event in told.of(BlockStopped)] == [1, 0, 2]
    assert isinstance(told.events[-1], LlmCallCompleted)
    told = EventRecorder()
    await (await Reader(told).play(broken(left_open))).end("error", Usage())
    assert [event.place.index for event in told.of(BlockStopped)] == [1]


async def test_an_answer_is_over_once() -> None:
    told = EventRecorder()
    reader = await Reader(told).play(broken(text("Hi")))
    with pytest.raises(ModelError, match="ended in the middle"):
        reader.check_ended()
    await reader.take(MessageStop("end_turn"))
    await reader.end("error", Usage())
    reader.check_ended()
    assert told.stop_reasons == ["end_turn"]
