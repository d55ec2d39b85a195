"""`json_stream` against `json.loads`, for every way of cutting the text."""

from __future__ import annotations

import json
import math
import random
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store.models import JsonValue
from a2a_canvas.tools.json_stream import Begin, Delta, JsonError, JsonEvent, JsonStream, Path, Value
from tests.property_examples import examples

# ------------------------------------------------------------------ the oracle and the ways of cutting


def refuse(_: str) -> float:
    raise ValueError("not JSON")


def finite(digits: str) -> float:
    return number if math.isfinite(number := float(digits)) else refuse(digits)


def loads(text: str) -> JsonValue:
    """`json.loads` with the departures: no NaN, no infinities, no numbers that overflow."""
    value: JsonValue = json.loads(text, parse_constant=refuse, parse_float=finite)
    return value


def outcome(fragments: Sequence[str], **options: int) -> tuple[list[JsonEvent], str]:
    """All events, deltas of one string joined; and the error or the value, whose `repr` tells 1 from 1.0."""
    stream = JsonStream(**options)
    events: list[JsonEvent] = []
    try:
        for fragment in fragments:
            events += stream.feed(fragment)
        events += stream.finish()
    except JsonError as error:
        return joined(events), f"error: {error}"
    return joined(events), f"value: {stream.value!r}"


def joined(events: Sequence[JsonEvent]) -> list[JsonEvent]:
    result: list[JsonEvent] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, Delta) and isinstance(last, Delta) and last.path == event.path:
            result[-1] = Delta(event.path, last.text + event.text)
        else:
            result.append(event)
    return result


def expected_events(value: JsonValue, path: Path = ()) -> Iterator[JsonEvent]:
    """The order law, written down as recursion."""
    match value:
        case str():
            yield Begin(path, "string")
            yield from [Delta(path, value)] if value else []
        case dict():
            yield Begin(path, "object")
            for key, child in value.items():
                yield from expected_events(child, (*path, key))
        case list():
            yield Begin(path, "array")
            for index, child in enumerate(value):
                yield from expected_events(child, (*path, index))
        case _:
            pass
    yield Value(path, value)


def cut(text: str, *places: int) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *sorted(places), len(text)])]


def every_cut(text: str) -> Iterator[list[str]]:
    """Whole, character by character, and all ways of cutting once or twice (empty fragments included)."""
    yield [text]
    yield list(text)
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            yield cut(text, first, second)


# ------------------------------------------------------------------------------------------ valid texts

NASTY = [
    r'"\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC"',
    r'"a\ud83d\ude00b\uD83D\uDE00"',
    '"raw 😀\U0010ffff, \u2028, é, \x7f and \ufeff"',
    r'["\ud83d", "\ude00", "\ud83dx", "\ude00\ud83d"]',
    r'"\ud83d\ud83d\ude00\ud83d\n\ud83d\u0041\ud83d\ud7ff"',
    r'"\ud800\udc00\uD9Ab\uDDcD\udaaa\udeee\uDBFF\uDFFF\ud7ff\ue000"',
    '"\\ud83d\ude00 \ud83d\\ude00 \ud83d\ude00"',
    r'{"\ud83d\ude00": {"\n": "\\u0041"}, "": ""}',
    ' \t\r\n{ "a" : [ ] , "b" : { } } \n\t\r ',
    "[0, -0, 0.0, -0.0, 1e2, 1E+2, 1e-2, 10, -1.5e3]",
    "[123456789012345678901234567890, 0.1, 1e-999, 5e-324]",
    "[[1],[2,[3,[4]]],{},[],[{}]]",
    '{"a":1,"b":2,"a":{"c":3},"a":[true]}',
    "[true,false,null]",
    *["true", "null", " false ", "0", "-0", " -12.50e+1 ", "42", '""', "{}", "[]"],
]


@pytest.mark.parametrize("text", NASTY)
def test_the_value_is_that_of_json_loads_for_every_cut(text: str) -> None:
    expected = f"value: {loads(text)!r}"
    whole = outcome([text])
    for fragments in every_cut(text):
        assert outcome(fragments) == whole, fragments
    assert whole[1] == expected


@pytest.mark.parametrize("text", [text for text in NASTY if '"a":1' not in text])
def test_events_come_in_the_order_of_the_law(text: str) -> None:
    assert repr(outcome([text])[0]) == repr(list(expected_events(loads(text))))


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None))
    | st.text('\\"/\n\x00é€😀\ud83d\ude00u0', max_size=8)
)
values = st.recursive(scalars, lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=12)


