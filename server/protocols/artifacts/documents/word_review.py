"""The open comments and suggestions of a text, for a Word file of it. Pure.

Rule 1: only what is open and has a place is in the file, as in CriticMarkup.
Rule 2: a suggestion becomes tracked changes. One that cannot be is a comment that quotes the new text: if an earlier
        one overlaps it, if its passage was changed since in conflict with it, if it changes what Word does not track
        (`tracked_tree.py`), or nothing that the document shows.
Rule 3: the remarks of a thread are comments on the same passage, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from a2a_canvas.server.protocols.artifacts.documents.source_tree import Node, locate
from a2a_canvas.server.protocols.artifacts.documents.text_edits import TextEdits, TextReplacement
from a2a_canvas.server.protocols.artifacts.documents.tracked_tree import Tracker
from a2a_canvas.server.protocols.artifacts.documents.word_tree import Signature, WordComment, WordTree
from a2a_canvas.server.protocols.edge.wire_times import timestamp
from a2a_canvas.store.annotations.annotation import PlacedAnnotation, Writer
from a2a_canvas.store.annotations.annotation_marks import mark_annotation
from a2a_canvas.store.annotations.critic_markup import CriticMarkupError
from a2a_canvas.store.text.spans import Span


@dataclass(frozen=True, slots=True)
class ReviewMark:
    """A comment or a suggestion.

    Attributes:
        new: the text of a suggestion; None for a comment.
        in_conflict: whether a later change of the passage keeps the suggestion from being made.
    """

    number: int
    span: Span
    signature: Signature
    new: str | None
    in_conflict: bool
    thread: tuple[WordComment, ...]

    @property
    def proposal(self) -> tuple[WordComment, ...]:
        """The suggestion as a comment."""
        if self.new is None:
            return ()
        if not self.new:
            said = "Suggestion: delete this."
        else:
            said = (
                f"Suggestion: {'insert here' if self.span.start == self.span.end else 'replace this by'}:\n{self.new}"
            )
        return (WordComment(self.signature, said),)

    @property
    def size(self) -> int:
        """UTF-8 bytes of all its texts."""
        return sum(len(each.encode()) for each in (self.new or "", *(remark.text for remark in self.thread)))


def review_marks(placed: Iterable[PlacedAnnotation], text: str) -> tuple[ReviewMark, ...]:
    """What is open, in the order in which it was made."""
    found = (_mark(each, text) for each in sorted(placed, key=lambda each: each.annotation.number))
    return tuple(each for each in found if each)


def _mark(placed: PlacedAnnotation, text: str) -> ReviewMark | None:
    annotation = placed.annotation
    signed = _signature(annotation.writer, annotation.at)
    thread = tuple(WordComment(_signature(each.writer, each.at), each.text) for each in annotation.thread)
    try:
        marked = mark_annotation(placed, text)
    except CriticMarkupError:
        assert placed.span
        return ReviewMark(annotation.number, placed.span, signed, annotation.replacement, True, thread)
    if marked is None:
        return None
    return ReviewMark(annotation.number, marked.mark.span, signed, marked.mark.replacement, False, thread)


def _signature(writer: Writer, at: datetime) -> Signature:
    name = "".join(each for each in writer.shown_name if each.isprintable())  # pandoc copies others, and XML has none
    return Signature(name or writer.author, timestamp(at))


class WordReview:
    """Makes the tree of a text with its marks.

    Attributes:
        edits: the suggestions that are tracked so far, as edits of the text: `edits.text` is the second text to parse.
    """

    def __init__(self, text: str, marks: Sequence[ReviewMark]) -> None:
        self._text, self._marks = text, marks
        self._located: list[Node] = []
        made = [
            TextReplacement(each.number, each.span, each.new).narrow(text)
            for each in marks
            if each.new is not None and not each.in_conflict
        ]
        self._replacements = [each for each in made if each.new or each.span.start < each.span.end]
        self.edits = TextEdits(text, self._replacements)

    def make_blocks(self, old: Sequence[Node], new: Sequence[Node]) -> list[Node] | None:
        """The blocks for the writer; None if some suggestions cannot be tracked: `edits` is without them then.

        Args:
            old, new: blocks of the text, and of the one with the edits, with positions.

        Raises:
            RecursionError: they are nested too deeply.
        """
        tracker = Tracker(self.edits)
        self._located = self._located or locate(old, self._text)
        blocks = tracker.merge(self._located, locate(new, self.edits.text))
        if tracker.untracked:
            self._replacements = [each for each in self._replacements if each.key not in tracker.untracked]
            self.edits = TextEdits(self._text, self._replacements)
            return None
        return self._with_comments(blocks)

    def give_up(self) -> None:
        """Leaves all suggestions to comments."""
        self._replacements = []
        self.edits = TextEdits(self._text, ())

    def _with_comments(self, blocks: list[Node]) -> list[Any]:
        tree = WordTree(blocks, self._text, {each.number: each.signature for each in self._marks})
        for each in self._marks:
            if not tree.comment_on_change(each.number, each.thread):
                tree.comment_on_passage(each.span, (*each.proposal, *each.thread))
        return tree.blocks()
