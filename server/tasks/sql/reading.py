"""Tasks from rows: a task is its snapshot and the pages behind it, folded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, Select, and_, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from server.agent.events import State
from server.tasks.codec import artifacts_of_json, entries_of_json, record_of_json, transcript_of_json
from server.tasks.errors import TaskNotFound
from server.tasks.record import Entry, TaskRecord, fold
from server.tasks.sql.tables import pages, task_contexts, tasks

GOING = tuple(state.value for state in State if not state.settled)
"""The states of tasks that somebody runs, or should."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)

HEAD = (tasks.c.context_id, tasks.c.task_id, tasks.c.generation, tasks.c.snapshot, tasks.c.head)
"""What `records` cannot do without; `tasks.c.transcript` and `tasks.c.artifacts` may be added."""
WHOLE = (*HEAD, tasks.c.transcript, tasks.c.artifacts)


def ticks(at: datetime) -> int:
    """A time as it stands in the tables."""
    return (at - _EPOCH) // _TICK


async def context_of(connection: AsyncConnection, task_id: str) -> str:
    """The context of a task.

    Raises:
        TaskNotFound: there is none.
    """
    found = await connection.scalar(select(task_contexts.c.context_id).where(task_contexts.c.task_id == task_id))
    if found is None:
        raise TaskNotFound(task_id)
    return str(found)


async def one_record(connection: AsyncConnection, task_id: str) -> TaskRecord:
    """A task as it stands.

    Raises:
        TaskNotFound: there is none.
    """
    context_id = await context_of(connection, task_id)
    found = await records(
        connection, select(*WHOLE).where(tasks.c.context_id == context_id, tasks.c.task_id == task_id)
    )
    if not found:
        raise TaskNotFound(task_id)
    return found[0]


async def records(connection: AsyncConnection, chosen: Select[Any]) -> list[TaskRecord]:
    """The tasks of a selection of `WHOLE` or less, as they stand."""
    rows = (await connection.execute(chosen)).all()
    behind = [row for row in rows if row.generation > row.snapshot]
    entries = await _entries(connection, behind)
    return [_record(row, entries.get(row.task_id, ())) for row in rows]


def _record(row: Row[Any], entries: Iterable[Entry]) -> TaskRecord:
    record = record_of_json(row.head)
    parts: dict[str, Any] = {}
    if hasattr(row, "transcript"):
        parts["transcript"] = transcript_of_json(row.transcript)
    if hasattr(row, "artifacts"):
        parts["artifacts"] = artifacts_of_json(row.artifacts)
    record = replace(record, **parts)
    for entry in entries:
        record = fold(record, entry)
    return record


async def _entries(connection: AsyncConnection, rows: Sequence[Row[Any]]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = defaultdict(list)
    if rows:
        chosen = or_(*(_behind(row.context_id, row.task_id, row.snapshot) for row in rows))
        query = select(pages).where(chosen).order_by(pages.c.context_id, pages.c.task_id, pages.c.first)
        for page in await connection.execute(query):
            found[page.task_id].extend(entries_of_json(page.epoch, page.entries))
    return found


async def entries_after(connection: AsyncConnection, record: TaskRecord) -> list[Entry]:
    """The entries of a task behind the one that `record` is the fold of."""
    chosen = _behind(record.context_id, record.task_id, record.generation)
    found = await connection.execute(select(pages).where(chosen).order_by(pages.c.first))
    return [entry for page in found for entry in entries_of_json(page.epoch, page.entries)]


def _behind(context_id: str, task_id: str, generation: int) -> Any:
    return and_(pages.c.context_id == context_id, pages.c.task_id == task_id, pages.c.first > generation)


def these(pairs: Iterable[tuple[str, str]]) -> Any:
    """A condition: the tasks of (context, task)."""
    return tuple_(tasks.c.context_id, tasks.c.task_id).in_(list(pairs))
