"""The raw content of an artifact, and which clients get it."""

import pytest

from a2a_canvas.server.protocols.artifacts.raw_content import NoRawContent, raw_content
from a2a_canvas.store.models import Content, DataPart, FilePart, Parts, text_part

MARKDOWN = "text/markdown; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"


def types(*parts: object) -> list[tuple[bytes, str]]:
    raw = raw_content(Content(parts=parts))  # type: ignore[arg-type]
    assert not isinstance(raw, NoRawContent)
    return [(each.body, each.media_type) for each in raw]


def test_a_text_is_utf_8_in_its_own_type_or_plain() -> None:
    assert types(text_part("é", "text/markdown")) == [("é".encode(), MARKDOWN), ("é".encode(), PLAIN)]
    assert types(text_part("é")) == types(text_part("é", "text/plain")) == [("é".encode(), PLAIN)]
    assert types(text_part("é", "Text/CSV; charset=latin-1"))[0] == ("é".encode(), "text/csv; charset=utf-8")


def test_a_text_wins_over_whatever_else_there_is() -> None:
    assert types(FilePart(b"x"), text_part("a"), DataPart(1)) == [(b"a", PLAIN)]


def test_a_sole_file_is_its_bytes_and_a_sole_data_item_is_json() -> None:
    assert types(FilePart(b"\x89PNG", media_type="image/png")) == [(b"\x89PNG", "image/png")]
    assert types(FilePart(b"")) == [(b"", "application/octet-stream")]
    assert types(DataPart({"a": "é"})) == [('{"a": "é"}'.encode(), "application/json")]
    assert types(DataPart(None, "application/geo+json")) == [(b"null", "application/geo+json")]


@pytest.mark.parametrize(
    "broken",
    ["image", "image/", "image/png\r\nSet-Cookie: a=b", "image/png;", "ä/b", "a/b; c", "/", "a /b", 'a/b;c="\n"'],
)
def test_a_media_type_that_is_not_well_formed_is_replaced(broken: str) -> None:
    assert types(FilePart(b"x", media_type=broken)) == [(b"x", "application/octet-stream")]
    assert types(DataPart(1, broken)) == [(b"1", "application/json")]
    assert "\n" not in types(text_part("x", broken))[0][1]


@pytest.mark.parametrize("media_type", ["text/csv; charset=latin-1", 'a/b;c="d e"', "a/b ; c=d; e=f"])
def test_a_files_parameters_are_kept(media_type: str) -> None:
    assert types(FilePart(b"x", media_type=media_type)) == [(b"x", media_type)]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((FilePart(b"a"), FilePart(b"b")), "several parts"),
        ((FilePart(b"a"), DataPart(1)), "several parts"),
        ((FilePart(url="https://example.org/x"),), "https://example.org/x"),
        ((), "empty"),
    ],
)
def test_what_has_no_raw_content_says_why(parts: Parts, says: str) -> None:
    raw = raw_content(Content(parts=parts))
    assert isinstance(raw, NoRawContent)
    assert says in raw.reason
    assert "application/json" in raw.reason
