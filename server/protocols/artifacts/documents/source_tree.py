"""pandoc's tree of a text, each node with its range of the source. Pure.

pandoc's `sourcepos` puts positions into attributes, and into wrappers around what has no attributes.

Rule 1: a node of this tree is pandoc's, with `at`: the range in characters of the text. The wrappers are gone, and the
        tree is otherwise the one that pandoc makes without positions; words may be in pieces.
Rule 2: pandoc counts lines and columns, without carriage returns, and with tabs as spaces up to the next multiple of 4.
Rule 3: what has no position (a line break inside a paragraph, the box of a task) is between its neighbours. So is a
        word that is not what its range has, unless that has an escape or an entity: the position would be wrong.
Rule 4: the items of a list are nodes, `Item`, so that lists are compared as other nodes are; `plain_list` undoes that.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

Node = dict[str, Any]
Range = tuple[int, int]

SOURCE_POSITIONS: Final = "+sourcepos"
"""pandoc's extension."""
ITEM: Final = "Item"
_POSITION = "data-pos"
_TAB = 4
_RANGE = re.compile(r"(\d+):(\d+)-(\d+):(\d+)")
_WRAPPERS = ("Span", "Div")
_BOXES = ("☐", "☒")
_ATTRIBUTES_AT = {"Header": 1, "CodeBlock": 0, "Code": 0, "Link": 0, "Image": 0, "Table": 0}
"""Where the attributes of a node are in its content."""
_CHILDREN_AT = {"Header": 2, "Link": 1, "Image": 1, "Quoted": 1, "OrderedList": 1}
_ALL_CHILDREN = {
    *("Para", "Plain", "Emph", "Strong", "Strikeout", "Underline", "Superscript", "Subscript", "SmallCaps"),
    *("Note", "BlockQuote", "BulletList", ITEM),
}
LEAVES: Final = {"Str", "Space", "SoftBreak", "LineBreak", "Code", "Math", "Image", "Note", "CodeBlock"}
"""What is deleted or inserted as a whole, and is text in a word processor."""


def locate(blocks: Sequence[Node], text: str) -> list[Node]:
    """The tree of the blocks by rule 1.

    Raises:
        RecursionError: they are nested too deeply.
    """
    return _Locator(text).nodes(blocks, (0, len(text)))


def child_lists(node: Node) -> list[list[Node]]:
    """The lists of nodes in a node: one, but for tables, which have one for each cell; none of other leaves."""
    kind, content = node["t"], node.get("c")
    if kind in _ALL_CHILDREN:
        return [content or []]
    if kind == "Table":
        return [cell[4] for cell in _cells(content)]
    return [(content or [])[_CHILDREN_AT[kind]]] if kind in _CHILDREN_AT else []


def with_lists(node: Node, lists: Sequence[list[Node]]) -> Node:
    """The node with other lists in the place of its own."""
    kind, content = node["t"], node.get("c")
    if kind in _ALL_CHILDREN:
        return {**node, "c": lists[0]}
    if kind == "Table":
        return {**node, "c": _with_cells(content, iter(lists))}
    if kind in _CHILDREN_AT:
        at = _CHILDREN_AT[kind]
        return {**node, "c": [*(content or [])[:at], lists[0], *(content or [])[at + 1 :]]}
    return node


def plain_list(node: Node) -> Node:
    """A list with its items as pandoc has them; any other node as it is."""
    if node["t"] not in ("BulletList", "OrderedList"):
        return node
    (items,) = child_lists(node)
    return with_lists(node, [[item["c"] for item in items]])


def leaves(nodes: Sequence[Node]) -> Iterator[Node]:
    """The leaves of a tree in their order; what is in a footnote is not among them."""
    for node in nodes:
        if node["t"] in LEAVES:
            yield node
        else:
            for some in child_lists(node):
                yield from leaves(some)


def source_range(node: Node) -> Range:
    """The range of a node; of a footnote that of its text."""
    inner = [each["at"] for each in leaves(node["c"])] if node["t"] == "Note" else []
    start, end = (inner[0][0], inner[-1][1]) if inner else node["at"]
    return start, end


def is_verbatim(node: Node, text: str) -> bool:
    """Whether a leaf is the characters of its range."""
    start, end = node["at"]
    return bool(node["t"] == "Str" and text[start:end] == node["c"])


def _cells(content: Any) -> Iterator[Any]:
    for rows in _row_groups(content):
        for row in rows:
            yield from row[1]