@st.composite
def fragmented(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> list[str]:
    text = draw(texts)
    places = st.integers(0, len(text))
    return draw(st.just(list(text)) | st.lists(places, max_size=12).map(lambda at: cut(text, *at)))


@st.composite
def dumped(draw: st.DrawFn) -> str:
    indent, ascii_only = draw(st.sampled_from([None, 1, "\t"])), draw(st.booleans())
    return json.dumps(draw(values), indent=indent, ensure_ascii=ascii_only)


@given(fragmented(dumped()))
@settings(max_examples=examples(300))
def test_any_value_however_dumped_and_cut_comes_back_with_its_events(fragments: list[str]) -> None:
    value = loads("".join(fragments))
    events, result = outcome(fragments)
    assert result == f"value: {value!r}"
    assert repr(events) == repr(list(expected_events(value)))


def test_events_come_as_soon_as_they_are_known() -> None:
    stream = JsonStream()
    a, b, c = ("a",), ("b",), ("c",)
    steps: list[tuple[str, list[JsonEvent]]] = [
        ('{"a', [Begin((), "object")]),
        ('": "', [Begin(a, "string")]),
        ("hi \\", [Delta(a, "hi ")]),
        ("n\\ud83d", [Delta(a, "\n")]),
        ("\\ude0", []),
        ("0!", [Delta(a, "😀!")]),
        ('"', [Value(a, "hi \n😀!")]),
        (', "b": [tru', [Begin(b, "array")]),
        ("e", [Value(("b", 0), True)]),
        (", 1", []),
        ("2", []),
        ("]", [Value(("b", 1), 12), Value(b, [True, 12])]),
        (', "c":"x"', [Begin(c, "string"), Delta(c, "x"), Value(c, "x")]),
        ("}", [Value((), {"a": "hi \n😀!", "b": [True, 12], "c": "x"})]),
        (" \n", []),
    ]
    for fragment, events in steps:
        assert stream.feed(fragment) == events, fragment


def test_of_equal_keys_each_has_its_events_and_the_last_wins() -> None:
    events, result = outcome(['{"a":"x","b":0,"a":"y"}'])
    assert [event for event in events if isinstance(event, Value)][:3] == [
        Value(("a",), "x"),
        Value(("b",), 0),
        Value(("a",), "y"),
    ]
    assert result == "value: {'a': 'y', 'b': 0}"


# ---------------------------------------------------------------------------------------- invalid texts

INVALID = [
    *["", " ", "\ufeff1", "\u00a01", "\x0b1", "{", "[", '"', "a", "'a'", "/**/1", "1//"],
    *["nul", "nulL", "truex", "tr ue", "True", "NaN", "Infinity", "-Infinity", "[NaN]", '{"a":-Infinity}'],
    *["01", "-", "+1", "1.", ".5", "1e", "1e+", "1.e1", "--1", "1-", "-a", "0x1", "1_0", "-01", "[1.]"],
    *["٣", "1٣", "1e999", "[-1e999,1]", "-9.9E+308"],
    *["[1,]", "[,1]", "[1 2]", "[1}", "[1,,2]", "]", ",", '["a":1]'],
    *["[1]]", "[] []", "1 2", "{} x", "[]\x00"],
    *['{"a":1,}', "{,}", '{"a"}', '{"a":}', '{"a",1}', '{"a" 1}', "{1:2}"],
    *['{"a":1 "b"}', '{"a":1]', "{a:1}", "}"],
    *['"a\nb"', '"\x00"', '"\x1f"', '"\t"', '{"\n":1}', '"\\\n"', '"\\', r'"\"'],
    *[r'"\x"', r'"\'"', r'"\U0041"', r'"\u12"', r'"\u12G4"', r'"\u 123"', r'"\u+123"', r'"\u٣٣٣٣"'],
    *[r'"\ud83d\x"', r'"\ud83d\u"', r'"\ud83d\udc0"', r'"\ud83d\udcxx"', r'"\ud83d\ud8"'],
    *['"\\ud83d\x01"', r'"\u004"', r'{"\ud83d\ude":1}'],
]


@pytest.mark.parametrize("text", INVALID)
def test_what_is_not_json_is_refused_with_the_same_error_for_every_cut(text: str) -> None:
    with pytest.raises(ValueError):
        loads(text)
    expected = outcome([text])[1]
    assert expected.startswith("error: ")
    for fragments in every_cut(text):
        assert outcome(fragments)[1] == expected, fragments


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(dumped())
    for _ in range(draw(st.integers(1, 3))):
        at, removed = draw(st.integers(0, len(text))), draw(st.integers(0, 2))
        added = draw(st.text('{}[]",:\\ud8c0159eE.+-tfnNI \n\x00', max_size=2))
        text = text[:at] + added + text[at + removed :]
    return text


@given(fragmented(damaged() | st.text('[]{}",:\\udc81.eE-tnul \n', max_size=20)))
@settings(max_examples=examples(500))
def test_a_damaged_text_is_refused_exactly_when_json_loads_refuses_it(fragments: list[str]) -> None:
    text = "".join(fragments)
    result = outcome(fragments)[1]
    assert result == outcome([text])[1]
    try:
        assert result == f"value: {loads(text)!r}"
    except ValueError:
        assert result.startswith("error: ")


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("[1 2]", 3, "expected ',' or ']'"),
        ('{"a":1,}', 7, "expected a key in double quotes"),
        ('{"a" 1}', 5, "expected ':'"),
        ("[] x", 3, "expected the end of the text"),
        ("[1, nulx]", 4, "expected a value"),
        ("[NaN]", 1, "expected a value or ']'"),
        ("[10, 01]", 5, "invalid number"),
        ("[1e999]", 1, "number too large"),
        ('"ab\\x"', 3, "invalid escape in a string"),
        ('"ab\n"', 3, "unescaped control character in a string"),
        ('["a', 3, "unexpected end of text, expected the rest of a string"),
        ("[1e", 3, "unexpected end of text, expected the rest of a number"),
        ("", 0, "unexpected end of text, expected a value"),
    ],
)
def test_an_error_tells_where_and_why(text: str, position: int, reason: str) -> None:
    assert outcome(list(text))[1] == f"error: {reason} at character {position}"
    stream = JsonStream()
    with pytest.raises(JsonError) as raised:
        stream.feed(text), stream.finish()
    assert (raised.value.position, raised.value.reason) == (position, reason)


