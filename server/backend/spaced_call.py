"""A call that is asked for again and again is made now and then.

Rule 1: the first is made at once. Those that are asked for within the interval are made as one, at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def _call_later(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)


class SpacedCall:
    """A function that is called once in an interval.

    Args:
        seconds: the interval.
        call_later: calls a function after some seconds.
    """

    def __init__(
        self,
        call: Callable[[], None],
        seconds: float,
        call_later: Callable[[float, Callable[[], None]], object] = _call_later,
    ) -> None:
        self._call = call
        self._seconds = seconds
        self._call_later = call_later
        self._waiting = self._due = False

    def __call__(self) -> None:
        self._due = True
        if not self._waiting:
            self._make()

    def _make(self) -> None:
        self._waiting = self._due
        if self._due:
            self._due = False
            self._call_later(self._seconds, self._make)
            self._call()
