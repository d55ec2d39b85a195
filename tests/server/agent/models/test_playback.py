"""Ready-made blocks are said as a model says them."""

import itertools
import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.model import (
    BlockStart,
    BlockStop,
    InputDelta,
    MessageStart,
    MessageStop,
    ModelMessage,
    ModelRequest,
    ModelText,
    SignatureDelta,
    StopReasonDelta,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolResult,
    ToolUse,
    Usage,
)
from a2a_canvas.server.agent.models.playback import answer, fresh_tool_id, pace
from tests.property_examples import examples

REQUEST = ModelRequest("", (ModelMessage("user", (ModelText("hello"),)),))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def said(*blocks, chunk=1000, request=REQUEST):
    return list(answer(request, blocks, itertools.repeat(chunk)))


def test_an_answer_numbers_its_blocks_and_ends_with_one_stop() -> None:
    events = said(Thinking("hm", "sig"), ModelText("Hello"), ToolUse("t1", "artifact_list", {}), chunk=3)
    assert events == [
        MessageStart(),
        BlockStart(0, "thinking"),
        ThinkingDelta(0, "hm"),
        SignatureDelta(0, "sig"),
        BlockStop(0),
        BlockStart(1, "text"),
        TextDelta(1, "Hel"),
        TextDelta(1, "lo"),
        BlockStop(1),
        BlockStart(2, "tool_use", "t1", "artifact_list"),
        InputDelta(2, "{}"),
        BlockStop(2),
        StopReasonDelta("tool_use"),
        MessageStop("tool_use", Usage(5 // 4, 9 // 4)),
    ]


def test_an_answer_without_a_call_ends_the_turn() -> None:
    assert said(ModelText("Hello"))[-2] == StopReasonDelta("end_turn")
    assert said() == [MessageStart(), StopReasonDelta("end_turn"), MessageStop("end_turn", Usage(1, 0))]


def test_a_token_counts_as_four_characters() -> None:
    conversation = (
        ModelMessage("user", (ModelText("x" * 40),)),
        ModelMessage("assistant", (Thinking("y" * 8), ToolUse("t", "n", {}))),
        ModelMessage("user", (ToolResult("t", "z" * 400),)),
    )
    stop = said(ModelText("a" * 80), request=ModelRequest("s" * 20, conversation))[-1]
    assert stop == MessageStop("end_turn", Usage(input_tokens=(20 + 40 + 8 + 2 + 400) // 4, output_tokens=20))


def test_the_keys_of_a_tool_input_keep_their_order_and_letters() -> None:
    events = said(ToolUse("t", "n", {"z": "ä", "a": ["😀"]}))
    assert [e.partial_json for e in events if isinstance(e, InputDelta)] == ['{"z": "ä", "a": ["😀"]}']


@settings(max_examples=examples(100))
@given(
    given=st.dictionaries(st.text(max_size=4), json_values, max_size=4), sizes=st.lists(st.integers(1, 50), min_size=1)
)
def test_however_the_input_is_cut_it_parses_to_the_same(given, sizes) -> None:
    events = answer(REQUEST, [ToolUse("t", "n", given)], itertools.cycle(sizes))
    pieces = [e.partial_json for e in events if isinstance(e, InputDelta)]
    assert all(0 < len(piece) <= max(sizes) for piece in pieces)
    assert json.loads("".join(pieces)) == given


@settings(max_examples=examples(50))
@given(text=st.text(), chunk=st.integers(1, 40))
def test_however_a_text_is_cut_nothing_is_lost(text, chunk) -> None:
    pieces = [e.text for e in said(ModelText(text), chunk=chunk) if isinstance(e, TextDelta)]
    assert "".join(pieces) == text
    assert len(pieces) == -(-len(text) // chunk)


async def test_the_delay_stands_between_two_deltas_and_nowhere_else() -> None:
    seen: list[object] = []

    async def sleep(seconds: float) -> None:
        seen.append(seconds)

    events = said(ModelText("abc"), ToolUse("t", "n", {}), chunk=2)
    async for event in pace(events, 0.5, sleep):
        seen.append(type(event).__name__)
    assert seen == [
        *("MessageStart", "BlockStart", "TextDelta", 0.5, "TextDelta", "BlockStop"),
        *("BlockStart", 0.5, "InputDelta", "BlockStop", "StopReasonDelta", "MessageStop"),
    ]


def test_tool_ids_look_like_claudes_and_never_come_twice() -> None:
    ids = {fresh_tool_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch("toolu_[0-9a-f]{24}", one) for one in ids)
