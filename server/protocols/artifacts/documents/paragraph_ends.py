"""Inserted and deleted ends of paragraphs in a Word file that pandoc wrote. Pure.

Without them, a word processor that rejects an inserted paragraph would keep an empty one.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import Final
from xml.sax.saxutils import quoteattr

_DOCUMENT: Final = "word/document.xml"
_PARAGRAPH: Final = "<w:p>"
_MARKER = re.compile(r"<\?end (.*?)\?>", re.DOTALL)
_TAGS = {"insertion": "w:ins", "deletion": "w:del"}
_FIRST_ID: Final = 1_000_000
"""Of the changes that are added here: pandoc counts its own from 1."""


def end_marker(kind: str, by: str, at: str) -> str:
    """What says, inside a paragraph, that its end was inserted or deleted."""
    attributes = f"w:author={quoteattr(_printable(by))} w:date={quoteattr(at)}"
    return f"<?end {_TAGS[kind]} {attributes}?>"


def write_paragraph_ends(file: bytes) -> bytes:
    """The file with the changes that markers name, at the ends of their paragraphs."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for each in old.infolist():
            content = old.read(each)
            new.writestr(each, _with_ends(content.decode()).encode() if each.filename == _DOCUMENT else content)
    return made.getvalue()


def _with_ends(document: str) -> str:
    head, *paragraphs = document.split(_PARAGRAPH)
    return _PARAGRAPH.join((head, *(_with_end(each, _FIRST_ID + n) for n, each in enumerate(paragraphs))))


def _with_end(paragraph: str, number: int) -> str:
    found = _MARKER.search(paragraph)
    if not found:
        return paragraph
    tag, _, attributes = found[1].partition(" ")
    change = f'<w:rPr><{tag} w:id="{number}" {attributes}/></w:rPr>'
    rest = _MARKER.sub("", paragraph)
    if rest.startswith("<w:pPr>"):
        return rest.replace("</w:pPr>", f"{change}</w:pPr>", 1)
    return f"<w:pPr>{change}</w:pPr>{rest}"


def _printable(name: str) -> str:
    return "".join(each for each in name if each.isprintable())
