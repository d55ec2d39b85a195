"""Locates the selection of an edit in the current version. `store/text/spans.py` has the rules of units, lines
and quotes, `store/tracking.py` those of passages that have moved.

Rule 1: offsets and lines are those of `baseVersion`, or of the current version if the sender names none.
Rule 2: an error that the sender could have avoided is `InvalidOperation`: a range outside the text, lines contradicting
        the offsets, a quote that differs from the current version's text at the range.
Rule 3: a selection invalidated by a concurrent change is tracked to the current version, or is `PassageLost`.
Rule 4: several selections of one edit do not overlap. One that is empty does not touch another, because two texts at
        one place have no order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from a2a_canvas.server.agent.operation_forms import InvalidOperation, SelectionRequest
from a2a_canvas.store.errors import PassageLost
from a2a_canvas.store.models import Version
from a2a_canvas.store.text.spans import Span, length, line_count, lines_of, lines_span, to_codepoints
from a2a_canvas.store.text.wording import numbers
from a2a_canvas.store.tracking import track
from a2a_canvas.tools.edit_stream import EditTarget

MAX_SHOWN = 80
"""Characters of the artifact in an error message."""


@dataclass(frozen=True, slots=True)
class EditBase:
    """An artifact's current text, and the text that the sender selected in.

    Attributes:
        version: the number of the current version.
        base_version: the version that the sender names; None for none.
        base_text: the text of that version, or of the current one.
        versions: all of the artifact's; their changes are tracked.
    """

    artifact_id: str
    version: int
    text: str
    base_version: int | None
    base_text: str
    versions: Sequence[Version] = ()


async def locate(selection: SelectionRequest, edit_base: EditBase) -> EditTarget:
    """Where the selection is in the current version.

    Raises:
        InvalidOperation, PassageLost: rules 2 and 3.
    """
    span, quote = selected_range(selection, edit_base)
    artifact_id, version, base = edit_base.artifact_id, edit_base.version, edit_base.base_version
    found: Span | None = span
    if quote != span.extract(edit_base.base_text) or base not in (None, version):
        found = await track(edit_base.versions, base or version, version, span, quote)
    if found is None:
        raise PassageLost(artifact_id, base, version)
    return EditTarget(artifact_id, version, edit_base.text, found, selection.unit)


def selected_range(selection: SelectionRequest, edit_base: EditBase) -> tuple[Span, str]:
    """The range in the text that the sender selected in, and the quote. Pure.

    Raises:
        InvalidOperation: rule 2.
    """
    span = _span(selection, edit_base.base_text)
    there = span.extract(edit_base.base_text)
    quote = there if selection.text is None else selection.text
    version = edit_base.version
    if quote != there and edit_base.base_version == version:
        shown = there if len(there) <= MAX_SHOWN else f"{there[:MAX_SHOWN]}…"
        raise InvalidOperation(f"{selection.name}.text", f"does not match: version {version} says {shown!r} there")
    return span, quote


def _span(selection: SelectionRequest, text: str) -> Span:
    lines = _lines(selection, text)
    if selection.start is None or selection.end is None:
        assert lines is not None
        return lines
    start, end = selection.fields
    span = Span(_offset(start, selection.start, selection, text), _offset(end, selection.end, selection, text))
    if span.end < span.start:
        most = length(text, selection.unit)
        raise InvalidOperation(
            end, f"is {selection.end} and must be {selection.start} to {most}: it ends before it begins"
        )
    if lines:
        _check_lines(selection, span, text)
    return span


def _offset(name: str, offset: int, selection: SelectionRequest, text: str) -> int:
    try:
        return to_codepoints(text, offset, selection.unit)
    except ValueError as error:
        raise InvalidOperation(name, f"is {offset} and {error}, in {selection.unit} units") from None


def _lines(selection: SelectionRequest, text: str) -> Span | None:
    if selection.line_start is None or selection.line_end is None:
        return None
    for name, line, least in (
        ("lineStart", selection.line_start, 1),
        ("lineEnd", selection.line_end, selection.line_start),
    ):
        if not least <= line <= line_count(text):
            lines = numbers(line_count(text), least)
            reason = f"is {line} and must be {lines}, the last line of the text"
            raise InvalidOperation(f"{selection.name}.{name}", reason)
    return lines_span(text, selection.line_start, selection.line_end)


def _check_lines(selection: SelectionRequest, span: Span, text: str) -> None:
    first, last = lines_of(text, span)
    after_line_end = span.end > span.start and text[span.end - 1] == "\n"
    if selection.line_start != first:
        raise InvalidOperation(
            f"{selection.name}.lineStart", f"must be {first}, the line in which the selection starts"
        )
    if selection.line_end != last and not (after_line_end and selection.line_end == last + 1):
        raise InvalidOperation(f"{selection.name}.lineEnd", f"must be {last}, the line in which the selection ends")


def check_apart(selections: Sequence[SelectionRequest], targets: Sequence[EditTarget]) -> None:
    """Check several selections and where they are.

    Raises:
        InvalidOperation: rule 4; it names the later selection.
    """
    order = sorted(range(len(targets)), key=lambda at: (targets[at].span.start, targets[at].span.end))
    for before, after in pairwise(order):
        first, second = targets[before].span, targets[after].span
        is_empty = Span(first.start, first.start) == first or Span(second.start, second.start) == second
        if second.start < first.end or (is_empty and second.start == first.end):
            later, other = max(before, after), min(before, after)
            field = selections[later].fields[0] if selections[later].start is not None else selections[later].name
            raise InvalidOperation(field, f"is in a passage that overlaps or touches {selections[other].name}")
