"""Text that grows at its end and is edited anywhere, as a frozen value.

Rule 1: a rope never changes. Appending gives a new rope; every older one still reads as it did.
Rule 2: appending costs what is appended, not what is already there, as long as ropes grow from the newest one.

Rule 3: of ropes that were edited from one another the newest is whole. An older one keeps what the edit took from it,
        and every `FULL_EVERY`th its whole text, so that reading one never takes more than `FULL_EVERY` splices.

Ropes that grew from one another share one buffer and each remembers how many of its characters are its own
text. Only the rope that reaches the buffer's end may add to it; any other one begins a buffer of its own.
Reading joins the buffer's pieces once and keeps the joined text in their place.
"""

from __future__ import annotations

from weakref import ref

from a2a_canvas.store.text.spans import Span, splice

FULL_EVERY = 32
"""Every so manieth rope in a chain of edits keeps its whole text."""


class _Buffer:
    __slots__ = ("length", "origin", "pieces")

    def __init__(self, origin: Rope) -> None:
        self.origin = ref(origin)  # the rope it began with, which is none of those that share it
        self.pieces = [str(origin)]
        self.length = len(origin)

    def joined(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def between(self, start: int, end: int) -> str:
        """What stands there, at the cost of what stands behind `start`."""
        found: list[str] = []
        begin = self.length
        for piece in reversed(self.pieces):
            if begin <= start:
                break
            begin -= len(piece)
            found.append(piece[max(0, start - begin) :])
        return "".join(reversed(found))[: end - start]


class _Edited:
    """How to get an older text back from the newer one that was made of it: `taken` stood in the place of `span`."""

    __slots__ = ("newer", "span", "taken")

    def __init__(self, newer: Rope, span: Span, taken: str) -> None:
        self.newer = newer
        self.span = span
        self.taken = taken


class Rope:
    """A frozen text with cheap appends and edits.

    Args:
        text: what it begins with.
    """

    __slots__ = ("__weakref__", "_body", "_edits", "_length", "_size")

    def __init__(self, text: str = "") -> None:
        # A buffer is made when there is something to share: most ropes are one piece on its way to a longer one.
        self._body: str | _Buffer | _Edited = text
        self._edits = 0
        self._length = len(text)
        self._size = len(text.encode())

    def __add__(self, more: Rope) -> Rope:
        buffer = self._body
        if not isinstance(buffer, _Buffer) or buffer.length != self._length:
            buffer = _Buffer(self)
        piece = str(more)  # first, because reading a rope of the same buffer joins its pieces
        if piece:
            buffer.pieces.append(piece)
            buffer.length += more._length
        return _rope(buffer, buffer.length, self._size + more._size)

    def since(self, older: Rope) -> str | None:
        """What was appended to `older` to make this rope, at the cost of that; None if it did not grow from it."""
        if self is older:
            return ""
        buffer = self._body
        if not isinstance(buffer, _Buffer) or older._length > self._length:
            return None
        if older._body is not buffer and buffer.origin() is not older:
            return None
        return buffer.between(older._length, self._length)

    def splice(self, span: Span, text: str) -> Rope:
        """The text with `text` in place of `span`, which must be a range of it."""
        whole = str(self)
        taken = span.of(whole)
        size = self._size - len(taken.encode()) + len(text.encode())
        edited = _rope(splice(whole, span, text), self._length - len(taken) + len(text), size)
        edited._edits = self._edits + 1
        if self._edits % FULL_EVERY and not isinstance(self._body, _Edited) and 2 * len(taken) < self._length:
            self._body = _Edited(edited, Span(span.start, span.start + len(text)), taken)
        return edited

    def __str__(self) -> str:
        edits = []
        rope = self
        while isinstance(rope._body, _Edited):
            edits.append(rope._body)
            rope = rope._body.newer
        text = rope._whole()
        for edit in reversed(edits):
            text = splice(text, edit.span, edit.taken)
        return text

    def _whole(self) -> str:
        assert not isinstance(self._body, _Edited)
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
        if not isinstance(self._body, _Buffer) or self._body.length <= 2 * self._length:
            if isinstance(self._body, _Buffer):
                self._body.joined()
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


def _rope(body: str | _Buffer, length: int, size: int) -> Rope:
    rope = Rope.__new__(Rope)
    rope._body, rope._edits, rope._length, rope._size = body, 0, length, size
    return rope
