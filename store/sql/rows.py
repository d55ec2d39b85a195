"""Maps an artifact's document to rows: builds it from them, and computes the changes that update them. Pure.

Rule 1 (versions): a version is stored whole or, if an edit made it, as the text that replaced a range of its parent.
        Fewer than `FULL_EVERY` such rows lie between a version and a whole one.
Rule 2 (drafts): a draft is the current version's content with pieces applied in order: a piece appends parts, or is the
        whole content. The first `draft_completed` pieces make the content after the last completed call.
Rule 3 (pruning): a version whose row has neither content nor replacement was pruned. The current version is never
        pruned, nor one that another version is stored as an edit of.
Rule 4 (cost): content is written once. The cost of a growing draft, and of an edit, is that of the added text.
Rule 5: pieces no longer part of a draft are deleted, because their numbers are reused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from a2a_canvas.store.changes import AppendParts, apply, by_kind
from a2a_canvas.store.codec import decode, encode
from a2a_canvas.store.models import (
    Author,
    Content,
    Document,
    Draft,
    Part,
    Parts,
    TextEdit,
    TextPart,
    Version,
    text_of,
    text_part,
)
from a2a_canvas.store.text.spans import Span, splice
from a2a_canvas.store.text.unicode import replace_surrogates

FULL_EVERY = 32
"""Every 32nd version of a chain of edits is stored whole."""


@dataclass(frozen=True, slots=True)
class ArtifactHead:
    """A row of `artifacts` without its key."""

    holder: str | None = None
    revision: int = 0
    changed: int = 0
    changed_by: str = ""
    current: int = 0
    newest: int = 0
    pruned: int = 0
    draft_task: str | None = None
    draft_author: Author | None = None
    draft_dirty: bool = False
    draft_completed: int | None = None
    incarnation: int = 0

    @property
    def exists(self) -> bool:
        """Whether there is an artifact."""
        return bool(self.newest) or self.draft_task is not None


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A row of `versions` without its key and its time."""

    number: int
    parent: int
    author: Author
    task_id: str
    incomplete: bool
    edits: str | None
    content: str | None
    replacement: str | None

    @property
    def known_edits(self) -> tuple[TextEdit, ...]:
        known = json.loads(self.edits or "[]")
        return tuple(TextEdit(Span(start, end), length) for start, end, length in known)


@dataclass(frozen=True, slots=True)
class Piece:
    """A row of `drafts` without its key."""

    seq: int
    kind: Literal["whole", "append"]
    content: str


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document that equals its rows.

    Attributes:
        pieces: number of rows of its draft.
        depths: for each version, the number of edits between it and a whole one (rule 1).
    """

    document: Document
    head: ArtifactHead = field(default_factory=ArtifactHead)
    pieces: int = 0
    depths: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Bytes in memory, approximately; text that versions share is counted once."""
        document = self.document
        size = document.draft.shown.size if document.draft else 0
        for version, depth in zip(document.versions, self.depths, strict=True):
            size += 500 + (version.edited.length if depth and version.edited else version.content.size)
        return size


# ------------------------------------------------------------------------ from rows


def document_of(
    artifact_id: str, head: ArtifactHead, rows: Iterable[VersionRow], pieces: Sequence[Piece], known: StoredDocument
) -> StoredDocument:
    """The document of an artifact.

    Args:
        rows: the versions that `known` does not have, in order.
        known: an earlier state, none of whose versions has been pruned since; an empty document for none.
    """
    versions, depths = [*known.document.versions], [*known.depths]
    for row in rows:
        base = versions[row.parent - 1] if row.parent and row.replacement is not None else None
        found = _content(row, base.content if base and not base.pruned else None)
        depths.append(depths[row.parent - 1] + 1 if base else 0)
        facts = (row.author, row.task_id, row.parent, row.incomplete, row.known_edits)
        versions.append(Version(row.number, found or Content(), *facts, pruned=found is None))
    document = Document(artifact_id, tuple(versions), None, head.current, head.changed_by)
    document = replace(document, draft=_draft(head, document.current_content, pieces))
    return StoredDocument(document, head, len(pieces), tuple(depths))


