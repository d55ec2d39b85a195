"""The annotations of artifacts, in a database. `store/annotations/annotation_store.py` has the rules."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    LargeBinary,
    Table,
    delete,
    func,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.journal.task_log import TaskBatch
from a2a_canvas.server.tasks.sql.projections.context_holders import SqlHolds, end_hold
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit
from a2a_canvas.store.annotations.annotation import Annotation, AnnotationsChanged
from a2a_canvas.store.codec import decode, encode
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.artifact_lease import LeaseHolder
from a2a_canvas.store.sql.compression import compress_bytes, decompress_bytes
from a2a_canvas.store.sql.database import Database, TextSize
from a2a_canvas.store.sql.row_statement import RowStatement
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata
from a2a_canvas.store.text.unicode import replace_unstorable

artifact_annotations = Table(
    "artifact_annotations",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("artifact_id", Text, primary_key=True),
    Column("annotation_id", Text, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("version", Integer, nullable=False),  # of whose text its passage is a range
    Column("open", Boolean, nullable=False),
    Column("accepted_into", Integer),  # the version that its acceptance made; null: it was not accepted
    Column("annotation", LargeBinary, nullable=False),  # JSON, compressed where that makes it shorter
    Index("annotations_by_number", "context_id", "artifact_id", "number", "open"),  # `last_number`, `count_open`
    Index("annotations_by_acceptance", "context_id", "artifact_id", "accepted_into"),  # `list` of one version
)
ANNOTATION_SIZE = TextSize(artifact_annotations.c.annotation)

_ADD = RowStatement(lambda _: artifact_annotations.insert(), artifact_annotations.c.keys(), ["annotation"])

MANY_ROWS = 100
"""More are decoded in a thread: each takes a tenth of a millisecond."""

_Key = tuple[str, str]
"""Artifact and annotation."""


class SqlAnnotations:
    """`AnnotationStore` in a database.

    Args:
        flushed: waits until everything staged is committed, or given up.
    """

    def __init__(self, database: Database, replica: LeaseHolder, flushed: Callable[[], Awaitable[None]]) -> None:
        self._database = database
        self.holds: SqlHolds[AnnotationsChanged] = SqlHolds("annotations", database, replica, flushed)

    async def list(
        self, context_id: ContextKey, artifact_id: str, accepted_into: int | None = None
    ) -> tuple[Annotation, ...]:
        async with self._reading(context_id) as connection:
            return await read_annotations(connection, context_id, artifact_id, accepted_into)

    async def find(self, context_id: ContextKey, artifact_id: str, annotation_id: str) -> Annotation | None:
        this = artifact_annotations.c.annotation_id == replace_unstorable(annotation_id)
        query = select(artifact_annotations.c.annotation).where(*_condition(context_id, artifact_id), this)
        async with self._reading(context_id) as connection:
            row = await connection.scalar(query)
        return None if row is None else _decode([bytes(row)])[0]

    async def last_number(self, context_id: ContextKey, artifact_id: str) -> int:
        query = select(func.max(artifact_annotations.c.number)).where(*_condition(context_id, artifact_id))
        async with self._reading(context_id) as connection:
            return await connection.scalar(query) or 0

    async def count_open(self, context_id: ContextKey, artifact_id: str) -> int:
        query = select(func.count()).where(*_condition(context_id, artifact_id), artifact_annotations.c.open)
        async with self._reading(context_id) as connection:
            return await connection.scalar(query) or 0

    @asynccontextmanager
    async def _reading(self, context_id: ContextKey) -> AsyncGenerator[AsyncConnection, None]:
        await self.holds.wait_committed(ContextKey(replace_unstorable(context_id)))
        async with self._database.read() as connection:
            yield connection

    async def hold(self, context_id: ContextKey, task_id: str) -> None:
        await self.holds.take(ContextKey(replace_unstorable(context_id)), task_id)

    async def release(self, context_id: ContextKey, task_id: str) -> None:
        await self.holds.release(ContextKey(replace_unstorable(context_id)), task_id)

    def abandon(self, context_id: ContextKey, task_id: str) -> None:
        self.holds.abandon(ContextKey(replace_unstorable(context_id)), task_id)


async def read_annotations(
    connection: AsyncConnection, context_id: ContextKey, artifact_id: str, accepted_into: int | None = None
) -> tuple[Annotation, ...]:
    """The annotations of an artifact, or those that were accepted into a version of it, oldest first."""
    ours = _condition(context_id, artifact_id)
    if accepted_into is not None:
        ours = (*ours, artifact_annotations.c.accepted_into == accepted_into)
    query = select(artifact_annotations.c.annotation).where(*ours).order_by(artifact_annotations.c.number)
    rows = [bytes(row) for row in await connection.scalars(query)]
    return await asyncio.to_thread(_decode, rows) if len(rows) > MANY_ROWS else _decode(rows)


def _condition(context_id: ContextKey, artifact_id: str) -> tuple[ColumnElement[bool], ...]:
    context, artifact = replace_unstorable(context_id), replace_unstorable(artifact_id)
    return artifact_annotations.c.context_id == context, artifact_annotations.c.artifact_id == artifact


def _decode(rows: Iterable[bytes]) -> tuple[Annotation, ...]:
    return tuple(decode(decompress_bytes(row).decode(), Annotation) for row in rows)


def annotation_changes(batch: TaskBatch) -> Iterator[AnnotationsChanged]:
    """The changes of annotations among a task's entries."""
    return (entry.event for entry in batch.entries if isinstance(entry.event, AnnotationsChanged))


