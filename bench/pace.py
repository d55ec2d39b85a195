"""What is written: the same pieces, 20 characters each, for our server and for the one it is compared with.

`write N` asks for N equal pieces as fast as possible. `pace N RATE` asks for N pieces, RATE a second, each of them
the time at which it was produced: one machine has one monotonic clock, so whoever receives a piece knows its age.
`hold N RATE` asks for N equal pieces as fast as possible, and then for RATE a second without end.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

PIECE = "01234567890123456789"
SIZE = len(PIECE)

_ORDER = re.compile(r"(write|pace|hold) (\d+)(?: ([\d.]+))?")


@dataclass(frozen=True, slots=True)
class Order:
    """What a message asks for.

    Attributes:
        count: how many pieces.
        rate: pieces per second; 0 for as fast as possible.
        endless: the pieces come as fast as possible, and then others at the rate, without end.
    """

    count: int
    rate: float = 0.0
    endless: bool = False

    def __str__(self) -> str:
        if self.endless:
            return f"hold {self.count} {self.rate}"
        return f"pace {self.count} {self.rate}" if self.rate else f"write {self.count}"

    @classmethod
    def read(cls, text: str) -> Order:
        """The order that a message is.

        Raises:
            ValueError: it is none.
        """
        match = _ORDER.fullmatch(text)
        if match is None:
            raise ValueError(f"not an order: {text!r}")
        return cls(int(match[2]), float(match[3] or 0), match[1] == "hold")

    async def pieces(self) -> AsyncGenerator[str, None]:
        """The pieces, each when it is due."""
        begun = time.monotonic()
        for number in range(self.count):
            if self.rate and not self.endless:
                await asyncio.sleep(max(0.0, begun + number / self.rate - time.monotonic()))
                yield stamp(time.monotonic_ns())
            else:
                if self.endless:
                    await asyncio.sleep(0)  # so that a server with many of them gets to its heartbeat
                yield PIECE
        while self.endless:
            await asyncio.sleep(1 / self.rate)
            yield PIECE


def stamp(at: int) -> str:
    """A time in nanoseconds of the monotonic clock, as one piece of text."""
    return f"{at:0{SIZE}d}"


def stamps(text: str) -> Iterator[int]:
    """The times that a text of stamps carries.

    Raises:
        ValueError: it does not consist of whole stamps.
    """
    if len(text) % SIZE:
        raise ValueError(f"{len(text)} characters are no whole number of stamps")
    return (int(text[at : at + SIZE]) for at in range(0, len(text), SIZE))
