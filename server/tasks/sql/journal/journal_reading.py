"""Reads tasks from rows: a task is its snapshot and the pages after it, folded.

Rule 1: rows are read in a transaction and folded after it, so that the transaction is short.
Rule 2: no step of the event loop folds more than `FOLD_SLICE` entries, so that the heartbeat is on time.
Rule 3: a task whose rows cannot be decoded fails only the requests for it.
Rule 4: the versions and files that rows name are read in the same transaction, those of all rows together; no version
        for a list without artifacts.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Row, Select, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import AgentMessage, State, Transcript, UserMessage
from a2a_canvas.server.agent.loops.conversation import Said
from a2a_canvas.server.log_output import about
from a2a_canvas.server.tasks.codec import (
    NO_CONTENTS,
    Contents,
    artifacts_of_json,
    entries_of_json,
    files_of_json,
    first_message_of_json,
    names_of_json,
    record_of_json,
    transcript_of_json,
)
from a2a_canvas.server.tasks.errors import TaskNotFound, Unreadable
from a2a_canvas.server.tasks.kept_files import NO_FILES, Files
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.server.tasks.sql.projections.context_rows import contexts
from a2a_canvas.server.tasks.sql.projections.message_files import read_files
from a2a_canvas.server.tasks.sql.projections.pages import TASKS_PER_QUERY, page_entries, read_behind
from a2a_canvas.server.tasks.sql.projections.records import task_contexts, tasks
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Content
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.readable_rows import ReadableRows
from a2a_canvas.store.sql.reading import VersionKey
from a2a_canvas.store.sql.times import from_microseconds
from a2a_canvas.store.sql.version_contents import VersionContents

logger = logging.getLogger(__name__)

T = TypeVar("T")

FOLD_SLICE = 200
"""Entries that are folded before other tasks of the event loop run: about 3 ms."""

_NAMES = ReadableRows("list of versions and files")

HEAD_COLUMNS = (
    *(tasks.c.context_id, tasks.c.task_id, tasks.c.owner, tasks.c.state, tasks.c.changed_at),
    *(tasks.c.generation, tasks.c.snapshot, tasks.c.head, tasks.c.named),
)
"""The columns that `read_tasks` needs; the rest of `ALL_COLUMNS` may be added."""
ALL_COLUMNS = (*HEAD_COLUMNS, tasks.c.transcript, tasks.c.artifacts)


def of_owner(owners: Sequence[str]) -> ColumnElement[bool]:
    """Which of the tasks of a context are these owners'.

    It is a condition on an expression, which no index has: without statistics SQLite takes the index by owner in place
    of the primary key, and so reads all tasks of the owner.
    """
    return tasks.c.owner.concat("").in_(owners)


async def read_context_id(connection: AsyncConnection, task_id: str) -> ContextKey:
    """The context of a task.

    Raises:
        TaskNotFound: there is none.
    """
    found = await connection.scalar(select(task_contexts.c.context_id).where(task_contexts.c.task_id == task_id))
    if found is None:
        raise TaskNotFound(task_id)
    return ContextKey(found)


async def read_owner(connection: AsyncConnection, task_id: str) -> tuple[ContextKey, str]:
    """The key of a task's context, and its owner.

    Raises:
        TaskNotFound: there is none.
    """
    same = (tasks.c.context_id == task_contexts.c.context_id) & (tasks.c.task_id == task_contexts.c.task_id)
    query = select(tasks.c.context_id, tasks.c.owner).join(task_contexts, same)
    row = (await connection.execute(query.where(task_contexts.c.task_id == task_id))).one_or_none()
    if row is None:
        raise TaskNotFound(task_id)
    return ContextKey(row.context_id), str(row.owner)


async def count_tasks(connection: AsyncConnection) -> tuple[int, int]:
    """How many tasks there are, and how many contexts."""
    counts = [await connection.scalar(select(func.count()).select_from(table)) for table in (tasks, contexts)]
    return counts[0] or 0, counts[1] or 0


async def count_anonymous(connection: AsyncConnection) -> int:
    """How many tasks are of anonymous callers."""
    return await connection.scalar(select(func.count()).select_from(tasks).where(tasks.c.owner == "")) or 0


@dataclass(frozen=True, slots=True)
class TaskRows:
    """The rows of a task.

    Attributes:
        row: of `ALL_COLUMNS` or fewer.
        pages: those after its snapshot.
        contents: of the versions that they name.
        files: those that they name.
    """

    row: Row[Any]
    pages: Sequence[Row[Any]]
    contents: Contents
    files: Files


async def read_tasks(connection: AsyncConnection, chosen: Select[Any], versions: VersionContents) -> list[TaskRows]:
    """The rows of a query for `ALL_COLUMNS` or fewer."""
    rows = (await connection.execute(chosen)).all()
    late = [(row.context_id, row.task_id, row.snapshot) for row in rows if row.generation > row.snapshot]
    behind = await read_behind(connection, late)
    naming = [(row, *behind.get(row.task_id, ())) for row in rows]
    files = await read_named_files(connection, chain.from_iterable(naming))
    with_artifacts = (several for several in naming if hasattr(several[0], "artifacts"))
    contents = await read_contents(connection, chain.from_iterable(with_artifacts), versions)
    return [
        TaskRows(
            row,
            behind.get(row.task_id, ()),
            contents.get(row.context_id, NO_CONTENTS),
            files.get(row.context_id, NO_FILES),
        )
        for row in rows
    ]


async def read_contents(
    connection: AsyncConnection, rows: Iterable[Row[Any]], versions: VersionContents
) -> dict[str, Contents]:
    """The contents of the versions that rows of tasks or pages name, by context; without those that were pruned."""
    named = _NAMES.decode(rows, lambda row: (row.context_id, names_of_json(row.named)))
    names = {(context_id, each.artifact_id, each.number) for context_id, several in named for each in several}
    if not names:
        return {}
    keys = {name: VersionKey.from_ids(*name) for name in names}
    read = await versions.read(connection, {*keys.values()})
    found: dict[str, dict[tuple[str, int], Content]] = defaultdict(dict)
    for (context_id, artifact_id, number), key in keys.items():
        if key in read:
            found[context_id][artifact_id, number] = read[key]
    return dict(found)


async def read_named_files(connection: AsyncConnection, rows: Iterable[Any]) -> dict[str, Files]:
    """The files that rows of tasks, pages or inboxes name, by context; without those that are not there."""
    naming = (row for row in rows if row.named)
    named = _NAMES.decode(naming, lambda row: (row.context_id, files_of_json(row.named)))
    return await read_files(connection, [(context_id, each) for context_id, several in named for each in several])


async def read_record(database: Database, task_id: str, versions: VersionContents) -> TaskRecord:
    """The current record of a task.

    Raises:
        TaskNotFound: there is none.
        Unreadable: its rows cannot be decoded.
    """
    async with database.read() as connection:
        context_id = await read_context_id(connection, task_id)
        ours = tasks.c.context_id == context_id, tasks.c.task_id == task_id
        found = await read_tasks(connection, select(*ALL_COLUMNS).where(*ours), versions)
    if not found:
        raise TaskNotFound(task_id)
    return await fold_task(found[0])


async def fold_task(task: TaskRows) -> TaskRecord:
    """The current record of a task.

    Raises:
        Unreadable: its rows cannot be decoded.
    """
    try:
        record, count = _snapshot(task), 0
        for page in task.pages:
            for entry in entries_of_json(page.epoch, page_entries(page), task.contents, task.files):
                record, count = fold(record, entry), count + 1
                if count % FOLD_SLICE == 0:
                    await asyncio.sleep(0)
    except Exception as error:  # a decoder's errors are many
        raise Unreadable(task.row.task_id) from error
    await asyncio.sleep(0)
    return record


async def fold_readable(found: Iterable[TaskRows]) -> list[TaskRecord]:
    """The tasks, without those whose rows cannot be decoded."""
    records = []
    for task in found:
        with suppress(Unreadable):
            records.append(await fold_task(task))
    return records


async def fold_for_list(task: TaskRows) -> TaskRecord:
    """The record for a list: of a task that cannot be decoded, what its columns say, and the error."""
    try:
        return await fold_task(task)
    except Unreadable as error:
        row = task.row
        return TaskRecord(
            task_id=row.task_id,
            context_id=row.context_id,
            owner=row.owner,
            changed_at=from_microseconds(row.changed_at),
            state=State(row.state),
            message=AgentMessage(f"{row.task_id}-unreadable", str(error)),
            generation=row.generation,
        )


async def read_heads(
    connection: AsyncConnection, context_id: ContextKey, owner: str, task_ids: Iterable[str]
) -> dict[str, str]:
    """The heads of an owner's tasks, of those in a context that are named, by their ids."""
    ids, found = [*dict.fromkeys(task_ids)], dict[str, str]()
    query = select(tasks.c.task_id, tasks.c.head).where(tasks.c.context_id == context_id, of_owner([owner]))
    for first in range(0, len(ids), TASKS_PER_QUERY):
        some = query.where(tasks.c.task_id.in_(ids[first : first + TASKS_PER_QUERY]))
        found |= {task_id: head for task_id, head in await connection.execute(some)}
    return found


