"""Where the selection of an edit stands in an artifact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.edit.locate import MAX_SHOWN, EditBase, locate
from a2a_canvas.server.agent.operation_forms import InvalidOperation, SelectionRequest
from a2a_canvas.store.errors import PassageLost
from a2a_canvas.store.models import Content, Version, text_part
from a2a_canvas.store.text.spans import Span, find_again, from_codepoints, line_count, lines_of, lines_span
from a2a_canvas.store.text.wording import numbers
from a2a_canvas.tools.edit_stream import EditTarget
from tests.store.artifact_builders import result

TEXTS = st.text("ab \n\ré€😀", max_size=40)


def standing(text: str, base_text: str | None = None, base: int | None = None, version: int = 3) -> EditBase:
    """At version 3, as of someone who has seen `base_text` at version `base`."""
    seen = text if base_text is None else base_text
    texts = [seen if number == base else text for number in range(1, version + 1)]
    versions = [
        Version(number, Content(parts=(text_part(each),)), "user", "t", number - 1)
        for number, each in enumerate(texts, start=1)
    ]
    return EditBase("doc", version, text, base, seen, versions)


def located(selection: SelectionRequest, at: EditBase) -> EditTarget:
    return result(locate(selection, at))


def refused(selection: SelectionRequest, at: EditBase) -> InvalidOperation:
    with pytest.raises(InvalidOperation) as caught:
        located(selection, at)
    return caught.value


@st.composite
def passages(draw) -> tuple[str, Span]:
    text = draw(TEXTS)
    start, end = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    return text, Span(start, end)


def marked(full: str, span: Span, unit="utf16", **rest) -> SelectionRequest:
    """The selection as someone who counts in `unit`s gives it."""
    return SelectionRequest(
        from_codepoints(full, span.start, unit), from_codepoints(full, span.end, unit), unit, **rest
    )


# ------------------------------------------------------------------- offsets and units


@given(passages(), st.sampled_from([None, 3]), st.booleans())
def test_a_selection_stands_at_the_same_place_whatever_it_is_counted_in(passage, base, quoted) -> None:
    text, span = passage
    quote = span.extract(text) if quoted else None
    for unit in ("utf16", "codepoint"):
        target = located(marked(text, span, unit, text=quote), standing(text, base=base))
        assert target == EditTarget("doc", 3, text, span, unit)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (SelectionRequest(0, 9), "selection.end is 9 and must be 0 to 4, the length of the text, in utf16 units."),
        (SelectionRequest(5, 5), "selection.start is 5 and must be 0 to 4, the length of the text, in utf16 units."),
        (
            SelectionRequest(0, 4, "codepoint"),
            "selection.end is 4 and must be 0 to 3, the length of the text, in codepoint units.",
        ),
    ],
)
def test_a_range_that_the_text_does_not_have_is_refused_with_the_one_it_has(selection, message) -> None:
    assert str(refused(selection, standing("a😀b"))) == message


def test_an_offset_within_a_character_is_refused() -> None:
    error = refused(SelectionRequest(2, 4), standing("a😀b"))
    assert error.field == "selection.start"
    assert "in the middle of a character (a surrogate pair)" in error.reason


@given(passages(), st.integers(1, 9))
def test_a_range_outside_of_the_version_that_was_seen_is_refused_whatever_stands_there_now(passage, beyond) -> None:
    text, span = passage
    far = SelectionRequest(span.start, len(text) + beyond, "codepoint")
    at = standing(text + "x" * 20, base_text=text, base=2)
    assert refused(far, at).field == "selection.end"


# ------------------------------------------------------------------------------ lines


@pytest.mark.parametrize(
    ("text", "first", "last", "span"),
    [
        ("one\ntwo\nthree", 1, 1, Span(0, 3)),
        ("one\ntwo\nthree", 2, 3, Span(4, 13)),
        ("one\r\ntwo\r\nthree", 1, 2, Span(0, 8)),
        ("one\n", 2, 2, Span(4, 4)),
        ("one\n\ntwo", 2, 2, Span(4, 4)),
        ("", 1, 1, Span(0, 0)),
    ],
)
def test_lines_alone_name_the_range_without_its_last_line_end(text, first, last, span) -> None:
    assert located(SelectionRequest(line_start=first, line_end=last), standing(text)).span == span


@pytest.mark.parametrize(("text", "count"), [("", 1), ("one", 1), ("one\n", 2), ("one\r\ntwo\r\n", 3)])
def test_a_line_that_the_text_does_not_have_is_refused_with_those_it_has(text, count) -> None:
    error = refused(SelectionRequest(line_start=count + 1, line_end=count + 1), standing(text))
    assert str(error) == f"selection.lineStart is {count + 1} and must be {numbers(count)}, the last line of the text."
    assert refused(SelectionRequest(line_start=1, line_end=count + 1), standing(text)).field == "selection.lineEnd"


@given(passages(), st.integers(1, 8), st.integers(1, 8))
def test_lines_given_with_offsets_must_be_those_that_the_range_touches(passage, one, other) -> None:
    text, span = passage
    first, last = sorted((one, other))
    touched = lines_of(text, span)
    allowed = {touched}
    if span.start < span.end and text[span.end - 1] == "\n":
        allowed.add((touched[0], touched[1] + 1))
    at = standing(text)
    if (first, last) in allowed:
        assert located(marked(text, span, line_start=first, line_end=last), at).span == span
    else:
        assert refused(marked(text, span, line_start=first, line_end=last), at).field in (
            "selection.lineStart",
            "selection.lineEnd",
        )


@given(TEXTS, st.data())
def test_the_offsets_of_lines_fit_these_lines(text, data) -> None:
    first = data.draw(st.integers(1, line_count(text)))
    last = data.draw(st.integers(first, line_count(text)))
    span = lines_span(text, first, last)
    touched = lines_of(text, span)
    target = located(marked(text, span, line_start=touched[0], line_end=touched[1]), standing(text))
    assert target.span == span == located(SelectionRequest(line_start=first, line_end=last), standing(text)).span


def test_an_end_just_after_a_line_end_may_name_either_line() -> None:
    for text in ("one\ntwo", "one\r\ntwo"):
        end = text.index("t")
        for line_end in (1, 2):
            assert located(SelectionRequest(0, end, line_start=1, line_end=line_end), standing(text)).span == Span(
                0, end
            )


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (
            SelectionRequest(4, 7, line_start=1, line_end=2),
            "selection.lineStart must be 2, the line in which the selection starts.",
        ),
        (
            SelectionRequest(4, 7, line_start=2, line_end=3),
            "selection.lineEnd must be 2, the line in which the selection ends.",
        ),
        (
            SelectionRequest(4, 4, line_start=1, line_end=1),
            "selection.lineStart must be 2, the line in which the selection starts.",
        ),
        (
            SelectionRequest(0, 8, line_start=1, line_end=1),
            "selection.lineEnd must be 2, the line in which the selection ends.",
        ),
    ],
)
def test_lines_that_do_not_fit_the_offsets_are_refused_with_those_that_do(selection, message) -> None:
    assert str(refused(selection, standing("one\ntwo\nthree"))) == message


# --------------------------------------------------------------------------- the quote


def test_a_quote_that_is_not_what_the_current_version_says_is_refused_with_what_it_says() -> None:
    error = refused(SelectionRequest(0, 3, text="two"), standing("one\ntwo", base=3))
    assert str(error) == "selection.text does not match: version 3 says 'one' there."


def test_of_a_long_passage_only_its_beginning_is_shown() -> None:
    text = "a" * 500
    error = refused(SelectionRequest(0, 500, text="b"), standing(text, base=3))
    assert f"{'a' * MAX_SHOWN}…" in str(error)
    assert "a" * (MAX_SHOWN + 1) not in str(error)


def test_without_a_version_a_quote_that_stands_elsewhere_is_found_there() -> None:
    assert located(SelectionRequest(0, 3, text="two"), standing("one\ntwo")).span == Span(4, 7)


def test_without_a_version_a_quote_that_stands_nowhere_is_lost() -> None:
    with pytest.raises(PassageLost) as caught:
        located(SelectionRequest(0, 3, text="six"), standing("one\ntwo"))
    assert caught.value.current == 3


def test_offsets_are_those_of_the_version_that_was_seen() -> None:
    at = standing("zero\none\ntwo", base_text="one\ntwo", base=2)
    assert located(SelectionRequest(4, 7, text="two"), at) == EditTarget("doc", 3, "zero\none\ntwo", Span(9, 12))
    assert located(SelectionRequest(4, 7), at).span == Span(9, 12)
    assert located(SelectionRequest(line_start=2, line_end=2), at).span == Span(9, 12)


def test_a_passage_that_others_have_changed_is_lost() -> None:
    with pytest.raises(PassageLost) as caught:
        located(SelectionRequest(4, 7), standing("one\n2", base_text="one\ntwo", base=2))
    assert (caught.value.base, caught.value.current) == (2, 3)


def test_a_passage_that_stands_twice_alike_is_lost() -> None:
    with pytest.raises(PassageLost):
        located(SelectionRequest(0, 2, text="ab"), standing("ab ab", base_text="ab", base=2))


def test_an_empty_selection_is_found_by_what_stands_around_it() -> None:
    at = standing("zero\none\ntwo", base_text="one\ntwo", base=2)
    with pytest.raises(PassageLost):  # "zero" stands before the beginning now
        located(SelectionRequest(0, 0), at)
    before = "-" * 40
    moved = standing(f"zero{before}one{before}", base_text=f"{before}one{before}", base=2)
    assert located(SelectionRequest(40, 40), moved).span == Span(44, 44)


@st.composite
def edits_of_others(draw) -> tuple[str, Span, str]:
    """A text, a passage of it, and the text that others made of it, who may have left the passage alone."""
    text, span = draw(passages())
    before, after = (draw(TEXTS | st.just(kept)) for kept in (text[: span.start], text[span.end :]))
    return text, span, before + draw(TEXTS | st.just(span.extract(text))) + after


@given(edits_of_others(), st.booleans(), st.sampled_from(["utf16", "codepoint"]))
def test_after_the_work_of_others_a_passage_is_what_it_was_or_lost(work, quoted, unit) -> None:
    text, span, now = work
    quote = span.extract(text) if quoted else None
    at = standing(now, base_text=text, base=2)
    try:
        target = located(marked(text, span, unit, text=quote), at)
    except PassageLost:
        assert find_again(text, span, span.extract(text), now) is None
    else:
        assert target.quote == span.extract(text)
        assert (target.text, target.version, target.unit) == (now, 3, unit)


@given(TEXTS, TEXTS)
def test_a_passage_whose_quote_is_unmistakable_is_found_wherever_others_have_put_it(before, after) -> None:
    text = "one\nTHE PASSAGE\ntwo"
    at = standing(f"{before}\nTHE PASSAGE\n{after}", base_text=text, base=1)
    assert located(SelectionRequest(4, 15), at).span == Span(len(before) + 1, len(before) + 12)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (SelectionRequest(-1, 2), "selection.start is -1 and must be 0 to 5, the length of the text, in utf16 units."),
        (SelectionRequest(4, 2), "selection.end is 2 and must be 4 to 5: it ends before it begins."),
        (
            SelectionRequest(line_start=0, line_end=1),
            "selection.lineStart is 0 and must be 1 to 2, the last line",
        ),
        (
            SelectionRequest(line_start=2, line_end=1),
            "selection.lineEnd is 1 and must be 2, the last line",
        ),
        (SelectionRequest(4, 9, fields=("start_index", "end_index")), "end_index is 9 and must be 0 to 5, the length"),
    ],
)
def test_a_range_that_the_text_does_not_have_is_told_from_what_it_has(wrong, said) -> None:
    assert str(refused(wrong, standing("ab\ncd"))).startswith(said)
