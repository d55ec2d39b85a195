"""Changes of artifacts into their rows, within the transaction of a group commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import bindparam, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from store.document import Document
from store.sql.commit import Fenced
from store.sql.database import insert
from store.sql.differences import Changes, changes
from store.sql.reading import Key
from store.sql.rows import Head, Stored
from store.sql.tables import artifacts, drafts, versions

_KEYED = artifacts.c.context_id == bindparam("of_context"), artifacts.c.artifact_id == bindparam("of_artifact")
_UPDATE = (
    artifacts.update().where(*_KEYED).values({field.name: bindparam(f"new_{field.name}") for field in fields(Head)})
)
_HOLD = artifacts.update().where(*_KEYED).values(holder=bindparam("new_holder"))
_RELEASE = artifacts.update().where(*_KEYED, artifacts.c.holder == bindparam("of_holder")).values(holder=None)
_CUT = drafts.delete().where(
    drafts.c.context_id == bindparam("of_context"),
    drafts.c.artifact_id == bindparam("of_artifact"),
    drafts.c.seq >= bindparam("from_seq"),
)
_DROP = versions.delete().where(
    versions.c.context_id == bindparam("of_context"), versions.c.artifact_id == bindparam("of_artifact")
)


@dataclass(frozen=True, slots=True)
class Write:
    """What is to be written of one artifact.

    Attributes:
        holder: the replica that must hold it; None if nobody else can.
        before: what must be there.
        document, changed: how it then stands, and since when, in microseconds since 1970.
        keeps: the replica that holds it from then on.
    """

    key: Key
    holder: str | None
    before: Stored
    document: Document
    changed: int
    keeps: str | None

    def since(self, before: Stored) -> Changes:
        return changes(before, self.document, self.changed, self.keeps)


async def insert_head(connection: AsyncConnection, key: Key) -> None:
    """Make an artifact's row, unless there is one."""
    row = {"context_id": key[0], "artifact_id": key[1], **_values(Head())}
    await connection.execute(insert(connection, artifacts).values(row).on_conflict_do_nothing())


async def hold(connection: AsyncConnection, key: Key, holder: str) -> None:
    await connection.execute(_HOLD, [_of(key, new_holder=holder)])


async def release(connection: AsyncConnection, writes: Iterable[Write]) -> None:
    """Nobody holds these any more that were held by who was to write them."""
    await _run(connection, _RELEASE, (_of(each.key, of_holder=each.holder) for each in writes if each.holder))


async def write(connection: AsyncConnection, writes: Sequence[Write]) -> list[Stored]:
    """Bring the rows of artifacts to where they should be; how the documents stand in them then.

    Raises:
        Fenced: another replica has taken over one of them.
    """
    found = await _locked(connection, [each.key for each in writes])
    for each in writes:
        if each.holder is None and each.key not in found:
            await insert_head(connection, each.key)
    changed = {each.key: await _checked(connection, each, *found.get(each.key, (None, 0))) for each in writes}
    await _run(connection, _CUT, (_of(key, from_seq=each.cut) for key, each in changed.items() if each.cut is not None))
    await _run(
        connection, drafts.insert(), (_row(key, piece) for key, each in changed.items() for piece in each.pieces)
    )
    await _run(
        connection, versions.insert(), (_row(key, row) for key, each in changed.items() for row in each.versions)
    )
    await _run(connection, _UPDATE, (_of(key, **_values(each.head, "new_")) for key, each in changed.items()))
    return [each.after for each in changed.values()]


async def _locked(connection: AsyncConnection, keys: Sequence[Key]) -> dict[Key, tuple[str | None, int]]:
    """Holders and revisions; nobody else writes these rows until the transaction ends."""
    columns = artifacts.c.context_id, artifacts.c.artifact_id, artifacts.c.holder, artifacts.c.revision
    rows = select(*columns).where(tuple_(*columns[:2]).in_(keys)).order_by(*columns[:2]).with_for_update()
    return {(row[0], row[1]): (row[2], row[3]) for row in await connection.execute(rows)}


async def _checked(connection: AsyncConnection, each: Write, holder: str | None, revision: int) -> Changes:
    if revision == each.before.head.revision and each.holder in (None, holder):
        return each.since(each.before)
    if each.holder is not None:
        raise Fenced(f"another replica has taken over artifact {each.key[1]!r}")
    # Nobody else can hold it, so what was pruned is what memory goes on to use: all of it is written again.
    await _run(connection, _DROP, [_of(each.key)])
    return each.since(Stored(Document(each.key[1]), Head(revision=revision), pieces=1))


async def _run(connection: AsyncConnection, statement: Any, rows: Iterable[Mapping[str, Any]]) -> None:
    if given := [*rows]:
        await connection.execute(statement, given)


def _of(key: Key, **rest: Any) -> dict[str, Any]:
    return {"of_context": key[0], "of_artifact": key[1], **rest}


def _row(key: Key, value: Any) -> dict[str, Any]:
    return {"context_id": key[0], "artifact_id": key[1], **_values(value)}


def _values(value: Any, prefix: str = "") -> dict[str, Any]:
    return {prefix + field.name: getattr(value, field.name) for field in fields(value)}
