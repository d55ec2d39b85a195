"""A tree with changes and comments, as pandoc's writer of Word files takes it. Pure.

Rule 1: a change is a span around what it changes; links are outside of it, as Word wants them.
Rule 2: pandoc does not write that the end of a paragraph was inserted or deleted. Such a paragraph ends with a marker,
        which `paragraph_ends.py` replaces in the file. No text can contain one: in a file, `<` of a text is escaped.
Rule 3: a comment covers what its passage has in the document. Words are cut for it; a footnote, a formula and code are
        covered whole. If the passage has nothing there, the comment is at its place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from a2a_canvas.server.protocols.artifacts.documents.paragraph_ends import end_marker
from a2a_canvas.server.protocols.artifacts.documents.source_tree import (
    LEAVES,
    Node,
    child_lists,
    is_verbatim,
    leaves,
    plain_list,
    source_range,
    with_lists,
)
from a2a_canvas.server.protocols.artifacts.documents.tracked_tree import INSERTION, bare
from a2a_canvas.store.text.spans import Span

_Place = tuple[int, int]
"""A leaf of the document, by its number, and how much of it is before the place."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Who made a change or a comment, and when, in ISO 8601."""

    by: str
    at: str


@dataclass(frozen=True, slots=True)
class WordComment:
    """A comment: its text, and whose it is."""

    signature: Signature
    text: str


