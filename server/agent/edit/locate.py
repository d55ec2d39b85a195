"""Where the selection of an edit stands in an artifact. Pure; `store/text.py` has the rules of
units, lines and quotes, `store/tracking.py` those of passages that have moved.

Rule 1: offsets and lines are those of the version that the sender saw, `baseVersion`, or of the current one.
Rule 2: what the sender can know to be wrong is `InvalidOperation`: a range that the text does not have, lines that do
        not fit the offsets, a quote that is not what stands there in the current version.
Rule 3: what only the work of others made wrong is `PassageLost`, unless the passage is found again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from a2a_canvas.server.agent.operations import InvalidOperation, Marked
from a2a_canvas.store.errors import PassageLost
from a2a_canvas.store.models import Version
from a2a_canvas.store.text.spans import Span, length, line_count, lines_of, lines_span, to_codepoints
from a2a_canvas.store.tracking import track
from a2a_canvas.tools.edit_stream import EditTarget

SHOWN = 80
"""Characters of the artifact that an error message shows."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An artifact's text as it stands, and as the sender saw it.

    Attributes:
        version: the number of the current version.
        base_version: the version that the sender names; None for none.
        base_text: the text of that version, or of the current one.
        versions: all there are; they tell where a passage has moved.
    """

    artifact_id: str
    version: int
    text: str
    base_version: int | None
    base_text: str
    versions: Sequence[Version] = ()


def place(marked: Marked, standing: Standing) -> EditTarget:
    """Where a selection stands in the current version.

    Raises:
        InvalidOperation, PassageLost: rules 2 and 3.
    """
    span = _span(marked, standing.base_text)
    there = span.of(standing.base_text)
    quote = there if marked.text is None else marked.text
    is_current = standing.base_version == standing.version
    if quote == there and (is_current or standing.base_version is None):
        return _target(standing, span, marked)
    if is_current:
        shown = there if len(there) <= SHOWN else f"{there[:SHOWN]}…"
        raise InvalidOperation("selection.text", f"does not match: version {standing.version} says {shown!r} there")
    base = standing.base_version or standing.version
    found = track(standing.versions, base, standing.version, span, quote)
    if found is None:
        raise PassageLost(standing.artifact_id, standing.base_version, standing.version)
    return _target(standing, found, marked)


def _target(standing: Standing, span: Span, marked: Marked) -> EditTarget:
    return EditTarget(standing.artifact_id, standing.version, standing.text, span, marked.unit)


def _span(marked: Marked, text: str) -> Span:
    lines = _lines(marked, text)
    if marked.start is None or marked.end is None:
        assert lines is not None
        return lines
    start, end = marked.fields
    span = Span(_offset(start, marked.start, marked, text), _offset(end, marked.end, marked, text))
    if span.end < span.start:
        most = length(text, marked.unit)
        raise InvalidOperation(end, f"is {marked.end} and must be {marked.start} to {most}: it ends before it begins")
    if lines:
        _check_lines(marked, span, text)
    return span


def _offset(name: str, offset: int, marked: Marked, text: str) -> int:
    try:
        return to_codepoints(text, offset, marked.unit)
    except ValueError as error:
        raise InvalidOperation(name, f"is {offset} and {error}, in {marked.unit} units") from None


def _lines(marked: Marked, text: str) -> Span | None:
    if marked.line_start is None or marked.line_end is None:
        return None
    for name, line, least in (("lineStart", marked.line_start, 1), ("lineEnd", marked.line_end, marked.line_start)):
        if not least <= line <= line_count(text):
            raise InvalidOperation(f"selection.{name}", f"is {line} and must be {least} to {line_count(text)}")
    return lines_span(text, marked.line_start, marked.line_end)


def _check_lines(marked: Marked, span: Span, text: str) -> None:
    first, last = lines_of(text, span)
    after_line_end = span.end > span.start and text[span.end - 1] == "\n"
    if marked.line_start != first:
        raise InvalidOperation("selection.lineStart", f"must be {first}, the line in which the selection starts")
    if marked.line_end != last and not (after_line_end and marked.line_end == last + 1):
        raise InvalidOperation("selection.lineEnd", f"must be {last}, the line in which the selection ends")
