"""CriticMarkup: what is written reads back as the same, and what could not is refused with its line."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from a2a_canvas.store.annotations.critic_markup import (
    CriticMark,
    CriticMarkupError,
    read_critic_markup,
    write_critic_markup,
)
from a2a_canvas.store.text.spans import Span
from tests.property_examples import examples

TEXT = "Tide pools are small.\nThey are deep.\n"

FORMS = {
    "an insertion": (CriticMark(Span(15, 15), "very "), "Tide pools are {++very ++}small.\nThey are deep.\n"),
    "a deletion": (CriticMark(Span(0, 5), ""), "{--Tide --}pools are small.\nThey are deep.\n"),
    "a replacement": (CriticMark(Span(0, 4), "Rock"), "{~~Tide~>Rock~~} pools are small.\nThey are deep.\n"),
    "a comment": (CriticMark(Span(0, 4), None, ("Why?",)), "{==Tide==}{>>Why?<<} pools are small.\nThey are deep.\n"),
    "a comment on a place": (CriticMark(Span(0, 0), None, ("Why?",)), "{>>Why?<<}" + TEXT),
    "a thread of a suggestion": (
        CriticMark(Span(0, 4), "Rock", ("shorter", "no")),
        "{~~Tide~>Rock~~}{>>shorter<<}{>>no<<} pools are small.\nThey are deep.\n",
    ),
}


@pytest.mark.parametrize(("mark", "markup"), FORMS.values(), ids=FORMS)
def test_each_form_is_written_and_read(mark: CriticMark, markup: str) -> None:
    assert write_critic_markup(TEXT, [mark]) == markup
    assert read_critic_markup(markup) == (TEXT, (mark,))


def test_a_text_without_marks_is_itself() -> None:
    assert write_critic_markup("i++}; <<} ~> {+ {", []) == "i++}; <<} ~> {+ {"
    assert read_critic_markup("i++}; <<} ~> {+ {") == ("i++}; <<} ~> {+ {", ())


REFUSED = {
    "a mark of its own": ("a\nb {++i;}", [], 2, "has '{++' in its own text"),
    "overlapping suggestions": (TEXT, [CriticMark(Span(22, 30), "x"), CriticMark(Span(25, 31), "y")], 2, "overlaps"),
    "a comment within a suggestion": (
        TEXT,
        [CriticMark(Span(0, 9), "x"), CriticMark(Span(2, 4), None, ("c",))],
        1,
        "overlaps another",
    ),
    "two comments on a passage": (
        TEXT,
        [CriticMark(Span(0, 4), None, (each,)) for each in "ab"],
        1,
        "overlaps another",
    ),
    "a comment on a place behind a mark": (
        TEXT,
        [CriticMark(Span(0, 4), "x"), CriticMark(Span(4, 4), None, ("c",))],
        1,
        "directly behind another mark",
    ),
    "a closing in a suggestion": (TEXT, [CriticMark(Span(22, 22), "i++}")], 2, "has '++}' in a suggestion"),
    "an arrow in a passage": ("a ~> b", [CriticMark(Span(0, 6), "x")], 1, "has '~>' in a passage"),
    "a mark in a comment": (TEXT, [CriticMark(Span(0, 4), None, ("{--",))], 1, "has '{--' in a suggestion, a comment"),
}


@pytest.mark.parametrize(("text", "marks", "line", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_could_not_be_read_back_is_refused_with_its_line(
    text: str, marks: list[CriticMark], line: int, reason: str
) -> None:
    with pytest.raises(CriticMarkupError, match=f"^Line {line} ") as refused:
        write_critic_markup(text, marks)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("markup", "line", "reason"),
    [
        ("a\n{++b", 2, r"has '{\+\+' without a '\+\+}' after it"),
        ("{~~a~~}", 1, "has '{~~' without a '~>' after it"),
        ("{~~a~>b", 1, "has '{~~' without a '~~}' after it"),
        ("a\n\n{==b==} {>>c<<}", 3, "has a highlighted passage without a comment"),
        ("a\n{==b==}{>> <<}", 2, "has a comment without words"),
        ("{==b==}{>>c", 1, "has '{>>' without a '<<}' after it"),
    ],
)
def test_a_mark_that_is_not_whole_is_an_error_with_its_line(markup: str, line: int, reason: str) -> None:
    with pytest.raises(CriticMarkupError, match=f"Line {line} {reason}"):
        read_critic_markup(markup)


# What could be taken for a mark, or for a part of one, is likely.
words = st.lists(
    st.sampled_from(["a", "b\n", "\r\n", "+", "-", "~", "=", ">", "<", "{", "}", "~>", "é", "😀", " "]), max_size=8
).map("".join)


@st.composite
def marked_texts(draw: st.DrawFn) -> tuple[str, list[CriticMark]]:
    text = "".join(draw(st.lists(words, max_size=6)))
    marks = []
    for _ in range(draw(st.integers(0, 4))):
        ends = st.integers(0, len(text))
        start, end = sorted((draw(ends), draw(ends)))
        thread = tuple(draw(st.lists(words, max_size=2)))
        replacement = draw(st.none() | words) if thread else draw(words)
        marks.append(CriticMark(Span(start, end), replacement, thread))
    return text, marks


def in_order(marks: list[CriticMark] | tuple[CriticMark, ...]) -> list[tuple[int, int, str]]:
    return sorted((each.span.start, each.span.end, repr(each)) for each in marks)


@pytest.mark.timeout(300)  # 3,000 examples, on a busy machine
@settings(max_examples=examples(1000))
@given(marked_texts())
@example(("{", [CriticMark(Span(1, 1), "+")]))
@example(("a~b", [CriticMark(Span(0, 2), "~")]))
@example(("ab", [CriticMark(Span(0, 1), ""), CriticMark(Span(1, 1), "x"), CriticMark(Span(1, 2), "")]))
@example(("", [CriticMark(Span(0, 0), "")]))
def test_what_is_written_reads_back_as_the_same_text_suggestions_and_comments(
    given_text: tuple[str, list[CriticMark]],
) -> None:
    text, marks = given_text
    try:
        markup = write_critic_markup(text, marks)
    except CriticMarkupError:
        assume(False)
    again, read = read_critic_markup(markup)
    assert again == text
    assert in_order(read) == in_order(marks)


@settings(max_examples=examples(1000))
@given(
    st.lists(st.sampled_from(["{++", "++}", "{--", "--}", "{~~", "~>", "~~}", "{==", "==}", "{>>", "<<}", "a", "\n"]))
)
def test_whatever_is_read_is_written_as_it_was_or_refused(pieces: list[str]) -> None:
    markup = "".join(pieces)
    try:
        text, marks = read_critic_markup(markup)
        written = write_critic_markup(text, marks)
    except CriticMarkupError:
        return
    assert in_order(read_critic_markup(written)[1]) == in_order(marks)
    assert read_critic_markup(written)[0] == text
