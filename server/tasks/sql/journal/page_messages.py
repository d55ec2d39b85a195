"""Pages as messages to the servers that follow their task or its context. Pure.

Rule 1: a message has what its reader needs to show the page without the database: the contents of the versions and the
        files that its entries name are in the entries, and the context's incarnation and position are beside them. A
        page that would be larger than `MAX_BYTES` is announced by its numbers alone.
Rule 2: a page is in order if its reader has all pages before it, of the same epoch. Others are not shown: the database
        is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from a2a_canvas.server.tasks.codec import entries_to_json, files_of_json, names_of_json
from a2a_canvas.server.tasks.sql.projections.journal_commit import StagedTask
from a2a_canvas.server.tasks.sql.projections.pages import stored_entries
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.text.unicode import replace_unstorable

MAX_BYTES = 64 * 1024
"""Of the entries, as they are sent."""
SILENCE_SECONDS = 1.0
"""For so long after a page in order, nothing new is looked for in the database."""


@dataclass(frozen=True, slots=True)
class PageMessage:
    """A committed page.

    Attributes:
        first, last, epoch, position: as in its row.
        incarnation: of the context; None if the page has none of its changes.
        entries: as in its row, but with all contents; None if it has to be read.
    """

    context_id: ContextKey
    task_id: str
    epoch: int
    first: int
    last: int
    position: int | None = None
    incarnation: int | None = None
    entries: bytes | None = None

    def encode(self) -> bytes:
        numbers = [self.epoch, self.first, self.last, self.position, self.incarnation]
        head = json.dumps([self.context_id, self.task_id, *numbers, self.entries is not None])
        return head.encode() + b"\n" + (self.entries or b"")

    @staticmethod
    def decode(payload: bytes) -> PageMessage:
        """Raises `ValueError` if it is none."""
        head, _, entries = payload.partition(b"\n")
        context_id, task_id, epoch, first, last, position, incarnation, whole = json.loads(head)
        numbers = epoch, first, last, position, incarnation
        return PageMessage(ContextKey(context_id), task_id, *numbers, entries if whole else None)


def page_message(task: StagedTask) -> PageMessage | None:
    """The page that was written of a task; None if there is none."""
    if (row := task.page) is None:
        return None
    epoch, first, last, position = (row[name] for name in ("epoch", "first", "last", "position"))
    incarnation = task.incarnation if position is not None else None
    entries = row["entries"]
    if row["named"]:
        files, versions = files_of_json(row["named"]), names_of_json(row["named"])
        named = sum(each.size for each in files) + sum(each.size for each in versions)
        entries = stored_entries(entries_to_json(task.batch.entries)) if named <= MAX_BYTES else None
    small = entries is not None and len(entries) <= MAX_BYTES
    numbers = epoch, first, last, position, incarnation
    return PageMessage(stored_key(task.context_id), task.task_id, *numbers, entries if small else None)


def stored_key(context_id: ContextKey) -> ContextKey:
    """The key of a context as rows have it."""
    return ContextKey(replace_unstorable(context_id))


PageKey = tuple[ContextKey, str | None]
"""A context and one of its tasks; None for all of them."""


class PageWire(Protocol):
    """Sends pages to other servers, and receives theirs."""

    def publish(self, page: PageMessage) -> None: ...

    def follow(self, key: PageKey, receive: Callable[[PageMessage | None], None], ready: Callable[[], None]) -> None:
        """Receive the pages of a key until `unfollow`.

        Args:
            receive: takes each page; None for one that cannot be trusted.
            ready: called whenever none is missed from then on.
        """
        ...

    def unfollow(self, key: PageKey) -> None: ...
