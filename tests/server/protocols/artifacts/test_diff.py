"""The unified diff: whatever it looks like, applied to the old text it gives the new one."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.protocols.artifacts import diff as diff_module
from a2a_canvas.server.protocols.artifacts.diff import unified_diff
from tests.property_examples import examples

LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "c\r\n", "\n", " \n", "-x\n", "+y\n", "@@\n", "\\ z\n", "é\x0c\u2028\n"])
)
TEXTS = st.builds(lambda lines, end: "".join(lines) + end, LINES, st.sampled_from(["", "a", "\r", "-"]))


def diff(old: str, new: str) -> str:
    return unified_diff(old, new, "version 1", "version 2")


def patched(old: str, unified: str) -> str:
    """What a strict patch program makes of `old`: every line must stand where the diff says."""
    before = re.findall(r"[^\n]*\n|[^\n]+\Z", old)
    after: list[str] = []
    lines = re.findall(r"[^\n]*\n", unified)[2:]
    at = 0
    for number, line in enumerate(lines):
        bare = number + 1 < len(lines) and lines[number + 1].startswith("\\")
        words = line[1:-1] if bare else line[1:]
        if found := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n", line):
            start, length = int(found[1]), int(found[2] or 1)
            after += before[at : (at := start - 1 if length else start)]
            assert len(after) == (int(found[3]) - 1 if int(found[4] or 1) else int(found[3]))
        elif line[0] in " -":
            assert before[at] == words
            at += 1
        if line[0] in " +":
            after.append(words)
    return "".join(after + before[at:])


@settings(max_examples=examples(300))
@given(TEXTS, TEXTS)
def test_applied_to_the_old_text_it_gives_the_new_one(old: str, new: str) -> None:
    assert patched(old, diff(old, new)) == new


@settings(max_examples=examples(300))
@given(TEXTS, st.integers(0, 30), st.integers(0, 3), TEXTS)
def test_so_it_does_after_a_small_change(old: str, at: int, removed: int, added: str) -> None:
    lines = old.splitlines(keepends=True)
    new = "".join([*lines[:at], added, *lines[at + removed :]])
    assert patched(old, diff(old, new)) == new


@given(TEXTS, TEXTS)
def test_so_it_does_where_the_search_is_too_long(old: str, new: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diff_module, "MAX_STEPS", 0)
        assert patched(old, diff(old, new)) == new


@given(TEXTS)
def test_of_two_equal_texts_it_is_empty(text: str) -> None:
    assert diff(text, text) == ""


def test_it_shows_three_lines_around_each_change() -> None:
    old = "".join(f"{n}\n" for n in range(1, 31))
    new = old.replace("5\n6\n", "five\n6\n", 1).replace("20\n", "")
    assert diff(old, new) == (
        "--- version 1\n+++ version 2\n"
        "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        "@@ -17,7 +17,6 @@\n 17\n 18\n 19\n-20\n 21\n 22\n 23\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "hunk"),
    [
        ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
        ("a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"),
        ("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        ("a\n", "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"),
        ("x\na", "y\na", "@@ -1,2 +1,2 @@\n-x\n+y\n a\n\\ No newline at end of file\n"),
    ],
)
def test_a_last_line_without_newline_is_told(old: str, new: str, hunk: str) -> None:
    assert diff(old, new) == f"--- version 1\n+++ version 2\n{hunk}"


def test_one_changed_line_of_very_many_is_found_at_once() -> None:
    old = "same\n" * 50_000 + "old\n" + "same\n" * 50_000
    unified = diff(old, old.replace("old", "new"))
    assert [line for line in unified.splitlines() if line[0] in "+-"][2:] == ["-old", "+new"]


def test_a_text_that_would_take_too_long_is_replaced_as_a_whole() -> None:
    old, new = ("".join(f"{n * step}\n" for n in range(1, 20_001)) for step in (2, 3))
    unified = diff(old, new)
    assert unified.count("@@ -") == 1
    assert patched(old, unified) == new
