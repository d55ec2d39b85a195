"""Passages of a document that a message names: "the second paragraph", "the last section", "line 3". Pure.

Rule 1: a line is a line, blank or not. A paragraph is a run of lines of prose: no headings, lists, tables or fences.
Rule 2: a section goes from a heading to the next one of its level. The only heading of the highest level is a title
        and begins none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from a2a_canvas.server.agent.models.script.placeholders import Groups
from a2a_canvas.server.agent.text.markdown_code import outside_fences
from a2a_canvas.store.text.spans import Span

HEADING: Final = r"^#{1,6}[ \t]+\S.*$"
ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|(?P<number>\d{1,9})[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_WHICH: Final = {
    word: number
    for number, words in enumerate(("first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th"))
    for word in words.split()
} | {"last": -1}
_NAMED: Final = re.compile(
    rf"\b(?P<which>{'|'.join(_WHICH)})\s+(?P<unit>paragraph|line|sentence|section|heading|item)\b"
    r"|\b(?P<unit_2>paragraph|line|section|heading|item)\s+(?P<number>\d{1,6})\b",
    re.IGNORECASE,
)
_NO_PARAGRAPH: Final = r"(?!\s*$|#{1,6}\s|[>|]|```|[ \t]*(?:[-*+]|\d+[.)])[ \t])"
_UNITS: Final = {
    "paragraph": re.compile(rf"(?:^{_NO_PARAGRAPH}.+\n?)+", re.MULTILINE),
    "line": re.compile(r"[^\n]*\n|[^\n]+"),
    "sentence": re.compile(r"[^\s.!?#](?:[^.!?\n]|\n(?!\s*\n))*[.!?]+[\"”’)]*[ \t]*"),
    "heading": re.compile(HEADING, re.MULTILINE),
    "item": re.compile(rf"^{ITEM.pattern}.*\n?", re.MULTILINE),
}


@dataclass(frozen=True, slots=True)
class NamedPassage:
    """A passage as named in a message: "second paragraph"; `index` counts from 0, and from -1 backwards.

    Attributes:
        title: words of the heading of a section, or of an item.
        quote: the text of a passage selected by the user.
    """

    name: str
    unit: str = ""
    index: int = 0
    title: str = ""
    quote: str = ""

    def find(self, text: str) -> Span | None:
        """Where it is in a document; None if there is none, or a quote occurs more than once."""
        if self.quote:
            at = text.find(self.quote)
            return Span(at, at + len(self.quote)) if text.count(self.quote) == 1 else None
        sections = list(_sections(text)) if self.unit == "section" else []
        if self.title and self.unit == "item":
            items = (Span(*hit.span()) for hit in _UNITS["item"].finditer(text))
            return next((span for span in items if self.title.casefold() in span.extract(text).casefold()), None)
        if self.title:
            return next(
                (span for span in sections if self.title.casefold() in span.extract(text).split("\n")[0].lower()), None
            )
        found = sections if self.unit == "section" else [Span(*hit.span()) for hit in _UNITS[self.unit].finditer(text)]
        return found[self.index] if -len(found) <= self.index < len(found) else None


def without(text: str, span: Span) -> Span:
    """The range to delete a passage, with the blank lines or the slide separator that would remain."""
    before, after = text[: span.start], text[span.end :]
    if not after.strip():
        kept = re.sub(r"(?:\n\s*-{3,})?\s*\Z", "", before)
        return Span(min(len(before), len(kept) + bool(kept)), len(text))
    begins_line = not before or before.endswith("\n")
    return Span(span.start, len(text) - len(after.lstrip("\n")) if begins_line else span.end)


def named_passage(message: str, groups: Groups) -> NamedPassage | None:
    """The passage named in a message, as "the last line" or by a group: `section`, `entry` or `heading`."""
    if groups.get("heading"):
        return NamedPassage("title", "heading")
    if entry := groups.get("entry"):
        return NamedPassage(f"item “{entry}”", "item", title=entry)
    if section := groups.get("section"):
        return NamedPassage(f"section “{section}”", "section", title=section)
    hit = _NAMED.search(message)
    if hit is None:
        return None
    unit = (hit["unit"] or hit["unit_2"]).lower()
    return NamedPassage(hit[0].lower(), unit, _WHICH[hit["which"].lower()] if hit["which"] else int(hit["number"]) - 1)


def _sections(text: str) -> Iterator[Span]:
    """From each heading of the sections' level to the next; a title alone begins none."""
    headings, top = headings_of(text)
    starts = [hit.start() for hit, level in headings if level == top]
    spans = (Span(start, end) for start, end in pairwise([*starts, len(text)]))
    return (span for span in spans if span != Span(0, len(text)))


def headings_of(text: str) -> tuple[list[tuple[re.Match[str], int]], int]:
    """Headings and their levels, and the level of the sections: the highest one that is not the title's alone."""
    hits = list(outside_fences(text, HEADING))
    levels = [len(hit[0]) - len(hit[0].lstrip("#")) for hit in hits]
    top = min(levels, default=0)
    top = min((level for level in levels if level > top), default=top) if levels.count(top) == 1 else top
    return list(zip(hits, levels, strict=True)), top
