"""The text that is written: pieces of 20 characters, the same for our server and for the baseline.

`write N` asks for N equal pieces as fast as possible. `pace N RATE` asks for N pieces, RATE a second; each piece is the
time at which it was produced. Both processes read the same monotonic clock, so a client can compute a piece's age.
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
    """The text that a message asks for.

    Attributes:
        count: number of pieces.
        rate: pieces per second; 0 for as fast as possible.
        endless: after `count` pieces as fast as possible, more follow at the rate, without end.
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
        """Parse a message.

        Raises:
            ValueError: it is not an order.
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
    """A monotonic time in nanoseconds, as one piece."""
    return f"{at:0{SIZE}d}"


def stamps(text: str) -> Iterator[int]:
    """The times in a text of stamps.

    Raises:
        ValueError: its length is not a multiple of a stamp's.
    """
    if len(text) % SIZE:
        raise ValueError(f"{len(text)} characters are not a whole number of stamps")
    return (int(text[at : at + SIZE]) for at in range(0, len(text), SIZE))


class StampReader:
    """Reads the stamps of a text that arrives piece by piece.

    A server may keep the last character of what it has, for the event that ends the text. So a stamp has arrived when
    all but its last character has: those are its nanoseconds.

    Args:
        begun: the length of the text before the first piece. The stamp that it ends in is not read.
    """

    def __init__(self, begun: int = 0) -> None:
        self._rest = ""
        self._skip = -begun % SIZE

    def read(self, text: str) -> Iterator[int]:
        """The times that have arrived with this piece."""
        self._rest += text[self._skip :]
        self._skip = max(0, self._skip - len(text))
        while len(self._rest) >= SIZE - 1:
            piece, self._rest = self._rest[:SIZE], self._rest[SIZE:]
            self._skip = SIZE - len(piece)
            yield from stamps(piece.ljust(SIZE, "0"))
