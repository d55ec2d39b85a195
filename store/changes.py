"""The part rules (docs/a2a.md, "How parts are combined"): how a change alters an artifact's parts. Pure.

A2A parts have no ids, so an update addresses a part by its kind:

                  text                                    file, data
    one update    joined, in order, into one              kept apart, in order
    ReplaceParts  replaces all text                       replaces all parts of that kind
    AppendParts   joined to the end of the text           added after those of the kind

Kinds that an update does not name are unchanged. Parts of one kind are adjacent, at the place of that kind's first
part; a new kind goes to the end. An edit (`EditText`) changes a range of the text and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from a2a_canvas.store.errors import ArtifactTooLarge, EmptyUpdate, MediaTypeConflict, OutsideText, TooManyParts
from a2a_canvas.store.models import Kind, Limits, Part, Parts, TextEdit, TextPart, text_of, text_part
from a2a_canvas.store.text.spans import Span
from a2a_canvas.store.text.unicode import replace_surrogates


@dataclass(frozen=True, slots=True)
class _Update:
    parts: Parts
    name: str | None = None
    description: str | None = None
    last_chunk: bool = False
    done: bool = True


@dataclass(frozen=True, slots=True)
class AppendParts(_Update):
    """Add to the artifact's parts of the kinds in `parts`.

    Attributes:
        name, description: the new ones; None leaves them unchanged.
        last_chunk: close the draft into a version.
        done: the change completes a call; False for a delta of a call that is still streaming.
    """


@dataclass(frozen=True, slots=True)
class ReplaceParts(_Update):
    """Replace the artifact's parts of the kinds in `parts`. Attributes as in `AppendParts`, and:

    Attributes:
        base: the version that must be current; None for any.
    """

    base: int | None = None


@dataclass(frozen=True, slots=True)
class EditText:
    """Replace a range of the artifact's text by `text`, which makes a new version at once.

    Attributes:
        base: the version that `span` refers to. If it is not the current one, nothing is changed.
        passage: whether `span` is a selected passage. False: it is only the difference of two whole texts.
        edits: what was changed in that difference, if it is known; as in `Version.edits`.
    """

    span: Span
    text: str
    base: int
    passage: bool = True
    edits: tuple[TextEdit, ...] = ()


@dataclass(frozen=True, slots=True)
class Restore:
    """Make a new version with the content of an old one.

    Attributes:
        base: the version that must be current; None for any.
    """

    version: int
    base: int | None = None


@dataclass(frozen=True, slots=True)
class Undo:
    """Go back to the version before the current one. `base` as in `Restore`.

    Attributes:
        group: undo all versions of one task: go to the version before the run of versions by the same task that ends
            with the current one, or to the first of the run if nothing precedes it.
    """

    base: int | None = None
    group: bool = False


@dataclass(frozen=True, slots=True)
class Redo:
    """Reverse one `Undo`. `base` as in `Restore`.

    Attributes:
        group: go to the last version of the run by the same task that comes next.
    """

    base: int | None = None
    group: bool = False


Update = ReplaceParts | AppendParts
"""The changes that build a draft."""

Step = EditText | Restore | Undo | Redo
"""The changes that make a version, or make another version current."""

Change = Update | Step


def apply(parts: Parts, change: Update | EditText) -> Parts:
    """`parts` (grouped) after `change`.

    Raises:
        EmptyUpdate: the change has no parts.
        MediaTypeConflict: texts of two media types would be joined.
        OutsideText: the text has no such range.
    """
    match change:
        case ReplaceParts():
            return _merge(parts, _update(change), _replace_kind)
        case AppendParts():
            update = _update(change)
            match parts, update:  # fast path for a token: text appended to text
                case (TextPart() as before,), (TextPart() as after,):
                    return (_join(before, after),)
            return _merge(parts, update, _append_kind)
        case EditText():
            return _edit(parts, change)
        case _:
            assert_never(change)


def _update(change: Update) -> Parts:
    update = group(change.parts)
    if not update:
        raise EmptyUpdate
    return update


def _edit(parts: Parts, change: EditText) -> Parts:
    text = text_of(parts)
    length, span = len(text.body) if text else 0, change.span
    if not 0 <= span.start <= span.end <= length:
        raise OutsideText(span.start, span.end, length)
    if text is None:
        return (*parts, text_part(change.text))
    edited = replace(text, body=text.body.splice(span, replace_surrogates(change.text)))
    return tuple(edited if part is text else part for part in parts)


def group(parts: Iterable[Part]) -> Parts:
    """`parts` by kind: the kinds in the order of their first part, all text joined into one part.

    Raises:
        MediaTypeConflict: text parts of two media types.
    """
    parts = tuple(parts)
    if len(parts) < 2:
        return parts
    kinds: dict[Kind, list[Part]] = {}
    for part in parts:
        kinds[part.kind] = _append_kind(kinds.get(part.kind, []), [part])
    return tuple(part for of_kind in kinds.values() for part in of_kind)


def compact(parts: Parts) -> Parts:
    """The same parts with compacted texts, for parts that stay in memory for long."""
    return tuple(replace(part, body=part.body.compact()) if isinstance(part, TextPart) else part for part in parts)


def check(parts: Parts, limits: Limits) -> None:
    """Raises `ArtifactTooLarge` or `TooManyParts` if `parts` exceed `limits`."""
    if len(parts) > limits.parts:
        raise TooManyParts(len(parts), limits.parts)
    size = sum(part.size + metadata_size(part) for part in parts)
    if size > limits.artifact_bytes:
        raise ArtifactTooLarge(size, limits.artifact_bytes)


def metadata_size(part: Part) -> int:
    """Bytes of a part's metadata as JSON."""
    return len(json.dumps(dict(part.metadata)).encode()) if part.metadata else 0


def by_kind(parts: Iterable[Part]) -> dict[Kind, list[Part]]:
    """The parts of each kind, in the order of the kinds' first parts."""
    kinds: dict[Kind, list[Part]] = {}
    for part in parts:
        kinds.setdefault(part.kind, []).append(part)
    return kinds


def _merge(parts: Parts, update: Parts, combine: Callable[[list[Part], list[Part]], list[Part]]) -> Parts:
    merged = by_kind(parts)
    for kind, new in by_kind(update).items():
        merged[kind] = combine(merged.get(kind, []), new)
    return tuple(part for of_kind in merged.values() for part in of_kind)


def _replace_kind(old: list[Part], new: list[Part]) -> list[Part]:
    match old, new:
        case [TextPart() as before], [TextPart() as after] if before.metadata:
            return [TextPart(after.body, after.media_type, {**before.metadata, **after.metadata})]
        case _:
            return new


def _append_kind(old: list[Part], new: list[Part]) -> list[Part]:
    match old, new:
        case [TextPart() as before], [TextPart() as after]:
            return [_join(before, after)]
        case _:
            return old + new


def _join(before: TextPart, after: TextPart) -> TextPart:
    if before.media_type and after.media_type and before.media_type != after.media_type:
        raise MediaTypeConflict(before.media_type, after.media_type)
    metadata = {**before.metadata, **after.metadata} if after.metadata else before.metadata
    return TextPart(before.body + after.body, before.media_type or after.media_type, metadata)
