"""The records of tasks as they are stored, and the directory of their contexts.

Rule 1: a row has the columns that are queried, and a snapshot of the record at generation `snapshot`: `head` (all but
        the next two), `transcript` and `artifacts`. The entries after it are in `pages`.
Rule 2: a record is saved when the task begins, when it settles, and in between when one is due (`task_log.py`).
Rule 3: if the epoch of a task in its row is not that of its entries, the transaction raises `LeaseLost`.
Rule 4: a saved record names a version if the store has it with just this content, committed or in this transaction;
        otherwise it has the content: drafts, above all. The large files of messages are named, too.
Rule 5: a saved record is counted in place of the one before it, whose size the row tells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    Table,
    bindparam,
    delete,
    func,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.codec import (
    FoundFiles,
    artifacts_to_json,
    names_to_json,
    record_to_json,
    transcript_to_json,
)
from a2a_canvas.server.tasks.errors import TaskNotFound
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit, StagedTask, TaskKey
from a2a_canvas.server.tasks.sql.projections.named_versions import Names, named_by_records
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.commit import LeaseLost
from a2a_canvas.store.sql.database import TextSize
from a2a_canvas.store.sql.row_statement import RowStatement
from a2a_canvas.store.sql.tables import CompressedText, ContextKeyText, Text, metadata
from a2a_canvas.store.sql.times import to_microseconds

PAUSED = tuple(state.value for state in State if state.paused)
UNSETTLED = tuple(state.value for state in State if not state.settled)
"""The states of tasks that a replica runs, or must take over."""

MAX_SAVED_CHARACTERS = 1_000_000
"""Approximate limit of the saved records of working tasks in one transaction; the others follow in the next one."""

tasks = Table(
    "tasks",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("number", Integer, nullable=False),  # in its context: 1, 2, 3…
    Column("owner", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("replica", Text),  # its owner; null when it was given up
    Column("resumptions", Integer, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),  # a request to its owner
    Column("snapshot", Integer, nullable=False),  # the generation of the three that follow
    Column("head", CompressedText, nullable=False),
    Column("transcript", CompressedText, nullable=False),
    Column("artifacts", CompressedText, nullable=False),
    Column("named", Text),  # the versions and files that the three name; null for none
    Column("push", Boolean, nullable=False),  # it has push configs, or had some
    Index("tasks_by_owner", "owner", "changed_at", "task_id"),  # the list of an owner
    Index("tasks_by_owner_and_state", "owner", "state", "changed_at", "task_id"),  # of one state
    Index("tasks_by_context", "context_id", "changed_at", "task_id", "owner", "state"),  # of one context
    Index("tasks_by_state", "state", "replica"),  # takeovers
)

task_contexts = Table(
    "task_contexts",  # the key of each task's context; removed with it
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("context_id", ContextKeyText, nullable=False),
)

RECORD = ("head", "transcript", "artifacts")
"""The columns of a task's saved record."""
RECORD_SIZE = TextSize(*(tasks.c[name] for name in RECORD))

_LOCK = (
    select(tasks.c.task_id, tasks.c.epoch, tasks.c.push, tasks.c.state)
    .where(tuple_(tasks.c.context_id, tasks.c.task_id).in_(bindparam("keys", expanding=True)))
    .where(tasks.c.replica == bindparam("replica"))
    .order_by(tasks.c.context_id, tasks.c.task_id)
    .with_for_update()
)
_THIS_TASK = tasks.c.context_id == bindparam("of_context"), tasks.c.task_id == bindparam("of_task")
_ADD_TASK = RowStatement(lambda _: tasks.insert(), tasks.c.keys(), RECORD)
_SIZES = (
    select(tasks.c.context_id, func.sum(RECORD_SIZE))
    .where(tuple_(tasks.c.context_id, tasks.c.task_id).in_(bindparam("keys", expanding=True)))
    .group_by(tasks.c.context_id)
)


def lock(connection: Connection, commit: JournalCommit) -> None:
    """Lock the rows of tasks that have one (rule 3)."""
    continued = {each.task_id: each for each in commit.existing_tasks}
    if not continued:
        return
    keys = [each.key for each in continued.values()]
    rows = {row.task_id: row for row in connection.execute(_LOCK, {"keys": keys, "replica": commit.replica})}
    lost = [id_ for id_, each in continued.items() if id_ not in rows or rows[id_].epoch != each.batch.newest.epoch]
    if lost:
        raise LeaseLost(f"Tasks of another replica now: {', '.join(sorted(lost))}")
    for task_id, each in continued.items():
        each.state, each.has_push = rows[task_id].state, rows[task_id].push


