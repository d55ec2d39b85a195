"""Where annotations are in a version: their places are carried through the changes between, version by version.

Rule 1: the path leads from an annotation's version to the version that is read, as in `tracking.py`. Each version on it
        is a known change of its parent.
Rule 2: if neither the path nor the quote gives a certain place, there is none: the annotation is stale. It is never
        guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from a2a_canvas.store.annotations.annotation import Annotation, PlacedAnnotation, shown_state
from a2a_canvas.store.models import Version
from a2a_canvas.store.text.spans import Span
from a2a_canvas.store.tracking import ancestors, track


async def place_annotations(
    annotations: Iterable[Annotation], versions: Sequence[Version], current: int
) -> tuple[PlacedAnnotation, ...]:
    """The annotations as a reader of version `current` sees them, in the same order.

    Args:
        versions: all versions of the artifact, oldest first.
    """
    line = frozenset(ancestors(versions, current))
    placed = []
    for each in annotations:
        span = await track(versions, each.version, current, each.span, each.quote.exact)
        placed.append(PlacedAnnotation(each, span, shown_state(each, line, span)))
    return tuple(placed)


async def spans_in(annotations: Iterable[Annotation], versions: Sequence[Version], current: int) -> Mapping[str, Span]:
    """The places of annotations by their ids; those that are stale have none."""
    placed = await place_annotations(annotations, versions, current)
    return {each.annotation.annotation_id: each.span for each in placed if each.span}
