"""Which tasks and contexts are followed here, so that a broker brings their pages.

Rule 1: a page in order is shown as it came. After any other, and after `SILENCE_SECONDS` without one, the database is
        read.
Rule 2: a page that cannot be trusted is read by the next poll: at once, a forger could have us read all the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, TypeVar

from a2a_canvas.server.tasks.sql.journal.page_messages import SILENCE_SECONDS, PageKey, PageMessage, PageWire

T = TypeVar("T", bound=str)


class FollowedPages(Generic[T]):
    """The pages of what is followed here.

    Args:
        receive: takes each page of a task or context; None for one that cannot be trusted.
        read: reads what is new of it from the database.

    Attributes:
        wire: brings the pages; None without a broker.
    """

    def __init__(self, receive: Callable[[T, PageMessage | None], None], read: Callable[[T], None]) -> None:
        self.wire: PageWire | None = None
        self._keys: dict[T, PageKey] = {}
        self._receive = receive
        self._read = read

    def follow(self, name: T, key: PageKey) -> None:
        """Have the pages of a task or context brought. Those that were committed before are read."""
        if self.wire and name not in self._keys:
            self._keys[name] = key
            self.wire.follow(key, partial(self._receive, name), partial(self._read, name))

    def follow_only(self, keys: Mapping[T, PageKey]) -> None:
        """Have the pages of these brought, and no others."""
        if self.wire:
            for name in self._keys.keys() - keys.keys():
                self.wire.unfollow(self._keys.pop(name))
            for name, key in keys.items():
                self.follow(name, key)


def is_current(received_at: float) -> bool:
    """Whether a page in order has just been shown, so that there is nothing to be read.

    Args:
        received_at: when one was shown last, in monotonic seconds.
    """
    return time.monotonic() - received_at < SILENCE_SECONDS
