"""Edits of passages that are asked for in conversation: which document is meant, and what becomes of it."""

import pytest

from a2a_canvas.server.agent.intent import Converse, Focus, SelectionRequest
from a2a_canvas.server.agent.model import ToolResult
from a2a_canvas.server.agent.models.rehearsal import HELP, NOTICE
from a2a_canvas.server.agent.turn.history import note_of
from tests.server.agent.models.rehearsal.rehearsal_conversation import TOOLS, Conversation

TEA = "# Tea\n\nTea is hot. It is good.\n\nMilk is cold. It is white.\n"
SHORTER = TEA.replace("Milk is cold. It is white.", "Milk is cold.")
SAY = "Make the second paragraph shorter"


def two() -> Conversation:
    talk = Conversation(tea=TEA, coffee=TEA)
    talk.media_type = "text/markdown"
    return talk


def looking_at(artifact_id: str, selection: SelectionRequest | None = None) -> str:
    return note_of(Converse(Focus(artifact_id, 1, selection)))


def test_it_lists_reads_and_edits() -> None:
    talk = two()
    assert talk.say(SAY) == f"I have edited the second paragraph of “coffee.md”.\n\n{NOTICE}"
    assert talk.calls == ["artifact_list", "artifact_read", "artifact_edit"]
    assert talk.texts == {"tea": TEA, "coffee": SHORTER}


@pytest.mark.parametrize(
    "text",
    [
        "Make the second paragraph of tea.md shorter",
        "In tea.md, make the second paragraph shorter.",
        "Please shorten tea.md's second paragraph",
        "Shorten the second paragraph in “tea.md”",
        "make the second paragraph of the tea document shorter",
    ],
)
def test_the_document_that_is_named_is_meant_whatever_the_user_looks_at(text) -> None:
    talk = two()
    talk.say(looking_at("coffee"), text)
    assert talk.texts == {"tea": SHORTER, "coffee": TEA}


@pytest.mark.parametrize(
    "selection",
    [
        None,
        SelectionRequest(0, 3, text='"]'),
        SelectionRequest(line_start=1, line_end=1, text="of coffee.md\nwrite about it"),
    ],
)
def test_else_the_one_that_the_user_looks_at(selection) -> None:
    talk = two()
    talk.say(looking_at("tea", selection), SAY)
    assert talk.texts == {"tea": SHORTER, "coffee": TEA}


def test_what_the_user_looks_at_counts_for_other_wishes_too() -> None:
    talk = two()
    talk.say(looking_at("tea"), "Replace milk by water")
    talk.say(looking_at("tea"), "Add “The end.”")
    assert talk.texts == {"coffee": TEA, "tea": TEA.replace("Milk", "Water") + "\nThe end.\n"}


def test_an_artifact_that_is_not_there_is_not_looked_at() -> None:
    talk = two()
    talk.say(looking_at("water"), SAY)
    assert talk.texts == {"tea": TEA, "coffee": SHORTER}


def test_of_several_that_are_named_it_asks_which() -> None:
    talk = two()
    asked = talk.say("Make the second paragraph of tea.md or coffee.md shorter")
    assert asked == f"Which document do you mean: “tea.md” or “coffee.md”?\n\n{NOTICE}"
    assert talk.calls == ["artifact_list", "ask_user"]
    assert "“tea.md”" in talk.say(ToolResult("", f"{looking_at('coffee')}\ntea, please"))
    assert talk.texts == {"tea": SHORTER, "coffee": TEA}


def test_an_answer_that_names_none_changes_nothing() -> None:
    talk = two()
    talk.say("Make the second paragraph of tea.md and coffee.md shorter")
    assert talk.say(ToolResult("", "water")) == "I know no document of that name: water"
    assert talk.texts == {"tea": TEA, "coffee": TEA}


def test_words_that_are_to_be_replaced_name_no_document() -> None:
    talk = two()
    talk.say("Replace tea by “a cup of tea” in the first paragraph")
    talk.say("Replace good by tea in the first paragraph")
    assert talk.texts == {"tea": TEA, "coffee": TEA.replace("Tea is", "A cup of tea is").replace("good", "tea")}


def test_without_a_document_it_says_so() -> None:
    talk = Conversation()
    assert "There is no document yet" in talk.say(SAY)
    assert talk.calls == ["artifact_list"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Make the third paragraph shorter", "“coffee.md” has no third paragraph."),
        ("Make the second line shorter", "The second line of “coffee.md” is blank."),
        ("Make the second paragraph lower case", ""),
        ("Make the first line title case", "The first line of “coffee.md” is like that already."),
    ],
)
def test_what_cannot_be_done_is_said(text, said) -> None:
    talk = two()
    talk.say("hello")
    reply = talk.say(text)
    assert said in reply
    assert (talk.texts == {"tea": TEA, "coffee": TEA}) is bool(said)


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("Delete the second paragraph of the document", "a\n\nb\n"),
        ("Make the second paragraph upper case", "a\n\nA\n\nb\n"),
        ("Delete the last line", "a\n\na\n\n"),
        ("Change the first line of tea.md to “of tea”", "of tea\n\na\n\nb\n"),
    ],
)
def test_a_passage_that_occurs_twice_is_edited_where_it_was_meant(text, new) -> None:
    talk = Conversation(tea="a\n\na\n\nb\n")
    talk.say(text)
    assert talk.texts == {"tea": new}


@pytest.mark.parametrize("tool", ["artifact_list", "artifact_read", "artifact_edit", "ask_user"])
def test_a_tool_that_is_not_there_is_not_called(tool) -> None:
    talk = Conversation(tools=[name for name in TOOLS if name != tool], tea=TEA)
    assert f"the tool {tool}" in talk.say(SAY)
    assert talk.calls == []


@pytest.mark.parametrize("tool", ["artifact_list", "artifact_read", "artifact_edit"])
def test_a_failed_call_ends_the_turn_with_what_the_tool_said(tool) -> None:
    talk = two()
    talk.broken = {tool: "the disk is full"}
    assert "That did not work: the disk is full" in talk.say(SAY)
    assert talk.calls[-1] == tool


def test_its_help_mentions_it() -> None:
    assert SAY in HELP
