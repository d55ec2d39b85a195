"""Removing what is no longer to be kept, in many small transactions, so that nobody waits for one.

Rule 1 (journals): the entries of a task that has ended go; the task, as it stands, stays.
Rule 2 (versions): the content of an old version goes; its number and who wrote it stay. The current version is kept,
        however old. A kept one that is stored as an edit of one that goes is stored whole before.
Rule 3 (contexts): a context goes with all it has, when none of its tasks or artifacts has changed for so long. One with
        a task that works, or that waits for an answer, is kept, however long it waits.
Rule 4: an artifact that a living replica holds is left for the next time.
Rule 5: what has no use after a day goes, too: which task a message went to, and post that nobody has taken.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Table, and_, bindparam, delete, exists, func, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from server.agent.events import State
from server.tasks.incoming import WINDOW
from server.tasks.sql.reading import ticks
from server.tasks.sql.tables import contexts, mail, messages, pages, replicas, standings, task_contexts, tasks
from store.sql import reading
from store.sql.database import Database
from store.sql.differences import version_row
from store.sql.reading import Key
from store.sql.rows import Head
from store.sql.tables import artifacts, drafts, versions

AT_ONCE = 10
"""Tasks whose entries are removed in one transaction."""

ENDED = [state.value for state in State if state.terminal]
IN_CONTEXT = (pages, standings, mail, drafts, versions, artifacts, tasks, contexts)
"""The tables that have what a context has."""
TEXTS = (pages.c.entries, tasks.c.head, tasks.c.transcript, tasks.c.artifacts, versions.c.content, drafts.c.content)
"""The columns that a context's size is made of."""


@dataclass(frozen=True, slots=True)
class Keep:
    """How long things are kept; None is for ever.

    Attributes:
        journals: entries of tasks, after their end.
        versions: contents of versions that are not the current one, after they were made.
        contexts: contexts, after their last change.
    """

    journals: timedelta
    versions: timedelta | None = None
    contexts: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much was removed, or would be.

    Attributes:
        journals: tasks whose entries were.
        versions: versions whose contents were.
        contexts: contexts that were, with all they had.
        bytes: of text, about.
    """

    journals: int = 0
    versions: int = 0
    contexts: int = 0
    bytes: int = 0


async def prune(database: Database, keep: Keep, now: datetime, *, dry_run: bool) -> Pruned:
    """Remove what is older than it is to be kept. What it finds after it has begun may stay until the next time.

    Args:
        now: with its zone.
        dry_run: change nothing; only say what would be removed.

    Raises:
        Unavailable: the database cannot be used; what was removed before stays so.
    """
    gone = await _contexts(database, now - keep.contexts, dry_run) if keep.contexts else {}
    ended = await _journals(database, now - keep.journals, dry_run, gone)
    old = await _versions(database, now - keep.versions, dry_run, gone) if keep.versions else {}
    if not dry_run:
        await _day_old(database, now)
    size = sum(gone.values()) + sum(ended.values()) + sum(size for _, size in old.values())
    return Pruned(len(ended), sum(count for count, _ in old.values()), len(gone), size)


# ---------------------------------------------------------------------------- contexts


async def _contexts(database: Database, before: datetime, dry_run: bool) -> dict[str, int]:
    """The contexts that go, and their sizes."""
    async with database.read() as connection:
        found = await connection.scalars(select(contexts.c.context_id).where(_idle(before)))
        sizes = {context_id: await _size(connection, context_id) for context_id in found.all()}
    if dry_run:
        return sizes
    return {context_id: size for context_id, size in sizes.items() if await _remove(database, context_id, before)}


def _idle(before: datetime) -> ColumnElement[bool]:
    """Nothing happens in the context, nor has since."""
    moving = or_(tasks.c.state.not_in(ENDED), tasks.c.changed_at >= ticks(before))
    touched = or_(artifacts.c.changed >= ticks(before), _held())
    return and_(
        contexts.c.changed_at < ticks(before),
        ~exists().where(tasks.c.context_id == contexts.c.context_id, moving),
        ~exists().where(artifacts.c.context_id == contexts.c.context_id, touched),
    )


def _held() -> ColumnElement[bool]:
    return artifacts.c.holder.in_(select(replicas.c.replica_id))


async def _size(connection: AsyncConnection, context_id: str) -> int:
    sums = (select(func.sum(func.length(text))).where(text.table.c.context_id == context_id) for text in TEXTS)
    return sum([await connection.scalar(query) or 0 for query in sums])


async def _remove(database: Database, context_id: str, before: datetime) -> bool:
    """Whether it has gone: somebody may have come back to it."""
    async with database.write() as connection:
        # A new task in it waits for its row, and whoever takes hold of an artifact for that one's. In the order in
        # which the journal and the store write them, so that nobody waits for one another.
        for table in (contexts, artifacts):
            rows = select(table.c.context_id).where(table.c.context_id == context_id)
            await connection.execute(rows.with_for_update())
        still = select(contexts.c.context_id).where(contexts.c.context_id == context_id, _idle(before))
        if await connection.scalar(still) is None:
            return False
        of_it = select(tasks.c.task_id).where(tasks.c.context_id == context_id)
        await connection.execute(delete(task_contexts).where(task_contexts.c.task_id.in_(of_it)))
        for table in IN_CONTEXT:
            await connection.execute(delete(table).where(table.c.context_id == context_id))
        return True


# ---------------------------------------------------------------------------- journals


async def _journals(database: Database, before: datetime, dry_run: bool, gone: Container[str]) -> dict[Key, int]:
    """The tasks whose entries go, and the sizes of those."""
    task = and_(tasks.c.context_id == pages.c.context_id, tasks.c.task_id == pages.c.task_id)
    ended = tasks.c.state.in_(ENDED), tasks.c.changed_at < ticks(before), tasks.c.snapshot == tasks.c.generation
    of_task = pages.c.context_id, pages.c.task_id
    query = select(*of_task, func.sum(func.length(pages.c.entries))).join(tasks, task).where(*ended).group_by(*of_task)
    async with database.read() as connection:
        found = {(row[0], row[1]): int(row[2]) for row in await connection.execute(query) if row[0] not in gone}
    if not dry_run:
        # What has ended never goes on.
        for some in _portions([*found]):
            async with database.write() as connection:
                await connection.execute(delete(pages).where(tuple_(*of_task).in_(some)))
    return found


def _portions(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    return (keys[start : start + AT_ONCE] for start in range(0, len(keys), AT_ONCE))


# ---------------------------------------------------------------------------- versions


async def _versions(
    database: Database, before: datetime, dry_run: bool, gone: Container[str]
) -> dict[Key, tuple[int, int]]:
    """The artifacts of which versions go: how many, and their size."""
    key = versions.c.context_id, versions.c.artifact_id
    size = func.sum(func.length(func.coalesce(versions.c.content, versions.c.replacement)))
    artifact = and_(artifacts.c.context_id == key[0], artifacts.c.artifact_id == key[1])
    old = _old(before, artifacts.c.current)
    query = select(*key, func.count(), size).join(artifacts, artifact).where(_free(), old).group_by(*key)
    async with database.read() as connection:
        rows = (await connection.execute(query)).all()
    found = {(row[0], row[1]): (int(row[2]), int(row[3])) for row in rows if row[0] not in gone}
    if dry_run:
        return found
    return {each: counted for each, counted in found.items() if await _strip(database, each, before)}


def _free() -> ColumnElement[bool]:
    """Nobody is changing the artifact."""
    return and_(artifacts.c.draft_task.is_(None), or_(artifacts.c.holder.is_(None), ~_held()))


def _old(before: datetime, current: ColumnElement[int] | int) -> ColumnElement[bool]:
    """The version's content goes."""
    has_any = or_(versions.c.content.is_not(None), versions.c.replacement.is_not(None))
    return and_(versions.c.made_at < before, versions.c.number != current, has_any)


