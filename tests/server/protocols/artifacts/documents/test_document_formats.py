"""Which artifacts become documents, and what of a text of strangers reaches the writer of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.protocols.artifacts.documents.document_formats import (
    DOCUMENT_FORMATS,
    LINKED,
    DocumentFormat,
    clean_tree,
    markdown_of,
)
from a2a_canvas.store.models import Content, DataPart, text_part

PICTURE = "data:image/png;base64,AAAA"
ADDRESSES = (PICTURE, "data:image/svg+xml,<svg/>", "https://x.example/a.png", "/etc/passwd", "file:///etc/passwd", "#a")
FORMATS = tuple(DOCUMENT_FORMATS.values())
DOCX, LATEX, EPUB = (DOCUMENT_FORMATS[name] for name in ("docx", "latex", "epub"))


def text(value: str) -> dict[str, Any]:
    return {"t": "Str", "c": value}


def image(address: str, *alt: Any) -> dict[str, Any]:
    return {"t": "Image", "c": [["", [], []], [*alt], [address, ""]]}


def link(address: str, *inlines: Any) -> dict[str, Any]:
    return {"t": "Link", "c": [["", [], []], [*inlines], [address, ""]]}


def clean(*blocks: Any, form: DocumentFormat = DOCX) -> Any:
    tree = {"pandoc-api-version": [1, 22], "meta": {"css": "x"}, "blocks": [*blocks]}
    return clean_tree(tree, form, "Title", "urn:x")["blocks"]


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    match value:
        case dict():
            yield value
            for each in value.values():
                yield from nodes(each)
        case list():
            for each in value:
                yield from nodes(each)


@pytest.mark.parametrize(
    ("name", "media_type", "expected"),
    [
        ("report.md", "", True),
        ("report.md", "text/plain", True),
        ("report", "text/markdown; charset=utf-8", True),
        ("report", "", True),
        ("report", "text/plain", True),
        ("data.csv", "text/plain", False),
        ("notes.xyz", "", False),
        ("main.py", "", False),
        ("report", "text/html", False),
        ("report", "application/json", False),
        ("report", "application/x-unknown", False),
    ],
)
def test_markdown_is_what_says_so_and_what_says_nothing(name: str, media_type: str, expected: bool) -> None:
    content = Content(name=name, parts=(text_part("# T", media_type),))
    assert (markdown_of(content) is not None) == expected


def test_an_artifact_without_text_is_no_markdown() -> None:
    assert markdown_of(Content(name="report.md", parts=(DataPart([1], size=3),))) is None


@pytest.mark.parametrize("piece", ["<a ", "<", "<!--", "<![CDATA[", "<a b='", "<script>", "&#9", "&#" + "9" * 5000])
def test_html_that_never_ends_costs_no_more_than_other_html(piece: str) -> None:
    """Python's own parser would read the first of them for hours, and refuse the last."""
    (para,) = clean({"t": "RawBlock", "c": ["html", "<div>a" + piece * (2**20 // len(piece))]})
    assert para["c"][0]["c"].startswith("a")


def test_raw_html_gives_its_text_without_scripts_and_styles() -> None:
    raw = {"t": "RawBlock", "c": ["html", "<div onclick=x>a <b>b</b><script>c()</script><style>d{}</style></div>"]}
    assert clean(raw) == [{"t": "Para", "c": [text("a b")]}]
    assert clean({"t": "RawBlock", "c": ["html", "<!-- note -->"]}) == []


def test_raw_tags_in_a_line_are_left_out_and_a_line_break_is_one() -> None:
    line = [{"t": "RawInline", "c": ["html", each]} for each in ("<b>", "<br>", "<BR />", "</b>")]
    assert clean({"t": "Para", "c": [text("x"), *line]}) == [
        {"t": "Para", "c": [text("x"), {"t": "LineBreak"}, {"t": "LineBreak"}]}
    ]


def test_a_picture_in_the_text_stays_and_any_other_is_a_link_or_its_text() -> None:
    line = [image(PICTURE), image("https://x.example/a.png", text("a")), image("/etc/passwd", text("b"))]
    assert clean({"t": "Para", "c": line}) == [
        {"t": "Para", "c": [image(PICTURE), link("https://x.example/a.png", text("a")), text("b")]}
    ]


def test_a_picture_without_a_text_is_named_by_its_address() -> None:
    assert clean({"t": "Para", "c": [image("a.png")]}) == [{"t": "Para", "c": [text("a.png")]}]


def test_latex_has_no_pictures_because_it_is_one_file() -> None:
    assert clean({"t": "Para", "c": [image(PICTURE, text("a"))]}, form=LATEX) == [{"t": "Para", "c": [text("a")]}]


def test_a_link_that_could_run_something_is_its_text() -> None:
    line = [link("javascript:x()", text("a")), link("mailto:a@x.example", text("b"))]
    assert clean({"t": "Para", "c": line}) == [{"t": "Para", "c": [text("a"), link("mailto:a@x.example", text("b"))]}]


def test_only_a_book_has_a_title_and_an_identifier_and_no_document_has_the_texts_own_metadata() -> None:
    tree = {"meta": {"css": "x"}, "blocks": []}
    assert clean_tree(tree, DOCX, "Title", "urn:x")["meta"] == {}
    title, identifier = {"t": "MetaString", "c": "Title"}, {"t": "MetaString", "c": "urn:x"}
    assert clean_tree(tree, EPUB, "Title", "urn:x")["meta"] == {"title": title, "identifier": identifier}


raws = st.sampled_from(["<b>", "</b>", "<script>x()</script>", "<br>", "\\input{x}"])
leaves = st.one_of(
    st.text(max_size=3).map(text),
    st.builds(lambda kind, raw: {"t": kind, "c": ["html", raw]}, st.sampled_from(["RawInline", "RawBlock"]), raws),
)
inlines = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda c: {"t": "Emph", "c": c}),
        st.lists(st.lists(inner, max_size=2), max_size=2).map(lambda c: {"t": "BulletList", "c": c}),
        st.builds(lambda a, c: link(a, *c), st.sampled_from(ADDRESSES), st.lists(inner, max_size=2)),
        st.builds(lambda a, c: image(a, *c), st.sampled_from(ADDRESSES), st.lists(inner, max_size=2)),
    ),
)


@given(st.lists(inlines, max_size=4), st.sampled_from(FORMATS))
def test_whatever_the_tree_is_the_writer_finds_nothing_to_fetch_or_to_pass_on(
    blocks: list[Any], form: DocumentFormat
) -> None:
    for node in nodes(clean(*blocks, form=form)):
        assert node.get("t") not in ("RawInline", "RawBlock")
        if node.get("t") == "Image":
            assert node["c"][2][0] == PICTURE
        if node.get("t") == "Link":
            assert LINKED.match(node["c"][2][0])


@given(st.lists(inlines, max_size=4), st.sampled_from(FORMATS))
def test_cleaning_a_clean_tree_changes_nothing(blocks: list[Any], form: DocumentFormat) -> None:
    once = clean(*blocks, form=form)
    assert clean(*once, form=form) == once
