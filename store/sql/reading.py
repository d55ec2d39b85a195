"""Reads artifacts from their rows, within the caller's transaction; and the cache of recent documents.

Rule 1: every write to a row of an artifact raises its `revision`, so a document in memory with the revision of the row
        is up to date. This holds within one `incarnation`: an artifact that was removed and is written again starts at
        revision 0 and version 1, and has nothing in common with the first one.
Rule 2: if a document has grown, only the new versions are read, unless old ones were pruned since.
Rule 3: a version stored as an edit is read together with the versions below it, each once.
"""

from __future__ import annotations

import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial, reduce
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import sqlalchemy
from sqlalchemy import CTE, ColumnElement, Connection, Select, Table, and_, func, select, tuple_, type_coerce
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store.errors import ArtifactUnreadable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Artifact, Content, Document, Ref
from a2a_canvas.store.sql.readable_rows import ReadableRows
from a2a_canvas.store.sql.rows import (
    ArtifactHead,
    Piece,
    StoredDocument,
    VersionRow,
    content_of,
    contents_of,
    document_of,
)
from a2a_canvas.store.sql.tables import CompressedText, artifacts, decompress_column, drafts, versions
from a2a_canvas.store.text.unicode import replace_unstorable

T = TypeVar("T")

Key = tuple[ContextKey, str]
"""Context id and artifact id as in the rows (`key_of`)."""

CACHED = 64 * 1024 * 1024
"""Bytes of documents in the cache."""
KEYS_PER_QUERY = 100
"""The most rows named in one statement."""

_ARTIFACTS, _VERSIONS = ReadableRows("artifact"), ReadableRows("version")


class VersionKey(NamedTuple):
    """A version. The ids are as in the rows."""

    context_id: ContextKey
    artifact_id: str
    number: int

    @property
    def artifact(self) -> Key:
        return self.context_id, self.artifact_id

    @staticmethod
    def from_ids(context_id: ContextKey, artifact_id: str, number: int) -> VersionKey:
        return VersionKey(replace_unstorable(context_id), replace_unstorable(artifact_id), number)


def key_of(ref: Ref) -> Key:
    """The key of an artifact, in the database and in memory."""
    return replace_unstorable(ref.context_id), replace_unstorable(ref.artifact_id)


async def read_head(connection: AsyncConnection, key: Key, *, lock: bool = False) -> ArtifactHead | None:
    """The artifact's row; None if it has none. `lock` locks it until the transaction ends."""
    query = select(*_columns(artifacts, ArtifactHead)).where(key_condition(artifacts, key))
    row = (await connection.execute(query.with_for_update() if lock else query)).one_or_none()
    return ArtifactHead(*row) if row else None


async def read_heads(connection: AsyncConnection, context_id: ContextKey) -> dict[str, ArtifactHead]:
    """The rows of a context's artifacts by id, ordered by their last change."""
    query = select(artifacts.c.artifact_id, *_columns(artifacts, ArtifactHead)).where(
        artifacts.c.context_id == context_id
    )
    query = query.order_by(artifacts.c.changed, artifacts.c.artifact_id)
    found = {artifact_id: ArtifactHead(*row) for artifact_id, *row in await connection.execute(query)}
    return {artifact_id: each for artifact_id, each in found.items() if each.exists}


async def read_heads_of(connection: AsyncConnection, keys: Iterable[Key]) -> dict[Key, ArtifactHead]:
    """The rows of some artifacts."""
    key, found = (artifacts.c.context_id, artifacts.c.artifact_id), dict[Key, ArtifactHead]()
    for some in _batches(keys):
        query = select(*key, *_columns(artifacts, ArtifactHead)).where(tuple_(*key).in_(some))
        found |= {(row[0], row[1]): ArtifactHead(*row[2:]) for row in await connection.execute(query)}
    return found


async def _document(
    connection: AsyncConnection, key: Key, found: ArtifactHead, known: StoredDocument | None
) -> StoredDocument:
    """The whole document; `known` is an earlier state of it (rule 2).

    Raises:
        ArtifactUnreadable: its rows cannot be decoded.
    """
    pruned = sum(version.pruned for version in known.document.versions) if known else None
    earlier = known if known and pruned == found.pruned else StoredDocument(Document(key[1]))
    newer = select(*_columns(versions, VersionRow)).where(
        key_condition(versions, key), versions.c.number > len(earlier.depths)
    )
    rows = [VersionRow(*row) for row in await connection.execute(newer.order_by(versions.c.number))]
    pieces = await _pieces(connection, key, found)
    decoded = [*_ARTIFACTS.decode_all([(key[1], rows)], lambda rows: document_of(key[1], found, rows, pieces, earlier))]
    if not decoded:
        raise ArtifactUnreadable(key[1])
    return decoded[0]


