"""What a message asks for, by its metadata."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.intent import OPERATIONS, Converse, Focus, Put, SelectionEdit, Upload, VersionStep
from a2a_canvas.server.agent.operation_forms import InvalidOperation, SelectionRequest, instruction_of
from a2a_canvas.server.wire import AGENTSTACK, CANVAS
from a2a_canvas.store.changes import Redo, Restore, Undo
from a2a_canvas.store.models import DataPart, FilePart, Parts, text_part
from a2a_canvas.store.text.unicode import MAX_ID
from a2a_canvas.store.text.wording import choice, format_value

SHORTER: Parts = (text_part("Shorter"),)
RANGE = {"start": 2, "end": 5}
EDIT = {"op": "edit", "artifactId": "doc", "selection": RANGE}
THEIRS = {"artifact_id": "doc", "start_index": 2, "end_index": 5, "description": "Shorter"}


def message(ours=None, theirs=None, *, parts: Parts = SHORTER, **metadata) -> UserMessage:
    given = {CANVAS: ours, AGENTSTACK: theirs}
    return UserMessage("m-1", parts, {**{uri: value for uri, value in given.items() if value is not None}, **metadata})


def refused(**given) -> InvalidOperation:
    with pytest.raises(InvalidOperation) as caught:
        _ = message(**given).intent
    return caught.value


# ------------------------------------------------------------------------ conversation


def test_a_message_without_metadata_is_conversation() -> None:
    assert message().intent == Converse()


def test_metadata_of_others_is_none_of_ours() -> None:
    assert message(**{"urn:other": {"op": "edit"}, "op": "undo"}).intent == Converse()


def test_without_an_operation_ours_says_what_the_user_is_looking_at() -> None:
    assert message({"artifactId": "doc"}).intent == Converse(Focus("doc"))
    looking = {"artifactId": "doc", "baseVersion": 2, "selection": {**RANGE, "text": "abc"}}
    assert message(looking).intent == Converse(Focus("doc", 2, SelectionRequest(2, 5, "utf16", "abc")))


# --------------------------------------------------------------------------- an edit


def test_an_edit_in_its_shortest_form() -> None:
    assert message(EDIT).intent == SelectionEdit("doc", SelectionRequest(2, 5), "replace", "Shorter", None)


def test_an_edit_with_everything() -> None:
    selection = {**RANGE, "unit": "codepoint", "text": "abc", "lineStart": 1, "lineEnd": 2}
    whole = {**EDIT, "baseVersion": 3, "selection": selection, "strategy": "insert_after"}
    selection = SelectionRequest(2, 5, "codepoint", "abc", 1, 2)
    assert message(whole).intent == SelectionEdit("doc", selection, "insert_after", "Shorter", 3)


def test_lines_alone_are_enough_and_one_line_is_named_once() -> None:
    edit = message({**EDIT, "selection": {"lineStart": 3}}).intent
    assert edit.selection == SelectionRequest(line_start=3, line_end=3)


def test_an_empty_selection_is_one() -> None:
    assert message({**EDIT, "selection": {"start": 0, "end": 0}}).intent.selection == SelectionRequest(0, 0)


@given(st.text(min_size=1).filter(str.strip))
def test_metadata_wins_over_any_wording(words) -> None:
    edit = message(EDIT, parts=(text_part(words),)).intent
    assert isinstance(edit, SelectionEdit)
    assert edit.instruction == text_part(words).text


def test_the_instruction_is_all_that_the_message_says_in_words() -> None:
    parts = (text_part("Shorter"), DataPart({"a": 1}), text_part("  "), text_part("and kinder"))
    assert instruction_of(parts) == "Shorter\nand kinder"


@pytest.mark.parametrize("parts", [(), (text_part(" \n"),), (DataPart("Shorter"),)])
def test_an_edit_without_an_instruction_is_refused(parts) -> None:
    assert refused(ours=EDIT, parts=parts).field == "message.parts"


# ------------------------------------------------------------- the other canvas extension


def test_an_edit_of_agentstack_is_an_edit_by_utf16_offsets() -> None:
    assert message(theirs=THEIRS).intent == SelectionEdit(
        "doc", SelectionRequest(2, 5, fields=("start_index", "end_index")), "replace", "Shorter", None
    )


def test_its_description_and_the_message_are_the_instruction_together() -> None:
    edit = message(theirs={**THEIRS, "description": "Warmer"}).intent
    assert edit.instruction == "Warmer\nShorter"
    assert message(theirs=THEIRS, parts=()).intent.instruction == "Shorter"


def test_its_description_may_be_missing_but_not_both() -> None:
    bare = {key: value for key, value in THEIRS.items() if key != "description"}
    assert message(theirs=bare).intent.instruction == "Shorter"
    assert refused(theirs=bare, parts=()).field == "message.parts"


def test_what_else_it_holds_does_not_matter() -> None:
    assert isinstance(message(theirs={**THEIRS, "colour": "red"}).intent, SelectionEdit)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"end_index": "5"}, "end_index"),
        ({"artifact_id": ""}, "artifact_id"),
        ({"description": 3}, "description"),
    ],
)
def test_a_wrong_field_of_it_is_named(wrong, field) -> None:
    assert refused(theirs={**THEIRS, **wrong}).field == field


def test_ours_comes_before_theirs() -> None:
    assert message({"op": "undo", "artifactId": "doc"}, THEIRS).intent == VersionStep("doc", Undo())
    assert message({"artifactId": "doc"}, THEIRS).intent == Converse(Focus("doc"))
    assert refused(ours={"op": "edit"}, theirs=THEIRS).field == "artifactId"


# --------------------------------------------------------------------------- versions


@pytest.mark.parametrize(
    ("given", "intent"),
    [
        ({"op": "undo"}, VersionStep("doc", Undo())),
        ({"op": "undo", "baseVersion": 4}, VersionStep("doc", Undo(4))),
        ({"op": "undo", "group": True}, VersionStep("doc", Undo(group=True))),
        ({"op": "undo", "group": False, "baseVersion": 4}, VersionStep("doc", Undo(4))),
        ({"op": "redo", "group": True, "baseVersion": 4}, VersionStep("doc", Redo(4, group=True))),
        ({"op": "redo"}, VersionStep("doc", Redo())),
        ({"op": "redo", "baseVersion": 4}, VersionStep("doc", Redo(4))),
        ({"op": "restore", "version": 2}, VersionStep("doc", Restore(2))),
        ({"op": "restore", "version": 2, "baseVersion": 4}, VersionStep("doc", Restore(2, 4))),
        ({"op": "put", "text": "New"}, Put("doc", "New", None)),
        ({"op": "put", "text": "", "baseVersion": 4}, Put("doc", "", 4)),
        ({"op": "put", "text": "New", "baseVersion": 4, "merge": True}, Put("doc", "New", 4, merge=True)),
        ({"op": "put", "text": "New", "merge": False}, Put("doc", "New", None)),
    ],
)
def test_the_operations_on_versions(given, intent) -> None:
    assert message({"artifactId": "doc", **given}, parts=()).intent == intent


# --------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("given", ["edit", 1, True, ["op"], []])
def test_metadata_that_is_no_object_is_refused_by_its_name(given) -> None:
    assert str(refused(ours=given)) == f"metadata[{CANVAS}] is {format_value(given)} and must be an object."
    assert str(refused(theirs=given)) == f"metadata[{AGENTSTACK}] is {format_value(given)} and must be an object."


@pytest.mark.parametrize("op", ["Edit", "delete", "", 3, None, ["edit"], {"edit": 1}])
def test_an_unknown_operation_is_refused_with_those_that_there_are(op) -> None:
    assert str(refused(ours={**EDIT, "op": op})) == f"op is {format_value(op)} and must be {choice(OPERATIONS)}."


FORMS = {
    "edit": EDIT,
    "undo": {"op": "undo", "artifactId": "doc"},
    "redo": {"op": "redo", "artifactId": "doc"},
    "restore": {"op": "restore", "artifactId": "doc", "version": 1},
    "put": {"op": "put", "artifactId": "doc", "text": "x"},
    "focus": {"artifactId": "doc"},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", ["base_version", "baseversion", "selectoins", "colour"])
def test_an_unknown_field_is_refused_by_its_name(form, field) -> None:
    said = str(refused(ours={**FORMS[form], field: 1}))
    assert said.startswith(f"{field} is no field of this operation, which has artifactId, baseVersion")


def test_a_field_whose_name_is_written_in_another_way_is_told_before_the_one_that_is_missing() -> None:
    assert refused(ours={"op": "undo", "artifact_id": "doc"}).field == "artifact_id"


@pytest.mark.parametrize(
    ("form", "field"),
    [("undo", "version"), ("redo", "text"), ("restore", "strategy"), ("put", "selection"), ("focus", "strategy")],
)
def test_a_field_of_another_operation_is_refused(form, field) -> None:
    assert refused(ours={**FORMS[form], field: 1}).field == field


@pytest.mark.parametrize(
    ("form", "field"),
    [(form, field) for form, fields in FORMS.items() for field in fields if field != "op"],
)
def test_a_field_that_is_missing_is_named(form, field) -> None:
    given = {key: value for key, value in FORMS[form].items() if key != field}
    assert str(refused(ours=given)).startswith(f"{field} is missing")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("artifactId", ""),
        ("artifactId", 1),
        ("baseVersion", 1.5),
        ("baseVersion", "1"),
        ("baseVersion", True),
    ],
)
def test_a_field_of_the_wrong_kind_is_refused_by_its_name(form, field, value) -> None:
    error = refused(ours={**FORMS[form], field: value})
    assert error.field == field
    assert error.reason == "must not be empty" or error.reason.startswith(f"is {format_value(value)} and must be ")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"strategy": "append"}, "strategy"),
        ({"selection": []}, "selection"),
        ({"selection": "2-5"}, "selection"),
        ({"selection": {}}, "selection"),
        ({"selection": {"start": 2}}, "selection"),
        ({"selection": {"end": 2}}, "selection"),
        ({"selection": {"lineEnd": 2}}, "selection"),
        ({"selection": {**RANGE, "lineEnd": 2}}, "selection"),
        ({"selection": {"start": 2, "lineStart": 1}}, "selection"),
        ({"selection": {**RANGE, "end": "5"}}, "selection.end"),
        ({"selection": {**RANGE, "unit": "bytes"}}, "selection.unit"),
        ({"selection": {**RANGE, "text": 1}}, "selection.text"),
        ({"selection": {"lineStart": 1, "lineEnd": 1.5}}, "selection.lineEnd"),
        ({"selection": {**RANGE, "length": 3}}, "selection.length"),
        ({"selection": {**RANGE, "line_start": 3}}, "selection.line_start"),
    ],
)
def test_a_wrong_selection_is_refused_by_its_field(wrong, field) -> None:
    error = refused(ours={**EDIT, **wrong})
    assert error.field == field
    assert "Form" not in str(error)


@pytest.mark.parametrize(("field", "value"), [("version", 1.5), ("version", None), ("version", "2")])
def test_a_version_to_restore_is_a_number(field, value) -> None:
    assert refused(ours={**FORMS["restore"], field: value}).field == field


@pytest.mark.parametrize("value", [3, ["x"], {"text": "x"}])
def test_what_is_put_is_a_text(value) -> None:
    assert refused(ours={**FORMS["put"], "text": value}).field == "text"


@pytest.mark.parametrize("value", ["", "n" * (MAX_ID + 1)])
def test_a_name_for_a_new_artifact_is_neither_empty_nor_longer_than_an_id(value) -> None:
    put = {name: given for name, given in FORMS["put"].items() if name != "baseVersion"}
    assert refused(ours={**put, "name": value}).field == "name"


IMAGE = FilePart(b"\x89PNG", name="a.png", media_type="image/png")
UPLOADED: Parts = (text_part("my picture"), IMAGE, DataPart({"a": 1}))


@pytest.mark.parametrize(
    ("given", "intent"),
    [
        ({}, Upload("doc", UPLOADED[1:], None)),
        ({"baseVersion": 4}, Upload("doc", UPLOADED[1:], 4)),
        ({"name": "a.png"}, Upload("doc", UPLOADED[1:], None, "a.png")),
        ({"text": None}, Upload("doc", UPLOADED[1:], None)),
    ],
)
def test_without_a_text_the_files_and_data_of_the_message_are_put(given, intent) -> None:
    assert message({"op": "put", "artifactId": "doc", **given}, parts=UPLOADED).intent == intent


@pytest.mark.parametrize(
    ("given", "parts", "said"),
    [
        ({}, SHORTER, "text is missing: a put has a text, or files or data in message.parts."),
        ({"text": None}, SHORTER, "text is missing: a put has a text, or files or data in message.parts."),
        (
            {"text": "x"},
            UPLOADED,
            "message.parts must not have files or data beside the text of a put: put them without text.",
        ),
        (
            {"merge": True, "baseVersion": 1},
            UPLOADED,
            "merge is for a text: leave it out, or put a text in place of files and data.",
        ),
    ],
)
def test_a_put_has_a_text_or_parts(given, parts, said) -> None:
    assert str(refused(ours={"op": "put", "artifactId": "doc", **given}, parts=parts)) == said


def test_a_merge_needs_the_version_that_the_text_was_made_of() -> None:
    said = "baseVersion is missing: merge needs the version that the text was made of."
    assert str(refused(ours={**FORMS["put"], "merge": True})) == said
    assert refused(ours={**FORMS["put"], "merge": "yes", "baseVersion": 1}).field == "merge"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NEARLY = st.fixed_dictionaries(
    {},
    optional={
        "op": st.sampled_from(list(FORMS)) | JSON,
        "artifactId": st.just("doc") | JSON,
        "baseVersion": st.integers(1, 3) | JSON,
        "selection": st.dictionaries(
            st.sampled_from(["start", "end", "unit", "text", "lineStart", "lineEnd"]), st.integers(0, 3) | JSON
        ),
        "version": st.integers(1, 3) | JSON,
        "text": st.text(max_size=3) | JSON,
        "merge": st.booleans() | JSON,
    },
)


@given(JSON | NEARLY, JSON)
@example({"": None}, None)
def test_whatever_the_metadata_it_is_read_or_refused_by_a_field(ours, theirs) -> None:
    try:
        intent: object = message(ours, theirs).intent
    except InvalidOperation as error:
        intent = error
    if isinstance(intent, InvalidOperation):
        assert intent.field
        assert intent.reason
    else:
        assert isinstance(intent, Converse | SelectionEdit | VersionStep | Put)
