"""The rehearsal model: deterministic, with the same tools as a real model, and open about what it is."""

import asyncio
import itertools

import pytest

from a2a_canvas.server.agent.model import (
    LLM,
    BlockStart,
    MessageStart,
    MessageStop,
    ModelMessage,
    ModelRequest,
    ModelText,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from a2a_canvas.server.agent.models.rehearsal import HELP, NOTICE, Rehearsal
from a2a_canvas.server.agent.models.rehearsal.outlines import outline, section
from tests.server.agent.models.rehearsal.rehearsal_conversation import TOOLS, Conversation

# ------------------------------------------------------------------ drafting


def test_it_drafts_an_outline_on_the_topic_of_the_message() -> None:
    talk = Conversation()
    reply = talk.say("Write about green tea.")
    assert talk.calls == ["artifact_update"]
    assert talk.texts == {"green-tea": outline("green tea")}
    assert talk.media_type == "text/markdown"
    assert "green-tea.md" in reply


def test_a_draft_begins_with_thinking_and_a_sentence_and_names_what_matters_before_the_parts() -> None:
    talk = Conversation()
    talk.say("Write about tea")
    thinking, text, call = talk.messages[1].content
    assert thinking == Thinking("Planning an outline on tea.", "rehearsal")
    assert text == ModelText("I am drafting an outline on tea.")
    assert list(call.input) == ["append", "last_chunk", "artifact"]
    assert list(call.input["artifact"]) == ["artifact_id", "name", "description", "parts"]


# -------------------------------------------------------------------- adding


def test_it_adds_a_section_to_the_newest_document() -> None:
    talk = Conversation(coffee="# Coffee\n", tea="# Tea\n")
    assert "tea.md" in talk.say("Add a section on milk.")
    assert talk.calls == ["artifact_list", "artifact_update"]
    assert talk.texts == {"coffee": "# Coffee\n", "tea": "# Tea\n" + section("milk")}


@pytest.mark.parametrize(
    "text",
    ["Add a section on milk to coffee.md", "Please add milk to the Coffee document", "In coffee.md, add milk"],
)
def test_it_adds_to_the_document_that_is_named(text) -> None:
    talk = Conversation(coffee="", tea="")
    talk.say(text)
    assert talk.texts == {"tea": "", "coffee": section("milk")}


def test_of_several_names_the_longest_counts() -> None:
    talk = Conversation(**{"green-tea": "", "tea": "", "water": ""})
    talk.say("add “leaves” to green tea")
    assert talk.texts["green-tea"] == "\nleaves\n"


def test_what_names_no_document_belongs_to_the_topic() -> None:
    talk = Conversation(tea="")
    talk.say("Add a section on how to brew")
    assert talk.texts == {"tea": section("how to brew")}


def test_without_a_document_it_drafts_one() -> None:
    talk = Conversation()
    assert "drafted" in talk.say("Add a section on milk")
    assert talk.texts == {"milk": outline("milk")}


# ----------------------------------------------------------------- replacing


def test_it_replaces_words_and_keeps_the_media_type() -> None:
    talk = Conversation(coffee="tea", tea="Tea, tea and tea.")
    assert "tea.md" in talk.say("Replace tea by water.")
    assert talk.calls == ["artifact_list", "artifact_read", "artifact_update"]
    assert talk.texts == {"coffee": "tea", "tea": "Water, water and water."}
    assert talk.media_type == "text/x-tea"


@pytest.mark.parametrize("text", ['replace "a b" with "c" in coffee.md', "In coffee, replace a b by c"])
def test_it_replaces_in_the_document_that_is_named(text) -> None:
    talk = Conversation(coffee="a b", tea="a b")
    talk.say(text)
    assert talk.texts == {"tea": "a b", "coffee": "c"}


def test_a_place_that_is_no_document_belongs_to_the_new_words() -> None:
    talk = Conversation(tea="a dog")
    talk.say("replace dog by cat in a hat")
    assert talk.texts == {"tea": "a cat in a hat"}


def test_what_does_not_occur_is_explained() -> None:
    talk = Conversation(tea="Tea")
    assert "“milk” does not stand in “tea.md”" in talk.say("replace milk by water")
    assert talk.calls == ["artifact_list", "artifact_read"]


def test_without_a_document_there_is_nothing_to_replace() -> None:
    assert "no document yet" in Conversation().say("replace milk by water")


# ------------------------------------------------------------------- undoing


@pytest.mark.parametrize(
    ("text", "meant"),
    [("Undo that", "milk"), ("Please undo the change in tea.md", "tea"), ("No, undo that please", "milk")],
)
def test_it_undoes_what_was_done_last_in_the_document_that_is_meant(text, meant) -> None:
    talk = Conversation(tea="a", milk="b")
    talk.say("hello")
    assert talk.say(text) == f"\"{{'artifact_id': '{meant}'}} done\""
    assert talk.calls == ["artifact_list", "artifact_restore"]


def test_without_a_document_there_is_nothing_to_undo() -> None:
    assert "nothing to undo" in Conversation().say("Undo that")


# -------------------------------------------------------- asking, declining, talking


def test_it_asks_when_told_to_and_uses_the_answer() -> None:
    talk = Conversation()
    assert talk.say("Ask me what my name is.") == f"Please tell me what your name is.\n\n{NOTICE}"
    assert talk.calls == ["ask_user"]
    assert talk.say(ToolResult("", "Kim")) == "You answered: Kim"


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Ask me my name", "Please tell me your name."),
        ("ask me for my name", "Please tell me your name."),
        ("Ask me whether I am happy and was I ever.", "Please tell me whether you are happy and were you ever."),
        ("ask me: “Is my tea hot?”", "Is my tea hot?"),
        ("ask me", "What shall I know?"),
    ],
)
def test_its_question_is_one_that_can_be_answered(text, question) -> None:
    talk = Conversation()
    talk.say("hello")
    assert talk.say(text) == question


