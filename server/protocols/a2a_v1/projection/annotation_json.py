"""Annotations as they go over the wire: `urn:a2a-canvas:canvas:v1` (docs/annotations.md). Pure.

The account of an author is never sent, only the name.
"""

from __future__ import annotations

from typing import Any

from a2a_canvas.server.protocols.edge.wire_times import timestamp
from a2a_canvas.store.annotations.annotation import Annotation, AnnotationsChanged, PlacedAnnotation, Writer
from a2a_canvas.store.text.spans import Span, Utf16Offsets

Json = dict[str, Any]


def annotation_json(annotation: Annotation) -> Json:
    """An annotation as canvas:v1 has it: without its place in the current version."""
    decision = annotation.decision
    decided = decision and {
        **_by(decision.writer),
        "at": timestamp(decision.at),
        **({"artifactVersion": decision.version} if decision.version else {}),
    }
    quote = annotation.quote
    suggested = {} if annotation.replacement is None else {"replacement": annotation.replacement}
    return {
        "annotationId": annotation.annotation_id,
        "artifactId": annotation.artifact_id,
        "number": annotation.number,
        "kind": annotation.kind,
        "state": annotation.state,
        **_by(annotation.writer),
        "at": timestamp(annotation.at),
        "taskId": annotation.task_id,
        "baseVersion": annotation.version,
        "quote": {"exact": quote.exact, "prefix": quote.prefix, "suffix": quote.suffix},
        **suggested,
        "thread": [{**_by(each.writer), "at": timestamp(each.at), "text": each.text} for each in annotation.thread],
        **({"decision": decided} if decided else {}),
    }


def changes_json(event: AnnotationsChanged) -> Json:
    """The annotations that were changed, and the ids of those that were withdrawn."""
    return {
        "artifactId": event.artifact_id,
        "annotations": [annotation_json(each) for each in event.changed],
        "removed": list(event.removed),
    }


def placed_json(placed: PlacedAnnotation, version: int, offsets: Utf16Offsets) -> Json:
    """An annotation as a reader of a version sees it: its state there, and its place."""
    place = {} if placed.span is None else {"selection": _selection(placed.span, offsets), "version": version}
    return annotation_json(placed.annotation) | {"state": placed.state} | ({"place": place} if place else {})


def _by(writer: Writer) -> Json:
    return {"author": writer.author, **({"by": writer.name} if writer.name else {})}


def _selection(span: Span, offsets: Utf16Offsets) -> Json:
    return {"start": offsets.convert(span.start), "end": offsets.convert(span.end), "unit": "utf16"}
