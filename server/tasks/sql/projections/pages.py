"""The entries of tasks, one row for each commit. A task is its saved record and the pages after it, folded.

Rule 1: entries are written once, and stay for subscribers that have still to read them, until `prune.py` says that the
        task ended long ago; then its record alone is left.
Rule 2: an entry that closes a version names the version if the store has it with just this content, committed or in
        this transaction; otherwise it has the content. The large files of messages are named, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    LargeBinary,
    Row,
    ScalarSelect,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.tasks.codec import FoundFiles, entries_to_json, names_to_json
from a2a_canvas.server.tasks.record import Entry
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit, TaskKey
from a2a_canvas.server.tasks.sql.projections.named_versions import named_by_entries
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.compression import compress, decompress
from a2a_canvas.store.sql.database import TextSize, stored_size
from a2a_canvas.store.sql.kept import add_kept
from a2a_canvas.store.sql.row_statement import RowStatement
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata
from a2a_canvas.store.text.unicode import replace_unstorable

TASKS_PER_QUERY = 100
"""Tasks whose pages are read by one statement: SQLite limits the depth of a condition."""

pages = Table(
    "pages",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("first", Integer, primary_key=True),  # the generation after the last one of the page before it
    Column("last", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("position", BigInteger),  # in the context, of its last `ContextChange`; null if it has none
    Column("entries", LargeBinary, nullable=False),  # JSON, compressed where that makes it shorter
    Column("named", Text),  # the versions and files that the entries name; null for none
    Index("pages_by_position", "context_id", "position"),  # `read_changes`
)
PAGE_SIZE = TextSize(pages.c.entries)

_OF_TASK = pages.c.context_id, pages.c.task_id
_ADD = RowStatement(lambda _: pages.insert(), pages.c.keys(), ["entries"])


def stored_entries(entries: str) -> bytes:
    """The entries of a page, as its row has them."""
    text = replace_unstorable(entries)
    return compress(text) or text.encode()


def page_entries(page: Any) -> str:
    """The entries of a page's row."""
    return decompress(page.entries)


def write(connection: Connection, commit: JournalCommit) -> None:
    rows = []
    for each in commit.with_entries:
        batch, files = each.batch, FoundFiles()
        named = named_by_entries(each.context_id, batch.entries, commit.staged)
        entries = entries_to_json(batch.entries, named, files)
        commit.name(each.context_id, files.values())
        each.page_characters = len(entries)
        row = {
            "first": batch.first,
            "last": batch.entries[-1].generation,
            "epoch": batch.newest.epoch,
            "position": each.position + each.changes if each.changes else None,
            "named": names_to_json(named.values(), files.values()),
        }
        each.page = {**each.columns, **row, "entries": stored_entries(entries)}
        rows.append(each.page)
    commit.kept.update(commit.last.add(connection, _ADD, rows))


async def add(connection: AsyncConnection, task: TaskKey, entry: Entry) -> int:
    """Write a page of one entry, which is after all others: its bytes, which the caller counts."""
    row = {"context_id": task[0], "task_id": task[1], "first": entry.generation, "last": entry.generation}
    entries = stored_entries(entries_to_json([entry]))
    await connection.execute(pages.insert().values(**row, epoch=entry.epoch, entries=entries))
    return stored_size(entries)


def last_generation(context_id: ContextKey, task_id: str) -> ScalarSelect[int]:
    """The generation of a task's last page; 0 for none."""
    ours = _OF_TASK[0] == context_id, _OF_TASK[1] == task_id
    return select(func.coalesce(func.max(pages.c.last), 0)).where(*ours).scalar_subquery()


async def read_behind(
    connection: AsyncConnection, tasks: Sequence[tuple[ContextKey, str, int]]
) -> dict[str, list[Row[Any]]]:
    """The pages of tasks, each after a generation (context, task, generation)."""
    found: dict[str, list[Row[Any]]] = defaultdict(list)
    for first in range(0, len(tasks), TASKS_PER_QUERY):
        some = tasks[first : first + TASKS_PER_QUERY]
        values: dict[str, Any] = {}
        for place, (context_id, task_id, generation) in enumerate(some):
            values |= {f"c{place}": context_id, f"t{place}": task_id, f"g{place}": generation}
        for page in await connection.execute(_select_behind(len(some)), values):
            found[page.task_id].append(page)
    return found


async def read_changes(
    connection: AsyncConnection, context_id: ContextKey, position: int, limit: int | None = None
) -> Sequence[Row[Any]]:
    """The pages of a context with changes after a position; only the first ones, if there is a limit."""
    later = pages.c.context_id == context_id, pages.c.position > position
    return (await connection.execute(select(pages).where(*later).order_by(pages.c.position).limit(limit))).all()


async def read_last_position(connection: AsyncConnection, context_id: ContextKey, task_id: str) -> int:
    """The position of a task's last change in its context; 0 if it has no page with one."""
    ours = _OF_TASK[0] == context_id, _OF_TASK[1] == task_id
    return int(await connection.scalar(select(func.max(pages.c.position)).where(*ours)) or 0)


def have_pages(context_id: ColumnElement[str], task_id: ColumnElement[str]) -> ColumnElement[bool]:
    """A condition: the task has any."""
    return exists().where(_OF_TASK[0] == context_id, _OF_TASK[1] == task_id)


async def remove(connection: AsyncConnection, tasks: Sequence[TaskKey]) -> dict[TaskKey, int]:
    """Delete all pages of these tasks: the bytes of each."""
    gone = delete(pages).where(tuple_(*_OF_TASK).in_(tasks)).returning(*_OF_TASK, PAGE_SIZE)
    sizes = _sums(await connection.execute(gone))
    freed: Counter[str] = Counter()
    for (context_id, _), size in sizes.items():
        freed[context_id] -= size
    await connection.run_sync(add_kept, freed)
    return sizes


async def sizes_of(connection: AsyncConnection, tasks: Sequence[TaskKey]) -> dict[TaskKey, int]:
    """The bytes of the pages of these tasks."""
    return _sums(await connection.execute(select(*_OF_TASK, PAGE_SIZE).where(tuple_(*_OF_TASK).in_(tasks))))


def _sums(rows: Iterable[Any]) -> dict[TaskKey, int]:
    sums: Counter[TaskKey] = Counter()
    for context_id, task_id, size in rows:
        sums[context_id, task_id] += size
    return dict(sums)


@cache  # to make the statement takes longer than to execute it
def _select_behind(tasks: int) -> Select[Any]:
    """Selects the pages of so many tasks, the parameters being c0, t0, g0 and so on."""
    chosen = or_(*(_is_behind(*(bindparam(f"{name}{place}") for name in "ctg")) for place in range(tasks)))
    return select(pages).where(chosen).order_by(*_OF_TASK, pages.c.first)


def _is_behind(
    context_id: BindParameter[Any], task_id: BindParameter[Any], generation: BindParameter[Any]
) -> ColumnElement[bool]:
    return and_(_OF_TASK[0] == context_id, _OF_TASK[1] == task_id, pages.c.first > generation)