async def read_version_times(connection: AsyncConnection, key: Key) -> dict[int, datetime]:
    """When each version of an artifact was made, in UTC."""
    query = select(versions.c.number, versions.c.made_at).where(key_condition(versions, key))
    # SQLite stores no time zone.
    return {number: at if at.tzinfo else at.replace(tzinfo=UTC) for number, at in await connection.execute(query)}


async def read_artifacts(
    connection: AsyncConnection, context_id: ContextKey, found: Mapping[str, ArtifactHead]
) -> list[Artifact]:
    """Artifacts of a context in the order of `found`, without reading all of their versions, and without those whose
    rows cannot be decoded."""
    if not found:
        return []
    chains: dict[str, list[VersionRow]] = defaultdict(list)
    for key, version in await connection.run_sync(_read_chains, _current(context_id, found)):
        chains[key.artifact_id].append(version)
    pieces: dict[str, list[Piece]] = defaultdict(list)
    query = select(drafts.c.artifact_id, *_columns(drafts, Piece)).where(_keys_condition(drafts, context_id, found))
    for artifact_id, *row in await connection.execute(query.order_by(drafts.c.artifact_id, drafts.c.seq)):
        pieces[artifact_id].append(Piece(*row))
    rows = ((artifact_id, (artifact_id, each)) for artifact_id, each in found.items())
    return [*_ARTIFACTS.decode_all(rows, lambda row: _artifact(*row, chains[row[0]], pieces[row[0]]))]


def _artifact(artifact_id: str, head: ArtifactHead, chain: Sequence[VersionRow], pieces: Sequence[Piece]) -> Artifact:
    open = head.draft_task is not None
    never_completed = open and head.draft_completed is None and not head.draft_dirty
    shown = content_of(head, chain, pieces)
    return Artifact(artifact_id, shown, head.current, open, head.changed_by, never_completed)


def version_contents(connection: Connection, keys: Iterable[VersionKey]) -> dict[VersionKey, Content]:
    """The contents of versions, without those that were pruned or cannot be decoded."""
    found: dict[VersionKey, Content] = {}
    for some in _batches(keys):
        chosen = select(*_VERSION_KEY).where(tuple_(*_VERSION_KEY).in_(some))
        chains: dict[Key, list[VersionRow]] = defaultdict(list)
        for key, row in _read_chains(connection, chosen):
            chains[key.artifact].append(row)
        chosen_rows = ((artifact[1], (artifact, rows)) for artifact, rows in chains.items())
        read = dict(_VERSIONS.decode_all(chosen_rows, lambda row: (row[0], contents_of(row[1]))))
        found |= {key: content for key in some if (content := read.get(key.artifact, {}).get(key.number))}
    return found


def stored_contents(
    connection: Connection, keys: Iterable[VersionKey]
) -> dict[VersionKey, Callable[[], Content | None]]:
    """The contents of versions, each decoded by a call, which may be made in a thread. It returns None, and one is left
    out, as in `version_contents`."""
    chains: dict[Key, list[VersionRow]] = defaultdict(list)
    found = [*keys]
    chosen = select(*_VERSION_KEY).where(tuple_(*_VERSION_KEY).in_(found))
    for key, row in _read_chains(connection, chosen, as_stored=True):
        chains[key.artifact].append(row)
    return {key: partial(_decode, key, chains[key.artifact]) for key in found if key.artifact in chains}


def stored_sizes(connection: Connection, keys: Iterable[VersionKey]) -> dict[Key, int]:
    """What `stored_contents` reads for each artifact, in characters as they are stored, or bytes if compressed."""
    links = _links(select(*_VERSION_KEY).where(tuple_(*_VERSION_KEY).in_([*keys])))
    lengths = (func.coalesce(func.length(type_coerce(versions.c[name], sqlalchemy.Text)), 0) for name in _COMPRESSED)
    size = func.sum(reduce(operator.add, lengths))
    query = select(*_VERSION_KEY[:2], size).join_from(links, versions, _link_condition(links))
    return {(row[0], row[1]): int(row[2]) for row in connection.execute(query.group_by(*_VERSION_KEY[:2]))}


def _decode(key: VersionKey, chain: Sequence[VersionRow]) -> Content | None:
    def decode(rows: Sequence[VersionRow]) -> Content | None:
        return contents_of(map(_decompress_row, rows)).get(key.number)

    return next(_VERSIONS.decode_all([(key.artifact_id, chain)], decode), None)


