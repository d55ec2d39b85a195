"""A turn of a rule with `change`: it lists, reads and changes, one call a round."""

import itertools
import json
from collections.abc import Sequence

import pytest

from a2a_canvas.server.agent.model import Attachment, ModelMessage, ModelRequest, ModelText, ToolResult, ToolUse
from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.store.text.spans import Span, splice
from a2a_canvas.tools.artifact_edit import ArtifactEditInput
from a2a_canvas.tools.artifact_update import ArtifactUpdateInput
from a2a_canvas.tools.find_quote import find_once

SCRIPT = """
rules:
  - {match: {text: shorter}, change: shorter, say: "{document} had {words} words."}
  - {match: {text: 'undo (?P<count>two|three)'}, change: undo}
  - {match: {text: undo}, change: undo}
  - {match: {text: redo}, change: redo}
  - {match: {text: 'version (?P<version>[0-9])'}, change: restore}
  - {match: {text: changed}, change: compare}
  - {match: {text: delete}, change: delete}
  - {match: {text: conclusion}, change: add, with: "The end."}
  - {match: {text: 'replace (?P<old>\\w+) by (?P<new>\\w+)'}, change: replace}
"""
TEXT = "It rains all day. It pours.\n\nIt rains all day. It stops.\n"


class Conversation:
    """Plays turns as the server does, over artifacts of one text each, named `ID.md`."""

    def __init__(self, folder, **texts: str) -> None:
        (folder / "s.yaml").write_text(SCRIPT)
        numbers = itertools.count()
        self.model = ScriptedModel(folder / "s.yaml", new_id=lambda: f"t{next(numbers)}")
        self.texts = texts
        self.messages: list[ModelMessage] = []
        self.calls: list[tuple[str, dict]] = []
        self.results: dict[str, ToolResult] = {}
        self.part: dict = {"mimeType": "text/markdown"}

    def say(self, *texts: str, files: Sequence[Attachment] = ()) -> str:
        """The reply; the conversation goes on until the model calls no tool, or asks."""
        self.messages.append(ModelMessage("user", (*map(ModelText, texts), *files)))
        return self._go_on()

    def answer(self, text: str) -> str:
        asked = self.messages[-1].content[-1]
        assert isinstance(asked, ToolUse)
        self.messages.append(ModelMessage("user", (ToolResult(asked.id, text),)))
        return self._go_on()

    def _go_on(self) -> str:
        while True:
            blocks = self.model.plan(ModelRequest("", tuple(self.messages))).blocks
            self.messages.append(ModelMessage("assistant", blocks))
            (block,) = blocks
            if isinstance(block, ModelText):
                return block.text
            assert isinstance(block, ToolUse)
            self.calls.append((block.name, dict(block.input)))
            if block.name == "ask_user":
                return str(block.input["question"])
            result = self.results.get(block.name) or ToolResult(
                "", json.dumps(getattr(self, block.name)(**block.input))
            )
            content, is_error = result.content, result.is_error
            self.messages.append(ModelMessage("user", (ToolResult(block.id, content, is_error),)))

    def artifact_list(self):
        return [{"artifact_id": key, "name": f"{key}.md", "version": 2} for key in self.texts]

    def artifact_read(self, artifact_id, version=None):
        part = {"kind": "text", **self.part, "text": self.texts[artifact_id] if version is None else "It rains.\n"}
        head = {"artifact_id": artifact_id, "name": f"{artifact_id}.md", "version": version or 2}
        return head | {"parts": [{"kind": "data", "data": {}}, part]}

    def artifact_update(self, **given):
        call = ArtifactUpdateInput.model_validate(given)
        (part,) = call.artifact.parts
        assert part.mimeType == "text/markdown"
        key = call.artifact.artifact_id
        self.texts[key] = (self.texts[key] if call.append else "") + part.text

    def artifact_edit(self, **given):
        call = ArtifactEditInput.model_validate(given)
        span = find_once(self.texts[call.artifact_id], call.old_text)
        assert isinstance(span, Span), span
        self.texts[call.artifact_id] = splice(self.texts[call.artifact_id], span, call.new_text)

    def artifact_restore(self, **given):
        return f"{given} done"


