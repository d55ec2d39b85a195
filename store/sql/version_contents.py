"""The contents of versions by number, for rows that refer to a version instead of storing its content.

Rule 1: a version is never altered, so the copy in memory is right, unless the row of its artifact says that versions
        were pruned since, or that it is another artifact (`incarnation`).
Rule 2: other contents are read from the rows, in the caller's transaction: they must be consistent with the rows that
        refer to them.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store.errors import ArtifactUnreadable
from a2a_canvas.store.models import Content, Document
from a2a_canvas.store.sql import reading
from a2a_canvas.store.sql.artifact_lease import Leases
from a2a_canvas.store.sql.reading import Cache, Key, VersionKey
from a2a_canvas.store.sql.rows import ArtifactHead


class VersionContents:
    """The contents of versions, from the memory of a store and from the rows."""

    def __init__(self, leases: Leases, cache: Cache) -> None:
        self._leases = leases
        self._cache = cache

    def get_staged(self, key: VersionKey) -> Content | None:
        """The content in memory, committed or not; None if memory does not have it."""
        lease, cached = self._leases.find(key.artifact), self._cache.last(key.artifact)
        document = lease.newest if lease else cached.document if cached else None
        return _version_content(document, key.number) if document else None

    async def read(self, connection: AsyncConnection, keys: Collection[VersionKey]) -> dict[VersionKey, Content]:
        """The committed contents, without those that were pruned."""
        heads = await reading.read_heads_of(connection, {key.artifact for key in keys})
        documents = {artifact: await self._document(connection, artifact, head) for artifact, head in heads.items()}
        known = {
            key: content
            for key in keys
            if (document := documents.get(key.artifact)) and (content := _version_content(document, key.number))
        }
        return known | await connection.run_sync(reading.version_contents, [key for key in keys if key not in known])

    async def _document(self, connection: AsyncConnection, key: Key, found: ArtifactHead) -> Document | None:
        """The document, if it is in memory and its versions are right (rule 1)."""
        lease = self._leases.find(key)
        if lease and _same_versions(lease.saved.head, found):
            return lease.saved.document
        cached = self._cache.earlier(key, found)
        if cached and _same_versions(cached.head, found):
            try:
                return (await self._cache.read(connection, key, found)).document
            except ArtifactUnreadable:  # its rows are then read version by version
                return None
        return None


def _same_versions(known: ArtifactHead, found: ArtifactHead) -> bool:
    return (known.incarnation, known.pruned) == (found.incarnation, found.pruned)


def _version_content(document: Document, number: int) -> Content | None:
    if not 1 <= number <= len(document.versions):
        return None
    version = document.versions[number - 1]
    return None if version.pruned else version.content