def content_of(head: ArtifactHead, chain: Iterable[VersionRow], pieces: Sequence[Piece]) -> Content:
    """The content of an artifact, with its draft.

    Args:
        chain: the current version and those that it is stored as an edit of, in order.
    """
    closed: Content | None = None
    for row in chain:
        closed = _content(row, closed)
    draft = _draft(head, closed or Content(), pieces)
    return draft.shown if draft else closed or Content()


def contents_of(chain: Iterable[VersionRow]) -> dict[int, Content]:
    """The contents of the versions of an artifact, without those that were pruned.

    Args:
        chain: some versions and those that they are stored as edits of, in order.
    """
    found: dict[int, Content] = {}
    for row in chain:
        content = _content(row, found.get(row.parent))
        if content is not None:
            found[row.number] = content
    return found


def _content(row: VersionRow, base: Content | None) -> Content | None:
    if row.content is not None:
        return _from_json(row.content)
    if row.replacement is None or base is None or len(row.known_edits) != 1:
        return None
    span, text = row.known_edits[0].span, json.loads(row.replacement)
    parts = (replace(p, body=p.body.splice(span, text)) if isinstance(p, TextPart) else p for p in base.parts)
    return replace(base, parts=tuple(parts))


def _draft(head: ArtifactHead, closed: Content, pieces: Sequence[Piece]) -> Draft | None:
    if head.draft_task is None or head.draft_author is None:
        return None
    contents = [*accumulate(pieces, _with_piece, initial=closed)]
    completed = None if head.draft_completed is None else contents[head.draft_completed]
    return Draft(head.draft_task, head.draft_author, completed, contents[-1], head.draft_dirty)


def _with_piece(content: Content, piece: Piece) -> Content:
    added = _from_json(piece.content)
    if piece.kind == "whole":
        return added
    return replace(content, parts=apply(content.parts, AppendParts(added.parts)))


def _from_json(text: str) -> Content:
    content: Content = decode(text, Content)
    return content


# -------------------------------------------------------------------------- to rows


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The changes, in the order of their execution.

    Attributes:
        cut: the number of the first piece of the draft to delete; None if all stay.
        after: the document as stored after the changes.
    """

    head: ArtifactHead
    cut: int | None
    pieces: tuple[Piece, ...]
    versions: tuple[VersionRow, ...]
    after: StoredDocument


def row_changes(stored: StoredDocument, new: Document, changed: int, holder: str | None) -> RowChanges:
    """The changes of the rows from `stored` to `new`.

    Args:
        changed: the time of the last change, in microseconds since 1970.
        holder: the replica that has the lease after the changes.
    """
    made, depths = _new_versions(stored, new)
    cut, pieces, count, completed = _draft_pieces(stored, new)
    draft = new.draft
    head = replace(
        stored.head,
        holder=holder,
        revision=stored.head.revision + 1,
        changed=changed,
        changed_by=new.changed_by,
        current=new.current,
        newest=len(new.versions),
        draft_task=draft.task_id if draft else None,
        draft_author=draft.author if draft else None,
        draft_dirty=draft.dirty if draft else False,
        draft_completed=completed,
    )
    return RowChanges(head, cut, pieces, made, StoredDocument(new, head, count, depths))


def _new_versions(stored: StoredDocument, new: Document) -> tuple[tuple[VersionRow, ...], tuple[int, ...]]:
    known = len(stored.depths)
    if known == len(new.versions):
        return (), stored.depths
    rows, depths = [], [*stored.depths]
    for version in new.versions[known:]:
        depth = depths[version.parent - 1] + 1 if version.parent else FULL_EVERY
        replacement = _replacement(version, new.versions[version.parent - 1].content) if depth < FULL_EVERY else None
        rows.append(_version_row(version, replacement))
        depths.append(0 if replacement is None else depth)
    return tuple(rows), tuple(depths)


def _version_row(version: Version, replacement: str | None) -> VersionRow:
    edits = [[each.span.start, each.span.end, each.length] for each in version.edits]
    return VersionRow(
        version.number,
        version.parent,
        version.author,
        version.task_id,
        version.incomplete,
        json.dumps(edits, separators=(",", ":")) if edits else None,
        content_json(version.content) if replacement is None else None,
        None if replacement is None else json.dumps(replacement, ensure_ascii=False),
    )


def _replacement(version: Version, before: Content) -> str | None:
    """The text that replaced the edited range; None if that does not produce the version from its parent."""
    if version.edited is None or not _differ_only_in_text(before, version.content):
        return None
    span, text = version.edited.span, version.content.text
    replacement = text[span.start : span.start + version.edited.length]
    return replacement if splice(before.text, span, replacement) == text else None


def _differ_only_in_text(before: Content, after: Content) -> bool:
    old, new = text_of(before.parts), text_of(after.parts)
    if old is None or new is None:
        return False
    parts = tuple(replace(new, body=old.body) if part is new else part for part in after.parts)
    return replace(after, parts=parts) == before


@dataclass(frozen=True, slots=True)
class _Point:
    """The content of a draft's first `count` pieces."""

    count: int
    content: Content


