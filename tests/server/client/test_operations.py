"""What is sent for an operation, as the server reads it, and where a text to be matched stands."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.intent import Put, SelectionEdit, SelectionRequest, VersionStep
from a2a_canvas.server.client.edit import message_of
from a2a_canvas.server.client.operations import (
    REDO,
    REDO_STEP,
    UNDO,
    UNDO_STEP,
    ArtifactOperation,
    ArtifactTarget,
    CannotBeDone,
    EditRequest,
    LineRange,
    TextMatch,
    edit_lines,
    edit_match,
    find,
    put,
    restore,
)
from a2a_canvas.server.protocols.a2a_v1.parts import user_message
from a2a_canvas.store.changes import Redo, Restore, Undo
from tests.property_examples import examples

TEXT = "one\ntwo 🦀 two\nthree\n"


def read(operation: ArtifactOperation) -> Any:
    """The operation as the server takes it."""
    return user_message(message_of(operation, ArtifactTarget("ctx", "doc"))).intent


@pytest.mark.parametrize(
    ("operation", "intent"),
    [
        (UNDO, VersionStep("doc", Undo(group=True))),
        (REDO, VersionStep("doc", Redo(group=True))),
        (UNDO_STEP, VersionStep("doc", Undo())),
        (REDO_STEP, VersionStep("doc", Redo())),
        (restore(3), VersionStep("doc", Restore(3))),
        (put("new", None), Put("doc", "new", None)),
        (put("", 2), Put("doc", "", 2)),
    ],
)
def test_a_step_through_the_versions_is_what_the_server_reads(operation: ArtifactOperation, intent: Any) -> None:
    assert read(operation) == intent


def test_lines_are_sent_as_lines_with_a_version_only_if_one_is_given() -> None:
    lines = LineRange(3, 5)
    for base in (None, 4):
        sent = read(edit_lines(EditRequest("shorter", lines, base=base), lines))
        assert sent == SelectionEdit("doc", SelectionRequest(line_start=3, line_end=5), "replace", "shorter", base)


def test_a_match_is_sent_as_a_range_of_code_points_with_its_text_and_version() -> None:
    match = TextMatch("two\nthree")
    sent = read(edit_match(EditRequest("shorter", match, "insert_after"), match, TEXT, 7))
    selection = SelectionRequest(start=10, end=19, unit="codepoint", text="two\nthree")
    assert sent == SelectionEdit("doc", selection, "insert_after", "shorter", 7)


def test_line_breaks_match_those_of_the_text_and_its_own_are_sent() -> None:
    match = TextMatch("two\nthree\n")
    sent = read(edit_match(EditRequest("shorter", match), match, "one\r\ntwo\r\nthree\r\n", 7))
    assert sent.selection == SelectionRequest(start=5, end=17, unit="codepoint", text="two\r\nthree\r\n")


def test_a_text_that_stands_there_as_it_was_given_is_taken_so() -> None:
    assert find(TextMatch("a\nb"), "a\r\nb, a\nb", "it") == (6, 9)
    assert find(TextMatch("a\r\nb"), "a\r\nb", "it") == (0, 4)


def test_a_message_is_a_users_in_the_context_with_an_id_of_its_own() -> None:
    one, other = message_of(UNDO, ArtifactTarget("ctx", "doc")), message_of(UNDO, ArtifactTarget("ctx", "doc"))
    assert (one.context_id, one.task_id) == ("ctx", "")
    assert one.message_id != other.message_id


@pytest.mark.parametrize(
    ("needle", "text", "said"),
    [
        ("four", TEXT, '"four" does not occur in version 1'),
        ("two", TEXT, '"two" occurs 2 times in version 1, on line 2.'),
        ("o", TEXT, '"o" occurs 3 times in version 1, on lines 1, 2.'),
        ("aa", "\naaa", '"aa" occurs 2 times in version 1, on line 2.'),
        ("x", "x\n" * 12, '"x" occurs 12 times in version 1, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ….'),
        ("\n", TEXT, "'\\n' occurs 3 times in version 1, on lines 1, 2, 3."),
        ("a\nb", "", '"a b" does not occur in version 1'),
        ("a" * 99, "", f'"{"a" * 59}…" does not occur in version 1'),
    ],
)
def test_a_text_that_is_not_in_one_place_is_refused_with_how_often_and_where(needle: str, text: str, said: str) -> None:
    with pytest.raises(CannotBeDone) as refused:
        find(TextMatch(needle), text, "version 1")
    assert str(refused.value).startswith(said)
    assert refused.value.exit_code == 2


@given(st.text("ab\n🦀", max_size=12), st.text("ab\n🦀", min_size=1, max_size=3))
@settings(max_examples=examples(200))
def test_a_text_is_found_exactly_if_it_begins_in_one_place(text: str, needle: str) -> None:
    starts = [at for at in range(len(text)) if text.startswith(needle, at)]
    if len(starts) == 1:
        start, end = find(TextMatch(needle), text, "it")
        assert [start] == starts
        assert text[start:end] == needle
        return
    with pytest.raises(CannotBeDone) as refused:
        find(TextMatch(needle), text, "it")
    lines = list(dict.fromkeys(str(text[:at].count("\n") + 1) for at in starts))
    said = f" occurs {len(starts)} times in it, on line{'s'[: len(lines) > 1]} {', '.join(lines[:10])}"
    assert (said if starts else " does not occur in it") in str(refused.value)
