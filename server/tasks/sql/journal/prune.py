"""Removes what retention says is no longer stored, in many small transactions, so that no request waits for one.

A step that fails is left for the next time, and fails no other step.

Rule 1 (journals): the entries of a task that has ended are deleted; the task's record stays. Tasks are read in pages,
        and deleted in batches that grow while they are short (`sweep_size.py`).
Rule 2 (versions): the content of an old version is deleted; its number and author stay. The current version is kept,
        however old. A version that is kept as an edit of a deleted one is stored whole before. Tasks that name the
        deleted version say that it is no longer stored. While a task works in the context, or has entries that are not
        in its record, all versions stay: its entries continue those that they name. Annotations are moved on to a
        version that stays, in the same transaction (`store/annotations/annotation_places.py`, rule 5).
Rule 3 (contexts): a context is deleted with all its rows when none of its tasks or artifacts has changed for so long. A
        context with a task that works or waits for input is kept, however long it waits. A large one is first thinned
        out, as by rules 1 and 2: a request that uses it again in that moment finds the current artifacts.
Rule 4: an artifact that is leased by a living replica is left for the next time. On SQLite no row says so; there the
        process asks its own store (`store/sql/artifact_lease.py`, rule 4).
Rule 5: after a day, the deduplication keys of messages, the inbox rows that no replica has taken, and the shares that
        have expired are deleted; after two, the files of messages that no task names (`message_files.py`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, literal, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.sql.sql_shares import prune_shares
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.log_output import about
from a2a_canvas.server.tasks.codec import names_of_json
from a2a_canvas.server.tasks.sql.journal.removal import FreezeContext, remove_context
from a2a_canvas.server.tasks.sql.journal.sweep_size import SMALLEST, BatchSize
from a2a_canvas.server.tasks.sql.projections import (
    annotation_rows,
    context_holders,
    inbox_messages,
    loop_values,
    message_keys,
    pages,
)
from a2a_canvas.server.tasks.sql.projections.context_holders import hold_annotations
from a2a_canvas.server.tasks.sql.projections.context_rows import contexts
from a2a_canvas.server.tasks.sql.projections.message_files import remove_some, remove_unnamed
from a2a_canvas.server.tasks.sql.projections.records import UNSETTLED, tasks
from a2a_canvas.server.tasks.sql.projections.replicas import has_lease
from a2a_canvas.server.tasks.sql.projections.task_counts import fold_counts
from a2a_canvas.store.annotations.annotation_places import move_annotations
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql import reading
from a2a_canvas.store.sql.database import Database, TextSize
from a2a_canvas.store.sql.kept import add_kept, kept_bytes
from a2a_canvas.store.sql.reading import Key, VersionKey, key_condition
from a2a_canvas.store.sql.rows import ArtifactHead, content_json
from a2a_canvas.store.sql.tables import ContextKeyText, artifacts, versions
from a2a_canvas.store.sql.times import to_microseconds

logger = logging.getLogger(__name__)

BATCH_SIZE = 10
"""Versions whose contents are deleted in one transaction."""
TASK_PAGE = 1000
"""Tasks that are read at once."""
LARGE_CONTEXT_BYTES = 16 * 1024 * 1024
"""A context of this size is thinned out before it is deleted."""
SWEEPS: Sequence[tuple[str, Callable[[Database, datetime], Awaitable[None]]]] = (
    ("Expired message keys", message_keys.prune),
    ("Expired inbox messages", inbox_messages.prune),
    ("Expired shares", prune_shares),
    ("Files of messages that were not accepted", remove_unnamed),
    ("Former states of ended tasks", loop_values.remove_ended),
    ("Holds of ended tasks", context_holders.remove_void),
    ("The task counts of stopped servers", fold_counts),
)
"""What each table loses by its age alone (rule 5), as the log names it."""

ENDED = [state.value for state in State if state.terminal]
VERSION_SIZE = TextSize(versions.c.content, versions.c.replacement)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long rows are stored; None is for ever.

    Attributes:
        journals: entries of a task, after its end.
        versions: the content of a version that is not the current one, after it was made.
        contexts: a context, after its last change.
    """

    journals: timedelta
    versions: timedelta | None = None
    contexts: timedelta | None = None


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What was deleted, or would be.

    Attributes:
        journals: number of tasks whose entries were deleted.
        versions: number of versions whose contents were deleted.
        tasks: number of tasks with an artifact that was one of these versions when they left it.
        bytes: those that were kept of them (`store/sql/kept.py`).
    """

    journals: int = 0
    versions: int = 0
    tasks: int = 0
    contexts: int = 0
    bytes: int = 0


async def prune(
    database: Database,
    keep: Retention,
    now: datetime,
    freeze: FreezeContext = lambda _: nullcontext(True),
    *,
    dry_run: bool = False,
) -> PruneResult:
    """Delete what is older than its retention. Rows that become old enough meanwhile may stay until the next time.

    Args:
        now: with its zone.
        freeze: keeps the store of this process out of a context, or says that it is in use (rule 4).
        dry_run: delete nothing; only count.

    Raises:
        Unavailable: the database cannot be used; what was deleted until then is gone.
    """
    for what, sweep in () if dry_run else SWEEPS:
        async with _isolate_errors(database, what):
            await sweep(database, now)
    gone = await _contexts(database, now - keep.contexts, freeze, dry_run) if keep.contexts else {}
    ended = await _journals(database, now - keep.journals, dry_run, gone)
    old = await _versions(database, now - keep.versions, freeze, dry_run, gone) if keep.versions else {}
    size = sum((*gone.values(), ended.bytes, *(sum(sizes.values()) for sizes in old.values())))
    naming = await _count_naming(database, old)
    return PruneResult(ended.tasks, sum(map(len, old.values())), naming, len(gone), size)


@asynccontextmanager
async def _isolate_errors(database: Database, what: str, context_id: str = "") -> AsyncIterator[None]:
    """Log an error and continue, unless the database itself fails."""
    try:
        yield
    except Exception as error:
        async with database.read() as connection:
            await connection.exec_driver_sql("SELECT 1")
        ids = about("", context_id)
        logger.error("%s could not be pruned. The next sweep tries again.", what, exc_info=error, extra=ids)


# ---------------------------------------------------------------------------- contexts


async def _contexts(database: Database, before: datetime, freeze: FreezeContext, dry_run: bool) -> dict[str, int]:
    """The contexts that are deleted, and their sizes."""
    async with database.read() as connection:
        found = (await connection.scalars(select(contexts.c.context_id).where(_idle(before)))).all()
    sizes = {}
    for context_id in found:
        async with _isolate_errors(database, "The context", context_id):
            size = await _size(database, context_id)
            if size > LARGE_CONTEXT_BYTES and not dry_run:
                await _thin_out(database, context_id, before, freeze)
            if dry_run or await _remove(database, context_id, before, freeze):
                sizes[context_id] = size
    return sizes


def _idle(before: datetime) -> ColumnElement[bool]:
    """Nothing works in the context, and nothing has changed since."""
    moving = or_(tasks.c.state.not_in(ENDED), tasks.c.changed_at >= to_microseconds(before))
    touched = or_(artifacts.c.changed >= to_microseconds(before), has_lease())
    return and_(
        contexts.c.changed_at < to_microseconds(before),
        ~exists().where(tasks.c.context_id == contexts.c.context_id, moving),
        ~exists().where(artifacts.c.context_id == contexts.c.context_id, touched),
    )


async def _size(database: Database, context_id: ContextKey) -> int:
    kept = select(kept_bytes.c.bytes).where(kept_bytes.c.context_id == context_id)
    async with database.read() as connection:
        return await connection.scalar(kept) or 0


async def _thin_out(database: Database, context_id: ContextKey, before: datetime, freeze: FreezeContext) -> None:
    """Delete most of a context in small transactions, as long as it is not used again."""
    async with database.read() as connection:
        saved = tasks.c.context_id == context_id, tasks.c.snapshot == tasks.c.generation
        ended = [(context_id, each) for each in await connection.scalars(select(tasks.c.task_id).where(*saved))]
        its = select(artifacts.c.artifact_id).where(artifacts.c.context_id == context_id)
        written = [(context_id, each) for each in await connection.scalars(its)]
    for some in _batches(ended):
        if await _is_idle(database, context_id, before):
            await _entries(database, some, dry_run=False)
    while await _is_idle(database, context_id, before) and await remove_some(database, context_id):
        pass
    for key in written:
        while await _is_idle(database, context_id, before):
            if await _strip_batch(database, key, before, freeze) is None:
                break


async def _is_idle(database: Database, context_id: ContextKey, before: datetime) -> bool:
    async with database.read() as connection:
        return await connection.scalar(_still_idle(context_id, before)) is not None


def _still_idle(context_id: ContextKey, before: datetime) -> Select[Any]:
    return select(contexts.c.context_id).where(contexts.c.context_id == context_id, _idle(before))


async def _remove(database: Database, context_id: ContextKey, before: datetime, freeze: FreezeContext) -> bool:
    """Whether it was deleted: it may be in use again."""

    async def check(connection: AsyncConnection) -> bool:
        return await connection.scalar(_still_idle(context_id, before)) is not None

    return await remove_context(database, context_id, freeze, check)


# ---------------------------------------------------------------------------- journals


@dataclass(slots=True)
class _EntryCount:
    """How many tasks have lost their entries, and the bytes of these."""

    tasks: int = 0
    bytes: int = 0

    def add(self, sizes: Mapping[Key, int]) -> None:
        self.tasks += len(sizes)
        self.bytes += sum(sizes.values())


async def _journals(database: Database, before: datetime, dry_run: bool, gone: Container[str]) -> _EntryCount:
    ended, batch = _EntryCount(), BatchSize()
    async for page in _due(database, before):
        keys = [key for key in page if key[0] not in gone]
        while keys:
            some, keys = keys[: batch.rows], keys[batch.rows :]
            with batch.measure():
                await _end_journals(database, some, dry_run, ended)
    return ended


async def _due(database: Database, before: datetime) -> AsyncIterator[Sequence[Key]]:
    """The tasks whose entries are to be deleted, in pages. A page that follows is read when the one before is done."""
    key = tasks.c.context_id, tasks.c.task_id
    old = tasks.c.changed_at < to_microseconds(before), tasks.c.snapshot == tasks.c.generation
    due = select(*key).where(tasks.c.state.in_(ENDED), *old, pages.have_pages(*key)).order_by(*key).limit(TASK_PAGE)
    page: Sequence[Key] | None = None
    while page is None or len(page) == TASK_PAGE:
        after = tuple_(literal(page[-1][0], ContextKeyText), page[-1][1]) if page else None
        query = due if after is None else due.where(tuple_(*key) > after)
        async with database.read() as connection:
            page = [(row[0], row[1]) for row in await connection.execute(query)]
        yield page


async def _end_journals(database: Database, some: Sequence[Key], dry_run: bool, ended: _EntryCount) -> None:
    """Delete the entries of some tasks. If that fails, a few at a time, so that few are left for the next time."""
    if len(some) > SMALLEST:
        try:
            ended.add(await _entries(database, some, dry_run))
            return
        except Exception:
            said = "The journals of %d tasks could not be pruned in one transaction; trying %d at a time."
            logger.debug(said, len(some), SMALLEST, exc_info=True)
    for few in _batches(some):
        async with _isolate_errors(database, f"The journals of tasks {', '.join(task_id for _, task_id in few)}"):
            ended.add(await _entries(database, few, dry_run))


def _batches(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    return (keys[start : start + SMALLEST] for start in range(0, len(keys), SMALLEST))


async def _entries(database: Database, some: Sequence[Key], dry_run: bool) -> dict[Key, int]:
    if dry_run:
        async with database.read() as connection:
            return await pages.sizes_of(connection, some)
    async with database.write() as connection:  # a task that has ended gets no new entries
        return await pages.remove(connection, some)


# ---------------------------------------------------------------------------- versions


async def _versions(
    database: Database, before: datetime, freeze: FreezeContext, dry_run: bool, gone: Container[str]
) -> dict[Key, dict[int, int]]:
    """The artifacts whose versions are deleted: the numbers of the versions, and their sizes."""
    key = versions.c.context_id, versions.c.artifact_id
    artifact = and_(artifacts.c.context_id == key[0], artifacts.c.artifact_id == key[1])
    query = select(*key).join(artifacts, artifact).where(_free(), _old(before, artifacts.c.current)).distinct()
    async with database.read() as connection:
        keys = [(row[0], row[1]) for row in await connection.execute(query) if row[0] not in gone]
    found = {}
    for each in keys:
        async with _isolate_errors(database, f"Artifact {each[1]!r}", each[0]):
            counted = await (_read_sizes(database, each, before) if dry_run else _strip(database, each, before, freeze))
            if counted:
                found[each] = counted
    return found


def _free() -> ColumnElement[bool]:
    """No draft is open, no replica has the lease, and no entry outside of a task's record can name a version."""
    unsaved = or_(tasks.c.state.in_(UNSETTLED), tasks.c.snapshot != tasks.c.generation)
    named = exists().where(tasks.c.context_id == artifacts.c.context_id, unsaved)
    return and_(artifacts.c.draft_task.is_(None), or_(artifacts.c.holder.is_(None), ~has_lease()), ~named)


