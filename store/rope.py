"""Text that grows at its end, as a frozen value.

Rule 1: a rope never changes. Appending gives a new rope; every older one still reads as it did.
Rule 2: appending costs what is appended, not what is already there, as long as ropes grow from the newest one.

Ropes that grew from one another share one buffer and each remembers how many of its characters are its own
text. Only the rope that reaches the buffer's end may add to it; any other one begins a buffer of its own.
Reading joins the buffer's pieces once and keeps the joined text in their place.
"""

from __future__ import annotations


class _Buffer:
    __slots__ = ("length", "pieces")

    def __init__(self, pieces: list[str], length: int) -> None:
        self.pieces = pieces
        self.length = length

    def joined(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0]


class Rope:
    """A frozen text with cheap appends.

    Args:
        text: what it begins with.
    """

    __slots__ = ("_body", "_length", "_size")

    def __init__(self, text: str = "") -> None:
        # A buffer is made when there is something to share: most ropes are one piece on its way to a longer one.
        self._body: str | _Buffer = text
        self._length = len(text)
        self._size = len(text.encode())

    def __add__(self, more: Rope) -> Rope:
        buffer = self._body
        if isinstance(buffer, str) or buffer.length != self._length:
            buffer = _Buffer([str(self)], self._length)
        piece = str(more)  # first, because reading a rope of the same buffer joins its pieces
        if piece:
            buffer.pieces.append(piece)
            buffer.length += more._length
        longer = Rope.__new__(Rope)
        longer._body, longer._length, longer._size = buffer, buffer.length, self._size + more._size
        return longer

    def __str__(self) -> str:
        if isinstance(self._body, str):
            return self._body
        joined = self._body.joined()
        return joined if len(joined) == self._length else joined[: self._length]

    def __len__(self) -> int:
        """Length in code points."""
        return self._length

    @property
    def size(self) -> int:
        """Length in UTF-8 bytes."""
        return self._size

    def compact(self) -> Rope:
        """The same text without the pieces in which it came, for what is kept for long.

        Ropes that grew from one another go on sharing one text, unless this one would hold much more than its own.
        """
        if isinstance(self._body, str) or self._body.length <= 2 * self._length:
            str(self)
            return self
        return Rope(str(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rope):
            return NotImplemented
        return self._length == other._length and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"Rope({str(self)!r})"
