"""The answer to `?format=docx` and others: a Markdown text as a document that pandoc made.

Rule 1: the ETag is of what the document is made of, so a client that has it costs no conversion. It is weak: pandoc
        writes the time into its documents.
Rule 2: one account converts one text at a time: another account waits for one of its conversions at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import Response

from a2a_canvas.server.protocols.artifacts.documents.document_formats import (
    DOCUMENT_FORMATS,
    DocumentFormat,
    markdown_of,
)
from a2a_canvas.server.protocols.artifacts.documents.pandoc import (
    MAX_MARKED_TEXT,
    MAX_TEXT,
    ConversionFailed,
    Pandoc,
    PandocBusy,
    PandocMissing,
)
from a2a_canvas.server.protocols.artifacts.documents.word_review import ReviewMark, review_marks
from a2a_canvas.server.protocols.artifacts.file_names import attachment, file_name, split_extension
from a2a_canvas.server.protocols.artifacts.raw_content import SANDBOXED
from a2a_canvas.server.protocols.artifacts.refusals import (
    CONVERSION_FAILED,
    CONVERTER_MISSING,
    ResourceError,
    invalid_value,
    not_acceptable,
)
from a2a_canvas.server.protocols.edge.availability import OverloadedError
from a2a_canvas.server.protocols.edge.http_requests import caller_of, etag_of, is_not_modified
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.tasks.named_locks import NamedLocks
from a2a_canvas.store.annotations.annotation import PlacedAnnotation
from a2a_canvas.store.models import Content
from a2a_canvas.store.text.comparing import run_comparison
from a2a_canvas.store.text.wording import choice, format_value

INSTALL: Final = "Its operator can install it (Debian: apt-get install pandoc; 2.15 or newer), without a restart."
CACHING: Final = {"Cache-Control": "private, no-cache"}
CRITIC: Final = "critic"
"""The text with its comments and suggestions (`annotation_responses.py`)."""


def parse_format(request: Request) -> DocumentFormat | Literal["critic"] | None:
    """The format that `?format=` names; None for JSON.

    Raises:
        ResourceError: there is no such format.
    """
    given = request.query_params.get("format", "")
    if given == CRITIC:
        return CRITIC
    if given not in ("", "json", *DOCUMENT_FORMATS):
        formats = choice(("json", CRITIC, *DOCUMENT_FORMATS))
        raise invalid_value("format", f"is {format_value(given)} and must be {formats}")
    return DOCUMENT_FORMATS.get(given)


class Conversions:
    """Answers requests for documents."""

    def __init__(self, pandoc: Pandoc) -> None:
        self._pandoc = pandoc
        self._turns = NamedLocks()

    async def answer(
        self,
        request: Request,
        content: Content,
        artifact_id: str,
        form: DocumentFormat,
        placed: Sequence[PlacedAnnotation] = (),
    ) -> Response:
        """The document of an artifact or of a version.

        Args:
            placed: the annotations of the artifact, if the content is its current version.

        Raises:
            ResourceError: it is not Markdown, or cannot be converted now or ever.
        """
        markdown = markdown_of(content)
        if markdown is None:
            raise not_acceptable(f"Only a Markdown text can be {form.name}. Ask for application/json, or for ?raw=1.")
        text, name = markdown.text, file_name(content.name, artifact_id)
        if markdown.size > MAX_TEXT:
            said = f"The text has {markdown.size:,} bytes; up to {MAX_TEXT:,} can be converted."
            raise ResourceError(Refusal(CONVERSION_FAILED, f"{said} ?raw=1 is the text itself."))
        marks: Sequence[ReviewMark] = ()
        if form.marks and placed:
            async with self._turns.hold(f"marks of {caller_of(request).account}"):
                marks = await run_comparison(partial(review_marks, placed), text, times=len(placed))
        size = markdown.size + sum(each.size for each in marks)
        if marks and size > MAX_MARKED_TEXT:
            said = f"The text has {size:,} bytes with its comments and suggestions; up to {MAX_MARKED_TEXT:,} can be"
            other = f"…/versions/{{n}}?format={form.name} is without them."
            raise ResourceError(Refusal(CONVERSION_FAILED, f"{said} converted. {other}"))
        title = split_extension(name)[0]
        try:
            program = await self._pandoc.find()
            tag = f"W/{etag_of(text.encode(), f'{form.name} {program.version} {name} {marks}')}"
            headers = CACHING | SANDBOXED | {"ETag": tag}
            if is_not_modified(request, tag.removeprefix("W/")):
                return Response(status_code=304, headers=headers)
            async with self._turns.hold(f"of {caller_of(request).account}"):
                body = await self._pandoc.convert(program, text, form, title, marks)
        except PandocMissing as error:
            raise ResourceError(Refusal(CONVERTER_MISSING, f"{error}. {INSTALL}")) from None
        except ConversionFailed as error:
            raise ResourceError(Refusal(CONVERSION_FAILED, f"{error}. ?raw=1 is the text itself.")) from None
        except PandocBusy:
            said = "Too many documents are being converted just now. Try again in a moment."
            raise ResourceError(Refusal(OverloadedError, said)) from None
        named = {"Content-Disposition": attachment(f"{title}{form.extension}")}
        return Response(body, headers=headers | named | {"Content-Type": form.media_type})