def _old(before: datetime, current: ColumnElement[int] | int) -> ColumnElement[bool]:
    """The content of the version is to be deleted."""
    has_any = or_(versions.c.content.is_not(None), versions.c.replacement.is_not(None))
    return and_(versions.c.made_at < before, versions.c.number != current, has_any)


async def _read_sizes(database: Database, key: Key, before: datetime) -> dict[int, int]:
    async with database.read() as connection:
        head = await reading.read_head(connection, key) or ArtifactHead()
        old = select(versions.c.number, VERSION_SIZE).where(key_condition(versions, key), _old(before, head.current))
        return {row[0]: row[1] for row in await connection.execute(old)}


async def _strip(database: Database, key: Key, before: datetime, freeze: FreezeContext) -> dict[int, int]:
    """Delete the contents of an artifact's old versions, as long as it is free: their numbers and sizes."""
    sizes: dict[int, int] = {}
    while (some := await _strip_batch(database, key, before, freeze)) is not None:
        sizes |= some
    return sizes


async def _strip_batch(database: Database, key: Key, before: datetime, freeze: FreezeContext) -> dict[int, int] | None:
    """One transaction: a version is stored whole, or these are deleted, with their sizes. None: nothing is left."""
    with freeze(key[0]) as free:
        if not free:
            return None
        async with database.write() as connection, hold_annotations(connection, ContextKey(key[0])) as held:
            return await _strip_some(connection, key, before) if held else None


