"""Many turns at once at a model's pace, and the latency of each delta.

A delta's age is the time from when the server had it (`pace.py`) until the client had its bytes. The turns start over
one second: started at once, all their deltas would come in the same bursts.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from itertools import pairwise

from bench.client import COMPLETED, ClientError, Watcher, get_text, send, watch
from bench.pace import SIZE, Order, StampReader, stamps

SPREAD = 1.0
"""Seconds over which the turns start."""
NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Crowd:
    """Concurrent turns, each with the same order."""

    turns: int
    order: Order

    @property
    def deltas(self) -> int:
        return self.turns * self.order.count


class Ages:
    """Records the age of each delta of one turn, in milliseconds."""

    def __init__(self, ages: list[float]) -> None:
        self._ages = ages
        self._stamps = StampReader()

    def listen(self, text: str, at: int) -> None:
        self._ages.extend((at - produced) / NS_PER_MS for produced in self._stamps.read(text))


async def write(port: int, crowd: Crowd) -> list[float]:
    """Run all turns to their end.

    Returns:
        The age of each delta, in milliseconds.

    Raises:
        ClientError: a reader did not get the exact text.
    """
    ages: list[float] = []

    async def one(number: int) -> None:
        await asyncio.sleep(SPREAD * number / crowd.turns)
        watcher = await watch(port, send(crowd.order), Watcher(Ages(ages).listen))
        check(watcher, crowd.order)
        if watcher.text != await get_text(port, watcher.task_id):
            raise ClientError("GetTask has another text")

    await asyncio.gather(*(one(number) for number in range(crowd.turns)))
    return ages


async def first_byte(port: int, order: Order) -> float:
    """The age of the first byte of one turn's artifact, in milliseconds.

    Raises:
        ClientError: the reader did not get the exact text.
    """
    firsts: list[float] = []

    def listen(text: str, at: int) -> None:
        if text and not firsts:
            firsts.append((at - next(stamps(text[:SIZE].ljust(SIZE, "0")))) / NS_PER_MS)

    check(await watch(port, send(order), Watcher(listen)), order)
    return firsts[0]


def check(watcher: Watcher, order: Order) -> None:
    """Raises `ClientError` if a reader did not get exactly the pieces that were written."""
    times = list(stamps(watcher.text))
    if watcher.state != COMPLETED or len(times) != order.count:
        raise ClientError(f"{watcher.state} with {len(watcher.text) // SIZE} of {order.count} pieces")
    if times[-1] > time.monotonic_ns() or any(later <= sooner for sooner, later in pairwise(times)):
        raise ClientError("the pieces are not in order")
