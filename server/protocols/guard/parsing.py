"""Parses request bodies: small ones on the event loop, large ones in a thread that all users share.

Rules:
1. A body of up to INLINE_PARSE_BYTES is parsed on the event loop, which takes milliseconds. A larger one is parsed in a
   thread, so that other requests continue, and one at a time: each computing thread takes the interpreter from the
   event loop.
2. Users share the thread by time. The next body is from the waiting user that has used the thread least recently,
   however many bodies the others send; the bodies of one user are parsed in order.
3. A computing thread cannot be stopped. If its caller leaves, the next body waits until the thread has finished, and
   the time still counts for the user.
4. After a body the thread rests REST_FACTOR times as long as it took, and leaves the interpreter to everything else.
   Requests change threads about ten times and wait for the interpreter each time: without the rests, a parser that is
   always busy makes them several times slower. A user who has hardly used the thread lately does not wait for a rest.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

SMALL_BODY_BYTES: Final = 64 * 1024
"""Bodies of up to this size are small: they do not count (`bodies.py`), and only messages may be larger."""
INLINE_PARSE_BYTES: Final = 8 * 1024
"""Bytes. A body of this size has at most a few thousand values; one of 64 KB, with 10,000, takes up to 0.4 s."""

HALF_LIFE: Final = 2.0
"""Seconds after which half of a user's recent time is forgotten."""
REST_FACTOR: Final = 2
"""With 1, the writes of a user among six others that send the worst bodies waited 1.5 times as long."""
LIGHT_USE_SECONDS: Final = 0.02
"""Seconds of the thread that a message of one megabyte takes: a user with less does not wait for a rest."""

T = TypeVar("T")


class TimeShares(Generic[T]):
    """Waiting items of users, in the order of rule 2.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: dict[str, deque[T]] = {}
        self._used: dict[str, tuple[float, float]] = {}  # seconds, and when they were charged

    def add(self, user: str, item: T) -> None:
        self._waiting.setdefault(user, deque()).append(item)

    def remove(self, user: str, item: T) -> None:
        """Remove an item if it is still waiting."""
        if item in self._waiting.get(user, ()):
            self._waiting[user].remove(item)
            self._forget(user)

    @property
    def next_user(self) -> str | None:
        """The user whose item is next; None if none is waiting."""
        return min(self._waiting, key=self.recent_seconds, default=None)

    def take(self, user: str) -> T:
        """Remove and return the first item of a user who has one."""
        item = self._waiting[user].popleft()
        self._forget(user)
        return item

    def recent_seconds(self, user: str) -> float:
        """The seconds that a user has had the thread recently (`HALF_LIFE`)."""
        seconds, at = self._used.get(user, (0.0, 0.0))
        return seconds * math.pow(0.5, (self._clock() - at) / HALF_LIFE)

    def charge(self, user: str, seconds: float) -> None:
        """Add to the time that a user has had the thread."""
        self._used[user] = (self.recent_seconds(user) + seconds, self._clock())
        self._used = {
            each: used for each, used in self._used.items() if self.recent_seconds(each) > LIGHT_USE_SECONDS / 100
        }

    def _forget(self, user: str) -> None:
        if not self._waiting[user]:
            del self._waiting[user]


class ParsingThread:
    """Runs the parsers of bodies (rule 1)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._shares: TimeShares[asyncio.Future[None]] = TimeShares(clock)
        self._clock = clock
        self._busy = False
        self._rested_at = 0.0
        self._resting: asyncio.TimerHandle | None = None

    async def run(self, user: str, size: int, parse: Callable[[], T]) -> T:
        """Returns or raises what `parse` does.

        Args:
            user: the account of the caller.
            size: bytes of the body.
        """
        if size <= INLINE_PARSE_BYTES:
            return parse()
        await self._turn(user)
        parsed = asyncio.ensure_future(asyncio.to_thread(parse))
        parsed.add_done_callback(partial(self._finish, user, self._clock()))
        return await asyncio.shield(parsed)

    def _finish(self, user: str, begun: float, parsed: asyncio.Future[Any]) -> None:
        if not parsed.cancelled():
            parsed.exception()  # retrieved here in case the caller has left
        took = self._clock() - begun
        self._shares.charge(user, took)
        self._rested_at = self._clock() + REST_FACTOR * took
        self._busy = False
        self._next()

    async def _turn(self, user: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._shares.add(user, turn)
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            self._shares.remove(user, turn)
            if turn.done() and not turn.cancelled():
                self._busy = False
                self._next()
            raise

    def _next(self) -> None:
        """Give the thread to the next user if it is free, after a rest if one is due (rule 4)."""
        if self._resting:
            self._resting.cancel()
            self._resting = None
        user = self._shares.next_user
        if self._busy or user is None:
            return
        rest = self._rested_at - self._clock()
        if rest > 0 and self._shares.recent_seconds(user) > LIGHT_USE_SECONDS:
            self._resting = asyncio.get_running_loop().call_later(rest, self._next)
        else:
            self._busy = True
            self._shares.take(user).set_result(None)
