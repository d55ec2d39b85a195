"""Two trees of a text, without and with its suggestions, as one with tracked changes and comments. Pure.

Rule 1: the trees are those of the two texts, each parsed as a whole, so a word processor that rejects all changes has
        the text, and one that accepts all has the text with the suggestions. Where a node of the one is in the other
        follows from the edits between the texts, not from a comparison.
Rule 2: what is only in the first tree is deleted, what is only in the second is inserted: words, blocks of code,
        paragraphs. Each is a change by the author of the suggestion that touches it.
Rule 3: word processors do not track the shape of a table, nor a rule between paragraphs. Suggestions that change one
        are named in `untracked`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from a2a_canvas.server.protocols.artifacts.documents.source_tree import (
    LEAVES,
    Node,
    child_lists,
    source_range,
    with_lists,
)
from a2a_canvas.server.protocols.artifacts.documents.text_edits import TextEdits

INSERTION, DELETION = "insertion", "deletion"
_PARAGRAPHS = ("Para", "Plain", "Header")
_OWN = ("at", "change")
"""What nodes have besides pandoc's own."""


class Tracker:
    """Makes one tree of two.

    Args:
        edits: between the two texts.

    Attributes:
        untracked: the keys of the suggestions that cannot be tracked; the tree is not to be used then.
    """

    def __init__(self, edits: TextEdits) -> None:
        self._edits = edits
        self.untracked: set[int] = set()

    def merge(self, olds: Sequence[Node], news: Sequence[Node]) -> list[Node]:
        """The nodes of both, each once.

        Raises:
            RecursionError: they are nested too deeply.
        """
        by_start: defaultdict[int, list[int]] = defaultdict(list)
        for index, node in enumerate(news):
            by_start[node["at"][0]].append(index)
        merged: list[Node] = []
        waiting: list[Node] = []
        done = 0
        for node in olds:
            index = self._counterpart(node, news, by_start, done)
            if index < 0:
                waiting.append(node)
                continue
            merged += [self._mark_change(each, DELETION) for each in waiting]
            merged += [self._mark_change(each, INSERTION) for each in news[done:index]]
            merged.append(self._both(node, news[index]))
            waiting, done = [], index + 1
        merged += [self._mark_change(each, DELETION) for each in waiting]
        return merged + [self._mark_change(each, INSERTION) for each in news[done:]]

    def _counterpart(self, node: Node, news: Sequence[Node], by_start: dict[int, list[int]], least: int) -> int:
        for start in self._edits.find_places(node["at"][0]):
            for index in by_start.get(start, ()):
                if index >= least and _is_same(node, news[index]):
                    return index
        return -1

    def _both(self, old: Node, new: Node) -> Node:
        lists = child_lists(old)
        if not lists or old["t"] in LEAVES:
            return old
        return with_lists(old, [self.merge(*each) for each in zip(lists, child_lists(new), strict=True)])

    def _mark_change(self, node: Node, change: str) -> Node:
        kind = node["t"]
        owners = self._edits.owners(source_range(node), inserted=change == INSERTION)
        if kind in LEAVES:
            return {**node, "change": (change, owners[0])}
        if kind == "Table" or not child_lists(node):
            self.untracked.update(owners)
            return node
        if kind == "Header" and change == DELETION:  # its name is that of the heading which replaces it
            node = {**node, "c": [node["c"][0], ["", [], []], node["c"][2]]}
        changed = with_lists(node, [[self._mark_change(each, change) for each in some] for some in child_lists(node)])
        return {**changed, "change": (change, owners[0])} if kind in _PARAGRAPHS else changed


def _is_same(old: Node, new: Node) -> bool:
    """Whether the one can become the other by changes of what is in it."""
    return bool(_kind(old) == _kind(new) and _shell(old) == _shell(new))


def _kind(node: Node) -> str:
    return "Para" if node["t"] == "Plain" else node["t"]


def _shell(node: Node) -> Any:
    """What has to be the same in both trees: a leaf, all but the children of other nodes, the shape of a table."""
    lists = child_lists(node)
    match node["t"]:
        case "Para" | "Plain":
            return None
        case "Header":
            return node["c"][0]  # its name follows from its text
        case kind if kind in LEAVES or not lists:
            return bare(node)
        case "Table":
            return bare(with_lists(node, [[{"t": each["t"]} for each in cell] for cell in lists]))
        case _:
            return bare(with_lists(node, [[]]))


def bare(node: Node) -> Node:
    """The node as pandoc has it: without ranges and changes."""
    return {name: _bare(each) for name, each in node.items() if name not in _OWN}


def _bare(value: Any) -> Any:
    match value:
        case dict():
            return bare(value)
        case list():
            return [_bare(each) for each in value]
        case _:
            return value