def write(connection: Connection, commit: JournalCommit) -> None:
    newest: defaultdict[ContextKey, dict[_Key, Annotation | None]] = defaultdict(dict)
    for each in commit.tasks:
        changes = [*annotation_changes(each.batch)]
        for change in changes:
            newest[each.context_id] |= {(change.artifact_id, one.annotation_id): one for one in change.changed}
            newest[each.context_id] |= {(change.artifact_id, removed): None for removed in change.removed}
        if changes:
            end_hold(connection, each.context_id, "annotations", commit.replica, each.task_id)
    for context_id in sorted(newest):
        commit.kept.update(_replace(connection, context_id, newest[context_id]))


def rewrite(connection: Connection, context_id: ContextKey, changed: Sequence[Annotation]) -> Counter[str]:
    """Replace the rows of annotations: by how many bytes more are kept, by context."""
    return _replace(connection, context_id, {(each.artifact_id, each.annotation_id): each for each in changed})


def _replace(connection: Connection, context_id: ContextKey, newest: Mapping[_Key, Annotation | None]) -> Counter[str]:
    kept: Counter[str] = Counter()
    by_artifact: defaultdict[str, list[str]] = defaultdict(list)
    for artifact_id, annotation_id in sorted(newest):
        by_artifact[artifact_id].append(annotation_id)
    for artifact_id, ids in by_artifact.items():
        for some in _batches(ids):
            those = artifact_annotations.c.annotation_id.in_(some)
            these = delete(artifact_annotations).where(*_condition(context_id, artifact_id), those)
            kept[context_id] -= sum(connection.scalars(these.returning(ANNOTATION_SIZE)))
    kept.update(_ADD.execute(connection, [_row(context_id, each) for each in newest.values() if each]))
    return kept


_IDS_PER_QUERY = 500
"""SQLite limits the number of parameters."""


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[first : first + _IDS_PER_QUERY] for first in range(0, len(ids), _IDS_PER_QUERY))


def _row(context_id: ContextKey, annotation: Annotation) -> dict[str, Any]:
    return {
        "context_id": context_id,
        "artifact_id": annotation.artifact_id,
        "annotation_id": annotation.annotation_id,
        "number": annotation.number,
        "version": annotation.version,
        "open": annotation.state == "open",
        "accepted_into": annotation.accepted_into,
        "annotation": compress_bytes(encode(annotation, Annotation).encode()),
    }