class WordTree:
    """The tree of a document, to which comments are added.

    Args:
        blocks: a tree by `source_tree.py`, with the changes of `tracked_tree.py`.
        text: the source without the changes.
        signatures: of the suggestions that made the changes, by their keys.
    """

    def __init__(self, blocks: Sequence[Node], text: str, signatures: Mapping[int, Signature]) -> None:
        self._blocks, self._text, self._signatures = blocks, text, signatures
        self._leaves = [*leaves(blocks)]
        self._old = [n for n, each in enumerate(self._leaves) if each.get("change", ("",))[0] != INSERTION]
        self._changed: dict[int, tuple[int, int]] = {}
        for number, leaf in enumerate(self._leaves):
            if change := leaf.get("change"):
                first, _ = self._changed.get(change[1], (number, number))
                self._changed[change[1]] = first, number
        ranges = [self._leaves[n]["at"] for n in self._old]
        self._starts, self._ends = ([*accumulate((each[side] for each in ranges), max)] for side in (0, 1))
        # Of several references to one footnote the first is found.
        self._notes = sorted((source_range(self._leaves[n]), -n) for n in self._old if self._leaves[n]["t"] == "Note")
        self._events: defaultdict[int, list[tuple[int, Node]]] = defaultdict(list)
        self._comments = 0

    def comment_on_change(self, key: int, comments: Iterable[WordComment]) -> bool:
        """Adds comments on what a suggestion changes; False if that is nothing."""
        if key not in self._changed:
            return False
        first, last = self._changed[key]
        self._add((first, 0), (last, self._size(last)), comments)
        return True

    def comment_on_passage(self, span: Span, comments: Iterable[WordComment]) -> None:
        """Adds comments on a passage of the text."""
        if self._old:
            self._add(*self._anchor(span), comments)

    def blocks(self) -> list[Node]:
        """The blocks for the writer."""
        return self._render(self._blocks, iter(range(len(self._leaves))))

    # -------------------------------------------------------------------- comments

    def _add(self, start: _Place, end: _Place, comments: Iterable[WordComment]) -> None:
        for each in comments:
            number = ["id", str(self._comments)]
            self._comments += 1
            signed = [number, *_attributes(each.signature)]
            words = [*_lines(each.text)]
            for (leaf, offset), mark in (
                (start, {"t": "Span", "c": [["", ["comment-start"], signed], words]}),
                (end, {"t": "Span", "c": [["", ["comment-end"], [number]], []]}),
            ):
                self._events[leaf].append((offset, mark))

    def _anchor(self, span: Span) -> tuple[_Place, _Place]:
        first, last = bisect_right(self._ends, span.start), bisect_left(self._starts, span.end) - 1
        if span.start < span.end and first <= last:
            return self._place(first, span.start, False), self._place(last, span.end, True)
        if (number := self._find_note(span.start)) is not None:
            return (number, 0), (number, 1)
        if first < len(self._old):
            place = self._place(first, span.start, False)
        else:
            place = (self._old[-1], self._size(self._old[-1]))
        return place, place

    def _find_note(self, offset: int) -> int | None:
        """The footnote whose text has a place."""
        before = bisect_right(self._notes, offset, key=lambda note: note[0][0])
        (_, end), negative = self._notes[before - 1] if before else ((0, -1), 0)
        return -negative if offset <= end else None

    def _place(self, index: int, offset: int, is_end: bool) -> _Place:
        number = self._old[index]
        leaf = self._leaves[number]
        start, end = leaf["at"]
        if start < offset < end and is_verbatim(leaf, self._text):
            return number, offset - start
        return number, self._size(number) if is_end else 0

    def _size(self, number: int) -> int:
        leaf = self._leaves[number]
        return len(leaf["c"]) if leaf["t"] == "Str" else 1

    # ------------------------------------------------------------------- rendering

    def _render(self, nodes: Sequence[Node], numbers: Iterator[int]) -> list[Node]:
        pieces: list[tuple[Any, Node]] = []  # the change of each, and the node
        for node in nodes:
            if node["t"] not in LEAVES:
                pieces.append((None, self._container(node, numbers)))
                continue
            number = next(numbers)
            if node["t"] == "CodeBlock":
                pieces.append((None, self._code_block(node, number)))
            else:
                pieces += self._cut(node, number)
        rendered: list[Node] = []
        for change, some in groupby(pieces, key=lambda piece: piece[0]):
            inner = [each for _, each in some]
            rendered += [self._span(change, inner)] if change else inner
        return rendered

    def _container(self, node: Node, numbers: Iterator[int]) -> Node:
        lists = [self._render(each, numbers) for each in child_lists(node)]
        if change := node.get("change"):
            lists[0].append(self._end(change))
        return plain_list(bare(with_lists(node, lists) if lists else node))

    def _code_block(self, node: Node, number: int) -> Node:
        """As pandoc writes it, but that it may be changed and have comments."""
        if not node.get("change") and number not in self._events:
            return bare(node)
        code = {
            **node,
            "t": "Code",
            "c": [["", [], []], node["c"][1]],
        }  # without colours: pandoc deletes no coloured text
        inner = [self._span(change, [each]) if change else each for change, each in self._cut(code, number)]
        if change := node.get("change"):
            inner.append(self._end(change))
        style = ["", [], [["custom-style", "Source Code"]]]
        return {"t": "Div", "c": [style, [{"t": "Para", "c": inner}]]}

    def _cut(self, leaf: Node, number: int) -> Iterator[tuple[Any, Node]]:
        change, node, done = leaf.get("change"), bare(leaf), 0
        for offset, event in sorted(self._events.get(number, ()), key=lambda each: each[0]):
            if offset > done:
                yield change, {**node, "c": node["c"][done:offset]} if node["t"] == "Str" else node
                done = offset
            yield None, event
        if done < self._size(number):
            yield change, {**node, "c": node["c"][done:]} if node["t"] == "Str" else node

    def _span(self, change: tuple[str, int], inlines: list[Node]) -> Node:
        kind, key = change
        return {"t": "Span", "c": [["", [kind], _attributes(self._signatures[key])], inlines]}

    def _end(self, change: tuple[str, int]) -> Node:
        signature = self._signatures[change[1]]
        return {"t": "RawInline", "c": ["openxml", end_marker(change[0], signature.by, signature.at)]}


def _attributes(signature: Signature) -> list[list[str]]:
    return [["author", signature.by], ["date", signature.at]]


def _lines(text: str) -> Iterator[Node]:
    for number, line in enumerate(text.splitlines()):
        if number:
            yield {"t": "LineBreak"}
        yield {"t": "Str", "c": line}
