"""What of a reply to an edit is document text: fences, remarks, the ends, and that it never matters how it is cut."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from server.agent.model import Passage
from server.agent.rewritten import FENCE_LINE, Rewritten, inside_fence


def passage(selected: str = "old", language: str = "python", strategy: str = "replace") -> Passage:
    return Passage("a.py", language, "", selected, "", "change it", strategy)


CODE, LINE, WINDOWS_LINE = passage(), passage("old\n"), passage("old\r\n")
MARKDOWN, INSERT, PLACE = passage(language="markdown"), passage("old\n", "", "insert_after"), passage("")
PASSAGES = [CODE, LINE, WINDOWS_LINE, MARKDOWN, INSERT, PLACE, passage("```py\nx\n```\n", "markdown")]


def rewritten(of: Passage, *deltas: str, inside_fence: bool = False) -> tuple[str, str]:
    """The text that a reply makes, and the remarks."""
    edit = Rewritten(of, inside_fence=inside_fence)
    text = "".join([edit.feed(delta) for delta in deltas]) + edit.flush()
    return text, edit.remarks


# ------------------------------------------------------------------- the rules at once, over whole texts


def fence_of(line: str) -> tuple[str, str, int] | None:
    """The run, the info string and the indent of the fence that a line is."""
    hit = re.fullmatch(r"([ \t]*)(`{3,}(?=[^`]*$)|~{3,})([^\n]*)", line)
    return (hit[2], hit[3].strip(), len(hit[1].expandtabs(4))) if hit and len(line) <= FENCE_LINE else None


def unwrapped(reply: str, wrappers: str) -> tuple[str, str]:
    body = re.sub(r"^(?:[ \t]*\r?\n)*", "", reply)
    first, line_break, rest = body.partition("\n")
    fence = fence_of(first)
    too_far = len(reply) - len(rest) > FENCE_LINE
    if not fence or not line_break or too_far or wrappers == "none":
        return reply, ""
    if wrappers == "of text" and (fence[1].lower().split() or [""])[0] not in ("", "markdown", "md", "text"):
        return reply, ""
    opened, lines = [fence[0]], re.split("(?<=\n)", rest)
    for n, line in enumerate(lines):
        found = fence_of(re.sub(r"\r?\n\Z", "", line) if line.endswith("\n") else line)
        if not found or found[2] > fence[2] + 3:
            continue
        if found[1]:
            opened.append(found[0])
        elif found[0].startswith(opened[-1]):
            opened.pop()
        if not opened:
            return re.sub(r"\r?\n\Z", "", "".join(lines[:n])), "".join(lines[n + 1 :]).strip()
    return rest, ""


def oracle(of: Passage, reply: str, inside: bool) -> tuple[str, str]:
    if fence_of(of.selected.lstrip(" \t\r\n").split("\n")[0]):
        wrappers = "none"
    else:
        wrappers = "of text" if of.language == "markdown" and not inside else "any"
    text, remarks = unwrapped(reply, wrappers)
    if of.strategy != "replace" or not of.selected:
        return text, remarks
    if not text.strip():
        return "", remarks
    if end := re.search(r"\r?\n\Z", of.selected):
        return re.sub(r"(\r?\n)?\Z", "", text, count=1) + end[0], remarks
    return re.sub(r"(\r?\n)+\Z", "", text), remarks


MARKS = ["`", "``", "```", "````", "~~~", "~~~~"]
FRAGMENTS = [
    *MARKS,
    "py",
    "markdown",
    " ",
    "   ",
    "\t",
    "\n",
    "\n",
    "\r\n",
    "\r",
    "x = 1",
    "é😀",
    "```\n",
    "\n```",
    "a" * 250,
]
REPLIES = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)
WRAPPED = st.tuples(
    st.sampled_from(["", "\n", "  "]), st.sampled_from(["```py\n", "```\n", "~~~ md\r\n"]), REPLIES
).map("".join)


def cut(reply: str, places: list[int]) -> list[str]:
    ends = sorted({place % (len(reply) + 1) for place in places} | {len(reply)})
    return [reply[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(PASSAGES), REPLIES | WRAPPED, st.booleans(), st.lists(st.integers(0, 2000), max_size=8))
@example(CODE, "```py\nx\r\n```\r\nbye", False, [10, 11, 12])
@example(CODE, "```" + "a" * 252 + "\nx", False, [])
@example(CODE, "```" + "a" * 253 + "\nx", False, [256])
def test_any_cut_gives_what_the_whole_reply_gives(of: Passage, reply: str, inside: bool, places: list[int]) -> None:
    expected = oracle(of, reply, inside)
    assert rewritten(of, reply, inside_fence=inside) == expected
    assert rewritten(of, *cut(reply, places), inside_fence=inside) == expected
    assert rewritten(of, *reply, inside_fence=inside) == expected


# ------------------------------------------------------------------- fences


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("x = 1", "x = 1"),
        ("    return x", "    return x"),
        ("```python\nx = 1\n```", "x = 1"),
        ("```\nx = 1\n```\n", "x = 1"),
        ("~~~ py title='a'\nx = 1\n~~~", "x = 1"),
        ("\n  \n````py\nx\n````", "x"),
        ("  ```py\n  x\n  ```  ", "  x"),
        ("```py\r\nx\r\ny\r\n```\r\n", "x\r\ny"),
        ("```\n```", ""),
        ("```\n\nx\n\n```", "\nx"),
        ("`x`", "`x`"),
        ("``` x ```", "``` x ```"),
        ("```x``` is code\nand more", "```x``` is code\nand more"),
        ("x\n```\ny\n```", "x\n```\ny\n```"),
    ],
)
def test_a_fence_around_the_whole_reply_is_taken_off(reply: str, text: str) -> None:
    assert rewritten(CODE, reply) == (text, "")


@pytest.mark.parametrize(
    "inner",
    [
        "```py\nx\n```\nmore",
        "~~~\nx",
        "a ``` b\n``` c ```",
        '"""\n    ```\n    x\n    ```\n"""',
        "``\n~~",
        "~~~sh\n```sh\ny\n```\n~~~",
    ],
)
def test_fences_within_the_wrapper_are_kept(inner: str) -> None:
    assert rewritten(CODE, f"```\n{inner}\n```") == (inner, "")


def test_a_longer_wrapper_is_not_closed_by_shorter_fences() -> None:
    assert rewritten(CODE, "````md\n```\nx\n```\n````") == ("```\nx\n```", "")


@pytest.mark.parametrize(
    ("reply", "text"), [("```py\nx\n``", "x\n``"), ("```py\nx", "x"), ("```py\n~~~", "~~~"), ("```py", "```py")]
)
def test_of_a_wrapper_that_is_never_closed_the_rest_is_text(reply: str, text: str) -> None:
    assert rewritten(CODE, reply) == (text, "")


def test_a_selection_that_is_a_fence_gets_one() -> None:
    assert rewritten(passage("```py\nx\n```", "markdown"), "```\ny\n```") == ("```\ny\n```", "")
    assert rewritten(passage("\n  ~~~\nx\n~~~", ""), "```\ny\n```") == ("```\ny\n```", "")


@pytest.mark.parametrize("info", ["py", "mermaid", "sh -x"])
def test_in_markdown_a_block_of_another_language_is_text(info: str) -> None:
    reply = f"```{info}\ny\n```\n\nAnd so on."
    assert rewritten(MARKDOWN, reply) == (reply, "")
    assert rewritten(MARKDOWN, reply, inside_fence=True) == ("y", "And so on.")


@pytest.mark.parametrize("info", ["", "markdown", " MD", "text"])
def test_in_markdown_a_block_of_markdown_is_a_wrapper(info: str) -> None:
    assert rewritten(MARKDOWN, f"```{info}\nIt *is*.\n\n```py\nx\n```\n```") == ("It *is*.\n\n```py\nx\n```", "")


def test_the_text_within_a_wrapper_streams() -> None:
    edit = Rewritten(CODE, inside_fence=False)
    fed = ["`", "``p", "y\n", "x =", " 1", "\n", "y", "\n`", "`", "`", "\n", "bye"]
    assert [edit.feed(delta) for delta in fed] == ["", "", "", "x =", " 1", "", "\ny", "", "", "", "", ""]
    assert (edit.flush(), edit.remarks) == ("", "bye")


# ------------------------------------------------------------------- remarks


def test_what_follows_the_wrapper_is_kept_apart() -> None:
    assert rewritten(LINE, "```py\nx\n```\n\nI made it *short*.\n\n```py\ny\n```\n") == (
        "x\n",
        "I made it *short*.\n\n```py\ny\n```",
    )


def test_blanks_after_the_wrapper_are_no_remark() -> None:
    assert rewritten(CODE, "```py\nx\n```\n \n\t\n") == ("x", "")


# ------------------------------------------------------------------- the ends


@pytest.mark.parametrize(
    ("of", "reply", "text"),
    [
        (LINE, "x", "x\n"),
        (LINE, "x\n", "x\n"),
        (LINE, "x\n\n", "x\n\n"),
        (LINE, "x\r\n", "x\n"),
        (WINDOWS_LINE, "x", "x\r\n"),
        (WINDOWS_LINE, "x\ny\n", "x\ny\r\n"),
        (CODE, "x\n", "x"),
        (CODE, "x\n\r\n\n", "x"),
        (CODE, "\n x \n", "\n x "),
        (CODE, "x\r", "x\r"),
        (LINE, "```\nx\n```\n", "x\n"),
    ],
)
def test_a_replacement_ends_as_the_selection_did(of: Passage, reply: str, text: str) -> None:
    assert rewritten(of, reply) == (text, "")


@pytest.mark.parametrize("of", [INSERT, PLACE, passage("x", "", "insert_before")])
@pytest.mark.parametrize("reply", ["x", "x\n", "\nx\n\n", "\n", " ", ""])
def test_what_is_inserted_stands_as_it_is(of: Passage, reply: str) -> None:
    assert rewritten(of, reply) == (reply, "")


@pytest.mark.parametrize(
    ("before", "selected", "after", "strategy", "text"),
    [
        ("a\n", "def f():", "\n", "insert_before", "import x\n"),
        ("", "def f():", "\n", "insert_before", "import x\n"),
        ("a = ", "b", "\n", "insert_before", "import x"),
        ("a\n", "b\n", "c\n", "insert_after", "import x\n"),
        ("a\n", "b\n", "\nc", "insert_after", "import x"),
        ("a\n", "b", " c", "insert_after", "import x"),
        ("a\n", "", "b", "replace", "import x\n"),
        ("a\n", "", "", "replace", "import x"),
    ],
)
def test_an_unwrapped_insertion_does_not_join_the_line_behind_it(
    before: str, selected: str, after: str, strategy: str, text: str
) -> None:
    of = Passage("a.py", "python", before, selected, after, "import x", strategy)
    for reply in ("```py\nimport x\n```", "```\nimport x\n```\n"):
        assert rewritten(of, reply) == rewritten(of, *reply) == (text, "")
    assert rewritten(of, "import x") == ("import x", "")


@pytest.mark.parametrize("of", [LINE, WINDOWS_LINE, CODE])
@pytest.mark.parametrize("reply", ["", "\n", " \n\t", "```\n```", "```\n\n  \n```\n"])
def test_a_blank_reply_deletes_the_selection_whole(of: Passage, reply: str) -> None:
    assert rewritten(of, reply) == ("", "")


# ------------------------------------------------------------------- inside a fence


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("", False),
        ("a\n```py\n", True),
        ("a\n```py\nx\n```\n", False),
        ("~~~\n```\n~~~\n", False),
        ("````\n```\n", True),
        ("```\nx\n```py\n", True),
        ("- a\n\n    ```sh\n    x\n", True),
        ("a `b` ``` c\n", False),
        ("``` a ``` b\n", False),
        ("```py\r\nx\r\n```\r\n", False),
        ("```py\nx\n```\n" * 1000 + "```", True),
    ],
)
def test_the_fences_before_a_place_tell_whether_it_is_in_one(before: str, inside: bool) -> None:
    assert inside_fence(before) is inside