def test_an_answer_that_comes_as_text_beside_the_result_is_an_answer_all_the_same() -> None:
    talk = Conversation()
    talk.say("Ask me")
    assert talk.say(ToolResult("", "see below"), "write about Kim") == "You answered: write about Kim"


def test_it_declines_when_told_to() -> None:
    talk = Conversation()
    assert NOTICE in talk.say("Decline this.")
    assert talk.calls == ["decline_task"]
    assert talk.say(ToolResult("", "declined"), "hello") == HELP


def test_anything_else_is_answered_in_a_sentence() -> None:
    talk = Conversation()
    assert talk.say("hello") == f"{HELP}\n\n{NOTICE}"
    assert talk.calls == []


# ------------------------------------------------------------ rules for all


@pytest.mark.parametrize("text", ["write about tea", "add milk", "replace a by b", "hello", "Ask me", "decline"])
def test_the_first_reply_alone_says_that_this_is_no_language_model(text) -> None:
    talk = Conversation(tea="a")
    assert talk.say(text).endswith(NOTICE)
    if talk.calls[-1:] in (["ask_user"], ["decline_task"]):
        talk.say(ToolResult("", "ok"))
    assert NOTICE not in talk.say("write about coffee")
    assert NOTICE not in talk.say("hello")


def test_the_notice_says_how_to_get_a_real_model() -> None:
    assert "not a language model" in NOTICE
    assert "ANTHROPIC_API_KEY" in NOTICE
    assert "--model" in NOTICE


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("write about tea", "artifact_update"),
        ("add milk", "artifact_list"),
        ("replace a by b", "artifact_read"),
        ("ask me", "ask_user"),
        ("decline", "decline_task"),
    ],
)
def test_a_tool_that_is_not_there_is_not_called(text, tool) -> None:
    talk = Conversation(tools=[name for name in TOOLS if name != tool])
    assert f"the tool {tool}" in talk.say(text)
    assert talk.calls == []


@pytest.mark.parametrize(
    ("text", "tool"),
    [("write about tea", "artifact_update"), ("add milk", "artifact_list"), ("replace a by b", "artifact_read")],
)
def test_a_failed_call_ends_the_turn_with_what_the_tool_said(text, tool) -> None:
    talk = Conversation(tea="a")
    talk.broken = {tool: "the disk is full"}
    assert "That did not work: the disk is full" in talk.say(text)
    assert talk.calls[-1] == tool


@pytest.mark.parametrize("content", ["", "not json", "{}", "[1, {}]", "[" * 100_000])
def test_a_list_that_cannot_be_read_is_an_empty_one(content) -> None:
    talk = Conversation()
    calls = (ToolUse("t", "artifact_list", {}),)
    talk.messages = [
        ModelMessage("user", (ModelText("replace a by b"),)),
        ModelMessage("assistant", calls),
        ModelMessage("user", (ToolResult("t", content),)),
    ]
    assert talk.plan() == (
        ModelText(f"There is no document yet in which I could replace something. Ask me to write one.\n\n{NOTICE}"),
    )


def test_a_message_that_comes_while_it_works_is_what_it_works_on_next() -> None:
    talk = Conversation()
    talk.messages = [
        ModelMessage("user", (ModelText("write about tea"),)),
        ModelMessage("assistant", (ToolUse("t", "artifact_update", {}),)),
    ]
    assert "coffee.md" in talk.say(ToolResult("t", "ok"), "write about coffee")
    assert "coffee" in talk.texts


def test_the_same_conversation_is_always_continued_in_the_same_way() -> None:
    first, second = Conversation(tea="a"), Conversation(tea="a")
    for text in ("add milk", "replace a by b", "hello"):
        assert first.say(text) == second.say(text)
    assert first.messages == second.messages


# -------------------------------------------------------------------- streaming

HELLO = ModelRequest(
    "", (ModelMessage("user", (ModelText("write about tea"),)),), (ToolSpec("artifact_update", "", {}),)
)


async def no_sleep(seconds: float) -> None:
    pass


async def test_it_streams_what_it_plans_in_small_pieces_with_fresh_ids() -> None:
    ids = map("id{}".format, itertools.count())
    llm: LLM = Rehearsal(sleep=no_sleep, new_id=lambda: next(ids))
    assert (llm.name, llm.thinking) == ("rehearsal", "delta")
    runs = [[event async for event in llm.stream(HELLO)] for _ in range(2)]
    said = [event.text for event in runs[0] if isinstance(event, TextDelta)]
    assert "".join(said) == "I am drafting an outline on tea."
    thought = [len(event.text) for event in runs[0] if isinstance(event, ThinkingDelta)]
    assert thought == [4, 5, 6, 7, 5]
    assert [e.tool_use_id for run in runs for e in run if isinstance(e, BlockStart) and e.name] == ["id0", "id1"]
    assert isinstance(runs[0][-1], MessageStop)


async def test_it_keeps_a_human_pace() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    events = [event async for event in Rehearsal(chunk=(6, 6), delay=0.03, sleep=sleep).stream(HELLO)]
    assert set(slept) == {0.03}
    assert len(slept) > 50
    assert events[0] == MessageStart()


async def test_closing_the_stream_early_leaves_nothing_behind() -> None:
    stream = Rehearsal(delay=1000).stream(HELLO)
    assert await anext(stream) == MessageStart()
    await stream.aclose()
    assert await anext(stream, None) is None
    assert asyncio.all_tasks() == {asyncio.current_task()}
