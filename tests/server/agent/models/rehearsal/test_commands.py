"""What a message asks of the rehearsal model."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.models.rehearsal.commands import (
    AddCommand,
    AskCommand,
    DeclineCommand,
    DraftCommand,
    NoCommand,
    ReplaceCommand,
    UndoCommand,
    read_command,
)
from a2a_canvas.server.agent.models.rehearsal.outlines import outline, section, slug, substituted
from tests.property_examples import examples


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Write about tea", "tea"),
        ("write a guide about green tea.", "green tea"),
        ("Please draft an outline on the French revolution, please!", "the French revolution"),
        ("Can you create a haiku?", "haiku"),
        ("Hello! Compose me a song", "song"),
        ("Write an outline of tea. Add nothing.", "tea"),
        ("I want you to write on “Trees”\nand quickly", "Trees"),
        ("Write an article on how to replace a tyre with tools", "how to replace a tyre with tools"),
        ("Write about " + "tea " * 100, ("tea " * 20).strip()),
    ],
)
def test_a_draft_is_asked_for_with_a_topic(text, topic) -> None:
    assert read_command(text) == DraftCommand(topic)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Add milk to it.", AddCommand("milk", topic_without_place="milk")),
        ("append: more cats", AddCommand("more cats", topic_without_place="more cats")),
        ("Add a section called Milk to the end", AddCommand("Milk", topic_without_place="Milk")),
        ("add a section on milk to tea.md", AddCommand("milk", "", "tea.md", "milk to tea.md")),
        ("Add a section on how to brew", AddCommand("how", "", "brew", "how to brew")),
        (
            "In tea.md, add “Exact words. All of them.”",
            AddCommand("", "Exact words. All of them.", before="In tea.md, "),
        ),
        ("add 'x' to tea", AddCommand("", "x", "tea")),
    ],
)
def test_what_to_add_and_where_are_told_apart(text, command) -> None:
    assert read_command(text) == command


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("replace tea by coffee", ReplaceCommand("tea", "coffee", "", "coffee")),
        ("Please replace 1.5 with 2.5. Thanks!", ReplaceCommand("1.5", "2.5", "", "2.5", "Please ")),
        ('replace "a with b" by "c. d" in tea.md', ReplaceCommand("a with b", "c. d", "tea.md", "c. d")),
        ("replace “x” by ''", ReplaceCommand("x", "", "", "")),
        ("replace tea by a cat in a hat", ReplaceCommand("tea", "a cat", "a hat", "a cat in a hat")),
        ("replace tea by coffee in the whole text", ReplaceCommand("tea", "coffee", "", "coffee")),
    ],
)
def test_what_to_replace_and_where_are_told_apart(text, command) -> None:
    assert read_command(text) == command


def test_it_can_be_told_to_ask_and_to_decline() -> None:
    assert read_command("Ask me what my name is.") == AskCommand("what my name is")
    assert read_command("please ask me") == AskCommand("")
    assert read_command('Ask me: "Which. Of those?"') == AskCommand("", "Which. Of those?")
    assert read_command("ask me, my name") == AskCommand("my name")
    assert read_command("Decline this") == DeclineCommand()
    assert read_command("please undo that") == UndoCommand("please undo that")


@pytest.mark.parametrize(
    "text", ["", "hello", "What did you write?", "add", "replace foo", "replace '' by x", "address"]
)
def test_anything_else_is_talk(text) -> None:
    assert read_command(text) == NoCommand()


@settings(max_examples=examples(100))
@given(
    st.lists(st.sampled_from([*"\"'“”.,!?\n ", "write", "add", "replace", "by", "in", "to", "about", "tea"])).map(
        " ".join
    )
)
@example("\n" * 50_000)
@example("replace" + " by in" * 20_000)
@example("replace " + " " * 50_000 + "x")
@example("add x" + " to" * 20_000)
@example("write " + "about " * 20_000)
def test_every_message_is_some_wish(text) -> None:
    assert isinstance(read_command(text), DraftCommand | AddCommand | ReplaceCommand | UndoCommand | NoCommand)


def test_an_outline_has_a_title_an_introduction_and_sections_with_bullets() -> None:
    lines = outline("green tea").splitlines()
    assert lines[0] == "# Green tea"
    assert lines[2] == "This outline leads through green tea."
    assert sum(line.startswith("## ") for line in lines) in (4, 5)
    assert sum(line.startswith("- ") for line in lines) >= 8


@settings(max_examples=examples(50))
@given(st.text(min_size=1, max_size=80))
def test_the_same_topic_gives_the_same_text(topic) -> None:
    assert outline(topic) == outline(topic)
    assert sum(line.startswith("## ") for line in outline(topic).split("\n")) >= 4


def test_a_section_begins_with_a_blank_line_and_its_title() -> None:
    assert section("milk").startswith("\n## Milk\n\n- ")


@pytest.mark.parametrize(
    ("topic", "artifact_id"),
    [("green tea", "green-tea"), ("Über C++!", "uber-c"), ("a" * 60, "a" * 48), ("茶", "document-f86fa7")],
)
def test_an_artifact_id_is_made_from_the_topic(topic, artifact_id) -> None:
    assert slug(topic) == artifact_id


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("# Coffee\n\nAbout coffee.", "coffee", "cocoa", "# Cocoa\n\nAbout cocoa."),
        ("# Coffee\n\nAbout coffee.", "Coffee", "cocoa", "# Cocoa\n\nAbout cocoa."),
        ("COFFEE", "coffee", "cocoa", "Cocoa"),
        ("1.5 and 115", "1.5", r"\1", r"\1 and 115"),
        ("Tea", "tea", "", ""),
    ],
)
def test_words_are_replaced_in_upper_and_lower_case_and_a_capital_stays_one(text, old, new, after) -> None:
    assert substituted(text, old, new)[0] == after
