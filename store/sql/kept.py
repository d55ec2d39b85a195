"""Counts the bytes that are kept of each context, in the transactions that write and remove them.

Rule 1: the bytes are those of the counted columns as they are stored, which is after compression; what a database adds
        of its own, such as its indexes, is not counted.
Rule 2: a transaction writes its counts last, and sorted, so that two cannot deadlock.
Rule 3: the count of a context is removed with its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from a2a_canvas.store.sql.database import Dialect, insert_on
from a2a_canvas.store.sql.row_statement import RowStatement
from a2a_canvas.store.sql.tables import kept_bytes


def _upsert(dialect: Dialect) -> Any:
    added = insert_on(dialect, kept_bytes)
    return added.on_conflict_do_update(
        index_elements=[kept_bytes.c.context_id], set_={"bytes": kept_bytes.c.bytes + added.excluded.bytes}
    )


_ADD = RowStatement(_upsert, kept_bytes.c.keys())


def add_kept(connection: Connection, added: Mapping[str, int]) -> None:
    """Count bytes of contexts that this transaction writes, or, if they are negative, that it removes."""
    _ADD.execute(connection, [{"context_id": key, "bytes": added[key]} for key in sorted(added) if added[key]])
