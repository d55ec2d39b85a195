"""Many turns at once at a model's pace, and what each delta's way to its reader took.

The age of a delta is counted from the moment at which the server had it (`pace.py`) to the moment at which the
client had its bytes. Turns begin spread over a second, as people's do: in step they would all come in one burst.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from itertools import pairwise

from bench.client import COMPLETED, ClientError, Watcher, get_text, send, watch
from bench.pace import SIZE, Order, stamps

SPREAD = 1.0
MILLI = 1e6
"""Nanoseconds."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """So many turns, each of them an order."""

    turns: int
    order: Order

    @property
    def deltas(self) -> int:
        return self.turns * self.order.count


async def write(port: int, crowd: Crowd) -> list[float]:
    """Run all turns to their end.

    Returns:
        The age of each delta, in milliseconds.

    Raises:
        ClientError: a reader was not sent exactly what was written.
    """
    ages: list[float] = []

    def listen(text: str, at: int) -> None:
        ages.extend((at - produced) / MILLI for produced in stamps(text))

    async def one(number: int) -> None:
        await asyncio.sleep(SPREAD * number / crowd.turns)
        watcher = await watch(port, send(crowd.order), Watcher(listen))
        check(watcher, crowd.order)
        if watcher.text != await get_text(port, watcher.task_id):
            raise ClientError("GetTask has another text")

    await asyncio.gather(*(one(number) for number in range(crowd.turns)))
    return ages


def check(watcher: Watcher, order: Order) -> None:
    """Raises `ClientError` if a reader was not sent exactly the pieces that were written."""
    times = list(stamps(watcher.text))
    if watcher.state != COMPLETED or len(times) != order.count:
        raise ClientError(f"{watcher.state} with {len(watcher.text) // SIZE} of {order.count} pieces")
    if times[-1] > time.monotonic_ns() or any(later <= sooner for sooner, later in pairwise(times)):
        raise ClientError("the pieces are not in order")