async def _strip(database: Database, key: Key, before: datetime) -> bool:
    """Take the contents of an artifact's old versions; False if it is being changed just now."""
    of_it = _of(artifacts, key)
    async with database.write() as connection:
        head = await reading.head(connection, key, lock=True)
        if head is None or await connection.scalar(select(artifacts.c.current).where(of_it, _free())) is None:
            return False
        old = and_(_of(versions, key), _old(before, head.current))
        going = set(await connection.scalars(select(versions.c.number).where(old)))
        await _make_whole(connection, key, head, going)
        await connection.execute(update(versions).where(old).values(content=None, replacement=None))
        # Whoever has the versions in memory sees by this that it has to read them again.
        counts = {"revision": head.revision + 1, "pruned": head.pruned + len(going)}
        await connection.execute(update(artifacts).where(of_it).values(counts))
        return True


async def _make_whole(connection: AsyncConnection, key: Key, head: Head, going: Set[int]) -> None:
    edits = select(versions.c.number, versions.c.parent).where(_of(versions, key), versions.c.replacement.is_not(None))
    stay = [number for number, parent in await connection.execute(edits) if parent in going and number not in going]
    if not stay:
        return
    document = (await reading.Cache(0).read(connection, key, head)).document
    rows = [{"of_number": number, "whole": version_row(document.version(number)).content} for number in stay]
    one = update(versions).where(_of(versions, key), versions.c.number == bindparam("of_number"))
    await connection.execute(one.values(content=bindparam("whole"), replacement=None), rows)


def _of(table: Table, key: Key) -> ColumnElement[bool]:
    return and_(table.c.context_id == key[0], table.c.artifact_id == key[1])


# ---------------------------------------------------------------------------- rule 5


async def _day_old(database: Database, now: datetime) -> None:
    since = ticks(now - WINDOW)
    lost = ~exists().where(task_contexts.c.task_id == messages.c.task_id)
    async with database.write() as connection:
        await connection.execute(delete(messages).where(or_(messages.c.accepted_at < since, lost)))
        await connection.execute(delete(mail).where(mail.c.sent_at < since))
