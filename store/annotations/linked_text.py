"""A text while suggestions are merged into it: a chain of pieces, where passages are found by their characters. Pure.

Rule 1: a passage begins with its first character and ends with its last one, as in `edit_map.py`. Both begin a piece
        from the start, and pieces are cut, never joined: what is edited elsewhere needs no arithmetic. So an edit costs
        what it changes, and a passage what it contains, however many edits and passages there are.
Rule 2: a passage whose first or last character was deleted is searched for by `find_in_context`. It can only be where
        something was edited: elsewhere it would be the one that was deleted. So the text is searched only if
        `QUOTE_CONTEXT` characters of the passage and its context occur around an edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from a2a_canvas.store.text.spans import EDGE, QUOTE_CONTEXT, Span, find_in_context, in_context

_MAX_GRAMS = 200_000
"""Texts around edits that are known (rule 2), each of some 100 bytes; with more, every lost passage is searched for."""


class TextPiece:
    """A part of a text, between two others.

    Attributes:
        at: where it was in the original text; None if it is new.
        gone: its first character was deleted.
    """

    __slots__ = ("after", "at", "before", "gone", "text")

    def __init__(self, text: str, at: int | None = None) -> None:
        self.text = text
        self.at = at
        self.before = self.after = self
        self.gone = False

    def insert_before(self, text: str, at: int | None = None) -> TextPiece:
        """A new piece between the one before this one and this one."""
        made = TextPiece(text, at)
        _link(self.before, made)
        _link(made, self)
        return made

    def cut(self, at: int) -> TextPiece:
        """The piece that begins `at` characters after the beginning of this one, perhaps in a later one."""
        piece = self
        while at:
            if at < len(piece.text):
                piece.after.insert_before(piece.text[at:], None if piece.at is None else piece.at + at)
                piece.text = piece.text[:at]
                return piece.after
            at -= len(piece.text)
            piece = piece.after
        return piece

    def texts(self, stop: TextPiece) -> Iterator[str]:
        """The texts from this piece to the one before `stop`."""
        piece = self
        while piece is not stop:
            yield piece.text
            piece = piece.after


def _link(one: TextPiece, other: TextPiece) -> None:
    one.after, other.before = other, one


class LinkedPassage:
    """A passage of a `LinkedText` until the next edit: the pieces from `first` to the one before `stop`."""

    __slots__ = ("first", "stop")

    def __init__(self, first: TextPiece, stop: TextPiece) -> None:
        self.first, self.stop = first, stop

    def __str__(self) -> str:
        return "".join(self.first.texts(self.stop))


class LinkedText:
    """A text that is edited in its passages.

    Args:
        spans: all passages that are asked for.
    """

    def __init__(self, text: str, spans: Iterable[Span]) -> None:
        self._original = text
        self._edge = TextPiece(EDGE, len(text))  # before the first piece and after the last one
        cuts = {0, len(text)}.union(*((each.start, max(each.start, each.end - 1), each.end) for each in spans))
        self._at = {start: self._edge.insert_before(text[start:end], start) for start, end in pairwise(sorted(cuts))}
        self._at[len(text)] = self._edge
        self._around_edits: list[str] = []
        self._grams: set[str] = set()

    def __str__(self) -> str:
        return "".join(self._edge.after.texts(self._edge))

    def find(self, span: Span) -> LinkedPassage | None:
        """Where a passage of the original text is now; None if that is not certain."""
        first = self._at[span.start]
        last = first if span.start == span.end else self._at[span.end - 1]
        if not (first.gone or last.gone):
            return LinkedPassage(first, first if span.start == span.end else last.after)
        if not self._may_be_near_an_edit(in_context(self._original, span)):
            return None
        found = find_in_context(self._original, span, str(self))
        if found is None:
            return None
        first = self._edge.after.cut(found.start)
        return LinkedPassage(first, first.cut(found.end - found.start))

    def replace(self, passage: LinkedPassage, span: Span, text: str) -> None:
        """Replace a range of a passage."""
        first = passage.first.cut(span.start)
        stop = first.cut(span.end - span.start)
        before, piece = first.before, first
        while piece is not stop:
            piece.gone = True
            piece = piece.after
        _link(before, stop)
        if text:
            stop.insert_before(text)
        self._around_edits.append(self._last_characters(before) + text + self._first_characters(stop))

    def edits(self) -> Iterator[tuple[Span, str]]:
        """What has replaced which ranges of the original text, in order; between two there are original characters."""
        begin, first = 0, self._edge.after
        piece = first
        while True:
            if piece.at is not None:
                if piece.at > begin or piece is not first:
                    yield Span(begin, piece.at), "".join(first.texts(piece))
                if piece is self._edge:
                    return
                begin, first = piece.at + len(piece.text), piece.after
            piece = piece.after

    # ------------------------------------------------------------------------------ rule 2

    def _last_characters(self, piece: TextPiece) -> str:
        found = piece.text[-(QUOTE_CONTEXT - 1) :]
        while len(found) < QUOTE_CONTEXT - 1 and piece is not self._edge:
            piece = piece.before
            found = piece.text[-(QUOTE_CONTEXT - 1) :] + found
        return found[-(QUOTE_CONTEXT - 1) :]

    def _first_characters(self, piece: TextPiece) -> str:
        found = piece.text[: QUOTE_CONTEXT - 1]
        while len(found) < QUOTE_CONTEXT - 1 and piece is not self._edge:
            piece = piece.after
            found += piece.text[: QUOTE_CONTEXT - 1]
        return found[: QUOTE_CONTEXT - 1]

    def _may_be_near_an_edit(self, quoted: str) -> bool:
        while self._around_edits and len(self._grams) + len(self._around_edits[-1]) <= _MAX_GRAMS:
            self._grams.update(_grams(self._around_edits.pop()))
        known = len(quoted) >= QUOTE_CONTEXT and not self._around_edits
        return not known or any(each in self._grams for each in _grams(quoted))


def _grams(text: str) -> Iterator[str]:
    return (text[at : at + QUOTE_CONTEXT] for at in range(len(text) - QUOTE_CONTEXT + 1))
