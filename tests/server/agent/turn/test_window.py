"""A conversation that has grown longer than the model's window."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import AssistantOutput, Transcript, UserInput
from a2a_canvas.server.agent.model import Attachment, ModelText, Thinking, ToolResult, ToolSpec, ToolUse, window_of
from a2a_canvas.server.agent.models.claude import ClaudeModel
from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from a2a_canvas.server.agent.models.wrappers import FramedLLM
from a2a_canvas.server.agent.turn.history import to_messages
from a2a_canvas.server.agent.turn.turn_requests import SYSTEM
from a2a_canvas.server.agent.turn.window import (
    BLOCK_TOKENS,
    MAX_SCALE,
    MEDIA_BYTES_PER_TOKEN,
    MEDIA_TOKENS,
    RESULT_LEFT_OUT,
    SAFETY_FACTOR,
    TASKS_LEFT_OUT,
    TEXT_LEFT_OUT,
    WindowEstimate,
    WindowEstimates,
    fit_transcripts,
    prefix_tokens,
    read_limit,
    token_budget,
    tokens,
)
from tests.fakes import FakeLLM, answer, text, tool
from tests.property_examples import examples
from tests.server.agent.turn.turn_harness import TurnHarness, check_request

LONG_TEXT = "long " * 400


def user(words: str = "Go", message_id: str = "m") -> UserInput:
    return UserInput(message_id, (ModelText(words),))


def reads(call: int, result: str = LONG_TEXT) -> Transcript:
    """A round that looks at something."""
    return AssistantOutput(call, (ToolUse(f"T{call}", "artifact_read", {}),)), ToolResult(f"T{call}", result)


def writes(call: int, words: str = LONG_TEXT, name: str = "artifact_update") -> Transcript:
    """A round that writes something."""
    given = {"append": True, "artifact": {"artifact_id": "doc", "parts": [{"kind": "text", "text": words}]}}
    return AssistantOutput(call, (ToolUse(f"T{call}", name, given),)), ToolResult(f"T{call}", "Written.")


def size(transcripts) -> int:
    return sum(tokens(item) for transcript in transcripts for item in transcript)


def results(transcripts) -> list[str]:
    return [item.content for transcript in transcripts for item in transcript if isinstance(item, ToolResult)]


# ---------------------------------------------------------------------------- examples


@pytest.mark.parametrize("room", [None, 10_000])
def test_what_fits_stays_as_it_is(room) -> None:
    conversation = ((user(), *reads(1)), (user(), *writes(1), *reads(2)))
    assert fit_transcripts(conversation, room) == conversation


def test_the_oldest_results_go_first_and_those_of_the_newest_answer_stay() -> None:
    conversation = ((user(), *reads(1), *reads(2)), (user(), *reads(1), *writes(2), *reads(3)))
    assert results(fit_transcripts(conversation, 2600)) == [
        RESULT_LEFT_OUT,
        RESULT_LEFT_OUT,
        LONG_TEXT,
        "Written.",
        LONG_TEXT,
    ]
    assert results(fit_transcripts(conversation, 100))[-1] == LONG_TEXT


def test_of_a_task_that_is_over_the_last_results_may_go_too() -> None:
    over = (user(), *reads(1))
    kept = fit_transcripts((over, (user(),)), 300)
    assert (len(kept), results(kept)) == (2, [RESULT_LEFT_OUT])


def test_after_results_go_what_was_written_and_the_inputs_keep_their_shape() -> None:
    conversation = ((user(), *writes(1), *reads(2), *writes(3), *reads(4)),)
    [kept] = fit_transcripts(conversation, 1400)
    assert results([kept]) == ["Written.", RESULT_LEFT_OUT, "Written.", LONG_TEXT]
    first = kept[1].blocks[0]
    assert first.input == {
        "append": True,
        "artifact": {"artifact_id": "doc", "parts": [{"kind": "text", "text": TEXT_LEFT_OUT}]},
    }
    assert kept[5] == conversation[0][5]  # the newer one


def test_what_other_calls_were_given_stays() -> None:
    conversation = ((user(), *writes(1, name="somebody_elses"), *reads(2, "x")),)
    assert fit_transcripts(conversation, 100) == conversation


def test_short_texts_and_short_results_stay() -> None:
    conversation = ((user(LONG_TEXT), *writes(1, "x" * 200), *reads(2, "short"), *reads(3)),)
    assert fit_transcripts(conversation, 10) == conversation


def test_at_last_whole_tasks_go_and_a_note_says_so() -> None:
    conversation = ((user(LONG_TEXT), *reads(1)), (user(LONG_TEXT),), (user("Hi", "m-3"), *reads(1)))
    first, *rest = fit_transcripts(conversation, 700)
    assert not rest
    assert first == (UserInput("", (ModelText(TASKS_LEFT_OUT),)), *conversation[2])
    message = to_messages([first])[0]
    assert (message.content, message.message_id) == ((ModelText(TASKS_LEFT_OUT), ModelText("Hi")), "m-3")


def test_no_more_tasks_go_than_must() -> None:
    conversation = tuple((user(LONG_TEXT), *reads(1, "short")) for _ in range(4))
    assert [len(fit_transcripts(conversation, room)) for room in (3000, 2100, 1500, 900, 100)] == [4, 2, 2, 1, 1]


def test_the_task_that_goes_on_stays_however_long_it_is() -> None:
    conversation = ((user(LONG_TEXT), *reads(1)), (user(LONG_TEXT), user(LONG_TEXT)))
    [kept] = fit_transcripts(conversation, 10)
    assert kept[1:] == conversation[1]


@pytest.mark.parametrize(
    ("file", "count"),
    [
        (Attachment("image/png", content=b"x" * 10_000), MEDIA_TOKENS),
        (Attachment("image/png", content=b"x" * 3_000_000), 3_000_000 // MEDIA_BYTES_PER_TOKEN),
        (Attachment("application/pdf", content=b"x" * 3_000_000), 3_000_000 // MEDIA_BYTES_PER_TOKEN),
        (Attachment("application/pdf", url="https://x"), MEDIA_TOKENS),
        (Attachment("text/plain", content=b"x" * 40_000), 10_000),
        (Attachment("application/octet-stream", "a.md", content=b"x" * 40_000), 10_000),
    ],
)
def test_files_count_by_their_bytes(file, count) -> None:
    assert tokens(UserInput("m", (file,))) == BLOCK_TOKENS + count


def test_of_earlier_tasks_files_go_before_the_tasks_and_those_of_the_newest_stay() -> None:
    files = [Attachment("image/png", f"{n}.png", content=b"x" * 1_200_000) for n in range(3)]
    conversation = tuple(
        (UserInput("m", (ModelText("See."), file)), AssistantOutput(1, (ModelText("Yes."),))) for file in files
    )
    kept = fit_transcripts(conversation, 29_000)
    assert [task[0].content[1] for task in kept] == [
        ModelText("[Attached file: 0.png (image/png); left out to save space]"),
        *files[1:],
    ]
    assert fit_transcripts(conversation, 10)[-1][1:] == conversation[2]


@pytest.mark.parametrize(("words", "count"), [("", 0), ("abcd", 1), ("abcde", 2), ("漢字", 2), ("\ud800", 1)])
def test_a_token_is_four_bytes_of_text(words, count) -> None:
    assert tokens(user(words)) == BLOCK_TOKENS + count
    assert tokens(AssistantOutput(1, (Thinking(words, words),))) == BLOCK_TOKENS + 2 * count


# ------------------------------------------------------------------------------- rooms


def test_of_the_window_there_is_room_for_what_the_prompt_and_the_tools_leave() -> None:
    spec = ToolSpec("t", "x" * 400, {"properties": {"a": {"description": "x" * 400}}})
    beginning = prefix_tokens("x" * 200, [spec])
    assert 250 < beginning < 300
    assert token_budget(1000, beginning, WindowEstimate()) == 1000 - beginning
    assert token_budget(10, beginning, WindowEstimate()) == 0


def test_there_is_less_room_where_tokens_are_shorter_and_after_a_refusal() -> None:
    assert token_budget(1000, 100, WindowEstimate(scale=2)) == 400
    assert token_budget(1000, 100, WindowEstimate(scale=2, max_tokens=300)) == 200
    assert token_budget(None, 100, WindowEstimate(scale=2)) is None
    assert token_budget(None, 100, WindowEstimate(max_tokens=300)) == 200


# ------------------------------------------------------------------------------ sizing


def test_a_conversation_is_taken_for_a_little_longer_than_it_was_counted() -> None:
    assert WindowEstimate().after_count(1000, 1500).scale == pytest.approx(1.5 * SAFETY_FACTOR)


@pytest.mark.parametrize("tokens", [1575, 1500, 1300, 1150])
def test_small_changes_of_what_is_counted_change_nothing(tokens) -> None:
    sizing = WindowEstimate(scale=1.575)
    assert sizing.after_count(1000, min(tokens, 1500)) is sizing


@pytest.mark.parametrize(
    ("tokens", "scale"),
    [(2000, 2 * SAFETY_FACTOR), (1000, SAFETY_FACTOR), (1, SAFETY_FACTOR), (10**9, MAX_SCALE * SAFETY_FACTOR)],
)
def test_great_ones_do_within_bounds(tokens, scale) -> None:
    assert WindowEstimate(scale=1.575).after_count(1000, tokens).scale == pytest.approx(scale)


def test_what_was_refused_is_scaled_by_what_the_provider_counted() -> None:
    sizing = WindowEstimate().after_refusal(150_000, 210_000, 168_000)
    assert sizing.scale == pytest.approx(1.4 * SAFETY_FACTOR)
    assert token_budget(168_000, 0, sizing) == int(168_000 / 1.4 / SAFETY_FACTOR)


@pytest.mark.parametrize(
    ("room", "characters"),
    [(None, 100_000), (10**6, 100_000), (199_998, 99_999), (10_000, 5_000), (4_002, 2_001), (4_000, 2_000), (0, 2_000)],
)
def test_one_result_takes_half_the_room_from_2000_to_100000_characters(room: int | None, characters: int) -> None:
    assert read_limit(room) == characters


@pytest.mark.parametrize(("tokens", "window"), [(None, 168_000), (None, None), (100_000, 168_000)])
def test_or_cut_by_two_fifths_if_that_does_not_help(tokens, window) -> None:
    assert WindowEstimate().after_refusal(100_000, tokens, window).max_tokens == 60_000


@given(st.integers(1, 10**6), st.none() | st.integers(0, 10**7), st.none() | st.integers(1, 10**6))
def test_what_comes_after_a_refusal_has_less_room_than_it_had(estimate, counted, window) -> None:
    sizing = WindowEstimate().after_refusal(estimate, counted, window)
    assert (token_budget(window, 0, sizing) or 0) < estimate


def test_the_sizes_of_so_many_conversations_are_kept() -> None:
    sizes = WindowEstimates()
    for n in range(WindowEstimates.MAX_ESTIMATES + 1):
        sizes.put(f"c-{n}", WindowEstimate(scale=2))
    assert [sizes.get(name).scale for name in ("c-0", "c-1", "unknown")] == [1, 2, 1]


def test_who_knows_its_window_says_so_and_a_wrapper_passes_it_on(monkeypatch) -> None:
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    claude = ClaudeModel(max_tokens=30_000)
    assert window_of(claude) == window_of(FramedLLM(claude, 0.1)) == 170_000
    assert window_of(Rehearsal()) is window_of(FramedLLM(Rehearsal(), 0.1)) is None


async def test_a_turn_asks_with_what_fits() -> None:
    class Small(FakeLLM):
        window = 0

    earlier = (user("Write"), *reads(1))
    calls = [answer(tool("T1", "artifact_list")), answer(text("Done."))]
    for model, left_out in ((FakeLLM(calls), False), (Small(calls), True)):
        harness = TurnHarness(*calls, earlier=(earlier,))
        harness.llm = model
        await harness.run()
        for request in model.requests:
            assert request.system == SYSTEM
            heard = [getattr(content, "content", None) for message in request.messages for content in message.content]
            assert (LONG_TEXT in heard) is not left_out
            assert (ModelText(TASKS_LEFT_OUT) in request.messages[0].content) is left_out


# -------------------------------------------------------------------------------- laws

WORDS = st.sampled_from(["x", "word " * 20, LONG_TEXT])


@st.composite
def rounds(draw):
    """What a model says in one call, and the results; the last word of a task may be without any."""
    uses = draw(st.lists(st.sampled_from(["artifact_read", "artifact_update", "ask_user"]), max_size=2))
    return uses, draw(WORDS), draw(WORDS), draw(st.none() | WORDS)


@st.composite
def conversations(draw):
    """The transcripts of tasks, all of whose calls have results; the last one waits for the model."""
    transcripts, number = [], 0
    for _ in range(draw(st.integers(1, 4))):
        items = [user(draw(WORDS))]
        for call, (names, said, result, more) in enumerate(draw(st.lists(rounds(), max_size=5)), 1):
            uses = [ToolUse(f"T{(number := number + 1)}", name, {"artifact": [said]}) for name in names]
            items.append(AssistantOutput(call, (ModelText(said), *uses)))
            items += [ToolResult(use.id, result) for use in uses]
            if more or not uses:
                items.append(user(more or "?"))
        transcripts.append(tuple(items))
    return tuple(transcripts)


ROOM = st.integers(0, 6000)


def droppable(kept: tuple[Transcript, ...]) -> bool:
    """Whether there is still something that may be left out."""
    answers = [(n, item.call) for n, task in enumerate(kept) for item in task if isinstance(item, AssistantOutput)]
    newest, asked = (answers[-1] if answers and answers[-1][0] == len(kept) - 1 else None), None
    for n, task in enumerate(kept):
        for item in task:
            asked = (n, item.call) if isinstance(item, AssistantOutput) else asked
            if asked == newest and newest is not None:
                continue
            if isinstance(item, ToolResult) and item.content == LONG_TEXT:
                return True
            if isinstance(item, AssistantOutput):
                writing = [b for b in item.blocks if isinstance(b, ToolUse) and b.name == "artifact_update"]
                if any(LONG_TEXT in b.input["artifact"] for b in writing):
                    return True
    return len(kept) > 1


@given(conversations(), ROOM)
def test_it_fits_or_nothing_is_left_that_could_be_left_out(conversation, room) -> None:
    kept = fit_transcripts(conversation, room)
    assert size(kept) <= room or not droppable(kept)


@given(conversations(), ROOM)
def test_roles_alternate_every_call_keeps_its_result_and_the_users_words_to_this_task_stay(conversation, room) -> None:
    kept = fit_transcripts(conversation, room)
    messages = to_messages(kept)
    if messages[-1].role == "user":
        check_request(messages)
    words = [i for i in kept[-1] if isinstance(i, UserInput) and i.content != (ModelText(TASKS_LEFT_OUT),)]
    assert words == [item for item in conversation[-1] if isinstance(item, UserInput)]


def asked(conversation: tuple[Transcript, ...]):
    """The conversation as it stood whenever the model was asked, and as it stands."""
    for n, task in enumerate(conversation):
        for at, item in enumerate(task):
            if isinstance(item, AssistantOutput):
                yield (*conversation[:n], task[:at])
    yield conversation


@given(conversations(), ROOM)
@settings(max_examples=examples(60))
def test_what_was_left_out_once_stays_left_out(conversation, room) -> None:
    for earlier, later in pairwise(asked(conversation)):
        before, after = fit_transcripts(earlier, room), fit_transcripts(later, room)
        gone, more = len(earlier) - len(before), len(later) - len(after)
        assert gone <= more
        for n in range(more, len(earlier)):
            first = [item for item in before[n - gone] if item != UserInput("", (ModelText(TASKS_LEFT_OUT),))]
            second = [item for item in after[n - more] if item != UserInput("", (ModelText(TASKS_LEFT_OUT),))]
            for original, one, other in zip(earlier[n], first, second, strict=False):
                assert one in (original, other)


def test_requests_begin_alike_but_for_a_few() -> None:
    conversation = ((user(), *(item for n in range(1, 51) for item in (*reads(2 * n), *writes(2 * n + 1)))),)
    room = 10_000
    requests = [to_messages(fit_transcripts(part, room)) for part in asked(conversation)]
    anew = sum(later[: len(earlier)] != earlier for earlier, later in pairwise(requests))
    assert 0 < anew <= size(conversation) / (room / 4)


def test_the_conversation_itself_is_never_changed() -> None:
    conversation = ((user(), *reads(1)), (user(), *writes(1), *reads(2)))
    same = tuple(tuple(replace(item) for item in task) for task in conversation)
    fit_transcripts(conversation, 0)
    assert conversation == same