def create(connection: Connection, commit: JournalCommit) -> None:
    """Write the rows of new tasks."""
    if not commit.new_tasks:
        return
    rows = [
        {
            "number": each.number,
            "owner": record.owner,
            "replica": commit.replica,
            "resumptions": 0,
            "cancel_requested": False,
            "push": each.batch.push is not None,
            **each.columns,
            **_status_columns(record),
            **_record_columns(record, {}, commit),
        }
        for each in commit.new_tasks
        if (record := each.batch.created)
    ]
    commit.kept.update(_ADD_TASK.execute(connection, rows))
    connection.execute(task_contexts.insert(), [each.columns for each in commit.new_tasks])


def save(connection: Connection, commit: JournalCommit) -> None:
    """Write the new state of tasks, and their records as far as they are to be saved (rule 2)."""
    changed = commit.with_entries
    saved = _settled_records(connection, commit, changed) | _due_records(connection, commit, changed)
    commit.kept.subtract(_sizes_before(connection, [each.key for each in changed if each.task_id in saved]))
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for each in changed:
        record, columns = each.batch.newest, saved.get(each.task_id, {})
        each.saved_characters = _characters(columns) if columns else 0
        ended = {"resumptions": 0, "cancel_requested": False} if record.state.settled else {}
        values = {**_status_columns(record), **columns, **ended}
        named = {f"new_{name}": value for name, value in values.items()}
        alike[tuple(values)].append({"of_context": each.context_id, "of_task": each.task_id, **named})
    for columns_of_all, rows in alike.items():
        commit.kept.update(commit.last.add(connection, _update_columns(columns_of_all), rows))


def _settled_records(
    connection: Connection, commit: JournalCommit, changed: Sequence[StagedTask]
) -> dict[str, dict[str, Any]]:
    settled = [each.batch.newest for each in changed if each.batch.newest.state.settled]
    names = named_by_records(connection, settled, commit.staged)
    return {record.task_id: _record_columns(record, names[record.task_id], commit) for record in settled}


def _due_records(
    connection: Connection, commit: JournalCommit, changed: Sequence[StagedTask]
) -> dict[str, dict[str, Any]]:
    """The saved records of working tasks that are most overdue."""
    working = (each for each in changed if not each.batch.newest.state.settled)
    overdue = [(each.batch.log.overdue(each.page_characters), each.batch.newest) for each in working]
    found: dict[str, dict[str, Any]] = {}
    room = MAX_SAVED_CHARACTERS
    for characters, record in sorted(overdue, key=itemgetter(0), reverse=True):
        if characters <= 0 or room <= 0:
            break
        names = named_by_records(connection, [record], commit.staged)
        found[record.task_id] = _record_columns(record, names[record.task_id], commit)
        room -= _characters(found[record.task_id])
    return found


def _record_columns(record: TaskRecord, names: Names, commit: JournalCommit) -> dict[str, Any]:
    files: FoundFiles = {}
    columns = {
        "snapshot": record.generation,
        "head": record_to_json(replace(record, transcript=(), artifacts={}), files),
        "transcript": transcript_to_json(record.transcript, files),
        "artifacts": artifacts_to_json(record.artifacts, names, files),
    }
    commit.name(record.context_id, files.values())
    return {**columns, "named": names_to_json(names.values(), files.values())}


@cache
def _update_columns(columns: tuple[str, ...]) -> RowStatement:
    new: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    return RowStatement(
        lambda _: update(tasks).where(*_THIS_TASK).values(new), None, [f"new_{name}" for name in RECORD]
    )


def _sizes_before(connection: Connection, keys: Sequence[TaskKey]) -> dict[str, int]:
    """The bytes of the saved records of tasks, by context."""
    if not keys:
        return {}
    found = connection.execute(_SIZES, {"keys": keys})
    return {context_id: int(size) for context_id, size in found}


def _status_columns(record: TaskRecord) -> dict[str, Any]:
    return {
        "state": record.state.value,
        "changed_at": to_microseconds(record.changed_at),
        "epoch": record.epoch,
        "generation": record.generation,
    }


def _characters(columns: dict[str, Any]) -> int:
    return sum(len(columns[part]) for part in ("head", "transcript", "artifacts"))


async def read_state(connection: AsyncConnection, context_id: ContextKey, task_id: str) -> State:
    """The state of a task of a context.

    Raises:
        TaskNotFound: the context has no such task.
    """
    ours = tasks.c.context_id == context_id, tasks.c.task_id == task_id
    state = await connection.scalar(select(tasks.c.state).where(*ours))
    if state is None:
        raise TaskNotFound(task_id)
    return State(state)


async def remove_from_directory(connection: AsyncConnection, context_id: ContextKey) -> None:
    """Remove the tasks of a context, whose rows are removed afterwards, from the directory."""
    of_it = select(tasks.c.task_id).where(tasks.c.context_id == context_id)
    await connection.execute(delete(task_contexts).where(task_contexts.c.task_id.in_(of_it)))