def _decompress_row(row: VersionRow) -> VersionRow:
    edits, content, replacement = (decompress_column(each) for each in (row.edits, row.content, row.replacement))
    return replace(row, edits=edits, content=content, replacement=replacement)


_COMPRESSED = [column.name for column in versions.c if isinstance(column.type, CompressedText)]
_VERSION_KEY = (versions.c.context_id, versions.c.artifact_id, versions.c.number)


def _current(context_id: ContextKey, artifact_ids: Iterable[str]) -> Select[Any]:
    current = and_(versions.c.artifact_id == artifacts.c.artifact_id, versions.c.number == artifacts.c.current)
    joined = and_(versions.c.context_id == artifacts.c.context_id, current)
    return (
        select(*_VERSION_KEY)
        .join_from(artifacts, versions, joined)
        .where(_keys_condition(artifacts, context_id, artifact_ids))
    )


def _read_chains(
    connection: Connection, chosen: Select[Any], *, as_stored: bool = False
) -> list[tuple[VersionKey, VersionRow]]:
    """The chosen versions and the versions below them, in order (rule 3).

    Args:
        as_stored: compressed texts stay so.
    """
    links = _links(chosen)
    columns = _columns(versions, VersionRow)
    if as_stored:
        columns = [type_coerce(each, sqlalchemy.Text) if each.name in _COMPRESSED else each for each in columns]
    query = select(*_VERSION_KEY[:2], *columns).join_from(links, versions, _link_condition(links))
    rows = ((row, VersionRow(*row[2:])) for row in connection.execute(query))
    return sorted(((VersionKey(row[0], row[1], version.number), version) for row, version in rows), key=itemgetter(0))


def _links(chosen: Select[Any]) -> CTE:
    links = chosen.cte("links", recursive=True)
    parents = select(versions.c.context_id, versions.c.artifact_id, versions.c.parent)
    edited = and_(_link_condition(links), versions.c.replacement.is_not(None))
    return links.union(parents.join_from(links, versions, edited))


def _link_condition(links: Any) -> ColumnElement[bool]:
    return and_(*(column == links.c[column.name] for column in _VERSION_KEY))


def _batches(keys: Iterable[T]) -> Iterator[list[T]]:
    ordered = iter(keys)
    while some := [*islice(ordered, KEYS_PER_QUERY)]:
        yield some


async def _pieces(connection: AsyncConnection, key: Key, found: ArtifactHead) -> list[Piece]:
    if found.draft_task is None:
        return []
    query = select(*_columns(drafts, Piece)).where(key_condition(drafts, key)).order_by(drafts.c.seq)
    return [Piece(*row) for row in await connection.execute(query)]


def _columns(table: Table, kind: type[Any]) -> list[ColumnElement[Any]]:
    """The columns of a row's fields, in their order."""
    return [table.c[field.name] for field in fields(kind)]


def key_condition(table: Table, key: Key) -> ColumnElement[bool]:
    """The rows of an artifact."""
    return and_(table.c.context_id == key[0], table.c.artifact_id == key[1])


def _keys_condition(table: Table, context_id: ContextKey, artifact_ids: Iterable[str]) -> ColumnElement[bool]:
    return and_(table.c.context_id == context_id, table.c.artifact_id.in_([*artifact_ids]))


class Cache:
    """The most recently used documents.

    Args:
        limit: bytes of all documents together. A larger document is not cached.
    """

    def __init__(self, limit: int = CACHED) -> None:
        self._limit = limit
        self._size = 0
        self._entries: OrderedDict[Key, tuple[StoredDocument, int]] = OrderedDict()

    def last(self, key: Key) -> StoredDocument | None:
        """The document as of its last use."""
        return self._entries.get(key, (None, 0))[0]

    def fresh(self, key: Key, found: ArtifactHead) -> StoredDocument | None:
        """The document, if up to date with the artifact's row."""
        known = self.earlier(key, found)
        return known if known and known.head.revision == found.revision else None

    async def read(self, connection: AsyncConnection, key: Key, found: ArtifactHead) -> StoredDocument:
        """The document, given its artifact's row.

        Raises:
            ArtifactUnreadable: its rows cannot be decoded.
        """
        read = self.fresh(key, found)
        if read is None:
            read = await _document(connection, key, found, self.earlier(key, found))
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

    def earlier(self, key: Key, found: ArtifactHead) -> StoredDocument | None:
        """The document in its present state or an earlier one, given its artifact's row."""
        known, _ = self._entries.get(key, (None, 0))
        if known is None or known.head.incarnation != found.incarnation or known.head.revision > found.revision:
            return None
        self._entries.move_to_end(key)
        return known
