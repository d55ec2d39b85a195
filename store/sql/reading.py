"""Reads artifacts from their rows, within the caller's transaction; and the cache of the documents read last.

Rule 1: every write to a row of an artifact raises its `revision`, so a document in memory with the revision of the row
        is up to date. This holds within one `incarnation`: an artifact that was removed and is written again starts at
        revision 0 and version 1, and has nothing in common with the first one.
Rule 2: if a document has grown, only the new versions are read, unless old ones were pruned meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store.models import Artifact, Content, Document, Ref
from a2a_canvas.store.sql.rows import ArtifactHead, Piece, StoredDocument, VersionRow, content_of, document_of
from a2a_canvas.store.sql.tables import artifacts, drafts, versions
from a2a_canvas.store.text.unicode import replace_unstorable

Key = tuple[str, str]
"""Context id and artifact id as in the rows (`key_of`)."""

CACHED = 64 * 1024 * 1024
"""Bytes of documents in the cache."""


def key_of(ref: Ref) -> Key:
    """The key of an artifact, in the database and in memory."""
    return replace_unstorable(ref.context_id), replace_unstorable(ref.artifact_id)


async def read_head(connection: AsyncConnection, key: Key, *, lock: bool = False) -> ArtifactHead | None:
    """The artifact's row; None if it has none. `lock` locks it until the transaction ends."""
    query = select(*_columns(artifacts, ArtifactHead)).where(_of(artifacts, key))
    row = (await connection.execute(query.with_for_update() if lock else query)).one_or_none()
    return ArtifactHead(*row) if row else None


async def read_heads(connection: AsyncConnection, context_id: str) -> dict[str, ArtifactHead]:
    """The rows of a context's artifacts by id, ordered by their last change."""
    query = select(artifacts.c.artifact_id, *_columns(artifacts, ArtifactHead)).where(
        artifacts.c.context_id == context_id
    )
    query = query.order_by(artifacts.c.changed, artifacts.c.artifact_id)
    found = {artifact_id: ArtifactHead(*row) for artifact_id, *row in await connection.execute(query)}
    return {artifact_id: each for artifact_id, each in found.items() if each.exists}


async def _document(
    connection: AsyncConnection, key: Key, found: ArtifactHead, known: StoredDocument | None
) -> StoredDocument:
    """The whole document; `known` is an earlier state of it (rule 2)."""
    if known is None or sum(version.pruned for version in known.document.versions) != found.pruned:
        known = StoredDocument(Document(key[1]))
    newer = select(*_columns(versions, VersionRow)).where(_of(versions, key), versions.c.number > len(known.depths))
    rows = [VersionRow(*row) for row in await connection.execute(newer.order_by(versions.c.number))]
    return document_of(key[1], found, rows, await _pieces(connection, key, found), known)


async def read_artifacts(
    connection: AsyncConnection, context_id: str, found: Mapping[str, ArtifactHead]
) -> list[Artifact]:
    """Artifacts of a context in the order of `found`, without reading all of their versions."""
    if not found:
        return []
    chains: dict[str, list[VersionRow]] = defaultdict(list)
    for artifact_id, *row in await connection.execute(_chains(context_id, _current(context_id, found))):
        chains[artifact_id].append(VersionRow(*row))
    pieces: dict[str, list[Piece]] = defaultdict(list)
    query = select(drafts.c.artifact_id, *_columns(drafts, Piece)).where(_among(drafts, context_id, found))
    for artifact_id, *row in await connection.execute(query.order_by(drafts.c.artifact_id, drafts.c.seq)):
        pieces[artifact_id].append(Piece(*row))
    return [
        _artifact(artifact_id, each, chains[artifact_id], pieces[artifact_id]) for artifact_id, each in found.items()
    ]


def _artifact(artifact_id: str, head: ArtifactHead, chain: Sequence[VersionRow], pieces: Sequence[Piece]) -> Artifact:
    open = head.draft_task is not None
    never_completed = open and head.draft_completed is None and not head.draft_dirty
    shown = content_of(head, chain, pieces)
    return Artifact(artifact_id, shown, head.current, open, head.changed_by, never_completed)