async def decode_first_messages(heads: Mapping[str, str]) -> dict[str, UserMessage]:
    """The messages that began tasks, without those that cannot be decoded."""
    found = {}
    for task_id, head in heads.items():
        await asyncio.sleep(0)
        with suppress(Exception):
            found[task_id] = first_message_of_json(head)
    return found


def decode_transcripts(rows: Iterable[Any], files: Files) -> tuple[Transcript, ...]:
    """The transcripts of rows of tasks, without those that cannot be decoded: the conversation continues without."""
    return tuple(_decode_readable(rows, lambda row: transcript_of_json(row.transcript, files)))


def decode_histories(rows: Iterable[Any], files: Files) -> tuple[Said, ...]:
    """The messages of rows of tasks, without those that cannot be decoded."""
    return tuple(_decode_readable(rows, lambda row: record_of_json(row.head, files).history))


def _decode_readable(rows: Iterable[Any], decode: Callable[[Any], T]) -> Iterator[T]:
    for row in rows:
        try:
            yield decode(row)
        except Exception:
            logger.warning(
                "The transcript cannot be read; its conversation continues without it", extra=about(row.task_id)
            )


def _snapshot(task: TaskRows) -> TaskRecord:
    row, parts = task.row, dict[str, Any]()
    if hasattr(row, "transcript"):
        parts["transcript"] = transcript_of_json(row.transcript, task.files)
    if hasattr(row, "artifacts"):
        parts["artifacts"] = artifacts_of_json(row.artifacts, task.contents, task.files)
    return replace(record_of_json(row.head, task.files), **parts)