async def _strip_some(connection: AsyncConnection, key: Key, before: datetime) -> dict[int, int] | None:
    head = await reading.read_head(connection, key, lock=True)
    unused = select(artifacts.c.current).where(key_condition(artifacts, key), _free())
    if head is None or await connection.scalar(unused) is None:
        return None
    old = select(versions.c.number).where(key_condition(versions, key), _old(before, head.current))
    # The newest first: an edit of a version that is deleted was deleted before, or is kept.
    going = (await connection.scalars(old.order_by(versions.c.number.desc()).limit(BATCH_SIZE))).all()
    if not going:
        return None
    edit = await connection.scalar(_edits_of(key, going))
    if edit:
        sizes = await _store_whole(connection, key, edit)
    else:
        moved = await _move_annotations(connection, key, head, going)
        sizes = await _clear_contents(connection, key, going, moved)
    # A replica that has the versions in memory sees by this that it must read them again.
    counts = {"revision": head.revision + 1, "pruned": head.pruned + len(sizes)}
    await connection.execute(update(artifacts).where(key_condition(artifacts, key)).values(counts))
    return sizes


def _edits_of(key: Key, going: Sequence[int]) -> Select[Any]:
    """A version that is kept as an edit of one that is deleted."""
    edit = versions.c.replacement.is_not(None), versions.c.parent.in_(going), versions.c.number.not_in(going)
    return select(versions.c.number).where(key_condition(versions, key), *edit).limit(1)


