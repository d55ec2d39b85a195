"""A terminal, as far as the screen of `send` uses one: rows that wrap and scroll, and a few escape codes.

Rule 1: a character in the last column leaves the cursor there; the next one wraps, as in a VT100. Whatever moves the
cursor, a tab excepted, and coming back to a saved place forget that.
Rule 2: an escape code that is not known is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from a2a_canvas.server.client.display import cells

_TOKEN = re.compile(r"\x1b\[\d*[a-zA-Z]|\x1b[D78]|[\s\S]")


class Emulator:
    """A screen of `columns` by `rows`.

    Attributes:
        row, column: where the cursor is, from 0; rows are counted from the first that ever was.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        self._lines: list[list[str]] = [[]]
        self._top = self.row = self.column = 0
        self._full = False
        self._saved = (0, 0)
        self._moves: dict[str, Callable[[], None]] = {
            "\n": lambda: self._go(self.row + 1, 0),
            "\r": lambda: self._go(self.row, 0),
            "\x1bD": lambda: self._go(self.row + 1, self.column),
            "\x1b[A": lambda: self._go(max(self._top, self.row - 1), self.column),
            "\x1b[B": lambda: self._go(min(self._top + self._rows - 1, self.row + 1), self.column),
            "\x1b7": self._save,
            "\x1b8": lambda: self._go(self._top + self._saved[0], self._saved[1]),
        }

    def lines(self) -> list[str]:
        """All rows, what has scrolled away first, without white space at the ends."""
        return "\n".join("".join(line).rstrip() for line in self._lines).rstrip("\n").split("\n")

    def feed(self, text: str) -> None:
        for token in _TOKEN.findall(text):
            match token:
                case "\x1b[2m" | "\x1b[0m":
                    pass
                case "\x1b[K" | "\x1b[J":
                    self._erase(below=token == "\x1b[J")
                case "\t":
                    self.column = min(self.column // 8 * 8 + 8, self._columns - 1)
                case _ if token in self._moves:
                    self._moves[token]()
                case _:
                    assert token[0] != "\x1b", f"unknown code {token!r}"
                    self._put(token)

    def _go(self, row: int, column: int) -> None:
        self.row, self.column, self._full = row, column, False
        self._top = max(self._top, row - self._rows + 1)

    def _save(self) -> None:
        self._saved = (self.row - self._top, self.column)

    def _erase(self, *, below: bool) -> None:
        del self._line()[self.column :]
        if below:
            del self._lines[self.row + 1 :]

    def _line(self) -> list[str]:
        while len(self._lines) <= self.row:
            self._lines.append([])
        return self._lines[self.row]

    def _put(self, character: str) -> None:
        width = cells(character)
        if not width:
            return
        if self._full or self.column + width > self._columns:
            self._go(self.row + 1, 0)
        line = self._line()
        line += [" "] * (self.column + width - len(line))
        line[self.column : self.column + width] = [character, *[""] * (width - 1)]
        self._full = self.column + width == self._columns
        self.column = min(self.column + width, self._columns - 1)
