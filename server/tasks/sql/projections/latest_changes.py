"""The last change of each artifact of a context: what a new subscriber of the context sees, and the names of a list.

The rows of a context are removed with it, and none before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Connection, Row, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.row_statement import RowStatement, upsert
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata

latest_changes = Table(
    "latest_changes",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("artifact_id", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("closed", Boolean, nullable=False),  # the change has made a version
    Column("name", Text, nullable=False),  # of the artifact
)

_REPLACE = RowStatement(upsert(latest_changes, ["position", "task_id", "closed", "name"]), latest_changes.c.keys())


def write(connection: Connection, commit: JournalCommit) -> None:
    rows = {
        (each.context_id, artifact_id): {
            **each.columns,
            "artifact_id": artifact_id,
            "position": each.position + number,
            "closed": last.last_chunk,
            "name": last.name,
        }
        for each in commit.tasks
        for artifact_id, (number, last) in each.last.items()
    }
    commit.last.add(connection, _REPLACE, [rows[key] for key in sorted(rows)])


async def read_latest(
    connection: AsyncConnection, context_id: ContextKey, artifact_id: str | None = None
) -> Sequence[Row[Any]]:
    """The rows of a context, the last change last; only that of one artifact, if it is named."""
    query = select(latest_changes).where(latest_changes.c.context_id == context_id)
    if artifact_id is not None:
        query = query.where(latest_changes.c.artifact_id == artifact_id)
    return (await connection.execute(query.order_by(latest_changes.c.position))).all()


async def read_names(connection: AsyncConnection, context_ids: Collection[ContextKey]) -> dict[str, dict[str, str]]:
    """Of each context, the names of its artifacts by id, the last changed last."""
    found: dict[str, dict[str, str]] = {context_id: {} for context_id in context_ids}
    query = select(latest_changes.c.context_id, latest_changes.c.artifact_id, latest_changes.c.name)
    query = query.where(latest_changes.c.context_id.in_(context_ids)).order_by(latest_changes.c.position)
    for context_id, artifact_id, name in await connection.execute(query):
        found[context_id][artifact_id] = name
    return found