@pytest.fixture
def talk(tmp_path):
    return lambda **texts: Conversation(tmp_path, **texts)


def names(conversation: Conversation) -> list[str]:
    return [name for name, _ in conversation.calls]


def test_it_lists_reads_and_writes_the_document_again(talk) -> None:
    conversation = talk(tea=TEXT)
    assert conversation.say("make it shorter") == "“tea.md” had 12 words."
    assert names(conversation) == ["artifact_list", "artifact_read", "artifact_update"]
    assert conversation.texts == {"tea": "It rains all day.\n\nIt rains all day.\n"}


def test_what_is_only_added_is_appended(talk) -> None:
    conversation = talk(tea="Tea.")
    conversation.say("add a conclusion")
    assert conversation.calls[-1][1]["append"] is True
    assert conversation.texts == {"tea": "Tea.\n\nThe end."}


def test_a_passage_is_quoted_with_as_much_context_as_makes_it_occur_once(talk) -> None:
    conversation = talk(tea=TEXT + "\n" + TEXT)
    assert conversation.say("make the third paragraph shorter").startswith("The third paragraph of “tea.md”")
    assert conversation.texts["tea"] == TEXT + "\nIt rains all day.\n\nIt rains all day. It stops.\n"
    conversation.say("delete the first paragraph")
    assert conversation.texts["tea"].startswith("It rains all day. It stops.\n\nIt rains")


@pytest.mark.parametrize(
    ("texts", "changed"),
    [
        (["make tea.md shorter"], "tea"),
        (["make the Tea shorter"], "tea"),
        (['[The user is looking at artifact "tea", version 2]', "make it shorter"], "tea"),
        (['[The user is looking at artifact "tea"]', "make milk.md shorter"], "milk"),
        (["make it shorter"], "milk"),
        (['[The user is looking at artifact "tea"]', "replace milk by water"], "tea"),
    ],
)
def test_the_document_is_the_one_named_else_the_one_shown_else_the_one_changed_last(talk, texts, changed) -> None:
    conversation = talk(tea=TEXT + "milk", milk=TEXT + "milk")
    conversation.say(*texts)
    assert {key for key, text in conversation.texts.items() if text != TEXT + "milk"} == {changed}


SELECTED = (
    '[The user is looking at artifact "tea", version 2; selected there, lines 3-3: '
    r'"It stops. \"Enough,\" it says."]'
)


def test_what_is_selected_is_changed_alone(talk) -> None:
    text = TEXT.replace("It stops.", 'It stops. "Enough," it says.')
    conversation = talk(tea=text)
    assert conversation.say(SELECTED, "make this shorter").startswith("The selected passage of “tea.md”")
    assert conversation.texts["tea"] == text.replace('It stops. "Enough," it says.', 'It stops. "Enough,"')
    assert conversation.say(SELECTED, "make this shorter") == "“tea.md” has no selected passage, so nothing is changed."
    conversation.say(SELECTED, "add a conclusion")
    assert conversation.texts["tea"].endswith("\n\nThe end.\n")


def test_if_several_are_named_it_asks_which(talk) -> None:
    conversation = talk(tea=TEXT, milk=TEXT)
    assert conversation.say("make tea and milk shorter") == "Which document do you mean: “tea.md” or “milk.md”?"
    assert conversation.answer("the milk") == "“milk.md” had 12 words."
    conversation.say("make tea and milk shorter")
    assert conversation.answer("neither") == "I know no document of that name. Nothing is changed."


@pytest.mark.parametrize(
    ("text", "given"), [("undo", {}), ("redo", {"redo": True}), ("back to version 1", {"version": 1})]
)
def test_steps_are_those_of_artifact_restore(talk, text, given) -> None:
    conversation = talk(tea=TEXT)
    assert "done" in conversation.say(text)
    assert conversation.calls[1:] == [("artifact_restore", {"artifact_id": "tea", **given})]


