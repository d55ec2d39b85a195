"""Suggestions and comments in the tree of a Word file: who rejects all has the text, who accepts all has the other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.protocols.artifacts.documents.document_formats import DOCUMENT_FORMATS, READER, clean_tree
from a2a_canvas.server.protocols.artifacts.documents.source_tree import SOURCE_POSITIONS, locate
from a2a_canvas.server.protocols.artifacts.documents.word_review import ReviewMark, WordReview, review_marks
from a2a_canvas.server.protocols.artifacts.documents.word_tree import Signature, WordComment, WordTree
from a2a_canvas.store.annotations.annotation import Annotation, PlacedAnnotation, Quote, Remark, ShownState, Writer
from a2a_canvas.store.text.spans import Span
from tests.pandoc_program import need_pandoc
from tests.property_examples import examples

ANN = Signature("ann", "2026-01-01T00:00:00Z")
AT = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = """\
# Tide *pools*

They are small.
They are **very deep** & [wet](https://x.example "t").

- [x] one
- two

  > quoted *text*[^1]

1. first
2. second

```py
a = 1
b = 2
```

| a | b |
|---|---|
| 1 | 2 *c* |

\tcode

Last $x^2$ \\* &amp; `co de` é😀 <b>bold</b> end.

[^1]: a foot note
"""


def parse(text: str, extensions: str = "") -> list[Any]:
    command = ["pandoc", "--from", READER + extensions, "--to", "json"]
    tree = json.loads(subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout)
    return clean_tree(tree, DOCUMENT_FORMATS["docx"], "", "")["blocks"]  # type: ignore[no-any-return]


def mark(number: int, span: Span, new: str | None, *comments: str) -> ReviewMark:
    return ReviewMark(number, span, ANN, new, False, tuple(WordComment(ANN, each) for each in comments))


def on(old: str, new: str | None, *comments: str, number: int = 1, text: str = TEXT) -> ReviewMark:
    """A mark on the only place of a text."""
    assert text.count(old) == 1
    start = text.index(old)
    return mark(number, Span(start, start + len(old)), new, *comments)


def tracked(text: str, *marks: ReviewMark) -> tuple[list[Any], str]:
    """The blocks for the writer, and the text with the suggestions that are tracked in them."""
    need_pandoc()
    review, old = WordReview(text, marks), parse(text, SOURCE_POSITIONS)
    while (blocks := review.make_blocks(old, parse(review.edits.text, SOURCE_POSITIONS))) is None:
        pass
    return blocks, review.edits.text


# ----------------------------------------------------------- what a word processor makes of it


def settle(nodes: Sequence[Any], gone: str) -> list[Any]:
    """The nodes without what is `gone`, an insertion or a deletion, and without comments."""
    return [each for node in nodes for each in _settled(node, gone)]


def _settled(node: Any, gone: str) -> Iterator[Any]:  # noqa: C901 - a case for each kind of node
    match node:
        case {"t": "Span", "c": [[_, [kind], _], inlines]}:
            if kind in ("insertion", "deletion") and kind != gone:
                yield from settle(inlines, gone)
        case {"t": "Div", "c": [[_, _, [["custom-style", "Source Code"]]], [{"c": inlines}]]}:
            if not _has_end(inlines, gone):
                (code,) = settle(inlines, gone)
                yield {"t": "CodeBlock", "c": code["c"][1]}
        case {"t": "CodeBlock", "c": [_, code]}:
            yield {"t": "CodeBlock", "c": code}
        case {"t": "RawInline"}:
            pass
        case {"t": "Para" | "Plain", "c": inlines}:
            if not _has_end(inlines, gone):
                yield {"t": "Para", "c": joined(settle(inlines, gone))}
        case {"t": "Header", "c": [level, _, inlines]}:
            if not _has_end(inlines, gone):
                yield {"t": "Header", "c": [level, joined(settle(inlines, gone))]}
        case {"t": "BulletList" | "OrderedList" as kind, "c": content}:
            items = content if kind == "BulletList" else content[1]
            if left := [each for each in (settle(item, gone) for item in items) if each]:
                yield {"t": kind, "c": left}
        case {"t": "BlockQuote", "c": blocks}:
            if left := settle(blocks, gone):
                yield {"t": "BlockQuote", "c": left}
        case {"t": "Link", "c": [_, inlines, target]}:
            if (left := joined(settle(inlines, gone))) or not inlines:
                yield {"t": "Link", "c": [left, target]}
        case {"c": list(content), **rest}:
            if (left := joined(settle(content, gone))) or not content:
                yield {**rest, "c": left}
        case list():
            yield joined(settle(node, gone))
        case _:
            yield node


def _has_end(inlines: Sequence[Any], gone: str) -> bool:
    tag = {"insertion": "w:ins", "deletion": "w:del"}[gone]
    return any(each["t"] == "RawInline" and each["c"][1].startswith(f"<?end {tag} ") for each in inlines)


def joined(nodes: list[Any]) -> list[Any]:
    """Words and text of one form in one piece."""
    made: list[Any] = []
    for node in nodes:
        last = made[-1] if made else None
        if isinstance(node, dict) and isinstance(last, dict) and node["t"] == last["t"]:
            if node["t"] == "Str":
                made[-1] = {"t": "Str", "c": last["c"] + node["c"]}
                continue
            if node["t"] in ("Emph", "Strong"):
                made[-1] = {"t": node["t"], "c": joined([*last["c"], *node["c"]])}
                continue
        made.append(node)
    return made


def changes(value: Any, kind: str) -> list[str]:
    """The texts of the changes of a kind."""
    match value:
        case {"t": "Span", "c": [[_, [given_kind], _], inlines]} if given_kind == kind:
            return [said(inlines)]
        case dict() | list():
            each = value.values() if isinstance(value, dict) else value
            return [found for one in each for found in changes(one, kind)]
    return []


def said(value: Any) -> str:
    match value:
        case {"t": "Str", "c": str(words)} | {"t": "Math" | "Code" | "CodeBlock", "c": [_, str(words)]}:
            return words
        case {"t": "Space" | "SoftBreak"}:
            return " "
        case {"c": list(content)}:
            return said(content)
        case list():
            return "".join(map(said, value))
    return ""


def commented(value: Any) -> list[tuple[str, str, str]]:
    """(comment, author, passage) of each comment, in the order in which they begin."""
    found: dict[str, list[str]] = {}
    open_now: set[str] = set()

    def walk(node: Any) -> None:
        match node:
            case {"t": "Span", "c": [[_, ["comment-start"], [["id", number], ["author", by], _]], inlines]}:
                found[number] = [said(inlines), by, ""]
                open_now.add(number)
            case {"t": "Span", "c": [[_, ["comment-end"], [["id", number]]], _]}:
                open_now.remove(number)
            case {"t": "Str" | "Space" | "SoftBreak" | "Code" | "Math"}:
                for number in open_now:
                    found[number][2] += said(node)
            case dict() | list():
                for each in node.values() if isinstance(node, dict) else node:
                    walk(each)

    walk(value)
    assert not open_now
    return [(text, by, passage) for text, by, passage in found.values()]


def check(text: str, *marks: ReviewMark) -> list[Any]:
    blocks, changed = tracked(text, *marks)
    assert settle(blocks, "insertion") == settle(parse(text), "insertion")
    assert settle(blocks, "deletion") == settle(parse(changed), "deletion")
    return blocks


SUGGESTIONS = {
    "a word": ("small", "tiny", ["small"], ["tiny"]),
    "part of a word": ("mall", "hort", ["small"], ["short"]),
    "an insertion": ("small", "very small", [], ["very "]),
    "emphasis": ("They are small", "They are *really* small", [], ["really", " "]),
    "a deletion in emphasis": ("very ", "", ["very "], []),
    "emphasis removed": ("**very deep**", "very deep", ["very deep"], ["very deep"]),
    "another address": ("x.example", "y.example", ["wet"], ["wet"]),
    "a level": ("# Tide", "## Tide", ["Tide ", "pools"], ["Tide ", "pools"]),
    "a new item": ("2. second\n", "2. second\n3. third\n", [], ["third"]),
    "an item less": ("2. second\n", "", ["second"], []),
    "a new paragraph": ("Last $x", "New *one*.\n\nLast $x", [], ["New ", "one", "."]),
    "a paragraph less": ("They are small.\nThey are **very deep** & [wet](https://x.example \"t\").\n\n", "", None, []),
    "paragraphs that become one": ("\n\n1. first", " and\n1. first", None, None),
    "a line break": ("small.\n", "small.\n\n", None, None),
    "code": ("b = 2", "b = 3", ["a = 1\nb = 2"], ["a = 1\nb = 3"]),
    "a cell": ("2 *c*", "3 *c*", ["2"], ["3"]),
    "a foot note": ("foot note", "footnote", ["a foot note"], ["a footnote"]),
    "an escape": ("\\*", "#", ["*"], ["#"]),
    "a fence that is never closed": ("Last $x", "```\nLast $x", None, None),
    "all": (TEXT, "Nothing is left.\n", None, None),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "deleted", "inserted"), SUGGESTIONS.values(), ids=SUGGESTIONS)
def test_a_suggestion_is_a_tracked_change(old: str, new: str, deleted: Any, inserted: Any) -> None:
    blocks = check(TEXT, on(old, new))
    assert deleted is None or changes(blocks, "deletion") == deleted
    assert inserted is None or changes(blocks, "insertion") == inserted


def test_suggestions_of_several_are_each_ones_own() -> None:
    bob = Signature("bob", "2026-02-02T00:00:00Z")
    theirs = ReviewMark(2, on("deep", "x").span, bob, "shallow", False, ())
    blocks = check(TEXT, on("small", "tiny"), theirs)
    text = json.dumps(blocks)
    assert text.count('["author", "ann"]') == text.count('["author", "bob"]') == 2
    assert text.index("tiny") < text.index('"bob"') < text.index("shallow")


UNTRACKED = {
    "a row": ("| 1 | 2 *c* |\n", "| 1 | 2 *c* |\n| 3 | 4 |\n"),
    "a rule between paragraphs": ("Last", "---\n\nLast"),
    "nothing that is shown": ('"t"', '"t" '),
}


@pytest.mark.parametrize(("old", "new"), UNTRACKED.values(), ids=UNTRACKED)
def test_what_cannot_be_tracked_is_a_comment_with_the_new_text_before_its_thread(old: str, new: str) -> None:
    blocks = check(TEXT, on(old, new, "why"), on("small", "tiny", number=2))
    assert [text.split("\n")[0][:10] for text, *_ in commented(blocks)] == ["Suggestion", "why"]
    assert changes(blocks, "insertion") == ["tiny"]


def test_a_suggestion_that_overlaps_an_earlier_one_is_a_comment() -> None:
    blocks = check(TEXT, on("are small", "were tiny"), on("small.\n", "large.\n", number=2))
    assert [each[0] for each in commented(blocks)] == ["Suggestion: replace this by:large."]
    assert changes(blocks, "insertion") == ["were tiny"]


COMMENTS = {
    "words": "are small",
    "part of a word": "mal",
    "across emphasis": "are **very",
    "across lines": "small.\nThey",
    "in a cell": "2 *c",
    "in a quote": "quoted *text*",
}


@pytest.mark.parametrize("passage", COMMENTS.values(), ids=COMMENTS)
def test_a_comment_covers_its_passage_and_its_replies_do_too(passage: str) -> None:
    blocks = check(TEXT, on(passage, None, "Why?", "So."))
    covered = passage.replace("\n", " ").replace("*", "")
    assert commented(blocks) == [("Why?", "ann", covered), ("So.", "ann", covered)]


def test_a_comment_on_code_or_a_footnote_covers_it_whole() -> None:
    assert commented(check(TEXT, on("b = 2", None, "?"))) == [("?", "ann", "a = 1\nb = 2")]
    assert commented(check(TEXT, on("o de", None, "?"))) == [("?", "ann", "co de")]
    blocks = check(TEXT, on("foot note", None, "?"))
    (quote,) = [each for each in blocks if each["t"] == "BulletList" and "Note" in json.dumps(each)]
    assert "comment-start" in json.dumps(quote)


def test_a_comment_on_a_footnote_of_two_references_is_at_the_first() -> None:
    text = "One[^1] two[^1].\n\n[^1]: note\n"
    made = json.dumps(check(text, on("note", None, "?", text=text)))
    assert made.index('"One"') < made.index('"comment-start"') < made.index('"two"')


def test_a_long_line_with_tabs_and_many_comments_costs_no_more_than_others() -> None:
    """Each word, and each comment on a place, would otherwise look at the whole line: for minutes."""
    words = 10_000
    text = "\t" + "ab\t" * words + "\r"
    at = [["data-pos", f"x@1:{column}-1:{column + 2}"] for column in range(5, 4 * words + 5, 4)]
    spans = [{"t": "Span", "c": [["", [], [each]], [{"t": "Str", "c": "ab"}]]} for each in at]
    (para,) = locate([{"t": "Para", "c": spans}], text)
    assert [each["at"] for each in para["c"]] == [(1 + 3 * n, 3 + 3 * n) for n in range(words)]
    tree = WordTree([para], text, {})
    for n in range(words):
        tree.comment_on_passage(Span(1 + 3 * n, 1 + 3 * n), [WordComment(ANN, "?")])
    assert json.dumps(tree.blocks()).count('"comment-start"') == words


def test_a_comment_on_what_is_not_shown_and_one_on_a_place_are_at_their_place() -> None:
    markup = Span(TEXT.index("**very"), TEXT.index("very"))
    blocks = check(TEXT, mark(1, markup, None, "here"))
    assert commented(blocks) == [("here", "ann", "")]
    text = json.dumps(blocks)
    assert text.index('"are"') < text.index('"here"') < text.index('"very"')


def test_the_comments_of_a_suggestion_cover_what_it_changes() -> None:
    blocks = check(TEXT, on("small", "tiny", "why?"))
    assert commented(blocks) == [("why?", "ann", "smalltiny")]


def test_marks_on_an_empty_text_change_nothing() -> None:
    assert check("", mark(1, Span(0, 0), None, "?")) == []
    assert changes(check("", mark(1, Span(0, 0), "new")), "insertion") == ["new"]


# --------------------------------------------------------------------------- from annotations


def placed(text: str, span: Span, new: str | None, *, quote: str = "", state: ShownState = "open") -> PlacedAnnotation:
    quoted = Quote(quote) if quote else Quote.from_text(text, span)
    made = Annotation(
        "n-1", "doc", 1, 1, span, quoted, Writer("agent"), AT, "t", (Remark(Writer("user", "bob"), AT, "?"),), new
    )
    return PlacedAnnotation(made, span, state)


def test_a_mark_has_who_made_it_and_when() -> None:
    (made,) = review_marks([placed("a b", Span(0, 1), "c")], "a b")
    assert made.signature == Signature("agent", "2026-01-01T00:00:00.000Z")
    assert made.thread == (WordComment(Signature("bob", "2026-01-01T00:00:00.000Z"), "?"),)


def test_a_name_has_no_characters_that_a_word_file_cannot_have() -> None:
    one = placed("a b", Span(0, 1), "c")
    named = replace(one, annotation=replace(one.annotation, writer=Writer("user", "b\x01o\nb")))
    assert [each.signature.by for each in review_marks([named], "a b")] == ["bob"]


@pytest.mark.parametrize("state", ["accepted", "rejected", "resolved", "stale"])
def test_what_is_not_open_is_not_in_the_document(state: ShownState) -> None:
    assert review_marks([placed("a b", Span(0, 1), "c", state=state)], "a b") == ()


def test_a_suggestion_in_conflict_is_a_comment() -> None:
    marks = review_marks([placed("a b", Span(0, 1), "c", quote="x")], "a b")
    blocks, changed = tracked("a b", *marks)
    assert changed == "a b"
    assert commented(blocks) == [("Suggestion: replace this by:c", "agent", "a"), ("?", "bob", "a")]


# ---------------------------------------------------------------------------------- any of them

pieces = st.sampled_from(
    [
        *(
            "a",
            "b ",
            "*",
            "**",
            "_",
            "`",
            "\n",
            "\n\n",
            "- ",
            "1. ",
            "> ",
            "# ",
            "\t",
            "[x](#y)",
            "\\",
            "&amp;",
            "é😀",
            "|",
        ),
        *("$x$", "~~", "<b>", "- [ ] t\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "```\nc\n```\n", "[^1]", "\n[^1]: n\n"),
        "---\n",
    ]
)
texts = st.lists(pieces, max_size=14).map("".join)


@settings(max_examples=examples(100), deadline=None)
@given(st.data(), texts)
def test_whatever_the_text_and_the_suggestions_are_no_change_is_at_a_wrong_place(
    data: st.DataObject, text: str
) -> None:
    marks = []
    for number in range(data.draw(st.integers(1, 4))):
        start, end = sorted(data.draw(st.integers(0, len(text))) for _ in "12")
        new = data.draw(st.none() | st.lists(pieces, max_size=4).map("".join))
        marks.append(mark(number, Span(start, end), new, *(["?"] if new is None else [])))
    commented(check(text, *marks))
