"""From what was said in a context to the messages of a model request."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import AssistantOutput, UserInput, UserMessage
from a2a_canvas.server.agent.model import UNANSWERED, Attachment, ModelMessage, ModelText, Thinking, ToolResult, ToolUse
from a2a_canvas.server.agent.turn.history import TASK_ENDED, to_messages, to_user_input
from a2a_canvas.store.models import DataPart, FilePart, text_part
from tests.server.agent.turn.turn_harness import check_request, results_of


def user(*texts: str, message_id: str = "m") -> UserInput:
    return UserInput(message_id, tuple(ModelText(text) for text in texts))


def use(use_id: str, name: str = "artifact_list") -> ToolUse:
    return ToolUse(use_id, name, {})


def model(call: int, *blocks: ModelText | Thinking | ToolUse) -> AssistantOutput:
    return AssistantOutput(call, blocks)


def shape(messages: tuple[ModelMessage, ...]) -> list[tuple[object, ...]]:
    """The content of each message; texts as strings."""
    return [tuple(c.text if isinstance(c, ModelText) else c for c in message.content) for message in messages]


# ------------------------------------------------------------------- user messages


def test_a_user_message_is_shown_part_by_part_in_its_order() -> None:
    parts = (
        text_part("Look:"),
        DataPart({"größe": [1]}),
        FilePart(content=b"x", name="x.png", media_type="image/png"),
        FilePart(url="https://example.com/y"),
        text_part("Well?"),
    )
    assert to_user_input(UserMessage("m-1", parts)) == UserInput(
        "m-1",
        (
            ModelText("Look:"),
            ModelText('{"größe": [1]}'),
            Attachment("image/png", "x.png", b"x"),
            Attachment("application/octet-stream", url="https://example.com/y"),
            ModelText("Well?"),
        ),
    )


# ------------------------------------------------------------------------- examples


def test_a_conversation_of_two_tasks() -> None:
    first = (user("Hi"), model(1, ModelText("Hello")))
    second = (user("Bye", message_id="m-2"),)
    assert to_messages([first, second]) == (
        ModelMessage("user", (ModelText("Hi"),), "m"),
        ModelMessage("assistant", (ModelText("Hello"),)),
        ModelMessage("user", (ModelText("Bye"),), "m-2"),
    )


def test_blocks_of_one_model_call_are_one_message_even_if_results_came_between() -> None:
    said = (user("Go"), model(1, ModelText("a"), use("T1")), ToolResult("T1", "1"), model(1, use("T2")))
    results = (ToolResult("T2", "2"),)
    assert shape(to_messages([(*said, *results)])) == [
        ("Go",),
        ("a", use("T1"), use("T2")),
        (ToolResult("T1", "1"), ToolResult("T2", "2")),
    ]


def test_results_stand_in_the_order_of_the_calls_before_what_the_user_said() -> None:
    said = (user("Go"), model(1, use("T1"), use("T2")), ToolResult("T2", "2"), ToolResult("T1", "1"), user("Also"))
    assert shape(to_messages([said]))[-1] == (ToolResult("T1", "1"), ToolResult("T2", "2"), "Also")


def test_a_broken_call_and_the_one_that_followed_it_are_two_messages() -> None:
    said = (user("Go"), model(1, use("T1")), ToolResult("T1", "1"), model(2, ModelText("Done")))
    assert shape(to_messages([said])) == [("Go",), (use("T1"),), (ToolResult("T1", "1"),), ("Done",)]


def test_the_answer_to_a_question_is_its_result() -> None:
    said = (user("Go"), model(1, use("T1", "ask_user")), user("Blue", "and big", message_id="m-2"))
    messages = to_messages([said])
    assert shape(messages) == [("Go",), (use("T1", "ask_user"),), (ToolResult("T1", "Blue\nand big"),)]
    assert messages[-1].message_id == "m-2"


def test_what_is_attached_to_an_answer_follows_its_result() -> None:
    picture = Attachment("image/png", content=b"x")
    said = (user("Go"), model(1, use("T1", "ask_user")), UserInput("m-2", (picture, ModelText("This"))))
    assert shape(to_messages([said]))[-1] == (ToolResult("T1", "This"), picture)


def test_two_questions_get_the_same_answer_and_a_second_message_is_none() -> None:
    asked = model(1, use("T1", "ask_user"), use("T2", "ask_user"))
    said = (user("Go"), asked, user("Blue"), user("Quick!"))
    assert shape(to_messages([said]))[-1] == (ToolResult("T1", "Blue"), ToolResult("T2", "Blue"), "Quick!")


def test_a_failed_question_keeps_its_error() -> None:
    said = (user("Go"), model(1, use("T1", "ask_user")), ToolResult("T1", "no", is_error=True), user("Hm?"))
    assert shape(to_messages([said]))[-1] == (ToolResult("T1", "no", is_error=True), "Hm?")


def test_several_messages_of_the_user_are_one_with_the_newest_id() -> None:
    messages = to_messages([(user("a", message_id="m-1"), user("b", message_id="m-2"))])
    assert messages == (ModelMessage("user", (ModelText("a"), ModelText("b")), "m-2"),)


# --------------------------------------------------------- tasks that ended in between


@pytest.mark.parametrize("name", ["ask_user", "artifact_update"])
def test_a_call_whose_task_ended_before_its_result_gets_an_error_result(name) -> None:
    first = (user("Go"), model(1, use("T1", name)))
    assert shape(to_messages([first, (user("Again"),)])) == [
        ("Go",),
        (use("T1", name),),
        (ToolResult("T1", UNANSWERED, is_error=True),),
        (TASK_ENDED,),
        ("Again",),
    ]


def test_what_was_said_to_a_task_that_ended_before_it_answered_is_not_said_to_the_next() -> None:
    assert shape(to_messages([(user("Go"),), (user("Stop it"),)])) == [("Go",), (TASK_ENDED,), ("Stop it",)]


def test_a_task_that_ended_after_its_answer_needs_no_end() -> None:
    said = (user("Go"), model(1, ModelText("Hm")), user("Also"))
    assert shape(to_messages([said, (user("New"),)])) == [("Go",), ("Hm",), ("Also",), (TASK_ENDED,), ("New",)]


def test_no_task_gives_no_messages() -> None:
    assert to_messages([]) == ()


# ---------------------------------------------------------------------------- rules

WORDS = st.text("abc", min_size=1, max_size=3)
USER = st.lists(WORDS, min_size=1, max_size=2).map(lambda words: user(*words))


@st.composite
def answers(draw):
    """A model call as the turn remembers it: in pieces, each with or without its results, or with none at all."""
    items = []
    for _ in range(draw(st.integers(1, 3))):
        blocks = draw(st.lists(st.builds(ModelText, WORDS) | st.builds(Thinking, WORDS), max_size=2))
        calls = draw(st.lists(st.sampled_from(["artifact_list", "ask_user"]), max_size=2))
        uses = [use("", name) for name in calls]
        if blocks or uses:
            items.append((tuple([*blocks, *uses]), draw(st.booleans())))
    return items


def calls_in(items, call: int) -> list[ToolUse]:
    said = [item for item in items if isinstance(item, AssistantOutput) and item.call == call]
    return [block for item in said for block in item.blocks if isinstance(block, ToolUse)]


@st.composite
def conversations(draw):
    """Transcripts of tasks; each begins with the user and may end anywhere. A call that follows another one without
    a word of the user follows results."""
    transcripts, number = [], 0
    for _ in range(draw(st.integers(1, 4))):
        items, call = [draw(USER)], 0
        for step in draw(st.lists(USER | answers(), max_size=5)):
            if isinstance(step, UserInput):
                items.append(step)
                continue
            if call and isinstance(items[-1], AssistantOutput) and not calls_in(items, call):
                items.append(draw(USER))
            call += 1
            for blocks, answered in step:
                ids = [f"T{number + n}" for n in range(len(blocks))]
                number += len(blocks)
                named = [replace(b, id=i) if isinstance(b, ToolUse) else b for b, i in zip(blocks, ids, strict=True)]
                items.append(model(call, *named))
                items += [ToolResult(b.id, "ok") for b in named if isinstance(b, ToolUse) and answered]
        transcripts.append(tuple(items))
    return transcripts


@given(conversations())
def test_roles_alternate_and_every_call_has_its_result_in_the_next_user_message(transcripts) -> None:
    messages = to_messages(transcripts)
    roles = [message.role for message in messages]
    assert roles == [("user", "assistant")[n % 2] for n in range(len(roles))]
    for message, following in zip(messages, [*messages[1:], ModelMessage("user", ())], strict=True):
        calls = [content.id for content in message.content if isinstance(content, ToolUse)]
        assert [result.tool_use_id for result in results_of(following)] == calls or message.role == "user"
    if roles[-1] == "user":
        check_request(messages)


@given(conversations())
def test_results_stand_first_in_their_message(transcripts) -> None:
    for message in to_messages(transcripts):
        results = len(results_of(message))
        assert all(isinstance(content, ToolResult) for content in message.content[:results])


@given(conversations())
def test_nothing_that_was_said_is_lost_or_said_twice(transcripts) -> None:
    messages = to_messages(transcripts)
    items = [item for transcript in transcripts for item in transcript]
    blocks = [block for item in items if isinstance(item, AssistantOutput) for block in item.blocks]
    assert [c for m in messages if m.role == "assistant" for c in m.content if c != ModelText(TASK_ENDED)] == blocks
    words = [content.text for item in items if isinstance(item, UserInput) for content in item.content]
    heard: list[str] = []
    for message in messages:
        if message.role == "user":
            results = [r.content for r in results_of(message) if r.content not in ("ok", UNANSWERED)]
            heard += [word for answer in results[:1] for word in answer.split("\n")]
            heard += [content.text for content in message.content if isinstance(content, ModelText)]
    assert heard == words


@given(conversations())
def test_the_messages_of_earlier_tasks_do_not_change_when_one_more_follows(transcripts) -> None:
    before = to_messages(transcripts)
    after = to_messages([*transcripts, (user("More"),)])
    assert after[: len(before)] == before
