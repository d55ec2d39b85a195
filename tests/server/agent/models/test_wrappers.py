"""A model's deltas are joined by frames: nothing is lost, doubled or overtaken, whatever comes when."""

import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.model import (
    BlockStart,
    BlockStop,
    InputDelta,
    MessageStart,
    MessageStop,
    ModelError,
    ModelRequest,
    NothingToChange,
    TextDelta,
    ThinkingDelta,
)
from a2a_canvas.server.agent.models.wrappers import UNJOINED_CHARACTERS, FramedLLM, MeasuredLLM, join_frames
from a2a_canvas.server.metrics import Metrics
from tests.fakes import BROKEN, FakeLLM, broken
from tests.metric_values import values

LONG = 1000.0
"""A frame that does not end within a test."""

texts = st.text("ab", min_size=1, max_size=3)
deltas = st.builds(TextDelta, st.integers(0, 1), texts) | st.builds(InputDelta, st.integers(0, 1), texts)
others = st.builds(ThinkingDelta, st.integers(0, 1), texts) | st.sampled_from(
    [MessageStart(), BlockStart(0, "text"), BlockStart(1, "tool_use"), BlockStop(0)]
)
PAUSE = "pause"
"""The model says nothing until the reader has taken what there is."""


async def say(script):
    for event in script:
        if event == PAUSE:
            await asyncio.sleep(0)
        elif isinstance(event, Exception):
            raise event
        else:
            yield event


async def read(script, frame):
    async with aclosing(join_frames(say(script), frame)) as stream:
        return [event async for event in stream]


def spelled(events):
    """One entry per character of a joinable delta, so that only the cuts are forgotten."""
    letters = []
    for event in events:
        match event:
            case TextDelta(text=text) | InputDelta(partial_json=text):
                letters.extend((type(event), event.llm_index, letter) for letter in text)
            case _:
                letters.append(event)
    return letters


@pytest.mark.parametrize("frame", [1e-9, LONG])
@given(script=st.lists(deltas | others | st.just(PAUSE), max_size=30))
def test_joined_events_say_what_their_pieces_said(frame, script) -> None:
    read_events = asyncio.run(read(script, frame))
    assert spelled(read_events) == spelled(event for event in script if event != PAUSE)


async def test_the_first_delta_goes_at_once_and_the_rest_of_the_frame_as_one() -> None:
    events = await read([TextDelta(0, "a"), TextDelta(0, "b"), TextDelta(0, "c"), BlockStop(0)], LONG)
    assert events == [TextDelta(0, "a"), TextDelta(0, "bc"), BlockStop(0)]


async def test_the_first_delta_does_not_wait_for_its_frame() -> None:
    silence = asyncio.Event()

    async def model():
        yield InputDelta(0, "a")
        await silence.wait()

    async with aclosing(join_frames(model(), LONG)) as stream:
        assert await anext(stream) == InputDelta(0, "a")


async def test_the_opening_of_a_calls_input_is_not_joined_so_that_an_artifact_is_seen_to_begin_at_once() -> None:
    piece = InputDelta(0, "x" * 20)
    opening = UNJOINED_CHARACTERS // 20 + 1
    script = [BlockStart(0, "tool_use"), *[piece] * (opening + 3), BlockStop(0)]
    assert await read(script, LONG) == [
        BlockStart(0, "tool_use"),
        *[piece] * opening,
        piece,  # finds no frame running
        InputDelta(0, "x" * 40),
        BlockStop(0),
    ]


async def test_the_end_of_a_frame_sends_what_is_held() -> None:
    silence = asyncio.Event()

    async def model():
        yield TextDelta(0, "a")
        yield TextDelta(0, "b")
        yield TextDelta(0, "c")
        await silence.wait()

    async with aclosing(join_frames(model(), 0.001)) as stream:
        assert [await anext(stream), await anext(stream)] == [TextDelta(0, "a"), TextDelta(0, "bc")]


async def test_deltas_of_two_blocks_are_kept_apart() -> None:
    script = [TextDelta(0, "x"), TextDelta(1, "a"), TextDelta(2, "b"), TextDelta(2, "c"), InputDelta(2, "d")]
    joined = [TextDelta(0, "x"), TextDelta(1, "a"), TextDelta(2, "bc"), InputDelta(2, "d")]
    assert await read(script, LONG) == joined


async def test_thinking_is_never_joined() -> None:
    script = [ThinkingDelta(0, "ha"), ThinkingDelta(0, "ha"), ThinkingDelta(0, "ha")]
    assert await read(script, LONG) == script


async def test_what_came_before_a_break_is_passed_on_before_the_error() -> None:
    broken = ModelError("broken", retryable=True)
    seen = []
    with pytest.raises(ModelError) as caught:
        async with aclosing(join_frames(say([TextDelta(0, "a"), TextDelta(0, "b"), broken]), LONG)) as stream:
            async for event in stream:
                seen.append(event)
    assert seen == [TextDelta(0, "a"), TextDelta(0, "b")]
    assert caught.value is broken


async def test_leaving_early_closes_the_model_at_once() -> None:
    closed = asyncio.Event()

    async def model():
        try:
            yield TextDelta(0, "a")
            await asyncio.Event().wait()
        finally:
            closed.set()

    stream = join_frames(model(), LONG)
    assert await anext(stream) == TextDelta(0, "a")
    await stream.aclose()
    assert closed.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_wrapper_is_the_model_it_wraps_and_without_a_frame_changes_nothing() -> None:
    class Model:
        name = "some-model"
        thinking = "accumulated"

        def stream(self, request):
            return say([TextDelta(0, "a"), TextDelta(0, "b"), MessageStop("end_turn")])

    llm = FramedLLM(Model(), 0)
    assert (llm.name, llm.thinking) == ("some-model", "accumulated")
    assert [event async for event in llm.stream(ModelRequest("", ()))] == [
        TextDelta(0, "a"),
        TextDelta(0, "b"),
        MessageStop("end_turn"),
    ]


@pytest.mark.parametrize(("end", "counted"), [(BROKEN, 1), (NothingToChange("I found nothing."), 0)])
async def test_an_edit_that_changes_nothing_is_no_error_of_the_model(end, counted):
    metrics = Metrics()
    model = MeasuredLLM(FakeLLM([broken(end)]), metrics)
    with pytest.raises(type(end)):
        assert [event async for event in model.stream(ModelRequest("", ()))]
    assert sum(values(metrics.model_errors).values()) == counted
