"""Events that many readers get, as they are sent: each is encoded for the first of them, and kept for the others.

Rule 1: what is a reader's own, such as JSON-RPC's `id`, is no part of these bytes: it is put around them.
Rule 2: the newest are kept, up to a number of bytes. What a slow reader needs later is encoded again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

from a2a_canvas.server.tasks.record import Entry

E = TypeVar("E")

MAX_ENCODED_BYTES: Final = 8 * 2**20
"""Of one server: the last seconds of 40 tasks at 50 deltas a second, each read in several forms."""

OVERHEAD_BYTES: Final = 300
"""What an encoded event takes in memory beside its own bytes."""


class EncodedEvents:
    """The newest encoded events of a server."""

    def __init__(self, max_bytes: int = MAX_ENCODED_BYTES) -> None:
        self._left = max_bytes
        self._encoded: OrderedDict[Hashable, bytes] = OrderedDict()

    def encode(self, key: Hashable, make: Callable[[], E], write: Callable[[E], bytes]) -> bytes:
        """What `write` makes of the event that `make` makes; neither is called if it is kept under `key`."""
        found = self._encoded.get(key)
        if found is None:
            found = self._encoded[key] = write(make())
            self._left -= len(found) + OVERHEAD_BYTES
            while self._left < 0:
                _, oldest = self._encoded.popitem(last=False)
                self._left += len(oldest) + OVERHEAD_BYTES
        return found


def identity_of(entry: Entry) -> tuple[int, int, type]:
    """What distinguishes an entry from all others of its task. In the database, the whole input of a call has the
    number of the end of its block (`journal/task_log.py`, rule 3)."""
    return entry.epoch, entry.generation, type(entry.event)
