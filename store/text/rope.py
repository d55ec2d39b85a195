"""Text that grows at its end and is edited anywhere, as a frozen value.

Rule 1: a rope never changes. Appending and editing make a new rope; older ones are unaffected.
Rule 2: appending costs the length of what is appended, as long as it is done to the newest rope.
Rule 3: of ropes made from one another by edits, the newest is whole. An older one stores the text that the edit
        removed, and every 32nd its whole text, so that reading one takes at most 32 splices.

Ropes made from one another by appends share one buffer, and each stores how many of its characters are its own. Only
the rope that reaches the end of the buffer may add to it; any other one starts a new buffer. Reading joins the pieces
of the buffer once and stores the joined text in their place.

Rule 3 is for memory: 1,000 versions of 100 KB, each an edit of 100 characters, take 4 MB instead of 100
(`bench/versions.py`). The rows do the same the other way round (`store/sql/rows.py`, rule 1): there a new version must
not alter an old row, so the new one is stored as an edit of the old one.
"""

from __future__ import annotations

from weakref import ref

from a2a_canvas.store.text.spans import Span, splice

FULL_EVERY = 32
"""Every 32nd rope of a chain of edits stores its whole text."""


class _Buffer:
    __slots__ = ("length", "origin", "pieces")

    def __init__(self, origin: Rope) -> None:
        self.origin = ref(origin)  # the rope it was made from, which does not share it
        self.pieces = [str(origin)]
        self.length = len(origin)

    def join(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def between(self, start: int, end: int) -> str:
        """The text from `start` to `end`, at the cost of the length after `start`."""
        found: list[str] = []
        begin = self.length
        for piece in reversed(self.pieces):
            if begin <= start:
                break
            begin -= len(piece)
            found.append(piece[max(0, start - begin) :])
        return "".join(reversed(found))[: end - start]


class _ReverseEdit:
    """A text as the reverse of the edit that made `newer` from it: `span` of `newer` replaced `removed`."""

    __slots__ = ("newer", "removed", "span")

    def __init__(self, newer: Rope, span: Span, removed: str) -> None:
        self.newer = newer
        self.span = span
        self.removed = removed


class Rope:
    """A frozen text with cheap appends and edits."""

    __slots__ = ("__weakref__", "_body", "_edits", "_length", "_size")

    def __init__(self, text: str = "") -> None:
        # A buffer is made when there is something to share: most ropes are one piece that is added to a longer one.
        self._body: str | _Buffer | _ReverseEdit = text
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
        """The text appended to `older` to make this rope, at the cost of its length; None if made otherwise."""
        if self is older:
            return ""
        buffer = self._body
        if not isinstance(buffer, _Buffer) or older._length > self._length:
            return None
        if older._body is not buffer and buffer.origin() is not older:
            return None
        return buffer.between(older._length, self._length)

    def splice(self, span: Span, text: str) -> Rope:
        """The rope with `span`, a range of it, replaced by `text`."""
        whole = str(self)
        removed = span.extract(whole)
        size = self._size - len(removed.encode()) + len(text.encode())
        edited = _rope(splice(whole, span, text), self._length - len(removed) + len(text), size)
        edited._edits = self._edits + 1
        if self._edits % FULL_EVERY and not isinstance(self._body, _ReverseEdit) and 2 * len(removed) < self._length:
            self._body = _ReverseEdit(edited, Span(span.start, span.start + len(text)), removed)
        return edited

    def __str__(self) -> str:
        edits = []
        rope = self
        while isinstance(rope._body, _ReverseEdit):
            edits.append(rope._body)
            rope = rope._body.newer
        text = rope._body if isinstance(rope._body, str) else rope._body.join()[: rope._length]
        for edit in reversed(edits):
            text = splice(text, edit.span, edit.removed)
        return text

    def __len__(self) -> int:
        """Length in code points."""
        return self._length

    @property
    def size(self) -> int:
        """Length in UTF-8 bytes."""
        return self._size

    def compact(self) -> Rope:
        """The same text with its pieces joined, for a rope that stays in memory for long.

        It still shares the buffer of other ropes, unless the buffer is much longer than its own text.
        """
        if isinstance(self._body, _Buffer):
            if self._body.length > 2 * self._length:
                return Rope(str(self))
            self._body.join()
        return self

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
