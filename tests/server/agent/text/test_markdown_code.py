"""Where code is in Markdown, however it is cut: ⟦…⟧ in these texts stands around what is in code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.text.markdown_code import CodeFinder

FRAGMENTS = ["`", "``", "```", "~~~", "~", "\n", "\n\n", "   ", "\t", "a", "py b"]
TEXTS = st.lists(st.sampled_from(FRAGMENTS)).map("".join)


def marked(text: str) -> str:
    """The text without its runs of ` and ~, line breaks and spaces; what stands in code marked with ⟦⟧."""
    finder, out = CodeFinder(), ""
    for character in text:
        if character.isalnum():
            out += f"⟦{character}⟧" if finder.code else character
        finder.read(character)
    return out.replace("⟧⟦", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a `b` c", "a⟦b⟧c"),
        ("a ``b ` c`` d", "a⟦bc⟧d"),
        ("a\n```py\nb\n\nc\n```\nd", "a⟦pybc⟧d"),
        ("~~~\na\n```\nb\n~~~\nc", "⟦ab⟧c"),
        ("````\na\n```\nb\n`````  \nc", "⟦ab⟧c"),
        ("```\na\n```b\nc\n```\nd", "⟦abc⟧d"),
        ("   ```\na\n   ```\nb", "⟦a⟧b"),
        ("```\na\n    ```\nb", "⟦ab⟧"),
        ("```\na\n\t```\nb", "⟦ab⟧"),
        ("```\r\na\r\n```\r\nb", "⟦a⟧b"),
        ("```\na", "⟦a⟧"),
    ],
    ids=lambda text: repr(text),
)
def test_spans_and_fences_are_those_of_commonmark(text: str, expected: str) -> None:
    assert marked(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("~~a~~ b\n~~\nc", "abc", id="two tildes open nothing"),
        pytest.param("a `b\nc \n \nd", "a⟦bc⟧d", id="a span continues over a line break and ends with the paragraph"),
        pytest.param("a `b\n```\nc\n```\nd", "a⟦bc⟧d", id="a fence ends a span that was never closed"),
        pytest.param("a ```b\nc\n```\nd", "a⟦bc⟧d", id="a run at the start of a line closes a span of its length"),
        pytest.param("``` a ``` b\nc", "⟦a⟧bc", id="a closing run on the line of a fence makes it a span"),
        pytest.param("``` a ` b ``` c", "⟦ab⟧c", id="so it does after a backtick"),
        pytest.param("~~~ a ` b\nc\n~~~\nd", "⟦abc⟧d", id="a backtick on the line of a tilde fence is part of it"),
    ],
)
def test_spans_and_fences_end_each_other(text: str, expected: str) -> None:
    assert marked(text) == expected


def test_a_run_is_judged_whole_when_it_comes_in_pieces() -> None:
    finder = CodeFinder()
    finder.read("``a`")
    assert finder.code
    finder.read("`")
    assert not finder.code
    finder.read("`")
    assert finder.code


@given(TEXTS, st.data())
def test_any_cut_finds_the_same_code(text: str, data: st.DataObject) -> None:
    whole, pieces = CodeFinder(), CodeFinder()
    whole.read(text)
    rest = text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        pieces.read(rest[:size])
        rest = rest[size:]
    assert pieces.code == whole.code


@given(TEXTS.filter(lambda text: "`" not in text and "~~~" not in text))
def test_without_marks_there_is_no_code(text: str) -> None:
    assert "⟦" not in marked(text)
