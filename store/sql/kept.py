"""Counts the bytes that are kept of each context, in the transactions that write and remove them.

Rule 1: the bytes are those of the counted columns as they are stored, which is after compression; what a database adds
        of its own, such as its indexes, is not counted.
Rule 2: a transaction writes its counts last, and sorted, so that two cannot deadlock.
Rule 3: the count of a context is removed with its rows.
Rule 4: expired rows are deleted by their age alone, a few at a time: a change of a row while this waits for its lock is
        not seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from sqlalchemy import BigInteger, Column, ColumnElement, Connection, Table, delete, literal, select

from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.row_statement import Row, RowStatement, upsert
from a2a_canvas.store.sql.tables import ContextKeyText, metadata

kept_bytes = Table(
    "kept_bytes",  # how much is kept of a context, as far as it is counted
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
)

EXPIRED_AT_ONCE = 1000
"""Expired rows that are deleted in one transaction."""

ADD_KEPT = RowStatement(upsert(kept_bytes, added=["bytes"]), kept_bytes.c.keys())


def add_kept(connection: Connection, added: Mapping[str, int]) -> None:
    """Count bytes of contexts that this transaction writes, or, if they are negative, that it removes."""
    ADD_KEPT.execute(connection, kept_rows(added))


def kept_rows(added: Mapping[str, int]) -> list[Row]:
    """The rows of `ADD_KEPT`."""
    return [{"context_id": key, "bytes": added[key]} for key in sorted(added) if added[key]]


async def delete_expired(
    database: Database, key: Column[str], old: ColumnElement[bool], size: ColumnElement[int] | None = None
) -> None:
    """Delete the old rows of a table (rule 4).

    Args:
        key: its primary key.
        size: what is counted of a row.
    """
    table = key.table
    some = delete(table).where(old, key.in_(select(key).where(old).limit(EXPIRED_AT_ONCE)))
    counted = some.returning(table.c.context_id, literal(0) if size is None else size)
    removed = EXPIRED_AT_ONCE
    while removed == EXPIRED_AT_ONCE:
        freed: Counter[str] = Counter()
        async with database.write() as connection:
            rows = (await connection.execute(counted)).all()
            for context_id, bytes_of_row in rows:
                freed[context_id] -= bytes_of_row
            await connection.run_sync(add_kept, freed)
        removed = len(rows)
