"""Finds the one place of a quoted passage, or explains how to quote it better. Pure.

Rule 1: a passage is never guessed. A quote that occurs twice, or with other whitespace, is rejected and its places are
        shown. Occurrences may overlap.
Rule 2: the explanation is short and cheap, however long the text and its lines are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice

from a2a_canvas.store.text.spans import Span, lines_of
from a2a_canvas.tools.tool import to_json

MAX_COUNT = 1000
"""The most occurrences counted."""
MAX_PLACES = 3
"""The most occurrences shown."""
MAX_WIDTH = 160
"""The most characters shown of a line."""
MAX_EXCERPT = 400
"""The most characters shown of a passage."""
MAX_SEARCHED = 200_000
"""The most characters searched for a similar line."""
MIN_SIMILARITY = 0.6
"""The share of a quoted line, from 0 to 1, that the nearest line must contain."""

_WORD = re.compile(r"\w+|[^\w\s]")
_NOT_BLANK = re.compile(r"\S+")


def find_once(text: str, quote: str, *, tool: str = "artifact_edit", field: str = "old_text") -> Span | str:
    """The position of a non-empty `quote` in `text`; or why it is not unique, and how to quote better.

    Args:
        tool, field: the call that has the quote.
    """
    match list(islice(_places(text, quote), MAX_COUNT + 1)):
        case []:
            return _explain_absent(text, quote, field)
        case [place]:
            return place
        case places:
            return _explain_several(text, places, tool, field)


def _places(text: str, quote: str) -> Iterator[Span]:
    at = text.find(quote)
    while at >= 0:
        yield Span(at, at + len(quote))
        at = text.find(quote, at + 1)


# ------------------------------------------------------------------------- too often


def _explain_several(text: str, hits: list[Span], tool: str, field: str) -> str:
    often = f"{len(hits)} times" if len(hits) <= MAX_COUNT else f"more than {MAX_COUNT} times"
    which = f"The first {MAX_PLACES} places:" if len(hits) > MAX_PLACES else "The places:"
    lines = text.split("\n")
    places = [f"{n}.\n{_around(text, lines, hit)}" for n, hit in enumerate(hits[:MAX_PLACES], 1)]
    why = (
        f"{field} occurs {often}, and it must occur exactly once. Nothing was changed. Call {tool} again and "
        f"quote more of what stands around the place you mean. {which}"
    )
    return "\n".join((why, *places))


def _around(text: str, lines: list[str], hit: Span) -> str:
    """The first and the last line of a place, marked, with one line of context on each side."""
    first, last = lines_of(text, hit)
    start, end = (at - text.rfind("\n", 0, at) - 1 for at in (hit.start, hit.end))
    shown = [f"> {first}: {_cut(lines[first - 1], start)}"]
    if first > 1:
        shown.insert(0, f"  {first - 1}: {_cut(lines[first - 2], len(lines[first - 2]))}")
    if last > first + 1:
        shown.append("> …")
    if last > first:
        shown.append(f"> {last}: {_cut(lines[last - 1], end)}")
    if last < len(lines):
        shown.append(f"  {last + 1}: {_cut(lines[last], 0)}")
    return "\n".join(shown)


def _cut(line: str, at: int) -> str:
    """`line`, shortened to `MAX_WIDTH` with the character `at` in the middle."""
    line = line.removesuffix("\r")
    if len(line) <= MAX_WIDTH:
        return line
    start = max(0, min(at - MAX_WIDTH // 2, len(line) - MAX_WIDTH))
    end = start + MAX_WIDTH
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


# --------------------------------------------------------------------------- not at all


def _explain_absent(text: str, quote: str, field: str) -> str:
    why = f"{field} does not occur in the artifact's text. Nothing was changed."
    if blanks := _with_other_whitespace(text, quote):
        blank_text = blanks.extract(text)
        excerpt = to_json(blank_text[:MAX_EXCERPT]) + ("… (cut)" if len(blank_text) > MAX_EXCERPT else "")
        line = lines_of(text, blanks)[0]
        return f"{why} It differs only in whitespace: at line {line} the text says {excerpt}. Quote it exactly so."
    near = _nearest(text, quote)
    again = "Read the artifact with artifact_read and quote it exactly as it stands."
    return f"{why} {again} The nearest line is {near}" if near else f"{why} {again}"


def _with_other_whitespace(text: str, quote: str) -> Span | None:
    """The position of the words of `quote`, with other whitespace between or around them."""
    wanted, joined = " ".join(quote.split()), " ".join(text.split())
    at = joined.find(wanted) if wanted else -1
    if at < 0:
        return None
    return Span(_original_offset(text, joined, at), _original_offset(text, joined, at + len(wanted) - 1) + 1)


def _original_offset(text: str, joined: str, at: int) -> int:
    """The offset in `text` of the character `at` of its words joined by single spaces."""
    word = next(islice(_NOT_BLANK.finditer(text), joined.count(" ", 0, at), None))
    return word.start() + at - (joined.rfind(" ", 0, at) + 1)


def _nearest(text: str, quote: str) -> str:
    """The line most similar to the first quoted line that does not occur, as "4: …"; empty if none is similar."""
    quoted = (line.strip() for line in islice(quote.split("\n"), 50))
    wanted = next((line for line in quoted if line and line not in text), "")[:MAX_WIDTH]
    words = set(_WORD.findall(wanted))
    lines = text[:MAX_SEARCHED].split("\n")
    likely = nlargest(5, range(len(lines)), key=lambda n: len(words.intersection(_WORD.findall(lines[n]))))
    alike, at, number = max((*_similarity(wanted, lines[n]), n) for n in likely) if wanted else (0.0, 0, 0)
    return f"{number + 1}: {_cut(lines[number], at)}" if alike >= MIN_SIMILARITY else ""


def _similarity(wanted: str, line: str) -> tuple[float, int]:
    """The share of `wanted` in `line`, from 0 to 1, and the offset of its longest common run."""
    found = list(islice(_WORD.finditer(line), 500))
    words = _WORD.findall(wanted)
    blocks = SequenceMatcher(None, words, [word[0] for word in found], autojunk=False).get_matching_blocks()
    largest = max(blocks, key=lambda block: block.size)
    in_words = sum(block.size for block in blocks) / len(words)
    in_letters = SequenceMatcher(None, wanted, line, autojunk=False).ratio() if len(line) <= MAX_WIDTH else 0.0
    return max(in_words, in_letters), found[largest.b].start() if largest.size else 0
