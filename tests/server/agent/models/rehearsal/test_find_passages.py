"""Passages that a message names in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.models.rehearsal.find_passages import PassageEdit, find, read_edit


@pytest.mark.parametrize(
    ("text", "passage", "instruction"),
    [
        ("Make the second paragraph shorter", "second paragraph", "Make it shorter"),
        ("Please make the LAST line upper case, thanks. Bye!", "last line", "make it upper case, thanks"),
        ("Could you shorten the first paragraph of tea.md?", "first paragraph", "shorten it of tea.md"),
        ("In tea.md, make the third line longer", "third line", "make it longer"),
        ("make tea.md's second paragraph longer", "second paragraph", "make tea.md's it longer"),
        ('Replace "a. b" by "c! d" in the last line.', "last line", 'Replace "a. b" by "c! d" in it'),
        ("Add “And more.” to the last paragraph", "last paragraph", "Add “And more.” to it"),
        ("delete the first line\nand then rest", "first line", "delete it"),
    ],
)
def test_what_is_to_be_done_to_a_passage_is_an_edit_of_it(text, passage, instruction) -> None:
    which = {"first": 0, "second": 1, "third": 2, "last": -1}[passage.split()[0]]
    assert read_edit(text) == PassageEdit(which, passage, instruction, text)


@pytest.mark.parametrize(
    "text",
    [
        "Is the first line too short?",
        "Write about the first line of defence and make it longer",
        "Add a section on the first line",
        "Make it shorter. The second paragraph is nice.",
        "Make the paragraph shorter",
        'replace a by "the first line"',
        "“Make the first line longer”",
        "Ask me to make the first line longer",
        "",
    ],
)
def test_anything_else_is_none(text) -> None:
    assert read_edit(text) is None


TEXT = "# Tea\n\nOne.\nOne more.\n\n\nTwo.\n## Milk\nThree.\n"


@pytest.mark.parametrize(
    ("passage", "found"),
    [
        ("first paragraph", "One.\nOne more.\n\n\n"),
        ("second paragraph", "Two.\n"),
        ("third paragraph", "Three.\n"),
        ("last paragraph", "Three.\n"),
        ("first line", "# Tea\n"),
        ("second line", "\n"),
        ("third line", "One.\n"),
        ("last line", "Three.\n"),
    ],
)
def test_where_it_stands(passage, found) -> None:
    edit = read_edit(f"Make the {passage} longer")
    assert edit
    span = find(edit, TEXT, markdown=True)
    assert span
    assert span.of(TEXT) == found


def test_only_markdown_has_headings() -> None:
    edit = read_edit("Delete the first paragraph")
    assert edit
    span = find(edit, TEXT, markdown=False)
    assert span
    assert span.of(TEXT) == "# Tea\n\n"


@given(st.text("a \r\n#", max_size=20), st.sampled_from(["second paragraph", "last line", "last paragraph"]))
def test_it_is_there_or_it_is_not(text, passage) -> None:
    edit = read_edit(f"Delete the {passage}")
    assert edit
    span = find(edit, text, markdown=True)
    assert span is None or span.of(text)