def _draft_pieces(stored: StoredDocument, new: Document) -> tuple[int | None, tuple[Piece, ...], int, int | None]:
    """Where to cut the draft's pieces, the pieces to add, their number then, and the number up to the last call."""
    if new.draft is None:
        return (0 if stored.pieces else None), (), 0, None
    points = _points(stored, new)
    added: list[Piece] = []
    completed = None
    if new.draft.completed is not None:
        completed = _reach(points, new.draft.completed, added)
        shown = [point for point in points[:1] if point.count >= completed and not added]
        points = [*shown, _Point(completed, new.draft.completed)]
    count = _reach(points, new.draft.shown, added)
    cut = added[0].seq if added else count
    return (cut if cut < stored.pieces else None), tuple(added), count, completed


def _points(stored: StoredDocument, new: Document) -> list[_Point]:
    """The contents to continue from: the stored draft, its last completed call, and the current version."""
    old = stored.document
    points = []
    if old.draft and (len(old.versions), old.current) == (len(new.versions), new.current):
        points.append(_Point(stored.pieces, old.draft.shown))
        if old.draft.completed is not None and stored.head.draft_completed is not None:
            points.append(_Point(stored.head.draft_completed, old.draft.completed))
    return [*points, _Point(0, new.current_content)]


def _reach(points: Sequence[_Point], target: Content, added: list[Piece]) -> int:
    """The number of pieces for `target`, after adding one if needed. The last point is the fallback."""
    for point in points:
        parts = find_appended(point.content, target)
        if parts == ():
            return point.count
        if parts:
            added.append(Piece(point.count, "append", _appended_json(parts)))
            return point.count + 1
    added.append(Piece(points[-1].count, "whole", content_json(target)))
    return points[-1].count + 1


def find_appended(old: Content, new: Content) -> Parts | None:
    """The parts that turn `old` into `new` when appended; None if none do, or if finding out would cost more."""
    if old is new:
        return ()
    if (old.name, old.description) != (new.name, new.description):
        return None
    before, after = by_kind(old.parts), by_kind(new.parts)
    if [*after][: len(before)] != [*before]:
        return None
    parts: list[Part] = []
    for kind, now in after.items():
        more = _find_added(before.get(kind, []), now)
        if more is None:
            return None
        parts += more
    return tuple(parts)


def _find_added(old: list[Part], new: list[Part]) -> list[Part] | None:
    match old, new:
        case [TextPart() as before], [TextPart() as after]:
            return _grown_text(before, after)
        case _:
            return new[len(old) :] if new[: len(old)] == old else None


def _grown_text(before: TextPart, after: TextPart) -> list[Part] | None:
    more = after.body.since(before.body)
    same_type = before.media_type in ("", after.media_type)
    if more is None or not same_type or {**before.metadata, **after.metadata} != after.metadata:
        return None
    described = (after.media_type, after.metadata) != (before.media_type, before.metadata)
    if not described:
        return [text_part(more)] if more else []
    return [text_part(more, after.media_type, after.metadata)]


def _appended_json(parts: Parts) -> str:
    match parts:
        case (TextPart(media_type="") as part,) if not part.metadata:  # a fast path: this case is frequent
            text = json.dumps(replace_surrogates(part.text), ensure_ascii=False)
            return f'{{"parts":[{{"body":{text},"_type":"TextPart"}}]}}'
        case _:
            return content_json(Content(parts=parts))


def content_json(content: Content) -> str:
    """The JSON of a content, as stored in a row."""
    # A lone surrogate in a name or a value would make the whole transaction fail.
    return replace_surrogates(encode(content, Content))
