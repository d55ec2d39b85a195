"""What metadata says of a user's message, in words for the model; and what a later conversation hears of an edit."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import AssistantOutput, UserInput, UserMessage
from a2a_canvas.server.agent.intent import Converse, Focus, Put, SelectionEdit, Upload, VersionStep
from a2a_canvas.server.agent.model import ModelMessage, ModelText
from a2a_canvas.server.agent.operation_forms import SelectionRequest
from a2a_canvas.server.agent.turn.history import MAX_EXCERPT, TASK_ENDED, note_of, to_messages, to_user_input
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import Redo, Restore, Undo
from a2a_canvas.store.models import text_part
from tests.server.agent.turn.turn_harness import check_request

EDIT = {"op": "edit", "artifactId": "doc", "selection": {"start": 2, "end": 5, "text": "one"}}
UNDO = {"op": "undo", "artifactId": "doc"}
FOCUS = {"artifactId": "doc", "baseVersion": 2, "selection": {"lineStart": 3, "lineEnd": 4, "text": "a\nb"}}
NOTES = {
    "edit": (EDIT, '[Of a passage selected in artifact "doc", utf16 offsets 2-5: "one"]'),
    "undo": (UNDO, '[The user\'s own step in artifact "doc": undo]'),
    "focus": (
        FOCUS,
        '[The user is looking at artifact "doc", version 2; selected there, lines 3-4: "a\\nb"]',
    ),
}


@pytest.mark.parametrize(
    ("intent", "note"),
    [
        (Converse(), ""),
        (Converse(Focus("doc")), '[The user is looking at artifact "doc"]'),
        (SelectionEdit("doc", SelectionRequest(line_start=2, line_end=2), "replace", "x", None), "lines 2-2]"),
        (SelectionEdit("doc", SelectionRequest(0, 3, "codepoint"), "replace", "x", None), "codepoint offsets 0-3]"),
        (VersionStep("doc", Undo()), ": undo]"),
        (VersionStep("doc", Redo()), ": redo]"),
        (VersionStep("doc", Undo(group=True)), ": undo of all that one task did]"),
        (VersionStep("doc", Redo(group=True)), ": redo of all that one task did]"),
        (VersionStep("doc", Restore(3)), ": version 3 restored]"),
        (Put("doc", "secret", 1), '[The user has edited artifact "doc" directly]'),
        (Upload("doc", (), None, "doc.png"), '[The user has put this into artifact "doc"]'),
    ],
)
def test_every_intent_has_its_note(intent, note) -> None:
    assert note_of(intent).endswith(note)
    assert bool(note) == bool(note_of(intent))


@given(st.text(min_size=1), st.text())
def test_names_and_quotes_stand_on_the_notes_one_line_and_cannot_end_it(artifact_id, quote) -> None:
    note = note_of(Converse(Focus(artifact_id, None, SelectionRequest(0, 1, text=quote))))
    assert "\n" not in note
    assert note.startswith(f"[The user is looking at artifact {json.dumps(artifact_id, ensure_ascii=False)};")


def test_of_a_long_quote_only_its_beginning_is_shown() -> None:
    note = note_of(Converse(Focus("doc", None, SelectionRequest(0, 1, text="a" * 10_000))))
    assert f'"{"a" * MAX_EXCERPT}…"' in note
    assert len(note) < MAX_EXCERPT + 100


# ------------------------------------------------------------------------- in the history


def said(given, words: str) -> UserInput:
    return to_user_input(UserMessage(f"m-{words}", (text_part(words),), {CANVAS: given} if given else {}))


@pytest.mark.parametrize("kind", NOTES)
def test_a_message_is_shown_with_its_note_before_it(kind) -> None:
    given, note = NOTES[kind]
    assert said(given, "Shorter") == UserInput("m-Shorter", (ModelText(note), ModelText("Shorter")))


def test_a_message_without_metadata_has_none() -> None:
    assert said(None, "Hi") == UserInput("m-Hi", (ModelText("Hi"),))


def done(words: str) -> AssistantOutput:
    return AssistantOutput(1, (ModelText(words),))


def test_a_later_conversation_hears_of_an_edit_what_was_asked_and_how_it_ended() -> None:
    edit = (said(EDIT, "Shorter"), done("Edited doc at line 1: version 2 is saved."))
    messages = to_messages([edit, (said(None, "Thanks"),)])
    assert messages == (
        ModelMessage("user", (ModelText(NOTES["edit"][1]), ModelText("Shorter")), "m-Shorter"),
        ModelMessage("assistant", (ModelText("Edited doc at line 1: version 2 is saved."),)),
        ModelMessage("user", (ModelText("Thanks"),), "m-Thanks"),
    )


@given(st.lists(st.tuples(st.sampled_from([None, *NOTES]), st.booleans()), max_size=6))
def test_roles_alternate_whatever_the_tasks_were_and_whether_they_were_answered(tasks) -> None:
    given = [
        (said(kind and NOTES[kind][0], str(n)), *([done(f"Done {n}")] if answered else []))
        for n, (kind, answered) in enumerate(tasks)
    ]
    messages = to_messages([*given, (said(None, "Well?"),)])
    check_request(messages)
    heard = [content.text for message in messages for content in message.content]
    assert [text for text in heard if text[0] not in "[("] == [
        words for n, (_, answered) in enumerate(tasks) for words in (str(n), f"Done {n}")[: 1 + answered]
    ] + ["Well?"]
    assert heard.count(TASK_ENDED) == sum(not answered for _, answered in tasks)