def test_after_an_error_everything_raises_the_same_error() -> None:
    stream = JsonStream()
    with pytest.raises(JsonError) as first:
        stream.feed("[1}")
    for again in (lambda: stream.feed("]"), lambda: stream.feed(""), stream.finish, lambda: stream.value):
        with pytest.raises(JsonError) as later:
            again()
        assert later.value is first.value
    assert not stream.done


@pytest.mark.parametrize("template", ["{}", "-{}", "[{}]", " {} "])
def test_an_integer_over_the_digit_limit_is_an_error(template: str) -> None:
    digits = "1" * sys.get_int_max_str_digits()
    fits, too_long = template.format(digits), template.format(digits + "1")
    assert outcome(cut(fits, 7, 4000))[1] == f"value: {loads(fits)!r}"
    with pytest.raises(ValueError):
        loads(too_long)
    start = len(too_long) - len(too_long.lstrip("[ "))
    assert outcome(cut(too_long, 7, 4000))[1] == f"error: number with too many digits at character {start}"


# ----------------------------------------------------------------------------- the end, and truncation


@pytest.mark.parametrize("text", NASTY)
def test_a_text_cut_off_anywhere_has_told_what_was_complete_and_then_fails(text: str) -> None:
    whole = outcome([text])[0]
    for end in range(len(text)):
        events, result = outcome(list(text[:end]))
        assert result.startswith("error: ") == (not is_json(text[:end]))
        if result.startswith("error: "):
            assert is_beginning(events, whole)
            assert events == outcome([text[:end]])[0]


def is_json(text: str) -> bool:
    try:
        loads(text)
    except ValueError:
        return False
    return True


def is_beginning(events: list[JsonEvent], whole: list[JsonEvent]) -> bool:
    """Whether `events` is where `whole` begins; a last delta may be the beginning of its string."""
    for event, full in zip(events, whole, strict=False):
        if isinstance(event, Delta) and isinstance(full, Delta) and event is events[-1]:
            return event.path == full.path and full.text.startswith(event.text)
        if event != full:
            return False
    return len(events) <= len(whole)


def test_what_was_complete_is_known_before_the_text_breaks_off() -> None:
    stream = JsonStream()
    assert stream.feed('{"a": [1, "x"], "b": "unfin')[6:] == [
        Value(("a",), [1, "x"]),
        Begin(("b",), "string"),
        Delta(("b",), "unfin"),
    ]
    with pytest.raises(JsonError, match="expected the rest of a string at character 27"):
        stream.finish()


