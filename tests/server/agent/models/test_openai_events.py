"""What the chunks of each server of OpenAI's API mean: text, thinking, calls, their ends and the tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.model import (
    BlockStart,
    BlockStop,
    InputDelta,
    MessageStart,
    MessageStop,
    ModelEvent,
    StopReasonDelta,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from a2a_canvas.server.agent.models.openai_events import ChunkMapper, error_in, error_message
from tests.server.agent.models.chat_chunks import Json, calling, chunk, folded, piece, usage

STOP = chunk(finish="stop")
CALLED = chunk(finish="tool_calls")


def mapped(*chunks: Json, done: bool = True, thinking: Any = "delta") -> list[ModelEvent]:
    mapper = ChunkMapper(thinking)
    events = [event for each in chunks for event in mapper.feed(each)]
    return [*events, *mapper.end(done)]


def blocks(*chunks: Json, **options: Any) -> list[tuple[str, ...]]:
    return folded(mapped(*chunks, **options))[0]


# ------------------------------------------------------------------ text and thinking


def test_a_text_comes_delta_by_delta() -> None:
    assert mapped(
        chunk({"role": "assistant", "content": ""}), chunk({"content": "He"}), chunk({"content": "llo"}), STOP
    ) == [
        MessageStart(),
        BlockStart(0, "text"),
        TextDelta(0, "He"),
        TextDelta(0, "llo"),
        BlockStop(0),
        StopReasonDelta("end_turn"),
        MessageStop("end_turn"),
    ]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking_and_ends_where_the_text_begins(name: str) -> None:
    assert mapped(chunk({name: "Hm", "content": None}), chunk({name: "."}), chunk({"content": "Hi."}), STOP)[1:-2] == [
        BlockStart(0, "thinking"),
        ThinkingDelta(0, "Hm"),
        ThinkingDelta(0, "."),
        BlockStop(0),
        BlockStart(1, "text"),
        TextDelta(1, "Hi."),
        BlockStop(1),
    ]


def test_reasoning_under_both_names_is_read_once() -> None:
    assert blocks(chunk({"reasoning": "Hm", "reasoning_content": "Hm"}), STOP) == [("thinking", "", "", "Hm")]


def test_thinking_of_mistral_is_a_part_of_the_content() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    said = {"type": "text", "text": "Hi."}
    assert blocks(chunk({"content": [thought]}), chunk({"content": [said]}), chunk({"content": "!"}), STOP) == [
        ("thinking", "", "", "Hm"),
        ("text", "", "", "Hi.!"),
    ]


def test_thinking_that_is_sent_again_beside_the_text_says_nothing_new() -> None:
    so_far = [chunk({"reasoning_content": "Hm"}), chunk({"reasoning_content": "Hm, so"})]
    beside = [
        chunk({"reasoning_content": "Hm, so", "content": "H"}),
        chunk({"reasoning_content": "Hm, so", "content": "i"}),
    ]
    events = mapped(*so_far, *beside, STOP, thinking="accumulated")
    assert [event for event in events if isinstance(event, ThinkingDelta)] == [
        ThinkingDelta(0, "Hm"),
        ThinkingDelta(0, "Hm, so"),
    ]
    assert folded(events)[0][1:] == [("text", "", "", "Hi")]


@pytest.mark.parametrize("mark", [{"channel": "final"}, {"phase": "final_answer"}])
def test_a_text_that_is_marked_as_final_is_one(mark: Json) -> None:
    events = mapped(chunk({"content": "First. "}), chunk({"content": "Done.", **mark}), STOP)
    starts = [event for event in events if isinstance(event, BlockStart)]
    assert starts == [BlockStart(0, "text"), BlockStart(1, "text", final=True)]


# ------------------------------------------------------------------------------ calls

OPENAI = [
    calling(piece("", "list", index=0, id="call_1", type="function")),
    calling(piece('{"a"', index=0)),
    calling(piece(": 1}", index=0)),
]


def test_the_input_of_a_call_comes_as_it_is_written() -> None:
    assert mapped(*OPENAI, CALLED)[1:] == [
        BlockStart(0, "tool_use", tool_use_id="call_1", name="list"),
        InputDelta(0, '{"a"'),
        InputDelta(0, ": 1}"),
        BlockStop(0),
        StopReasonDelta("tool_use"),
        MessageStop("tool_use"),
    ]


def test_a_call_ends_where_the_next_one_begins() -> None:
    events = mapped(*OPENAI, calling(piece("", "read", index=1, id="call_2")), calling(piece("{}", index=1)), CALLED)
    assert events.index(BlockStop(0)) < events.index(BlockStart(1, "tool_use", tool_use_id="call_2", name="read"))


ONE, TWO = ("tool_use", "a", "list", '{"n": 1}'), ("tool_use", "b", "list", '{"n": 2}')


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(
            [
                calling(piece("", "list", index=0, id="a"), piece("", "list", index=1, id="b")),
                calling(piece('{"n"', index=0), piece('{"n"', index=1)),
                calling(piece(": 1}", index=0), piece(": 2}", index=1)),
            ],
            id="pieces of two calls that alternate",
        ),
        pytest.param(
            [calling(piece('{"n": 1}', "list", index=0, id="a")), calling(piece('{"n": 2}', "list", index=0, id="b"))],
            id="whole calls of the same index",
        ),
        pytest.param(
            [calling(piece('{"n": 1}', "list", id="a"), piece('{"n": 2}', "list", id="b"))],
            id="whole calls without an index, in one chunk",
        ),
        pytest.param(
            [
                calling(piece('{"n"', "list", index=0, id="a")),
                calling(piece(": 1}", "list", index=0, id="c")),
                calling(piece('{"n"', "list", index=1, id="b")),
                calling(piece(": 2}", "list", index=1, id="d")),
            ],
            id="another id with each piece",
        ),
        pytest.param(
            [
                calling(piece('{"n": 1', "list", index=0, id="a")),
                calling(piece("}", "", index=0, id="")),
                calling(piece('{"n": 2', "list", index=1, id="b")),
                calling(piece("}", "", index=1, id=None)),
            ],
            id="empty names and ids in later pieces",
        ),
        pytest.param(
            [calling(piece({"n": 1}, "list", id="a")), calling(piece({"n": 2}, "list", id="b"))],
            id="an input that is an object",
        ),
        pytest.param(
            [
                calling(piece('{"n": ', "list", id="a")),
                calling(piece("1}")),
                calling(piece('{"n": ', "list", id="b")),
                calling(piece("2}")),
            ],
            id="pieces without an index",
        ),
    ],
)
def test_two_calls_are_told_apart(chunks: list[Json]) -> None:
    assert blocks(*chunks, CALLED) == [ONE, TWO]


def test_a_call_without_input_is_one_before_another_of_the_same_index() -> None:
    both = calling(piece("", "list", index=0, id="a"), piece("", "list", index=0, id="b"))
    said = blocks(both, calling(piece('{"n": 2}', index=0)), CALLED)
    assert said == [("tool_use", "a", "list", ""), TWO]


def test_calls_without_ids_are_two_if_both_are_whole() -> None:
    whole = [calling(piece('{"n": 1}', "list", index=0)), calling(piece('{"n": 2}', "list", index=0))]
    assert [each[3] for each in blocks(*whole, CALLED)] == ['{"n": 1}', '{"n": 2}']


def test_a_name_that_is_repeated_with_nothing_to_say_begins_no_call() -> None:
    assert len(blocks(*OPENAI, calling(piece("", "list", index=0)), CALLED)) == 1


def test_text_between_calls_ends_what_is_complete() -> None:
    assert [each[0] for each in blocks(*OPENAI, chunk({"content": "And"}), chunk({"content": "."}), CALLED)] == [
        "tool_use",
        "text",
    ]


def test_what_comes_for_a_call_that_has_ended_is_left_out() -> None:
    said = [*OPENAI, chunk({"content": "And"}), calling(piece(" ", index=0)), CALLED]
    assert blocks(*said)[0] == ("tool_use", "call_1", "list", '{"a": 1}')


@pytest.mark.parametrize(
    "delta", [{"tool_calls": None}, {"tool_calls": []}, {"tool_calls": [None]}, {"content": 3}, None]
)
def test_what_is_not_of_its_type_is_nothing(delta: Json | None) -> None:
    assert blocks(chunk(delta), {"choices": None}, {"choices": [None]}, STOP) == []


# ------------------------------------------------------------------------------ ends


@pytest.mark.parametrize(
    ("reason", "meant"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("model_length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "end_turn"),
        ("eos", "end_turn"),
    ],
)
def test_the_finish_reason_of_a_text(reason: str, meant: str) -> None:
    assert mapped(chunk({"content": "Hi."}), chunk(finish=reason))[-1] == MessageStop(meant)  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", ["tool_calls", "stop", "function_call"])
def test_an_answer_with_a_call_stops_for_it(reason: str) -> None:
    assert mapped(*OPENAI, chunk(finish=reason))[-1] == MessageStop("tool_use")


def test_a_refusal_is_shown_and_is_one() -> None:
    events = mapped(chunk({"refusal": "I will "}), chunk({"refusal": "not."}), STOP)
    assert folded(events) == ([("text", "", "", "I will not.")], MessageStop("refusal"))


def test_the_end_that_a_server_marks_is_one_without_a_finish_reason() -> None:
    assert mapped(chunk({"content": "Hi."}))[-1] == MessageStop("end_turn")


@pytest.mark.parametrize("chunks", [[], [chunk({"content": "Hi."}), chunk(finish="error")]])
def test_without_chunks_or_with_an_error_the_mark_is_no_end(chunks: list[Json]) -> None:
    assert not any(isinstance(event, MessageStop) for event in mapped(*chunks))


def test_without_the_mark_the_finish_reason_is_the_end() -> None:
    assert mapped(chunk({"content": "Hi."}), STOP, done=False)[-1] == MessageStop("end_turn")
    assert not any(isinstance(event, MessageStop) for event in mapped(chunk({"content": "Hi."}), done=False))


# ----------------------------------------------------------------------------- tokens


def test_the_tokens_come_behind_the_finish_reason() -> None:
    counts = usage(100, 20, prompt_tokens_details={"cached_tokens": 60, "cache_write_tokens": 10})
    stop = mapped(chunk({"content": "Hi."}), STOP, counts)[-1]
    assert stop == MessageStop("end_turn", Usage(30, 20, 60, 10))


@pytest.mark.parametrize(
    "counts",
    [
        {"usage": {"prompt_tokens": 7, "completion_tokens": 2}},
        {"x_groq": {"usage": {"prompt_tokens": 7, "completion_tokens": 2}}},
    ],
)
def test_the_tokens_come_with_the_finish_reason(counts: Json) -> None:
    assert mapped(chunk(usage=None), chunk(finish="stop", **counts))[-1] == MessageStop("end_turn", Usage(7, 2))


def test_the_newest_count_is_the_one() -> None:
    counts = [chunk({"content": "Hi"}, usage={"prompt_tokens": 7, "completion_tokens": n}) for n in (1, 2)]
    assert mapped(*counts, STOP, {"choices": [], "usage": {}})[-1] == MessageStop("end_turn", Usage(7, 2))


# ----------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"error": {"message": "out of memory", "code": 500}}, "out of memory"),
        ({"error": "model 'x' not found"}, "model 'x' not found"),
        ({"error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "no tools"}}}, "no tools"),
        ({"object": "error", "message": "Unexpected role"}, "Unexpected role"),
        ({"message": {"detail": [{"loc": ["body", "top"], "msg": "Extra inputs"}]}}, "body.top: Extra inputs"),
        ({"detail": "Not Found"}, "Not Found"),
        ("<html>", ""),
        ("busy", "busy"),
        (None, ""),
        ({}, ""),
        ([3], ""),
    ],
)
def test_an_error_says_in_any_form_what_the_server_says(sent: Any, said: str) -> None:
    assert error_message(sent) == said


def test_an_error_is_no_chunk() -> None:
    assert error_in({"error": {"message": "out of memory"}, "choices": []}) == "out of memory"
    assert error_in(chunk({"content": "Hi."}, error=None)) is None


# --------------------------------------------------------------------------- property

VALUES = {
    "text": "Grüße 👋\n",
    "thinking": "Hm, \\u0041 so",
    "tool_use": json.dumps({"text": 'a "b" \\ } {', "n": [1, {}]}),
}


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """An answer in two ways of cutting it: whole pieces, and any."""
    kinds = draw(st.lists(st.sampled_from(["text", "thinking", "tool_use"]), max_size=6))
    kinds = [kind for n, kind in enumerate(kinds) if kind == "tool_use" or kind != (kinds[n - 1] if n else "")]
    whole: list[Json] = []
    cut: list[Json] = []
    calls = 0
    for kind in kinds:
        value = VALUES[kind]
        cuts = draw(st.lists(st.integers(0, len(value)), max_size=5).map(sorted))
        pieces = [value[a:b] for a, b in zip([0, *cuts], [*cuts, len(value)], strict=True)]
        if kind == "tool_use":
            whole.append(calling(piece(value, "list", index=calls, id=f"c{calls}")))
            cut.append(calling(piece("", "list", index=calls, id=f"c{calls}")))
            cut.extend(calling(piece(each, index=calls)) for each in pieces)
            calls += 1
        else:
            name = "content" if kind == "text" else "reasoning"
            whole.append(chunk({name: value}))
            cut.extend(chunk({name: each}) for each in pieces)
    return whole, cut


@given(answers())
def test_however_an_answer_is_cut_it_is_the_same(answer: tuple[list[Json], list[Json]]) -> None:
    whole, cut = answer
    assert folded(mapped(*whole, STOP)) == folded(mapped(*cut, STOP))


@given(answers())
def test_every_block_begins_once_and_ends_once_and_only_open_ones_are_written(
    answer: tuple[list[Json], list[Json]],
) -> None:
    open_blocks: set[int] = set()
    begun: list[int] = []
    for event in mapped(*answer[1], STOP):
        match event:
            case BlockStart(llm_index=index):
                begun.append(index)
                open_blocks.add(index)
            case TextDelta(llm_index=index) | ThinkingDelta(llm_index=index) | InputDelta(llm_index=index):
                assert index in open_blocks
            case BlockStop(llm_index=index):
                open_blocks.remove(index)
    assert begun == list(range(len(begun)))
    assert not open_blocks
