"""Open annotations as marks of CriticMarkup, and what a text with marks adds to them. Pure.

Rule 1: only what is open and has a place is written.
Rule 2: a mark that is read is an annotation that is open already if passage, replacement and the beginning of the
        thread are the same: then only new remarks are added. So a text that is written and read adds nothing. What is
        missing in it stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from a2a_canvas.store.annotations.annotation import Annotation, PlacedAnnotation
from a2a_canvas.store.annotations.critic_markup import CriticMark, CriticMarkupError, line_at, write_critic_markup
from a2a_canvas.store.merge import MergeResult, merge


@dataclass(frozen=True, slots=True)
class MarkedAnnotation:
    """An open annotation, its mark, and its passage now."""

    annotation: Annotation
    mark: CriticMark
    passage: str


@dataclass(frozen=True, slots=True)
class NewMarks:
    """What marks add.

    Attributes:
        added: those that are new annotations.
        replies: further remarks of existing ones.
    """

    added: tuple[CriticMark, ...]
    replies: tuple[tuple[Annotation, tuple[str, ...]], ...]


def mark_annotation(placed: PlacedAnnotation, text: str) -> MarkedAnnotation | None:
    """An annotation with its mark; None if there is none (rule 1).

    Args:
        text: of the version that the annotation is placed in.

    Raises:
        CriticMarkupError: it is a suggestion in conflict with a later change of its passage.
    """
    if placed.state != "open" or placed.span is None:
        return None
    annotation, passage = placed.annotation, placed.span.extract(text)
    replacement = annotation.replacement
    if replacement is not None and passage != annotation.quote.exact:
        merged = merge(annotation.quote.exact, passage, replacement)
        if not isinstance(merged, MergeResult):
            reason = f"has suggestion {annotation.number}, in conflict with a later change"
            raise CriticMarkupError(line_at(text, placed.span.start), reason)
        replacement = merged.text
    thread = tuple(remark.text for remark in annotation.thread)
    return MarkedAnnotation(annotation, CriticMark(placed.span, replacement, thread), passage)


def write_annotations(placed: Iterable[PlacedAnnotation], text: str) -> str:
    """The text with what is open as CriticMarkup.

    Raises:
        CriticMarkupError: it could not be read back, or a suggestion is in conflict.
    """
    found = [mark_annotation(each, text) for each in placed]
    return write_critic_markup(text, [each.mark for each in found if each])


def find_new_marks(text: str, marks: Sequence[CriticMark], existing: Sequence[MarkedAnnotation]) -> NewMarks:
    """What the marks of a text add to the annotations that are open (rule 2)."""
    left = defaultdict[tuple[str, str | None], list[MarkedAnnotation]](list)
    for each in sorted(existing, key=lambda each: each.mark.span.start):
        left[each.passage, each.mark.replacement].append(each)
    added, replies = [], []
    for mark in marks:
        alike = left[mark.span.extract(text), mark.replacement]
        same = next((each for each in alike if mark.thread[: len(each.mark.thread)] == each.mark.thread), None)
        if same is None:
            added.append(mark)
            continue
        alike.remove(same)
        if more := mark.thread[len(same.mark.thread) :]:
            replies.append((same.annotation, more))
    return NewMarks(tuple(added), tuple(replies))
