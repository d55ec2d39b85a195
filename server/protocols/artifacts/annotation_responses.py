"""Answers `GET …/annotations`: a container of the W3C Web Annotation Protocol, for reading (docs/annotations.md).

Rule: a selector of the W3C counts in code points, and is of the version that its source names: the one that was
        annotated. The place in the current version is ours, under `canvas`, in UTF-16 as in canvas:v1.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from a2a_canvas.server.protocols.a2a_v1.projection.annotation_json import Json, placed_json
from a2a_canvas.server.protocols.artifacts.paths import (
    AnnotationList,
    ArtifactVersion,
    CurrentArtifact,
    OneAnnotation,
)
from a2a_canvas.server.protocols.artifacts.raw_content import SANDBOXED, NoRawContent, raw_content
from a2a_canvas.server.protocols.artifacts.refusals import (
    ANNOTATION_NOT_FOUND,
    NOT_EXPORTABLE,
    ResourceError,
    invalid_value,
    not_acceptable,
)
from a2a_canvas.server.protocols.edge.http_requests import conditional_response
from a2a_canvas.server.protocols.edge.wire_times import timestamp
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.tasks.contexts import Context
from a2a_canvas.server.wire import artifact_path
from a2a_canvas.store.annotations.annotation import PlacedAnnotation, Writer
from a2a_canvas.store.annotations.annotation_marks import write_annotations
from a2a_canvas.store.annotations.critic_markup import CriticMarkupError
from a2a_canvas.store.models import text_of
from a2a_canvas.store.text.comparing import run_comparison
from a2a_canvas.store.text.spans import Utf16Offsets

LD_CONTEXT = "http://www.w3.org/ns/anno.jsonld"
LD_JSON = f'application/ld+json; profile="{LD_CONTEXT}"'
LDP = "http://www.w3.org/ns/ldp#"
CONTAINER = {
    "Link": f'<{LDP}BasicContainer>; rel="type", <http://www.w3.org/TR/annotation-protocol/>; rel="{LDP}constrainedBy"'
}
RESOURCE = {"Link": f'<{LDP}Resource>; rel="type"'}
CRITIC_HEADERS = {"Cache-Control": "private, no-cache"} | SANDBOXED
CACHING = {"Cache-Control": "private, no-cache", "Vary": "Accept", "Allow": "GET, HEAD"}


async def read_annotations(
    request: Request, resource: AnnotationList | OneAnnotation, context: Context, prefix: str
) -> Response:
    """The annotations of an artifact at its current version, or one of them."""
    version, placed = await context.artifacts.annotations(resource.artifact_id)
    number, offsets = version.number if version else 0, Utf16Offsets(version.content.text if version else "")
    url = prefix + artifact_path(context.id, resource.artifact_id)
    if isinstance(resource, AnnotationList):
        items = [ld_annotation(each, number, offsets, url) for each in placed]
        return _ld_json(request, ld_collection(items, url), CONTAINER)
    for each in placed:
        if each.annotation.annotation_id == resource.annotation_id:
            return _ld_json(request, {"@context": LD_CONTEXT, **ld_annotation(each, number, offsets, url)}, RESOURCE)
    reason = f"Artifact {resource.artifact_id!r} has no annotation {resource.annotation_id!r}. They are listed at "
    raise ResourceError(Refusal(ANNOTATION_NOT_FOUND, f"{reason}{url}/annotations."))


async def read_critic(request: Request, resource: CurrentArtifact | ArtifactVersion, context: Context) -> Response:
    """The current text with its open comments and suggestions as CriticMarkup.

    Raises:
        ResourceError: it is not the current version, is no text, or could not be read back.
    """
    if isinstance(resource, ArtifactVersion):
        raise invalid_value("format", "is critic, which is for the current version: leave out versions/{n}")
    version, placed = await context.artifacts.annotations(resource.artifact_id)
    if version is None:
        raise ResourceError(Refusal(NOT_EXPORTABLE, "The artifact is being written and has no version yet."))
    raw = raw_content(version.content)
    if text_of(version.content.parts) is None or isinstance(raw, NoRawContent):
        raise not_acceptable("The artifact has no text, so it has no comments or suggestions. Ask for JSON.")
    try:
        body = await run_comparison(partial(write_annotations, placed), version.content.text, times=1 + len(placed))
    except CriticMarkupError as error:
        said = f"The text cannot be written as CriticMarkup: line {error.line} {error.reason}. Decide or change that."
        raise ResourceError(Refusal(NOT_EXPORTABLE, said)) from None
    return conditional_response(request, body.encode(), raw[0].media_type, CRITIC_HEADERS)


def _ld_json(request: Request, value: Json, headers: dict[str, str]) -> Response:
    return conditional_response(request, json.dumps(value, ensure_ascii=False).encode(), LD_JSON, CACHING | headers)


def ld_annotation(placed: PlacedAnnotation, version: int, offsets: Utf16Offsets, url: str) -> Json:
    """An annotation of the W3C's model.

    Args:
        version, offsets: of the current version.
        url: of the artifact.
    """
    annotation = placed.annotation
    span, quote = annotation.span, annotation.quote
    bodies = [
        {
            "type": "TextualBody",
            "value": each.text,
            "purpose": "replying" if number else "commenting",
            "creator": _agent(each.writer),
            "created": timestamp(each.at),
        }
        for number, each in enumerate(annotation.thread)
    ]
    if annotation.replacement is not None:
        bodies.insert(0, {"type": "TextualBody", "value": annotation.replacement, "purpose": "editing"})
    return {
        "id": f"{url}/annotations/{annotation.annotation_id}",
        "type": "Annotation",
        "motivation": "commenting" if annotation.replacement is None else "editing",
        "creator": _agent(annotation.writer),
        "created": timestamp(annotation.at),
        "body": bodies,
        "target": {
            "source": f"{url}/versions/{annotation.version}",
            "selector": [
                {"type": "TextPositionSelector", "start": span.start, "end": span.end},
                {"type": "TextQuoteSelector", "exact": quote.exact, "prefix": quote.prefix, "suffix": quote.suffix},
            ],
        },
        "canvas": placed_json(placed, version, offsets),
    }


def ld_collection(annotations: Sequence[Json], url: str) -> Json:
    """The annotations of an artifact, as a collection with one page."""
    page = {"id": f"{url}/annotations#page", "type": "AnnotationPage", "startIndex": 0, "items": [*annotations]}
    total = {"total": len(annotations)}
    return {"@context": LD_CONTEXT, "id": f"{url}/annotations", "type": "AnnotationCollection", **total, "first": page}


def _agent(writer: Writer) -> Json:
    return {"type": "Software" if writer.author == "agent" else "Person", "name": writer.name or writer.author}
