"""An artifact's document as rows, and the document of those rows. Pure.

Rule 1 (versions): a version is stored whole or, if an edit made it, as the text that replaced a range of its parent.
        Fewer than `FULL_EVERY` such rows lie between a version and a whole one.
Rule 2 (drafts): a draft is the current version's content with pieces applied in order: a piece appends parts, or is the
        whole content. The first `draft_completed` pieces make the content after the last completed call.
Rule 3 (pruning): a version whose row has neither content nor replacement was pruned. The current version is never
        pruned, nor one that another version is stored as an edit of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from a2a_canvas.store.changes import AppendParts, apply
from a2a_canvas.store.codec import decode
from a2a_canvas.store.models import Author, Content, Document, Draft, TextEdit, TextPart, Version
from a2a_canvas.store.text.spans import Span

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
    edited_start: int | None
    edited_end: int | None
    edited_length: int | None
    content: str | None
    replacement: str | None

    @property
    def edited(self) -> TextEdit | None:
        if self.edited_start is None or self.edited_end is None or self.edited_length is None:
            return None
        return TextEdit(Span(self.edited_start, self.edited_end), self.edited_length)


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
        size = _size(document.draft.shown) if document.draft else 0
        for version, depth in zip(document.versions, self.depths, strict=True):
            size += 500 + (version.edited.length if depth and version.edited else _size(version.content))
        return size


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
        facts = (row.author, row.task_id, row.parent, row.incomplete, row.edited)
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


def _content(row: VersionRow, base: Content | None) -> Content | None:
    if row.content is not None:
        return _from_json(row.content)
    if row.replacement is None or base is None or row.edited is None:
        return None
    span, text = row.edited.span, json.loads(row.replacement)
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


def _size(content: Content) -> int:
    return sum(part.size for part in content.parts)