async def version_content(connection: AsyncConnection, key: Key, number: int) -> Content:
    """A version's content, reading only the versions that it is stored as an edit of."""
    begin = select(*_links()).where(_of(versions, key), versions.c.number == number)
    rows = [VersionRow(*row) for _, *row in await connection.execute(_chains(key[0], begin))]
    return content_of(ArtifactHead(), rows, ())


def _links() -> list[ColumnElement[Any]]:
    return [versions.c.artifact_id, *_columns(versions, VersionRow)]


def _current(context_id: str, artifact_ids: Iterable[str]) -> Select[Any]:
    current = and_(versions.c.artifact_id == artifacts.c.artifact_id, versions.c.number == artifacts.c.current)
    joined = and_(versions.c.context_id == artifacts.c.context_id, current)
    return select(*_links()).join_from(artifacts, versions, joined).where(_among(artifacts, context_id, artifact_ids))


def _chains(context_id: str, chosen: Select[Any]) -> Any:
    """The chosen versions, and for each one those that it is stored as an edit of."""
    begin = chosen.cte("chain", recursive=True)
    parent = and_(versions.c.artifact_id == begin.c.artifact_id, versions.c.number == begin.c.parent)
    below = select(*_links()).join_from(begin, versions, and_(versions.c.context_id == context_id, parent))
    chain = begin.union_all(below.where(begin.c.replacement.is_not(None)))
    return select(chain).order_by(chain.c.artifact_id, chain.c.number)


async def _pieces(connection: AsyncConnection, key: Key, found: ArtifactHead) -> list[Piece]:
    if found.draft_task is None:
        return []
    query = select(*_columns(drafts, Piece)).where(_of(drafts, key)).order_by(drafts.c.seq)
    return [Piece(*row) for row in await connection.execute(query)]


def _columns(table: Table, kind: type[Any]) -> list[ColumnElement[Any]]:
    """The columns of a row's fields, in their order."""
    return [table.c[field.name] for field in fields(kind)]


def _of(table: Table, key: Key) -> ColumnElement[bool]:
    return and_(table.c.context_id == key[0], table.c.artifact_id == key[1])


def _among(table: Table, context_id: str, artifact_ids: Iterable[str]) -> ColumnElement[bool]:
    return and_(table.c.context_id == context_id, table.c.artifact_id.in_([*artifact_ids]))


class Cache:
    """The documents that were used last.

    Args:
        limit: bytes of all documents together. A larger document is not cached.
    """

    def __init__(self, limit: int = CACHED) -> None:
        self._limit = limit
        self._size = 0
        self._entries: OrderedDict[Key, tuple[StoredDocument, int]] = OrderedDict()

    def fresh(self, key: Key, found: ArtifactHead) -> StoredDocument | None:
        """The document, if it is up to date with the artifact's row."""
        known = self._get(key, found)
        return known if known and known.head.revision == found.revision else None

    async def read(self, connection: AsyncConnection, key: Key, found: ArtifactHead) -> StoredDocument:
        """The document, given its artifact's row."""
        read = self.fresh(key, found)
        if read is None:
            read = await _document(connection, key, found, self._get(key, found))
            self.put(key, read)
        return read

    def put(self, key: Key, document: StoredDocument) -> None:
        self._size -= self._entries.pop(key, (None, 0))[1]
        self._entries[key] = document, document.size
        self._size += document.size
        while self._size > self._limit:
            self._size -= self._entries.popitem(last=False)[1][1]

    def clear(self) -> None:
        self._entries.clear()
        self._size = 0

    def _get(self, key: Key, found: ArtifactHead) -> StoredDocument | None:
        """The artifact in its present state or an earlier one."""
        known, _ = self._entries.get(key, (None, 0))
        if known is None or known.head.incarnation != found.incarnation or known.head.revision > found.revision:
            return None
        self._entries.move_to_end(key)
        return known
