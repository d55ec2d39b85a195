"""`store/text/spans.py`: units, lines, splices and finding again, each against a naive model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store.text.spans import (
    QUOTE_CONTEXT,
    Span,
    Unit,
    Utf16Offsets,
    difference,
    find_again,
    format_lines,
    from_codepoints,
    length,
    line_count,
    lines_of,
    lines_span,
    splice,
    to_codepoints,
)
from tests.property_examples import examples

PIECES = st.sampled_from(
    [
        "a",
        "b",
        " ",
        "é",
        "e\u0301",
        "€",
        "😀",
        "👩\u200d👩\u200d👧",
        "\U00010348",
        "\n",
        "\r\n",
        "\r",
        "\u2028",
        "\x0b",
        "\ufeff",
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=12)
UNITS = st.sampled_from(get_args(Unit))


@st.composite
def spans(draw: st.DrawFn, text: str) -> Span:
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    return Span(start, end)


@st.composite
def ranges(draw: st.DrawFn) -> tuple[str, Span]:
    text = draw(TEXTS)
    return text, draw(spans(text))


def utf16(text: str) -> int:
    """Characters outside of the basic plane count twice."""
    return sum(1 + (ord(character) > 0xFFFF) for character in text)


# ------------------------------------------------------------------------------------------------- units


@given(TEXTS)
def test_a_text_is_as_long_as_its_characters_count_in_the_unit(text: str) -> None:
    assert (length(text, "codepoint"), length(text, "utf16")) == (len(text), utf16(text))


@given(TEXTS, UNITS, st.data())
def test_an_offset_there_and_back_is_the_same(text: str, unit: Unit, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    assert to_codepoints(text, from_codepoints(text, offset, unit), unit) == offset


@given(ranges())
def test_utf16_and_code_points_name_the_same_range(given_range: tuple[str, Span]) -> None:
    text, span = given_range
    start, end = (from_codepoints(text, offset, "utf16") for offset in (span.start, span.end))
    assert text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le") == span.extract(text)
    assert Span(to_codepoints(text, start, "utf16"), to_codepoints(text, end, "utf16")) == span


@given(TEXTS, UNITS)
def test_exactly_the_offsets_between_characters_are_taken(text: str, unit: Unit) -> None:
    valid = {from_codepoints(text, offset, unit) for offset in range(len(text) + 1)}
    allowed = f"must be 0 to {length(text, unit)}"
    for offset in range(-2, length(text, unit) + 3):
        if offset in valid:
            to_codepoints(text, offset, unit)
        else:
            with pytest.raises(ValueError, match=allowed):
                to_codepoints(text, offset, unit)


def test_an_offset_in_the_middle_of_a_surrogate_pair_is_refused_with_the_allowed_range() -> None:
    with pytest.raises(ValueError, match=r"must be 0 to 4, .* not in the middle of a character \(a surrogate pair\)"):
        to_codepoints("a😀b", 2, "utf16")
    assert to_codepoints("a😀b", 2, "codepoint") == 2


# ------------------------------------------------------------------------------------------------- lines


def naive_lines(text: str) -> list[tuple[int, int, int]]:
    """Of each line: where it starts, where it ends without its line end, and where the next one starts."""
    found, at = [], 0
    for line in re.findall(r"[^\n]*\n|[^\n]+$", text):
        found.append((at, at + len(re.sub(r"\r?\n$", "", line)), at + len(line)))
        at += len(line)
    return found if text and not text.endswith("\n") else [*found, (at, at, at)]


@given(TEXTS, st.data())
def test_the_range_of_lines_leaves_out_the_last_line_end(text: str, data: st.DataObject) -> None:
    lines = naive_lines(text)
    assert line_count(text) == len(lines)
    first, last = sorted(data.draw(st.tuples(*[st.integers(1, len(lines))] * 2)))
    assert lines_span(text, first, last) == Span(lines[first - 1][0], lines[last - 1][1])


@given(TEXTS, st.integers(-1, 8), st.integers(-1, 8))
def test_lines_that_are_not_there_are_refused_with_their_number(text: str, first: int, last: int) -> None:
    if 1 <= first <= last <= line_count(text):
        lines_span(text, first, last)
    else:
        with pytest.raises(ValueError, match=f"must be 1 to {line_count(text)}"):
            lines_span(text, first, last)


@given(ranges())
def test_the_lines_of_a_range_are_those_of_its_first_and_its_last_character(given_range: tuple[str, Span]) -> None:
    text, span = given_range

    def line_of(offset: int) -> int:
        return max(number for number, line in enumerate(naive_lines(text), 1) if line[0] <= offset)

    assert lines_of(text, span) == (line_of(span.start), line_of(max(span.start, span.end - 1)))


def test_an_end_just_after_a_line_end_touches_the_line_that_ended() -> None:
    assert lines_of("ab\ncd", Span(0, 3)) == (1, 1)
    assert lines_of("ab\ncd", Span(3, 3)) == (2, 2)
    assert lines_of("ab\r\ncd", Span(0, 5)) == (1, 2)


def test_the_lines_of_a_range_can_be_told() -> None:
    assert format_lines("ab\ncd\nef", Span(3, 4)) == "line 2"
    assert format_lines("ab\ncd\nef", Span(3, 7)) == "lines 2-3"


# -------------------------------------------------------------------------------- splice and difference


@given(ranges(), TEXTS)
def test_a_splice_changes_only_the_range(given_range: tuple[str, Span], new: str) -> None:
    text, span = given_range
    spliced = splice(text, span, new)
    assert spliced[: span.start] == text[: span.start]
    assert spliced[span.start : span.start + len(new)] == new
    assert spliced[span.start + len(new) :] == text[span.end :]


@given(ranges(), TEXTS)
def test_a_splice_in_code_points_is_one_in_utf16(given_range: tuple[str, Span], new: str) -> None:
    text, span = given_range
    units, at = text.encode("utf-16-le"), [2 * from_codepoints(text, o, "utf16") for o in (span.start, span.end)]
    spliced = units[: at[0]] + new.encode("utf-16-le") + units[at[1] :]
    assert splice(text, span, new) == spliced.decode("utf-16-le")


SIMILAR = st.text("ab😀", max_size=10)


@given(SIMILAR, SIMILAR)
def test_the_difference_makes_the_one_text_of_the_other_and_is_the_smallest_that_does(old: str, new: str) -> None:
    span, text = difference(old, new)
    assert 0 <= span.start <= span.end <= len(old)
    assert splice(old, span, text) == new
    sizes = [
        end - start
        for start in range(len(old) + 1)
        for end in range(start, len(old) + 1)
        if new.startswith(old[:start]) and new.endswith(old[end:]) and len(new) >= len(old) - (end - start)
    ]
    assert span.end - span.start == min(sizes)


# ---------------------------------------------------------------- finding again: rule 3, word for word


def brute_force(base: str, span: Span, quote: str, current: str) -> Span | None:
    def occurrences(text: str) -> list[Span]:
        return [Span(at, at + len(quote)) for at in range(len(text) + 1) if text[at : at + len(quote)] == quote]

    def alike(text: str) -> list[Span]:
        return [place for place in occurrences(text) if around(text, place) == around(base, span)]

    if base == current and base[span.start : span.end] == quote:
        return span

    def next_to(text: str, place: Span) -> list[str]:
        framed = f"\n{text}\n"
        return ["\n" if char in "\r\n" else char for char in (framed[place.start], framed[place.end + 1])]

    stood_there = base[span.start : span.end] == quote
    if quote and len(occurrences(current)) == 1 and len(occurrences(base)) <= 1:
        [found] = occurrences(current)
        if not stood_there or next_to(base, span) == next_to(current, found):
            return found
    if base[span.start : span.end] == quote and len(alike(current)) == 1 and len(alike(base)) == 1:
        return alike(current)[0]
    return None


def around(text: str, span: Span) -> tuple[str, str]:
    before = [text[at] for at in range(span.start - QUOTE_CONTEXT, span.start) if at >= 0]
    return "".join(before), text[span.end : span.end + QUOTE_CONTEXT]


BLOCKS = st.sampled_from(["x" * QUOTE_CONTEXT, "xy" * (QUOTE_CONTEXT // 2), "y", "x", "", "😀x"])
"""Long ones, because a passage is told from its like by the characters around it, and few, so that there are some."""
BLOCK_TEXTS = st.lists(BLOCKS, max_size=6).map("".join)


@dataclass
class Moved:
    """A passage, and the text it is from, now."""

    base: str
    span: Span
    current: str

    @property
    def quote(self) -> str:
        return self.span.extract(self.base)


@st.composite
def moved(draw: st.DrawFn, texts: st.SearchStrategy[str] = BLOCK_TEXTS) -> Moved:
    base = draw(texts)
    current = base
    for _ in range(draw(st.integers(0, 2))):
        current = splice(current, draw(spans(current)), draw(texts | st.just("")))
    kept = draw(st.sampled_from([Span(0, 0), Span(0, min(2, len(base))), Span(len(base), len(base)), None]))
    return Moved(base, kept or draw(spans(base)), current)


@given(moved() | moved(st.text("ab", max_size=5)))
@settings(max_examples=examples(500))
def test_a_passage_is_found_again_where_brute_force_finds_it(it: Moved) -> None:
    assert find_again(it.base, it.span, it.quote, it.current) == brute_force(it.base, it.span, it.quote, it.current)


@given(moved(), BLOCKS)
@settings(max_examples=examples(300))
def test_a_quote_that_was_not_there_is_found_again_where_brute_force_finds_it(it: Moved, quote: str) -> None:
    assert find_again(it.base, it.span, quote, it.current) == brute_force(it.base, it.span, quote, it.current)


@given(BLOCK_TEXTS, st.data())
def test_where_nothing_has_changed_a_passage_stands_where_it_stood(base: str, data: st.DataObject) -> None:
    span = data.draw(spans(base))
    assert find_again(base, span, span.extract(base), base) == span


# ------------------------------------------------------------- finding again: never the wrong place

FOREIGN = st.text("0123456789", min_size=1, max_size=40)
"""What the texts do not have, so that nothing of what others write can be taken for the passage."""


@dataclass
class Tracked:
    """A passage that was followed by hand while others edited the text; `place` is None when they took of it."""

    moved: Moved
    place: Span | None


ROW = "x" * QUOTE_CONTEXT + "y" + "x" * QUOTE_CONTEXT


@st.composite
def cut_out(draw: st.DrawFn, text: str) -> Span:
    """Any range, or one that begins and ends at a row or beside the middle of one."""
    marks = [
        at for row in range(0, len(text) + 1, len(ROW)) for at in (row, row + QUOTE_CONTEXT, row + QUOTE_CONTEXT + 1)
    ]
    start, end = sorted(draw(st.tuples(*[st.sampled_from([at for at in marks if at <= len(text)])] * 2)))
    return draw(st.just(Span(start, end)) | spans(text))


@st.composite
def tracked(draw: st.DrawFn, others: st.SearchStrategy[str]) -> Tracked:
    base = draw(st.lists(BLOCKS, min_size=1, max_size=8).map("".join) | st.integers(1, 3).map(ROW.__mul__))
    span = draw(cut_out(base))
    current, place = base, span
    for _ in range(draw(st.integers(1, 3))):
        taken, new = draw(cut_out(current)), draw(others)
        current = splice(current, taken, new)
        if taken.end <= place.start:
            by = len(new) - (taken.end - taken.start)
            place = Span(place.start + by, place.end + by)
        elif taken.start < place.end:
            return Tracked(Moved(base, span, current), None)
    return Tracked(Moved(base, span, current), place)


@given(tracked(FOREIGN))
@settings(max_examples=examples(500))
def test_a_passage_is_never_found_in_the_wrong_place_whatever_others_have_replaced(it: Tracked) -> None:
    it_is = it.moved
    assert find_again(it_is.base, it_is.span, it_is.quote, it_is.current) in (None, it.place)


@given(tracked(FOREIGN | BLOCKS))
@settings(max_examples=examples(500))
def test_a_passage_whose_words_stand_alone_is_found_wherever_it_has_moved(it: Tracked) -> None:
    """Unless others have written right beside it."""
    it_is = it.moved
    counts = brute_count(it_is.base, it_is.quote), brute_count(it_is.current, it_is.quote)
    if it.place and it_is.quote and counts == (1, 1):
        beside = [around(text, place) for text, place in ((it_is.base, it_is.span), (it_is.current, it.place))]
        found = find_again(it_is.base, it_is.span, it_is.quote, it_is.current)
        same = len({(before[-1:], after[:1]) for before, after in beside}) == 1
        assert found == it.place if same else found in (None, it.place)


def brute_count(text: str, quote: str) -> int:
    return sum(text.startswith(quote, at) for at in range(len(text)))


TABLE_ROW = "| a row of a table, which is longer than what is compared | x | and which goes on for long |\n"


def in_row(number: int) -> Span:
    at = number * len(TABLE_ROW) + TABLE_ROW.index("x |")
    return Span(at, at + 1)


def test_of_equal_rows_none_is_taken_for_the_one_that_was_removed() -> None:
    base = TABLE_ROW * 2
    assert find_again(base, in_row(0), "x", TABLE_ROW) is None
    assert find_again(base, in_row(1), "x", TABLE_ROW) is None


def test_of_rows_that_differ_nearby_the_right_one_is_found() -> None:
    base = TABLE_ROW + TABLE_ROW.replace("compared", "told apart")
    span = Span(base.rindex("x |"), base.rindex("x |") + 1)
    assert find_again(base, span, "x", "Title\n" + base) == Span(span.start + 6, span.end + 6)


def test_an_empty_passage_is_found_by_what_stands_around_it() -> None:
    base = "".join(map(chr, range(0x4E00, 0x4E80)))
    assert find_again(base, Span(60, 60), "", "new " + base) == Span(64, 64)
    assert find_again(base, Span(60, 60), "", splice(base, Span(59, 59), "-")) is None
    assert find_again(base, Span(0, 0), "", base + " more") == Span(0, 0)
    assert find_again(base, Span(128, 128), "", "new " + base) == Span(132, 132)
    assert find_again(base, Span(128, 128), "", base + " more") is None
    assert find_again("", Span(0, 0), "", "x") is None


def test_words_that_are_gone_and_come_once_elsewhere_are_taken_for_moved() -> None:
    """Only their words tell a passage: from two texts nobody can tell a move from a removal and a new passage."""
    assert find_again("one\ntwo\nthree", Span(4, 7), "two", "one\nthree\ntwo") == Span(10, 13)


@pytest.mark.parametrize(
    ("base", "quote", "current"),
    [
        ("def f():\n    pass", "def f():", "async def f():\n    pass"),
        ("alpha beta gamma", "beta", "alpha beta2 gamma"),
        ("one\ntwo\n", "two", "one\ntwo!\n"),
    ],
)
def test_a_passage_that_others_have_written_into_is_not_the_one_it_was(base: str, quote: str, current: str) -> None:
    span = Span(base.index(quote), base.index(quote) + len(quote))
    assert find_again(base, span, quote, current) is None


def test_what_is_written_on_the_lines_around_a_passage_is_not_written_into_it() -> None:
    assert find_again("two", Span(0, 3), "two", "one\ntwo\nthree") == Span(4, 7)
    assert find_again("one\r\ntwo", Span(5, 8), "two", "two\r\none") == Span(0, 3)


# --------------------------------------------------------------------------------------- cost

MEGA = 1_000_000
LONG_AS, LONG_EMOJI = "a" * MEGA, "é😀" * (MEGA // 2)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("size", [0, 1, 100, 5_000, MEGA // 2])
def test_a_long_text_of_one_character_is_searched_in_linear_time(size: int) -> None:
    """Any quadratic step here takes minutes."""
    for start in (0, 1, QUOTE_CONTEXT, MEGA // 4, MEGA - size):
        span = Span(start, start + size)
        for current in (LONG_AS + "a", LONG_AS[1:], "b" + LONG_AS):
            find_again(LONG_AS, span, span.extract(LONG_AS), current)


@pytest.mark.timeout(10)
def test_places_in_a_long_text_beyond_ascii_are_found_in_linear_time() -> None:
    middle = Span(MEGA // 2, MEGA // 2 + 100)
    assert to_codepoints(LONG_EMOJI, from_codepoints(LONG_EMOJI, middle.end, "utf16"), "utf16") == middle.end
    assert find_again(LONG_EMOJI, middle, middle.extract(LONG_EMOJI), LONG_EMOJI + "x") is None
    assert difference(LONG_EMOJI, splice(LONG_EMOJI, middle, "!")) == (middle, "!")
    assert lines_span("\n" * MEGA, MEGA, MEGA) == Span(MEGA - 1, MEGA - 1)
    assert lines_of("\n" * MEGA, Span(MEGA - 1, MEGA)) == (MEGA, MEGA)


@given(st.text())
def test_many_offsets_are_converted_as_one_is(text: str) -> None:
    offsets = Utf16Offsets(text)
    places = range(len(text) + 1)
    assert [offsets.convert(place) for place in places] == [from_codepoints(text, place, "utf16") for place in places]