async def _store_whole(connection: AsyncConnection, key: Key, number: int) -> dict[int, int]:
    edit = VersionKey(*key, number)
    whole = content_json((await connection.run_sync(reading.version_contents, [edit]))[edit])
    this = key_condition(versions, key), versions.c.number == number
    before = await connection.scalar(select(VERSION_SIZE).where(*this)) or 0
    stored = update(versions).where(*this).values(content=whole, replacement=None).returning(VERSION_SIZE)
    after = await connection.scalar(stored) or 0
    await connection.run_sync(add_kept, {key[0]: after - before})
    return {}


async def _move_annotations(
    connection: AsyncConnection, key: Key, head: ArtifactHead, going: Sequence[int]
) -> Counter[str]:
    """Move annotations on from versions that are deleted, or are between theirs and the current one."""
    found = await annotation_rows.read_annotations(connection, *key)
    if all(each.version == head.current for each in found):
        return Counter()
    document = (await reading.Cache(0).read(connection, key, head)).document
    moved = await move_annotations(found, document.versions, document.current, going)
    return await connection.run_sync(annotation_rows.rewrite, key[0], moved)


async def _clear_contents(
    connection: AsyncConnection, key: Key, going: Sequence[int], kept: Counter[str]
) -> dict[int, int]:
    these = key_condition(versions, key), versions.c.number.in_(going)
    sizes = {row[0]: row[1] for row in await connection.execute(select(versions.c.number, VERSION_SIZE).where(*these))}
    await connection.execute(update(versions).where(*these).values(content=None, replacement=None))
    await connection.run_sync(add_kept, {key[0]: kept[key[0]] - sum(sizes.values())})
    return sizes


async def _count_naming(database: Database, gone: Mapping[Key, Container[int]]) -> int:
    """How many tasks name one of these versions."""
    naming = 0
    for context_id in {key[0] for key in gone}:
        async with database.read() as connection:
            named = select(tasks.c.named).where(tasks.c.context_id == context_id, tasks.c.named.is_not(None))
            for names in (await connection.scalars(named)).all():
                keys = [VersionKey.from_ids(context_id, each.artifact_id, each.number) for each in names_of_json(names)]
                naming += any(key.number in gone.get(key.artifact, ()) for key in keys)
    return naming
