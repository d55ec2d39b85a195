"""The formats of word processors and others into which pandoc converts a Markdown text. Pure.

Rule 1: Markdown is read as on the page: CommonMark with tables, footnotes, task lists, formulas and bare addresses.
Rule 2: the text is from a model or from strangers. pandoc parses it into a tree, which is cleaned before pandoc writes
        the document: no format gets raw HTML or TeX, only the text in it; links have the schemes of LINKED; images are
        in the text itself (`data:`), and any other becomes a link. So the writer has nothing to fetch.
Rule 3: a formula is TeX, as its author wrote it, and LaTeX gets it as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from a2a_canvas.server.agent.text.file_language import is_markdown, language_of
from a2a_canvas.server.protocols.artifacts.file_names import split_extension
from a2a_canvas.server.wire import EXTENSIONS_OF_FORMATS
from a2a_canvas.store.models import Content, TextPart, text_of

READER: Final = (
    "commonmark+pipe_tables+strikeout+task_lists+autolink_bare_uris+footnotes+tex_math_dollars+gfm_auto_identifiers"
)
"""The Markdown of rule 1, for pandoc."""
LINKED: Final = re.compile(r"(https?://|mailto:|#)", re.IGNORECASE)
"""How the addresses begin that a link may have."""

_PICTURE = re.compile(r"data:image/(png|jpeg|gif)[;,]", re.IGNORECASE)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_PROSE_TYPES = ("", "text/plain")
_MARKUP = re.compile(
    r"""<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)"""
    r"""|</?[a-z][^<>"']*(?:"[^"]*"[^<>"']*|'[^']*'[^<>"']*)*>?|<[!?][^<>]*>?""",
    re.DOTALL | re.IGNORECASE,
)
"""All of HTML but its text. Unlike for Python's parser, the work is in proportion to the text, whatever that is."""
_LONG_NUMBER = re.compile(r"&#0*[0-9]{8,};?")
"""Names no character, and would be an error: Python reads no number of thousands of digits."""


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A format.

    Attributes:
        name: ours and pandoc's.
        pictures: whether images can be part of the document.
        marks: whether comments and suggestions can.
    """

    name: str
    media_type: str
    pictures: bool = True
    marks: bool = False

    @property
    def extension(self) -> str:
        return EXTENSIONS_OF_FORMATS[self.name]


DOCUMENT_FORMATS: Final = {
    each.name: each
    for each in (
        DocumentFormat("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", marks=True),
        DocumentFormat("odt", "application/vnd.oasis.opendocument.text"),
        DocumentFormat("epub", "application/epub+zip"),
        DocumentFormat("latex", "application/x-tex", pictures=False),
    )
}


def markdown_of(content: Content) -> TextPart | None:
    """The text of an artifact, if it is Markdown; a text that says nothing about its kind is, as on the page."""
    text = text_of(content.parts)
    if text is None:
        return None
    language = language_of(content.name, text.media_type, text.metadata)
    bare = text.media_type.partition(";")[0].strip().lower()
    unnamed = not language and bare in _PROSE_TYPES and not split_extension(content.name)[1]
    return text if unnamed or is_markdown(language) else None


def clean_tree(tree: dict[str, Any], form: DocumentFormat, title: str, identifier: str) -> dict[str, Any]:
    """A document's tree as pandoc's JSON, safe to write (rule 2).

    Args:
        title, identifier: of the book, for the format that needs them.

    Raises:
        RecursionError: it is nested too deeply.
    """
    facts = {"title": title, "identifier": identifier} if form.name == "epub" else {}
    meta = {name: {"t": "MetaString", "c": value} for name, value in facts.items()}
    return {**tree, "meta": meta, "blocks": _Cleaner(form).all(tree["blocks"])}


@dataclass(frozen=True, slots=True)
class _Cleaner:
    form: DocumentFormat

    def all(self, values: list[Any]) -> list[Any]:
        return [clean for value in values for clean in self._one(value)]

    def _one(self, value: Any) -> Iterator[Any]:
        match value:
            case {"t": "RawBlock", "c": [_, str(raw)]}:
                if text := _text_in(raw):
                    yield {"t": "Para", "c": [{"t": "Str", "c": text}]}
            case {"t": "RawInline", "c": [_, str(raw)]}:
                if _BREAK.fullmatch(raw):
                    yield {"t": "LineBreak"}
            case {"t": "Image", "c": [attributes, alt, [str(address), title]]}:
                yield from self._picture(attributes, self.all(alt), address, title)
            case {"t": "Link", "c": [attributes, inlines, [str(address), title]]}:
                yield from self._link(attributes, self.all(inlines), address, title)
            case list():
                yield self.all(value)
            case {"c": list(content), **rest}:
                yield {**rest, "c": self.all(content)}
            case _:
                yield value

    def _picture(self, attributes: Any, alt: list[Any], address: str, title: str) -> Iterator[Any]:
        if self.form.pictures and _PICTURE.match(address):
            yield {"t": "Image", "c": [attributes, alt, [address, title]]}
        else:
            said = alt or [{"t": "Str", "c": "" if address.startswith("data:") else address}]
            yield from self._link(attributes, said, address, "")

    def _link(self, attributes: Any, inlines: list[Any], address: str, title: str) -> Iterator[Any]:
        if LINKED.match(address):
            yield {"t": "Link", "c": [attributes, inlines, [address, title]]}
        else:
            yield from inlines


def _text_in(markup: str) -> str:
    text = _LONG_NUMBER.sub("\ufffd", _MARKUP.sub("", markup))
    return " ".join(html.unescape(text).split())
