"""Names of files: what is left of any name is safe on every system."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2a_canvas.server.protocols.artifacts.file_names import attachment, file_name, unused_name

HOSTILE = (
    "../../etc/passwd",
    "..",
    ".",
    "C:\\Windows",
    "a\0b",
    "\u202egpj.exe",
    "nul.txt",
    " . ",
    "a\r\nb",
    "/",
    "\ud800",
)
names = st.one_of(st.text(), st.sampled_from(HOSTILE), st.text(alphabet="./\\ :", max_size=8))


@pytest.mark.parametrize(
    ("wanted", "media_type", "name"),
    [
        (("report.md", "id"), "text/markdown", "report.md"),
        (("Tide pools", "id"), "text/markdown", "Tide pools.md"),
        (("Tide pools", "id"), "text/html; charset=utf-8", "Tide pools.html"),
        (("", "report"), "text/plain", "report.txt"),
        (("Fig. 1", "id"), "image/png", "Fig. 1.png"),
        (("data", "id"), "application/x-unknown", "data"),
        (("", "..", "/"), "", "_"),
        (("", ".."), "", "untitled"),
        (("a/b\\c:d",), "", "a_b_c_d"),
        (("NUL.txt",), "", "_NUL.txt"),
        ((".env",), "", "env"),
        (("Écrits 漢字.md",), "", "Écrits 漢字.md"),
    ],
)
def test_a_name_is_kept_as_far_as_it_is_safe(wanted: tuple[str, ...], media_type: str, name: str) -> None:
    assert file_name(*wanted, media_type=media_type) == name


@given(names, names, st.sampled_from(["", "text/markdown", "x/y"]))
@example("x" * 500 + ".md", "", "")
def test_any_name_is_one_piece_of_a_path_that_can_be_written(first: str, second: str, media_type: str) -> None:
    name = file_name(first, second, media_type=media_type)
    assert PurePosixPath(name).parts == (name,)
    assert PureWindowsPath(name).parts == (name,)
    assert not PureWindowsPath(name).is_reserved()
    assert name == name.strip(". ") not in ("", "..")
    assert len(name.encode()) <= 200
    assert not any(unicodedata.category(each) in ("Cc", "Cf", "Cs") for each in name)


@given(st.lists(names, max_size=12))
def test_names_in_one_folder_differ_also_without_case(wanted: list[str]) -> None:
    taken: set[str] = set()
    found = [unused_name(file_name(each), taken) for each in wanted]
    assert len({each.casefold() for each in found}) == len(found)


def test_the_second_of_a_name_has_a_number() -> None:
    taken: set[str] = set()
    assert [unused_name(each, taken) for each in ("a.md", "A.md", "a.md", "b")] == ["a.md", "A (2).md", "a (3).md", "b"]


@given(names)
def test_a_header_has_any_name_in_one_line(name: str) -> None:
    safe = file_name(name)
    header = attachment(safe)
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
    assert unquote(header.partition("UTF-8''")[2]) == safe
