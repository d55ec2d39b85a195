"""Finds lines in the texts of artifacts.

Rule 1: a line is found if it has all words of the search, as parts of words and in any case. Lines end at "\\n". An
        artifact is found with its first MAX_LINES such lines.
Rule 2: the text of the current version is searched, and no draft. The contexts are those of `owned_contexts.py`, in
        the same order; the artifacts of a context are ordered by their ids.
Rule 3: there is no index. A page decodes MAX_TEXTS artifacts, or MAX_BYTES of them and the rest of the last one, so it
        may have found fewer artifacts than its limit, or none, and still have a next page.
Rule 4: texts are fetched, decoded and searched in steps, one of all searches at a time: a thread that computes delays
        the event loop, which waits for the interpreter. Before each step in a thread the loop has some turns
        (`round_robin.py`, rule 4). A text is searched a slice at a time, but decoded in one step, which the loop waits
        for: JSON is parsed in one call.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

from a2a_canvas.server.tasks.journal.round_robin import round_robin
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.threads import run_to_end

MAX_WORDS: Final = 20
"""Words of a search."""
MAX_LINES: Final = 10
"""Lines with which an artifact is found."""
MAX_TEXTS: Final = 1000
"""Artifacts that are decoded for a page."""
MAX_BYTES: Final = 32_000_000
"""Bytes of their contents, searched or not."""
MAX_EXCERPT: Final = 160
"""Characters of an excerpt of a found line."""
BEFORE: Final = 40
"""Characters of them that are before the first word."""
SLICE: Final = 256 * 1024
"""Characters that are searched in one step, 1 to 3 ms: whole lines, or a part of a longer line."""
PIECE: Final = 64 * 1024
"""Characters that are folded at once: meanwhile no other thread can run."""
ELLIPSIS: Final = "…"
_NO_SPACE = re.compile(r"\S")

R = TypeVar("R")

TextPosition = tuple[datetime, str, str]
"""The position of an artifact in the order: when its context changed, the key of the context, and its own id."""


@dataclass(frozen=True, slots=True)
class TextQuery:
    """What is asked for.

    Attributes:
        owners, shared: as in `ContextQuery`.
        words: all of these (`words_of`); none finds nothing.
        after: artifacts after this position.
        limit: maximal number of artifacts.
    """

    owners: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    after: TextPosition | None = None
    limit: int = 50
    shared: tuple[ContextKey, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadText:
    """An artifact, decoded. `name`: its own; `size`: bytes of its content, which may have more than the text."""

    name: str = ""
    text: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class StoredText:
    """The current version of an artifact, not decoded yet.

    Attributes:
        title: what its context is called.
        read: decodes it, in a thread; None if there is none.
    """

    position: TextPosition
    context_id: ContextKey
    title: str
    version: int
    read: Callable[[], ReadText | None]


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line. `text`: its characters around the first word."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class FoundText:
    """An artifact with some of its lines. `name`: its own; `title`: that of its context."""

    context_id: ContextKey
    title: str
    artifact_id: str
    name: str
    version: int
    lines: tuple[FoundLine, ...]


@dataclass(frozen=True, slots=True)
class TextPage:
    """A page of the result. `next`: the next page has what comes after this position; None if this is the last page."""

    texts: tuple[FoundText, ...]
    next: TextPosition | None


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line of which a part was searched.

    Attributes:
        begin: its first character in the text.
        missing: the words that were not found in it yet.
        first: the place in the text of the first word that was.
    """

    begin: int
    missing: tuple[str, ...]
    first: int | None = None


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a text was searched: up to the character `at`, which begins the line `line` or is in it (`long`)."""

    at: int = 0
    line: int = 1
    lines: tuple[FoundLine, ...] = ()
    long: LongLine | None = None


async def search_texts(query: TextQuery, texts: AsyncGenerator[StoredText, None], turn: asyncio.Lock) -> TextPage:
    """A page of the artifacts that are found.

    Args:
        texts: those after `query.after`, in order (rule 2).
        turn: held during each step (rule 4).
    """
    if not query.words:
        return TextPage((), None)
    found: list[FoundText] = []
    last: TextPosition | None = None
    searched = size = 0
    async with aclosing(texts):
        while text := await _next_text(texts, turn):
            if len(found) == query.limit or searched == MAX_TEXTS or size >= MAX_BYTES:
                return TextPage(tuple(found), last)
            read = await _run_step(turn, text.read) or ReadText()
            lines = await _search(query.words, read.text, turn)
            searched, size, last = searched + 1, size + read.size, text.position
            if lines:
                found.append(FoundText(text.context_id, text.title, last[2], read.name, text.version, lines))
    return TextPage(tuple(found), None)


async def _next_text(texts: AsyncGenerator[StoredText, None], turn: asyncio.Lock) -> StoredText | None:
    async with turn:  # the texts that are fetched at once may be large
        return await anext(texts, None)


async def _search(words: tuple[str, ...], text: str, turn: asyncio.Lock) -> tuple[FoundLine, ...]:
    progress = SearchProgress()
    while progress.at < len(text) and len(progress.lines) < MAX_LINES:
        progress = await _run_step(turn, search_slice, words, text, progress)
    return progress.lines


async def _run_step(turn: asyncio.Lock, step: Callable[..., R], *args: object) -> R:
    async with turn:
        await round_robin().long_step()
        return await run_to_end(asyncio.create_task(asyncio.to_thread(step, *args)))


def search_slice(words: tuple[str, ...], text: str, progress: SearchProgress) -> SearchProgress:
    """Search the next slice: the lines that end in it, or a part of a line that does not."""
    end = min(progress.at + SLICE, len(text))
    if progress.long is None and end < len(text):
        end = text.rfind("\n", progress.at, end) + 1 or end
    if progress.long or (end < len(text) and text[end - 1] != "\n"):
        return _search_part(words, text, progress, end)
    part = text[progress.at : end]
    after = replace(progress, at=end, line=progress.line + part.count("\n"))
    folded = _fold(part)
    if not all(word in folded for word in words):
        return after
    wanted = MAX_LINES - len(progress.lines)
    lines = part.split("\n")
    found = [FoundLine(progress.line + each, excerpt(lines[each], words)) for each in _lines(words, folded, wanted)]
    return replace(after, lines=(*progress.lines, *found))


def _search_part(words: tuple[str, ...], text: str, progress: SearchProgress, end: int) -> SearchProgress:
    """Search a part of a long line, to its end or to `end`."""
    line = progress.long or LongLine(progress.at, words)
    newline = text.find("\n", progress.at, end)
    line_ends = newline >= 0 or end == len(text)
    end = newline if newline >= 0 else end
    line = _look_for_missing(line, text, progress.at, end)
    if line.missing and not line_ends:
        return replace(progress, at=end, long=line)
    newline = text.find("\n", end)
    end = newline if newline >= 0 else len(text)
    found = progress.lines
    if line.first is not None and not line.missing:
        found = (*found, FoundLine(progress.line, _around(text, line.begin, end, line.first)))
    return SearchProgress(min(end + 1, len(text)), progress.line + 1, found)


def _look_for_missing(line: LongLine, text: str, at: int, end: int) -> LongLine:
    """The line after its characters from `at` to `end`; a word may begin in those before."""
    begin = max(line.begin, at - max(map(len, line.missing)))
    part = text[begin:end]
    folded = _fold(part)
    places = {word: place for word in line.missing if (place := folded.find(word)) >= 0}
    if not places:
        return line
    first = begin + _place_in_original(part, min(places.values()))
    missing = tuple(word for word in line.missing if word not in places)
    return replace(line, missing=missing, first=first if line.first is None else min(line.first, first))


def is_after(position: TextPosition, other: TextPosition) -> bool:
    """Whether an artifact comes after another one (rule 2)."""
    return position[:2] < other[:2] or (position[:2] == other[:2] and position[2] > other[2])


def _lines(words: tuple[str, ...], folded: str, wanted: int) -> Iterator[int]:
    """The first lines that have all words; the first line is 0."""
    rarest = max(words, key=len)
    number = counted = 0
    at = folded.find(rarest)
    while at >= 0 and wanted:
        number, counted = number + folded.count("\n", counted, at), at
        end = folded.find("\n", at)
        end = len(folded) if end < 0 else end
        begin = folded.rfind("\n", 0, at) + 1
        if all(folded.find(word, begin, end) >= 0 for word in words):
            wanted -= 1
            yield number
        at = folded.find(rarest, end)


def excerpt(line: str, words: tuple[str, ...]) -> str:
    """The characters of a line around the first of the words in it, without spaces at its ends."""
    folded = _fold(line)
    first = _place_in_original(line, min(each for word in words if (each := folded.find(word)) >= 0))
    return _around(line, 0, len(line), first)


def _around(text: str, begin: int, end: int, first: int) -> str:
    """The excerpt of the line from `begin` to `end`, whose first word is at `first`."""
    start = max(begin, first - BEFORE) if end - begin > MAX_EXCERPT else begin
    stop = min(start + MAX_EXCERPT, end)
    before, after = (ELLIPSIS if _NO_SPACE.search(text, *cut) else "" for cut in ((begin, start), (stop, end)))
    return f"{before}{text[start:stop].strip()}{after}"


def _fold(text: str) -> str:
    # Character by character, so also piece by piece.
    return "".join([text[at : at + PIECE].casefold() for at in range(0, len(text), PIECE)])


def _place_in_original(text: str, place: int) -> int:
    """The place in a text, of one in the folded text, where a letter may be longer."""
    if text.isascii():
        return place
    at = 0
    for step in (PIECE, 1):
        while at < len(text) and (length := len(text[at : at + step].casefold())) <= place:
            at, place = at + step, place - length
    return min(at, len(text))
