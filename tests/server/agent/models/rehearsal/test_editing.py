"""What the rehearsal model makes of a selection: a few English key words, and a visible change for all others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.edit.edit_prompt import edit_request
from a2a_canvas.server.agent.model import EditPrompt, MessageStop, ModelRequest, ModelText, TextDelta, ToolSpec
from a2a_canvas.server.agent.models.rehearsal import HELP, Rehearsal, plan
from a2a_canvas.server.agent.models.rehearsal.editing import edited
from a2a_canvas.server.agent.models.rehearsal.outlines import section

TEA = "Tea is hot. Coffee is very hot too.\n"
CODE = "def f(x):\n    return x\n"


def passage(instruction, selected=TEA, language="markdown", strategy="replace", before="", after="") -> EditPrompt:
    return EditPrompt("a", language, before, selected, after, instruction, strategy)


@pytest.mark.parametrize(
    ("instruction", "new"),
    [
        ("replace tea by coffee", "Coffee is hot. Coffee is very hot too.\n"),
        ("Replace tea with milk in this line.", "Milk is hot. Coffee is very hot too.\n"),
        ('Rename "coffee" to "short milk"', "Tea is hot. Short milk is very hot too.\n"),
        ("change hot into cold", "Tea is cold. Coffee is very cold too.\n"),
        ("replace it by Nothing", "Nothing\n"),
        ('change it to "Hi."', "Hi.\n"),
        ("Change this to something else, please.", "something else\n"),
        ("make it say 'sort it'", "sort it\n"),
        ("“Hello”", "Hello\n"),
        ("change it to upper case", "TEA IS HOT. COFFEE IS VERY HOT TOO.\n"),
        ("make it lowercase", "tea is hot. coffee is very hot too.\n"),
        ("Title Case please", "Tea Is Hot. Coffee Is Very Hot Too.\n"),
        ("make it shorter", "Tea is hot.\n"),
        ("remove the word very", "Tea is hot. Coffee is hot too.\n"),
        ('Remove "Tea is hot. "', "Coffee is very hot too.\n"),
        ('add "And more."', "Tea is hot. Coffee is very hot too. And more.\n"),
    ],
)
def test_it_understands_key_words(instruction, new) -> None:
    assert edited(passage(instruction)) == new


@pytest.mark.parametrize("instruction", ["delete it", "remove it, please", "Delete", "Please remove this sentence."])
def test_of_what_is_to_be_deleted_nothing_is_left(instruction) -> None:
    assert edited(passage(instruction)) == ""


@pytest.mark.parametrize(
    ("selected", "new"),
    [
        ("- one two three four five\n", "- one two\n"),
        ("  - a\n  - b\n  - c\n", "  - a\n  - b\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nb\r\n"),
        ("  One. Two.", "  One."),
        ("word", "word (edited: shorter)"),
    ],
)
def test_shorter_is_the_first_sentence_or_the_first_half(selected, new) -> None:
    assert edited(passage("shorter", selected)) == new


@pytest.mark.parametrize("instruction", ["make it longer", "More detailed, please", "expand this"])
def test_longer_begins_as_before(instruction) -> None:
    sentence, bullet = edited(passage(instruction)), edited(passage(instruction, "- A first example\n"))
    assert sentence.startswith(TEA.rstrip() + " It is ")
    assert bullet.startswith("- A first example: ")
    assert edited(passage(instruction, CODE, "python")) == CODE + "# More could be done here.\n"


@pytest.mark.parametrize(
    ("selected", "new"),
    [("b\na\nc\n", "a\nb\nc\n"), ("b\r\na", "a\r\nb"), ("b\r\na\r\n", "a\r\nb\r\n")],
)
def test_it_sorts_lines(selected, new) -> None:
    assert edited(passage("sort the lines", selected)) == new
    assert edited(passage("sort them backwards", "a\nb\n")) == "b\na\n"


@pytest.mark.parametrize(
    ("instruction", "selected", "language", "new"),
    [
        ("make it async", CODE, "python", "async def f(x):\n    return x\n"),
        ("make it async", "    def f(x):", "python", "    async def f(x):"),
        ("turn this into async", "export function f() {}", "typescript", "export async function f() {}"),
        ("comment it out", CODE, "python", "# def f(x):\n    # return x\n"),
        ("comment this out", "x;\n", "c", "// x;\n"),
        ('add a comment "why"', "    x = 1\n", "python", "    # why\n    x = 1\n"),
        ('add "y = 2"', "    x = 1\n", "python", "    x = 1\n    y = 2\n"),
    ],
)
def test_it_edits_code(instruction, selected, language, new) -> None:
    assert edited(passage(instruction, selected, language)) == new


@pytest.mark.parametrize(
    ("instruction", "selected", "language", "new"),
    [
        ("make it a\npoem", "Tea\n", "markdown", "Tea (edited: make it a poem)\n"),
        ("use recursion", "return x\n", "python", "return x  # edited: use recursion\n"),
        ("use a join", "select 1;", "sql", "select 1;  -- edited: use a join"),
        ("replace milk by water", "Tea\n", "", "Tea (edited: replace milk by water)\n"),
        ("delete the third line", "Tea", "", "Tea (edited: delete the third line)"),
        ("make it async", "async def f(): pass", "python", "async def f(): pass  # edited: make it async"),
        ("don't say it's hot", "Tea", "", "Tea (edited: don't say it's hot)"),
        ("comment on it", "Tea", "", "Tea (edited: comment on it)"),
        ("x" * 100, "\n", "", f"(edited: {'x' * 80})\n"),
        ("", "Tea", "", "Tea (edited)"),
    ],
)
def test_anything_else_is_marked_with_the_instruction(instruction, selected, language, new) -> None:
    assert edited(passage(instruction, selected, language)) == new


@given(
    st.sampled_from(["\n", "\r\n", "\n\n", ""]),
    st.sampled_from(["make it shorter", "upper case", "sort", "?", "async"]),
)
def test_the_line_breaks_at_the_end_stay(end, instruction) -> None:
    new = edited(passage(instruction, "One. Two." + end))
    assert new.endswith(end)
    assert not new.removesuffix(end).endswith("\n")


@pytest.mark.parametrize(
    ("strategy", "before", "selected", "after", "new"),
    [
        ("insert_before", "f:\n", "  b\n", "c\n", "  N\n"),
        ("insert_before", "f:\n", "  b", "\nc", "  N\n"),
        ("insert_after", "f:\n", "  b\n", "c\n", "  N\n"),
        ("insert_after", "f:\n", "  b", "\nc", "\n  N"),
        ("insert_after", "f:\n  ", "b", "\r\nc", "\n  N"),
        ("insert_after", "", "b", "", "\nN"),
        ("insert_before", "a ", "b", " c", "N "),
        ("insert_after", "a ", "b", " c", " N"),
        ("insert_after", "a ", "b", "c", " N "),
        ("replace", "a", "", "c", " N "),
        ("replace", "a ", "", "c", "N "),
        ("replace", "a\n", "", "\nc", "N"),
        ("replace", "a\n", "", "c", "N\n"),
        ("replace", "", "", "", "N\n"),
    ],
)
def test_what_is_inserted_gets_the_line_breaks_and_blanks_it_needs(strategy, before, selected, after, new) -> None:
    assert edited(passage('add "N"', selected, "", strategy, before, after)) == new


def test_a_section_is_inserted_in_markdown_and_a_mark_elsewhere() -> None:
    new = passage("add a section on milk", "# Tea\n", "markdown", "insert_after")
    assert edited(new) == section("milk").strip("\n") + "\n"
    assert edited(passage("explain it", "x = 1\n", "python", "insert_before")) == "# edited: explain it\n"


# ------------------------------------------------------------------ as a model


def test_an_edit_is_answered_with_the_new_text_and_nothing_else() -> None:
    request = edit_request(passage("upper case", "tea"))
    assert plan(request) == (ModelText("TEA"),)
    tools = (ToolSpec("artifact_update", "", {}),)
    assert plan(ModelRequest("", request.messages, tools, request.edit)) == (ModelText("TEA"),)


async def test_a_deletion_is_the_mark_alone() -> None:
    events = [event async for event in Rehearsal(delay=0).stream(edit_request(passage("delete it")))]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "<delete/>"
    assert isinstance(events[-1], MessageStop)
    (reply,) = plan(edit_request(passage("delete it", "<delete/>\n")))
    assert reply == ModelText("<delete-1/>")


def test_its_help_tells_of_selections() -> None:
    assert "Select a passage" in HELP
