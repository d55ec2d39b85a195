"""Merges suggestions into a text. Pure.

Rule 1: what is accepted is merged into the passage where it is now. If the passage has changed, both changes are kept,
        or, where they touch the same words, the suggestion stays open: it is in conflict.
Rule 2: from the oldest to the newest, each is merged into what the ones before it have made. So accepting all makes the
        text that accepting one after the other makes; the time depends on the passages, not on how many came before
        (`linked_text.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from a2a_canvas.store.annotations.annotation import Annotation, PlacedAnnotation
from a2a_canvas.store.annotations.linked_text import LinkedText
from a2a_canvas.store.merge import MergeResult, merge
from a2a_canvas.store.text.spans import Span, difference


@dataclass(frozen=True, slots=True)
class ConflictingSuggestion:
    """A suggestion that changes the same words as a later change of the passage.

    Attributes:
        current: the passage as it is now.
    """

    annotation: Annotation
    current: str


@dataclass(frozen=True, slots=True)
class MergedSuggestions:
    """A text after suggestions, oldest first.

    Attributes:
        edits: what has replaced which ranges of the text, in order.
    """

    text: str
    accepted: tuple[Annotation, ...]
    stale: tuple[Annotation, ...]
    conflicts: tuple[ConflictingSuggestion, ...]
    edits: tuple[tuple[Span, str], ...]


def merge_suggestions(placed: Sequence[PlacedAnnotation], text: str) -> MergedSuggestions:
    """`text` with each suggestion merged into its passage."""
    accepted: list[Annotation] = []
    stale: list[Annotation] = []
    conflicts: list[ConflictingSuggestion] = []
    merging = LinkedText(text, [each.span for each in placed if each.span])
    for each in placed:
        suggestion, passage = each.annotation, each.span and merging.find(each.span)
        if not passage:
            stale.append(suggestion)
            continue
        now = str(passage)
        merged = merge(suggestion.quote.exact, now, suggestion.replacement or "")
        if not isinstance(merged, MergeResult):
            conflicts.append(ConflictingSuggestion(suggestion, now))
            continue
        accepted.append(suggestion)
        inside, new = difference(now, merged.text)  # so annotations on the rest of the passage keep their places
        if new or inside.start < inside.end:
            merging.replace(passage, inside, new)
    return MergedSuggestions(str(merging), tuple(accepted), tuple(stale), tuple(conflicts), tuple(merging.edits()))