def test_more_changes_than_there_are_versions_are_not_undone(talk) -> None:
    conversation = talk(tea=TEXT)
    said = conversation.say("undo three")
    assert said == "“tea.md” is at version 2: there are not 3 changes to undo. Nothing is changed."
    assert names(conversation) == ["artifact_list"]


def test_it_says_what_the_newest_version_changed(talk) -> None:
    told = talk(tea="It pours.\nIt rains.\n").say("what has changed?")
    assert told == "Version 2 of “tea.md” against version 1:\n\n````diff\n@@ -0,0 +1 @@\n+It pours.\n````"


@pytest.mark.parametrize(
    ("texts", "message", "told"),
    [
        ({}, "make it shorter", "There is no document yet"),
        ({"tea": "Tea"}, "make it shorter", "I found nothing to change in “tea.md”."),
        ({"tea": "Tea"}, "delete the last section", "“tea.md” has no last section, so nothing is changed."),
        ({"tea": "Tea"}, "delete it", "I found nothing to change in “tea.md”."),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(talk, texts, message, told) -> None:
    conversation = talk(**texts)
    assert conversation.say(message).startswith(told)
    assert conversation.texts == texts


def test_a_document_that_is_not_shown_whole_is_left_alone(talk) -> None:
    conversation = talk(tea=TEXT)
    conversation.part = {"note": "Not all of it is shown."}
    assert conversation.say("make it shorter").endswith("too long for me. Nothing is changed.")


@pytest.mark.parametrize("name", ["artifact_list", "artifact_read", "artifact_update"])
def test_a_failed_call_ends_the_turn_with_what_the_tool_said(talk, name) -> None:
    conversation = talk(tea=TEXT)
    conversation.results[name] = ToolResult("", "the disk is full", is_error=True)
    assert conversation.say("make it shorter") == "That did not work: the disk is full"
    assert names(conversation)[-1] == name


@pytest.mark.parametrize("content", ["", "not json", "{}", "[1]", "[" * 100_000])
def test_a_list_that_cannot_be_read_is_an_empty_one(talk, content) -> None:
    conversation = talk(tea=TEXT)
    conversation.results["artifact_list"] = ToolResult("", content)
    assert conversation.say("make it shorter").startswith("There is no document yet")


NOTES = Attachment("text/markdown", "notes.txt", TEXT.encode())


@pytest.mark.parametrize("texts", [{}, {"tea": "Tea."}])
def test_an_attached_text_becomes_the_document_that_is_changed(talk, texts: dict[str, str]) -> None:
    conversation = talk(**texts)
    assert conversation.say("make it shorter", files=[NOTES]) == "“notes.txt” had 12 words."
    assert names(conversation) == ["artifact_list", "artifact_update"]
    assert conversation.calls[-1][1]["artifact"]["name"] == "notes.txt"
    assert conversation.texts == texts | {"notes": "It rains all day.\n\nIt rains all day.\n"}


def test_a_passage_of_an_attached_text_is_changed_alone(talk) -> None:
    conversation = talk()
    assert conversation.say("make the last paragraph shorter", files=[NOTES]).startswith("The last paragraph of “notes")
    assert conversation.texts == {"notes": "It rains all day. It pours.\n\nIt rains all day.\n"}


def test_a_document_that_is_named_comes_before_an_attached_text(talk) -> None:
    conversation = talk(tea=TEXT)
    assert conversation.say("make tea.md shorter", files=[NOTES]) == "“tea.md” had 12 words."
    assert set(conversation.texts) == {"tea"}


@pytest.mark.parametrize("name", ["photo.png", "data.bin"])
def test_what_is_no_text_is_no_document(talk, name: str) -> None:
    file = Attachment("image/png" if name == "photo.png" else "", name, b"\x89PNG\r\n\x1a\n\xff")
    assert talk().say("make it shorter", files=[file]).startswith("There is no document yet.")


def test_an_attached_text_has_nothing_to_undo(talk) -> None:
    assert talk().say("undo", files=[NOTES]).startswith("There is no document yet.")
