"""Where request bodies are parsed: small ones on the event loop, large ones in a thread that all users share.

Rules:
1. A body of up to PARSED_AT_ONCE is parsed on the event loop, which takes milliseconds. A larger one is parsed in a
   thread, so that other requests continue, and one at a time: each thread that computes takes the interpreter from the
   event loop.
2. Users share the thread by time. Of those that wait, the user that has had the least of it is next, however many
   bodies the others send; of one user, the first that came. Time that a user did not use is not saved up.
3. A thread that computes cannot be stopped. If its caller leaves, the next body waits until the thread has ended, and
   the user has had its time all the same.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

SMALL_BODY_BYTES: Final = 64 * 1024
"""Bodies of up to this size are small: they do not count (`bodies.py`), and only messages may be larger."""
PARSED_AT_ONCE: Final = 8 * 1024
"""Bytes. A body of this size has at most a few thousand values; one of 64 KB, with 10,000, takes up to 0.4 s."""

T = TypeVar("T")


class TimeShares(Generic[T]):
    """Waiting items of users, in the order of rule 2. Pure."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        self._used: dict[str, float] = {}
        self._least = 0.0

    def add(self, user: str, item: T) -> None:
        self._used[user] = max(self._used.get(user, 0.0), self._least)
        self._waiting.setdefault(user, deque()).append(item)

    def remove(self, user: str, item: T) -> None:
        """Remove an item, if it still waits."""
        if item in self._waiting.get(user, ()):
            self._waiting[user].remove(item)
            self._forget(user)

    def take(self) -> T | None:
        """Remove and return the next item; None if there is none."""
        if not self._waiting:
            return None
        user = min(self._waiting, key=self._used.__getitem__)
        self._least = self._used[user]
        item = self._waiting[user].popleft()
        self._forget(user)
        return item

    def charge(self, user: str, seconds: float) -> None:
        """A user has had the thread for so long."""
        self._used[user] = max(self._used.get(user, 0.0), self._least) + seconds
        if not self._waiting:
            self._used.clear()
            self._least = 0.0

    def _forget(self, user: str) -> None:
        if not self._waiting[user]:
            del self._waiting[user]


class ParsingThread:
    """Runs what parses bodies (rule 1)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._shares: TimeShares[asyncio.Future[None]] = TimeShares()
        self._busy = False
        self._clock = clock

    async def run(self, user: str, size: int, parse: Callable[[], T]) -> T:
        """What `parse` returns, or raises.

        Args:
            user: the account of the caller.
            size: bytes of the body.
        """
        if size <= PARSED_AT_ONCE:
            return parse()
        await self._turn(user)
        parsed = asyncio.ensure_future(asyncio.to_thread(parse))
        parsed.add_done_callback(partial(self._parsed, user, self._clock()))
        return await asyncio.shield(parsed)

    def _parsed(self, user: str, begun: float, parsed: asyncio.Future[Any]) -> None:
        if not parsed.cancelled():
            parsed.exception()  # which nobody reads if the caller has gone
        self._shares.charge(user, self._clock() - begun)
        self._next()

    async def _turn(self, user: str) -> None:
        if not self._busy:
            self._busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._shares.add(user, turn)
        try:
            await turn
        except asyncio.CancelledError:
            self._shares.remove(user, turn)
            if turn.done() and not turn.cancelled():
                self._next()
            raise

    def _next(self) -> None:
        turn = self._shares.take()
        self._busy = turn is not None
        if turn:
            turn.set_result(None)
