"""What the guard decides about headers and JSON, without HTTP or gRPC around it."""

import json
from typing import Any

import pytest
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidRequestError,
    JSONParseError,
    VersionNotSupportedError,
)
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.protocols.guard.checks import (
    MAX_JSON_DEPTH,
    MAX_NUMBER,
    MAX_VALUES,
    BodyLimits,
    Refusal,
    check_content_type,
    check_json,
    check_version,
)

LIMITS = BodyLimits()
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_all_json_that_utf8_and_doubles_hold_is_read_as_the_json_module_reads_it(value: object) -> None:
    assert check_json(json.dumps(value).encode(), LIMITS) == value
    assert check_json(json.dumps(value, ensure_ascii=False).encode(), LIMITS) == value


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_value_or_a_refusal(body: bytes) -> None:
    value = check_json(body, LIMITS)
    assert isinstance(value, Refusal) or value == json.loads(body.decode())


@given(st.text(alphabet='[]{}"\\x,:u'))
def test_brackets_in_strings_are_no_depth(text: str) -> None:
    assert check_json(json.dumps([text, text]).encode(), BodyLimits(max_depth=1)) == [text, text]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth_is_refused_at_one_level_more_than_the_limit(opening: str) -> None:
    closing = "]" if opening == "[" else "}"

    def of(levels: int) -> bytes:
        return (opening * levels + "1" + closing * levels).encode()

    assert not isinstance(check_json(of(MAX_JSON_DEPTH), LIMITS), Refusal)
    refusal = check_json(of(MAX_JSON_DEPTH + 1), LIMITS)
    assert isinstance(refusal, Refusal)
    assert "32 levels" in refusal.message


@pytest.mark.parametrize("body", [b"[" * 10**6, b'{"a":' * 10**6, b'"' + b'\\"' * 10**6, b'"\\'])
def test_long_nonsense_is_refused_in_one_pass(body: bytes) -> None:
    assert isinstance(check_json(body, LIMITS), Refusal)


@pytest.mark.parametrize("unit", [b"[],", b"{},", b"[]", b'""', b'"":', b"1,", b",", b'{"a":[]},'])
def test_values_are_counted_up_to_the_limit_and_nothing_is_parsed_behind_it(
    unit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json, "loads", None)
    refusal = check_json(b"[" + unit * (10 * MAX_VALUES + 1), LIMITS)
    assert isinstance(refusal, Refusal)
    assert f"More than {MAX_VALUES} values" in refusal.message


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=2), inner, max_size=6),
        max_leaves=60,
    ),
    st.sampled_from([None, 1]),
)
def test_what_has_no_more_values_than_the_limit_is_read(value: Any, indent: int | None) -> None:
    body = json.dumps(value, indent=indent).encode()
    assert check_json(body, LIMITS, max(1, count(value))) == value


def count(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


def test_a_number_has_at_most_as_many_characters_as_the_limit() -> None:
    assert check_json(b"0." + b"1" * (MAX_NUMBER - 2), LIMITS) == float("0." + "1" * 20)
    refusal = check_json(b"[" + b"1" * 10**6 + b"]", LIMITS)
    assert isinstance(refusal, Refusal)
    assert refusal.message == f"A number has {10**6} characters and may have {MAX_NUMBER}; send it as a string"


def test_the_smallest_body_that_may_be_the_limit_is_one_byte() -> None:
    assert BodyLimits(max_body_bytes=1).max_body_bytes == 1


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", JSONParseError),
        (b"{", JSONParseError),
        (b"\xff", JSONParseError),
        ('{"a":1}'.encode("utf-16"), JSONParseError),
        (b"\xef\xbb\xbf{}", JSONParseError),
        (b"NaN", JSONParseError),
        (b"[-Infinity]", JSONParseError),
        (b"1e999", InvalidRequestError),
        (b"1" * 400, InvalidRequestError),
        (b"1" * 10_000, InvalidRequestError),
        (b"0." + b"1" * (MAX_NUMBER - 1), InvalidRequestError),
        (rb'"\ud800"', InvalidRequestError),
        (rb'{"\udc00":1}', InvalidRequestError),
        (rb'"\ud800\ud800\udc00"', InvalidRequestError),
        (b'{"a":1,"a":2}', InvalidRequestError),
    ],
)
def test_what_protobuf_or_utf8_cannot_hold_is_refused(body: bytes, kind: type[Exception]) -> None:
    refusal = check_json(body, LIMITS)
    assert isinstance(refusal, Refusal)
    assert refusal.kind is kind


def test_escapes_that_pair_up_and_nul_are_fine() -> None:
    assert check_json(rb'["\ud83d\ude00", "\\ud800", "\u0000"]', LIMITS) == ["\U0001f600", "\\ud800", "\0"]


@pytest.mark.parametrize("levels", [{"max_body_bytes": 0}, {"max_depth": 0}, {"max_depth": MAX_JSON_DEPTH + 1}])
def test_limits_that_cannot_hold_are_refused(levels: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="has to be"):
        BodyLimits(**levels)


@pytest.mark.parametrize(
    ("header", "spoken", "passes"),
    [
        (None, None, True),
        ("", "0.3", True),
        (None, "1.0", False),
        ("0.3", "0.3", True),
        ("0.3.7", "0.3", True),
        ("1.0", "1.0", True),
        ("1.0.5", "1.0", True),
        ("1.0", "0.3", False),
        ("0.3", "1.0", False),
        *(
            (bad, None, False)
            for bad in (
                "0.2",
                "0.30",
                "0.4",
                "0",
                "1",
                "1.1",
                "1.1.4",
                "1.99",
                "1.0.",
                "1.0.5.1",
                "2.0",
                "10",
                "v1.0",
                "1.0, 0.3",
                " 1.0",
                "garbage",
                "1.x",
                "١",
            )
        ),
    ],
)
def test_a_version_is_03_or_10_with_any_patch_number_and_nothing_is_03(
    header: str | None, spoken: str | None, passes: bool
) -> None:
    refusal = check_version(header, spoken)
    assert (refusal is None) == passes
    assert refusal is None or refusal.kind is VersionNotSupportedError


@pytest.mark.parametrize("header", ["application/json", "Application/A2A+JSON ; charset=utf-8"])
def test_json_has_two_names(header: str) -> None:
    assert check_content_type(header) is None


@pytest.mark.parametrize("header", [None, "", "text/plain", "application/jsonp", "application/x-www-form-urlencoded"])
def test_other_content_types_are_refused(header: str | None) -> None:
    refusal = check_content_type(header)
    assert refusal is not None
    assert refusal.kind is ContentTypeNotSupportedError


def test_a_request_with_too_many_values_is_refused_before_anything_parses_it() -> None:
    def body(values: int) -> bytes:
        return json.dumps({"data": [1] * values}).encode()

    assert not isinstance(check_json(body(MAX_VALUES), LIMITS), Refusal)
    refusal = check_json(body(MAX_VALUES + 1), LIMITS)
    assert isinstance(refusal, Refusal)
    assert f"More than {MAX_VALUES} values" in refusal.message


def test_commas_in_text_are_no_values() -> None:
    text = json.dumps({"text": "a, b, " * MAX_VALUES}).encode()
    assert not isinstance(check_json(text, LIMITS), Refusal)