def test_a_number_at_the_top_is_complete_only_at_the_end_or_at_whitespace() -> None:
    stream = JsonStream()
    assert stream.feed("12") == []
    assert not stream.done
    assert stream.finish() == [Value((), 12)]
    assert stream.done
    assert stream.finish() == []
    assert JsonStream().feed("12 ") == [Value((), 12)]


def test_the_value_is_refused_until_it_is_complete_and_asking_does_no_harm() -> None:
    stream = JsonStream()
    stream.feed("[1")
    with pytest.raises(JsonError, match="not complete"):
        _ = stream.value
    stream.feed("]")
    assert stream.done
    assert stream.value == [1]


def test_after_the_value_only_whitespace_may_follow() -> None:
    stream = JsonStream()
    stream.feed("{}")
    assert stream.feed(" \n\t\r") == []
    assert stream.done
    with pytest.raises(JsonError, match="expected the end of the text at character 6"):
        stream.feed("{")
    assert not stream.done


# ----------------------------------------------------------------------------------- limits and work


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_nesting_deeper_than_the_limit_is_an_error(opening: str, closing: str) -> None:
    per = opening.count("[") + opening.count("{")
    fits, deeper = ((opening * n) + "1" + (closing * n) for n in (12 // per, 12 // per + 1))
    assert outcome(list(fits), max_depth=12)[1] == f"value: {loads(fits)!r}"
    assert "nested deeper than 12 at character" in outcome(list(deeper), max_depth=12)[1]


def test_the_limit_counts_open_containers_and_is_100_if_not_said() -> None:
    assert outcome(["[" + "[[]]," * 500 + "[]]"], max_depth=3)[1].startswith("value: ")
    assert outcome(["[" * 100 + "]" * 100])[1].startswith("value: ")
    assert outcome(["[" * 101])[1] == "error: nested deeper than 100 at character 100"
    assert outcome(["[]"], max_depth=0)[1] == "error: nested deeper than 0 at character 0"
    assert outcome(["1"], max_depth=0)[1] == "value: 1"


def test_depth_costs_no_recursion() -> None:
    depth = sys.getrecursionlimit() * 5
    stream = JsonStream(max_depth=depth)
    assert len(stream.feed("[" * depth + "]" * depth)) == 2 * depth
    assert stream.done


def fragments_of(text: str, size: int = 20) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def test_a_long_string_gives_one_delta_for_each_fragment() -> None:
    string = random.Random(1).randbytes(100_000).hex()
    stream = JsonStream()
    stream.feed('["')
    feeds = [stream.feed(fragment) for fragment in fragments_of(string)]
    assert feeds == [[Delta((0,), fragment)] for fragment in fragments_of(string)]
    assert stream.feed('"]') == [Value((0,), string), Value((), [string])]


@pytest.mark.parametrize("unit", ["plain text ", 'line\n"quoted"\\', "äöü€ ", "😀"])
def test_one_feed_never_gives_two_deltas_of_one_string(unit: str) -> None:
    text = json.dumps(unit * 3000)
    stream = JsonStream()
    feeds = [[e for e in stream.feed(fragment) if isinstance(e, Delta)] for fragment in fragments_of(text)]
    assert max(map(len, feeds)) == 1
    assert sum(len(delta.text) for feed in feeds for delta in feed) == len(unit * 3000)
    assert [e for e in JsonStream().feed(text) if isinstance(e, Delta)] == [Delta((), unit * 3000)]


def allocated(text: str) -> int:
    """Bytes taken anew, summed over all feeds: copying what came before would show as a square."""
    stream, total = JsonStream(), 0
    tracemalloc.start()
    try:
        for fragment in fragments_of(text):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            stream.feed(fragment)
            total += tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return total


@pytest.mark.parametrize(
    ("opening", "unit"),
    [('"', "plain text"), ('"', "\\n\\u20ac"), ('{"', "a key \\t"), ("0.", "1234567890"), ("[", "12,[3],")],
)
def test_four_times_the_text_takes_four_times_the_work(opening: str, unit: str) -> None:
    small, large = (allocated(opening + unit * times) for times in (1_000, 4_000))
    assert large < 5 * small


def test_events_are_values_that_cannot_be_changed() -> None:
    event: Any = Delta((), "x")
    with pytest.raises(AttributeError):
        event.text = "y"
