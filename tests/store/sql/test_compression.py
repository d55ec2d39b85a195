"""Texts as bytes: they take less, and are read as they were."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from a2a_canvas.store.sql.compression import (
    COMPRESSED_AT_MOST,
    ZSTD_BEGIN,
    compress,
    compress_bytes,
    decompress,
    decompress_bytes,
    text_size,
)
from a2a_canvas.store.text.unicode import replace_unstorable

CHANGE = '[7,"2026-01-01T00:00:00+00:00",{"artifact_id":"doc","append":true,"parts":[{"body":"and so on"}]}]'
texts = st.text().map(replace_unstorable)


@given(text=texts)
@example(text=f"[{CHANGE},{CHANGE}]")
def test_a_text_is_compressed_if_that_is_shorter_and_read_as_it_was(text: str) -> None:
    compressed = compress(text)
    assert compressed is None or (len(compressed) < len(text.encode()) and decompress(compressed) == text)


def test_a_page_with_one_entry_becomes_shorter() -> None:
    assert len(compress(f"[{CHANGE}]") or "") * 2 < len(f"[{CHANGE}]")


@given(text=texts)
@example(text=f"[{CHANGE},{CHANGE}]")
def test_a_text_that_was_not_compressed_is_read_as_it_is(text: str) -> None:
    assert decompress(text.encode()) == text


def test_a_long_text_is_not_compressed() -> None:
    assert compress("a" * COMPRESSED_AT_MOST)
    assert compress("a" * (COMPRESSED_AT_MOST + 1)) is None


def test_what_is_damaged_is_no_json() -> None:
    whole = compress(f"[{CHANGE}]") or b""
    for damaged in (whole[:-1], whole[:9] + b"\0" + whole[10:], b"\xff", b""):
        assert not decompress(damaged).endswith("]")


@given(st.binary(max_size=300) | st.binary(max_size=20).map(lambda rest: ZSTD_BEGIN + rest))
def test_any_bytes_are_read_as_they_were_stored(data: bytes) -> None:
    stored = compress_bytes(data)
    assert decompress_bytes(stored) == data
    assert len(stored) <= len(data) or data.startswith(ZSTD_BEGIN)


def test_bytes_that_are_too_long_are_not_compressed() -> None:
    data = bytes(COMPRESSED_AT_MOST + 1)
    assert compress_bytes(data) is data
    assert decompress_bytes(compress_bytes(ZSTD_BEGIN + data)) == ZSTD_BEGIN + data


@given(text=texts)
@example(text=f"[{CHANGE},{CHANGE}]")
@example(text="a" * COMPRESSED_AT_MOST)
def test_how_long_a_text_is_is_known_without_making_it(text: str) -> None:
    assert text_size(compress(text) or text.encode()) == len(text.encode())


def test_damaged_bytes_are_as_long_as_they_are() -> None:
    assert text_size(ZSTD_BEGIN) == len(ZSTD_BEGIN)
