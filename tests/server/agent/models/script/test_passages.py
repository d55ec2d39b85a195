"""Passages that a message names are found in a document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.models.script.passages import named_passage, without
from a2a_canvas.store.text.spans import Span, splice

BLOG = """# Tea

Tea is hot and good. It has been so for ages.

## Leaves

- green
- black
- white

## Water

Boil it well enough. Not twice.
"""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("the first paragraph", "Tea is hot and good. It has been so for ages.\n"),
        ("the second paragraph", "Boil it well enough. Not twice.\n"),
        ("the second heading", "## Leaves"),
        ("the last section", "## Water\n\nBoil it well enough. Not twice.\n"),
        ("section 1", "## Leaves\n\n- green\n- black\n- white\n\n"),
        ("the 2nd item", "- black\n"),
        ("line 1", "# Tea\n"),
        ("the last sentence", "Not twice."),
        ("the third paragraph", None),
        ("line 0", "Boil it well enough. Not twice.\n"),
    ],
)
def test_a_passage_is_found_by_its_name(words: str, found: str | None) -> None:
    passage = named_passage(f"make {words} shorter", {})
    assert passage
    span = passage.find(BLOG)
    assert (span and span.extract(BLOG)) == found


def test_a_section_is_found_by_its_heading() -> None:
    passage = named_passage("", {"section": "water"})
    assert passage
    assert passage.find(BLOG) == Span(BLOG.index("## Water"), len(BLOG))
    assert named_passage("make it shorter", {}) is None


def test_a_document_with_a_title_alone_has_no_sections() -> None:
    passage = named_passage("delete the last section", {})
    assert passage
    assert passage.find("# Rain\n\nIt rains.\n") is None


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("a\n\nb\n\nc\n", "b\n", "a\n\nc\n"),
        ("a\n\nb\n", "b\n", "a\n"),
        ("a\n\n---\n\n## b\n", "## b\n", "a\n"),
        ("one two three", "two ", "one three"),
        ("a", "a", ""),
    ],
)
def test_nothing_is_left_over_with_a_deleted_passage(text: str, gone: str, left: str) -> None:
    at = text.index(gone)
    assert splice(text, without(text, Span(at, at + len(gone))), "") == left


@given(st.text(), st.sampled_from(["paragraph", "line", "section", "item", "sentence"]), st.integers(1, 3))
def test_a_passage_that_is_found_is_in_the_text(text: str, unit: str, number: int) -> None:
    passage = named_passage(f"the {('first', 'second', 'third')[number - 1]} {unit}", {})
    assert passage
    span = passage.find(text)
    assert span is None or 0 <= span.start < span.end <= len(text)