def _row_groups(content: Any) -> list[Any]:
    _, _, _, head, bodies, foot = content
    return [head[1], *(rows for section in bodies for rows in section[2:]), foot[1]]


def _with_cells(content: Any, lists: Iterator[list[Node]]) -> Any:
    attributes, caption, columns, head, bodies, foot = content

    def renew(rows: Any) -> Any:
        return [[row[0], [[*cell[:4], next(lists)] for cell in row[1]]] for row in rows]

    head = [head[0], renew(head[1])]
    bodies = [[*section[:2], *map(renew, section[2:])] for section in bodies]
    return [attributes, caption, columns, head, bodies, [foot[0], renew(foot[1])]]


class _Locator:
    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._columns: dict[int, Sequence[int]] = {}

    def nodes(self, values: Sequence[Node], around: Range) -> list[Node]:
        if values and isinstance(values[0], list):
            return self._items(values, around)
        found = _fill([each for value in values for each in self._unwrap(value, None)], around)
        return [self._with_children(node) for node in found]

    def _items(self, items: Sequence[Any], around: Range) -> list[Node]:
        found = []
        for item in items:
            blocks = _with_box(self.nodes(item, around))
            at = (blocks[0]["at"][0], blocks[-1]["at"][1]) if blocks else None
            found.append({"t": ITEM, "c": blocks, "at": at})
        return _fill(found, around)

    def _with_children(self, node: Node) -> Node:
        lists = child_lists(node)
        return with_lists(node, [self.nodes(each, node["at"]) for each in lists]) if lists else node

    def _unwrap(self, node: Node, at: Range | None) -> Iterator[Node]:
        kind, content = node["t"], node.get("c")
        if kind in _WRAPPERS and content:
            within = self._range(content[0]) or at
            for each in content[1]:
                yield from self._unwrap(each, within)
            return
        if kind in _ATTRIBUTES_AT and content:
            index = _ATTRIBUTES_AT[kind]
            at = self._range(content[index]) or at
            content = [*content]
            content[index] = _without_positions(content[index])
            node = {**node, "c": content}
        yield {**node, "at": at if self._may_be(node, at) else None}

    def _may_be(self, node: Node, at: Range | None) -> bool:
        if at is None or node["t"] != "Str":
            return True
        source = self._text[slice(*at)]
        return source == node["c"] or "\\" in source or "&" in source

    def _range(self, attributes: Any) -> Range | None:
        places = [value for name, value in attributes[2] if name == _POSITION]
        found = [tuple(map(int, each)) for each in _RANGE.findall(places[-1])] if places else []
        if not found:
            return None
        start, end = self._offset(*found[0][:2]), self._offset(*found[-1][2:])
        return (start, end) if start <= end else None

    def _offset(self, line: int, column: int) -> int:
        if line > len(self._lines):
            return len(self._text)
        content = self._lines[line - 1]
        if line not in self._columns:
            self._columns[line] = [*_columns(content)] if "\t" in content or "\r" in content else ()
        columns = self._columns[line]
        index = bisect_left(columns, column) if columns else min(column - 1, len(content))
        return self._starts[line - 1] + index


def _columns(line: str) -> Iterator[int]:
    """The column of each character, as pandoc counts (rule 2)."""
    column = 1
    for character in line:
        yield column
        if character == "\t":
            column += _TAB - (column - 1) % _TAB
        elif character != "\r":
            column += 1


def _without_positions(attributes: Any) -> Any:
    return [*attributes[:2], [each for each in attributes[2] if each[0] != _POSITION]]


def _fill(nodes: list[Node], around: Range) -> list[Node]:
    """Rule 3: what has no position gets one between its neighbours, so that ranges follow each other."""
    following = [around[1]]
    for node in reversed(nodes):
        following.append(node["at"][0] if node["at"] else following[-1])
    reached = around[0]
    for node, later in zip(nodes, following[-2::-1], strict=True):
        node["at"] = node["at"] or (reached, max(reached, later))
        reached = node["at"][1]
    return nodes


def _with_box(blocks: list[Node]) -> list[Node]:
    """The blocks of an item with the box of a task at the beginning of its text, as pandoc has it without positions."""
    for first, second in pairwise(blocks[:2]):
        inlines = first["c"] if first["t"] == "Plain" else []
        if [each.get("c") for each in inlines] in [[box] for box in _BOXES] and second["t"] in ("Plain", "Para"):
            begin = second["at"][0]
            marks = [{**each, "at": (begin, begin)} for each in (*inlines, {"t": "Space"})]
            return [{**second, "c": [*marks, *second["c"]]}, *blocks[2:]]
    return blocks
