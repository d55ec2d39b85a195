"""Parts as the model writes and reads them."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from a2a_canvas.store.models import DataPart, FilePart, Part, TextPart
from a2a_canvas.tools.part_inputs import MAX_DEPTH, part_input, part_output, require_portable
from tests.store.artifact_builders import DATA_PARTS, PARTS, TEXT_PARTS, text


def read(part: dict[str, Any]) -> Part:
    return part_input.validate_python(part).part()


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ({"kind": "text", "text": "né"}, text("né")),
        (
            {"kind": "text", "text": "", "mimeType": "text/markdown", "metadata": {"a": [1]}},
            text("", media_type="text/markdown", metadata={"a": [1]}),
        ),
        ({"kind": "file", "file": {"bytes": "AP8="}}, FilePart(b"\x00\xff")),
        ({"kind": "file", "file": {"bytes": ""}}, FilePart(b"")),
        (
            {"kind": "file", "file": {"uri": "https://x", "name": "n", "mimeType": "a/b"}, "metadata": {"k": 1}},
            FilePart(None, "https://x", "n", "a/b", {"k": 1}),
        ),
        ({"kind": "data", "data": None}, DataPart(None, size=4)),
        ({"kind": "data", "data": {"a": 1}, "metadata": None}, DataPart({"a": 1}, size=8)),
        ({"kind": "data", "data": 1.5, "mimeType": "ignored", "other": 1}, DataPart(1.5, size=3)),
    ],
)
def test_a_part_is_read_as_it_was_written(written: dict[str, Any], part: Part) -> None:
    assert read(written) == part


def test_a_text_is_shown_in_the_order_in_which_it_is_to_be_written() -> None:
    shown = part_output(text("x", media_type="text/plain", metadata={"a": 1}))
    assert list(shown) == ["kind", "mimeType", "metadata", "text"]


def test_a_lone_surrogate_in_a_text_becomes_the_replacement_character() -> None:
    assert read({"kind": "text", "text": "a\ud83db"}) == text("a\ufffdb")


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"text": "x"},
        {"kind": "image"},
        {"kind": "text", "text": None},
        {"kind": "text", "text": "x", "metadata": []},
        {"kind": "text", "text": "x", "mimeType": 1},
        {"kind": "file", "file": {}},
        {"kind": "file", "file": {"uri": ""}},
        {"kind": "file", "file": {"uri": "https://x", "bytes": ""}},
        {"kind": "file", "file": {"bytes": "AP8"}},
        {"kind": "file", "file": {"bytes": "é"}},
        {"kind": "file", "file": {"bytes": "AP 8="}},
        {"kind": "file", "file": {"bytes": "-_8="}},
        {"kind": "file", "file": {"uri": "\ud83d"}},
        {"kind": "file", "file": "AP8="},
        {"kind": "data"},
        {"kind": "data", "data": float("nan")},
    ],
    ids=str,
)
def test_what_is_not_a_part_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read(written)


def nested(levels: int) -> Any:
    value: Any = 0
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def test_nesting_has_a_bound() -> None:
    assert require_portable(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    with pytest.raises(ValueError, match="deeper than 30 levels"):
        require_portable(nested(MAX_DEPTH + 1))


NOT_NUMBERS = [float("nan"), float("inf"), -float("inf"), 10**400, -(10**400)]


@pytest.mark.parametrize("value", [*NOT_NUMBERS, "\ud83d", "a\udfff"], ids=ascii)
@pytest.mark.parametrize("place", [lambda x: x, lambda x: [0, x], lambda x: {"a": {"b": x}}], ids=["", "list", "dict"])
def test_what_no_transport_carries_is_refused_wherever_it_stands(value: Any, place: Any) -> None:
    with pytest.raises(ValueError, match="must not contain"):
        require_portable(place(value))


def test_a_key_is_text_too() -> None:
    with pytest.raises(ValueError, match="lone surrogates"):
        require_portable([{"\ud83d": 1}])


@pytest.mark.parametrize("value", [None, True, 0, -1.5, 10**300, 1e308, "😀\x00", [], {}, {"é": [{}]}], ids=ascii)
def test_everything_else_is_carried_as_it_is(value: Any) -> None:
    assert require_portable(value) is value


@given(TEXT_PARTS | DATA_PARTS)
def test_text_and_data_are_shown_as_they_would_be_written(part: Part) -> None:
    again = read(json.loads(json.dumps(part_output(part))))
    if isinstance(part, DataPart):
        part = DataPart(part.data, metadata=part.metadata, size=len(json.dumps(part.data)))
    assert again == part


@given(PARTS)
def test_what_is_shown_names_its_kind_first_and_has_no_empty_fields_but_data(part: Part) -> None:
    shown = part_output(part)
    assert next(iter(shown.items())) == ("kind", part.kind)
    inner = {**shown, **(shown["file"] if part.kind == "file" else {})}  # type: ignore[dict-item]
    assert [name for name, value in inner.items() if value is None] in ([], ["data"])
    assert ("metadata" in shown) == bool(part.metadata)
    assert isinstance(part, TextPart) or "text" not in shown


@given(st.binary(max_size=9))
def test_a_file_is_shown_by_its_size_and_not_its_content(content: bytes) -> None:
    part = read({"kind": "file", "file": {"bytes": b64encode(content).decode(), "name": "n", "mimeType": "a/b"}})
    assert part == FilePart(content, name="n", media_type="a/b")
    assert part_output(part) == {"kind": "file", "file": {"name": "n", "mimeType": "a/b", "size": len(content)}}


def test_a_file_by_uri_is_shown_by_it() -> None:
    assert part_output(FilePart(url="https://x")) == {"kind": "file", "file": {"uri": "https://x"}}
