"""Writes changes of artifacts to their rows, within the transaction of a group commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, bindparam, null, select, tuple_

from a2a_canvas.store.models import Document
from a2a_canvas.store.sql.commit import LeaseLost
from a2a_canvas.store.sql.database import insert
from a2a_canvas.store.sql.kept import add_kept
from a2a_canvas.store.sql.reading import Key
from a2a_canvas.store.sql.row_statement import RowStatement
from a2a_canvas.store.sql.rows import ArtifactHead, Piece, StoredDocument, VersionRow, row_changes
from a2a_canvas.store.sql.tables import artifacts, drafts, versions


def _key_condition(table: Table) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.context_id == bindparam("of_context"), table.c.artifact_id == bindparam("of_artifact")


_NAMES = {kind: tuple(field.name for field in fields(kind)) for kind in (ArtifactHead, Piece, VersionRow)}
_GET_ALL = {kind: attrgetter(*names) for kind, names in _NAMES.items()}
_NEW_HEAD = tuple(f"new_{name}" for name in _NAMES[ArtifactHead])


_CHANGE = artifacts.update().where(*_key_condition(artifacts))
_UPDATE = RowStatement(lambda _: _CHANGE.values({name: bindparam(f"new_{name}") for name in _NAMES[ArtifactHead]}))
_SET_HOLDER = _CHANGE.values(holder=bindparam("new_holder"))
_CLEAR_HOLDER = RowStatement(
    lambda _: _CHANGE.where(artifacts.c.holder == bindparam("of_holder")).values(holder=null())
)
_CUT = RowStatement(lambda _: drafts.delete().where(*_key_condition(drafts), drafts.c.seq >= bindparam("from_seq")))
_ADD_PIECE = RowStatement(lambda _: drafts.insert(), ("context_id", "artifact_id", *_NAMES[Piece]))
_ADD_VERSION = RowStatement(
    lambda _: versions.insert(), ("context_id", "artifact_id", *_NAMES[VersionRow]), ("content", "replacement")
)


_KEY = artifacts.c.context_id, artifacts.c.artifact_id
_LOCK = (
    select(*_KEY, artifacts.c.holder, artifacts.c.incarnation, artifacts.c.revision)
    .where(tuple_(*_KEY).in_(bindparam("keys", expanding=True)))
    .order_by(*_KEY)
    .with_for_update()
)


@dataclass(frozen=True, slots=True)
class Write:
    """A write of one artifact.

    Attributes:
        holder: the replica that must have the lease; None if there is only one replica.
        before: the expected rows.
        document, changed: the new document, and its time in microseconds since 1970.
        next_holder: the replica that has the lease after the write.
    """

    key: Key
    holder: str | None
    before: StoredDocument
    document: Document
    changed: int
    next_holder: str | None


def insert_head(connection: Connection, key: Key, head: ArtifactHead) -> bool:
    """Insert an artifact's row, unless it exists; whether it was inserted."""
    new = insert(connection, artifacts).values(_row(key, head)).on_conflict_do_nothing()
    return (connection.execute(new)).rowcount == 1


def set_holder(connection: Connection, key: Key, holder: str) -> None:
    connection.execute(_SET_HOLDER, [_with_key(key, new_holder=holder)])


def clear_holder(connection: Connection, writes: Iterable[Write]) -> None:
    """Clear the leases for `writes`."""
    _CLEAR_HOLDER.execute(connection, (_with_key(each.key, of_holder=each.holder) for each in writes if each.holder))


def write(connection: Connection, writes: Sequence[Write]) -> list[StoredDocument]:
    """Update the rows of artifacts. Returns the documents as stored.

    Raises:
        LeaseLost: a row has changed since this replica wrote it: another one has taken over.
    """
    for each in writes:
        if each.holder is None and not each.before.head.revision:
            insert_head(connection, each.key, each.before.head)
    found = _lock_heads(connection, [each.key for each in writes])
    for each in writes:
        _check(each, *found.get(each.key, (None, 0, 0)))
    changed = {each.key: row_changes(each.before, each.document, each.changed, each.next_holder) for each in writes}
    cuts = (_with_key(key, from_seq=each.cut) for key, each in changed.items() if each.cut is not None)
    _CUT.execute(connection, cuts)
    _ADD_PIECE.execute(connection, (_row(key, piece) for key, each in changed.items() for piece in each.pieces))
    made = (_row(key, row) for key, each in changed.items() for row in each.versions)
    kept = _ADD_VERSION.execute(connection, made)
    _UPDATE.execute(connection, (_with_key(key, **_values(_NEW_HEAD, each.head)) for key, each in changed.items()))
    add_kept(connection, kept)
    return [each.after for each in changed.values()]


def _lock_heads(connection: Connection, keys: Sequence[Key]) -> dict[Key, tuple[str | None, int, int]]:
    """Lock the rows until the transaction ends; returns holders, incarnations and revisions."""
    found = connection.execute(_LOCK, {"keys": [*keys]})
    return {(row[0], row[1]): (row[2], row[3], row[4]) for row in found}


def _check(each: Write, holder: str | None, incarnation: int, revision: int) -> None:
    unchanged = (incarnation, revision) == (each.before.head.incarnation, each.before.head.revision)
    if not unchanged or each.holder not in (None, holder):
        raise LeaseLost(f"another replica has taken over artifact {each.key[1]!r}")


def _with_key(key: Key, **rest: Any) -> dict[str, Any]:
    return {"of_context": key[0], "of_artifact": key[1], **rest}


def _row(key: Key, value: ArtifactHead | Piece | VersionRow) -> dict[str, Any]:
    return {"context_id": key[0], "artifact_id": key[1], **_values(_NAMES[type(value)], value)}


def _values(names: Sequence[str], value: ArtifactHead | Piece | VersionRow) -> dict[str, Any]:
    return dict(zip(names, _GET_ALL[type(value)](value), strict=True))
