"""Who is next: a queue that is fair between contexts. Pure.

Rule 1: within a context: first come, first served.
Rule 2: between contexts: round robin. One of each context that waits, then the second of each, and so on; a context
        that has just been served, or is new, is the last.
Rule 3: what had begun before (its server is gone) is served before what has not; among those, rules 1 and 2.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

_Ring = dict[str, dict[T, None]]
"""What waits, by context: the contexts in the order in which they are served next."""


class FairQueue(Generic[T]):
    """Items that wait, each for a context. It iterates them in the order in which they would be served."""

    def __init__(self) -> None:
        self._begun: _Ring[T] = {}
        self._fresh: _Ring[T] = {}
        self._places: dict[T, tuple[_Ring[T], str]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, item: T) -> bool:
        return item in self._places

    def __iter__(self) -> Iterator[T]:
        yield from _in_order(self._begun)
        yield from _in_order(self._fresh)

    def add(self, item: T, context_id: str, *, begun: bool = False) -> None:
        """Let an item wait (rule 3: `begun`)."""
        ring = self._begun if begun else self._fresh
        ring.setdefault(context_id, {})[item] = None
        self._places[item] = ring, context_id

    def remove(self, item: T) -> None:
        """An item does not wait any more, wherever it stood. The order of the others stays."""
        ring, context_id = self._places.pop(item)
        del ring[context_id][item]
        if not ring[context_id]:
            del ring[context_id]

    def take(self) -> T:
        """Serve the first; there must be one."""
        ring = self._begun or self._fresh
        context_id, items = next(iter(ring.items()))
        first = next(iter(items))
        self.remove(first)
        if context_id in ring:
            ring[context_id] = ring.pop(context_id)  # the last from now on
        return first


def _in_order(ring: _Ring[T]) -> Iterator[T]:
    contexts = [iter(items) for items in ring.values()]
    while contexts:
        served = [(next(items, None), items) for items in contexts]
        contexts = [items for item, items in served if item is not None]
        yield from (item for item, _ in served if item is not None)
