"""Writes the staged entries of tasks, for all tasks of one transaction together: a loop over the projections."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Connection

from a2a_canvas.server.tasks.journal.task_log import TaskBatch
from a2a_canvas.server.tasks.record import Entry
from a2a_canvas.server.tasks.sql.projections import (
    annotation_rows,
    context_rows,
    inbox_messages,
    latest_changes,
    loop_values,
    message_files,
    message_keys,
    owned_rows,
    pages,
    records,
    task_counts,
)
from a2a_canvas.server.tasks.sql.projections.journal_commit import JournalCommit, Projection, StagedTask, TaskKey
from a2a_canvas.server.tasks.sql.projections.named_versions import Contents
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.kept import ADD_KEPT, kept_rows


class OutboxWriter(Protocol):
    """Writes what is to be delivered, in the transaction of the entries that notifications tell of."""

    def write(self, connection: Connection, commit: JournalCommit) -> None:
        """A `Projection`: the first configs of new tasks, and what entries tell of."""
        ...

    def put(self, connection: Connection, told: Mapping[TaskKey, Sequence[Entry]], at: datetime) -> None:
        """Write what entries tell of for each config of their tasks."""
        ...


Notify = Callable[[Connection, tuple[str, ...], tuple[ContextKey, ...], tuple[ContextKey, ...]], Any]
"""Notifies the other replicas, within the transaction, of the tasks it writes, the contexts with new changes, and those
in which another task may work."""


class JournalWork:
    """The work of one transaction.

    Args:
        projections: in the order of their statements.
        replica: the id of this replica when the work was collected.
        staged: the contents of versions (`staged_contents`).
        committed: called with the batches, and what was written of them, when they are durable.
    """

    def __init__(
        self,
        projections: Sequence[Projection],
        batches: Sequence[TaskBatch],
        replica: str,
        at: datetime,
        staged: Contents,
        committed: Callable[[Sequence[TaskBatch], Sequence[StagedTask]], None],
    ) -> None:
        self._projections = projections
        self._batches = batches
        self._replica = replica
        self._at = at
        self._staged = staged
        self._committed = committed
        self._written: Sequence[StagedTask] = ()

    def write(self, connection: Connection) -> None:
        staged = [StagedTask.from_batch(batch) for batch in self._batches]
        commit = JournalCommit(staged, self._replica, self._at, self._staged)
        for write in self._projections:
            write(connection, commit)
        self._written = commit.tasks

    def done(self) -> None:
        for each in self._written:
            each.batch.log.count_written(each.page_characters, each.saved_characters)
        self._committed(self._batches, self._written)

    def by_context(self) -> dict[ContextKey, JournalWork]:
        by_context: defaultdict[ContextKey, list[TaskBatch]] = defaultdict(list)
        for batch in self._batches:
            by_context[batch.newest.context_id].append(batch)
        return {
            context_id: JournalWork(self._projections, batches, self._replica, self._at, self._staged, self._committed)
            for context_id, batches in by_context.items()
        }

    def release(self, connection: Connection) -> None:
        """Nothing to release: this replica fails the tasks itself."""

    def failed(self) -> None:
        for batch in self._batches:
            batch.log.unwritable = True


def projections_of(outbox: OutboxWriter, notify: Notify) -> tuple[Projection, ...]:
    """What a transaction writes, in the order of its statements.

    The rows of tasks are locked before those of their contexts, counts come last (`kept.py`, rule 2).
    """

    def notify_others(connection: Connection, commit: JournalCommit) -> None:
        written = tuple(each.task_id for each in commit.tasks)
        changed = {each.context_id for each in commit.tasks if each.changes}
        active = {each.context_id for each in commit.tasks if each.batch.changes_activity}
        notify(connection, written, tuple(changed), tuple(active))

    return (
        message_keys.write,
        records.lock,
        context_rows.write,
        records.create,
        pages.write,
        outbox.write,
        latest_changes.write,
        owned_rows.write,
        records.save,
        inbox_messages.write,
        message_files.write,
        loop_values.write,
        annotation_rows.write,
        _count_kept,
        task_counts.write,
        _write_last,
        notify_others,
    )


def _count_kept(connection: Connection, commit: JournalCommit) -> None:
    commit.last.add(connection, ADD_KEPT, kept_rows(commit.kept))


def _write_last(connection: Connection, commit: JournalCommit) -> None:
    commit.last.execute(connection)