def place_of(record: TaskRecord) -> tuple[ContextKey, str, int]:
    """As `read_behind` asks for what is after a record."""
    return record.context_id, record.task_id, record.generation


async def entries_after(
    connection: AsyncConnection, record: TaskRecord, versions: VersionContents
) -> tuple[int | None, list[Entry]]:
    """The entries of a task after the last one in `record`, and the number that their first page begins with, if any.

    Raises:
        Unreadable: they cannot be decoded.
    """
    found = (await read_behind(connection, [place_of(record)]))[record.task_id]
    contents = (await read_contents(connection, found, versions)).get(record.context_id, NO_CONTENTS)
    files = (await read_named_files(connection, found)).get(record.context_id, NO_FILES)
    entries = [entry for page in found for entry in decode_entries(page, contents, files)]
    return found[0].first if found else None, entries


def decode_entries(page: Any, contents: Contents, files: Files = NO_FILES) -> list[Entry]:
    """The entries of a page.

    Args:
        contents: of the versions that it names.
        files: those that it names; without them they are empty.

    Raises:
        Unreadable: they cannot be decoded.
    """
    try:
        return list(entries_of_json(page.epoch, page_entries(page), contents, files))
    except Exception as error:
        raise Unreadable(page.task_id) from error


def tasks_in(pairs: Iterable[tuple[str, str]]) -> Any:
    """A condition: the task is one of these (context, task)."""
    return tuple_(tasks.c.context_id, tasks.c.task_id).in_(list(pairs))
