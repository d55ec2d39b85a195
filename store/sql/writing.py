"""Writes changes of artifacts to their rows, within the transaction of a group commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Table, bindparam, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.store.models import Document
from a2a_canvas.store.sql.commit import LeaseLost
from a2a_canvas.store.sql.database import insert
from a2a_canvas.store.sql.reading import Key
from a2a_canvas.store.sql.rows import ArtifactHead, StoredDocument, row_changes
from a2a_canvas.store.sql.tables import artifacts, drafts, versions


def _keyed(table: Table) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.context_id == bindparam("of_context"), table.c.artifact_id == bindparam("of_artifact")


_CHANGE = artifacts.update().where(*_keyed(artifacts))
_UPDATE = _CHANGE.values({field.name: bindparam(f"new_{field.name}") for field in fields(ArtifactHead)})
_SET_HOLDER = _CHANGE.values(holder=bindparam("new_holder"))
_CLEAR_HOLDER = _CHANGE.where(artifacts.c.holder == bindparam("of_holder")).values(holder=None)
_CUT = drafts.delete().where(*_keyed(drafts), drafts.c.seq >= bindparam("from_seq"))


@dataclass(frozen=True, slots=True)
class Write:
    """A write of one artifact.

    Attributes:
        holder: the replica that must have the lease; None if there is only one replica.
        before: the rows as they must be.
        document, changed: the new document, and its time in microseconds since 1970.
        next_holder: the replica that has the lease afterwards.
    """

    key: Key
    holder: str | None
    before: StoredDocument
    document: Document
    changed: int
    next_holder: str | None


async def insert_head(connection: AsyncConnection, key: Key, head: ArtifactHead) -> bool:
    """Insert an artifact's row, unless it exists; whether it was inserted."""
    new = insert(connection, artifacts).values(_row(key, head)).on_conflict_do_nothing()
    return (await connection.execute(new)).rowcount == 1


async def set_holder(connection: AsyncConnection, key: Key, holder: str) -> None:
    await connection.execute(_SET_HOLDER, [_of(key, new_holder=holder)])


async def clear_holder(connection: AsyncConnection, writes: Iterable[Write]) -> None:
    """Clear the leases under which `writes` were to be written."""
    await _run(connection, _CLEAR_HOLDER, (_of(each.key, of_holder=each.holder) for each in writes if each.holder))


async def write(connection: AsyncConnection, writes: Sequence[Write]) -> list[StoredDocument]:
    """Bring the rows of artifacts up to date. Returns the documents as they are stored then.

    Raises:
        LeaseLost: a row is not as this replica left it; another one has taken over.
    """
    for each in writes:
        if each.holder is None and not each.before.head.revision:
            await insert_head(connection, each.key, each.before.head)
    found = await _locked(connection, [each.key for each in writes])
    for each in writes:
        _check(each, *found.get(each.key, (None, 0, 0)))
    changed = {each.key: row_changes(each.before, each.document, each.changed, each.next_holder) for each in writes}
    await _run(connection, _CUT, (_of(key, from_seq=each.cut) for key, each in changed.items() if each.cut is not None))
    pieces = (_row(key, piece) for key, each in changed.items() for piece in each.pieces)
    await _run(connection, drafts.insert(), pieces)
    await _run(
        connection, versions.insert(), (_row(key, row) for key, each in changed.items() for row in each.versions)
    )
    await _run(connection, _UPDATE, (_of(key, **_values(each.head, "new_")) for key, each in changed.items()))
    return [each.after for each in changed.values()]


async def _locked(connection: AsyncConnection, keys: Sequence[Key]) -> dict[Key, tuple[str | None, int, int]]:
    """Holders, incarnations and revisions. The rows are locked until the transaction ends."""
    key = artifacts.c.context_id, artifacts.c.artifact_id
    columns = (*key, artifacts.c.holder, artifacts.c.incarnation, artifacts.c.revision)
    rows = select(*columns).where(tuple_(*key).in_(keys)).order_by(*key).with_for_update()
    return {(row[0], row[1]): (row[2], row[3], row[4]) for row in await connection.execute(rows)}


def _check(each: Write, holder: str | None, incarnation: int, revision: int) -> None:
    unchanged = (incarnation, revision) == (each.before.head.incarnation, each.before.head.revision)
    if not unchanged or each.holder not in (None, holder):
        raise LeaseLost(f"another replica has taken over artifact {each.key[1]!r}")


async def _run(connection: AsyncConnection, statement: Any, rows: Iterable[Mapping[str, Any]]) -> None:
    if given := [*rows]:
        await connection.execute(statement, given)


def _of(key: Key, **rest: Any) -> dict[str, Any]:
    return {"of_context": key[0], "of_artifact": key[1], **rest}


def _row(key: Key, value: Any) -> dict[str, Any]:
    return {"context_id": key[0], "artifact_id": key[1], **_values(value)}


def _values(value: Any, prefix: str = "") -> dict[str, Any]:
    return {prefix + field.name: getattr(value, field.name) for field in fields(value)}
