"""Writes the staged entries of tasks as rows, for all tasks of one transaction together.

Rule 1: if the epoch of a task in the database is not that of its entries, the transaction raises `LeaseLost`.
Rule 2: a task's record is saved when it begins, when it settles, and in between when one is due (`logs.py`). Its
        entries are written once, and stay for subscribers that have still to read them.
Rule 3: a transaction that is retried writes the same rows.
Rule 4: an entry that closes a version, and the saved record of a task, name the version if the store has it with just
        this content, committed or in this transaction. Otherwise they have the content: drafts, above all.
Rule 5: the rows name the large files of messages; they were written before (`message_files.py`).
Rule 6: a new row of a context gets a new incarnation, because the context may have been removed before.
Rule 7: what is kept of entries, records and push configs is counted (`store/sql/kept.py`). A saved record replaces the
        one before it, whose size the row tells.
Rule 8: the tasks of each owner in each state are counted (`task_counts.py`). The state before is that of the locked
        row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any, Protocol

from sqlalchemy import Connection, bindparam, delete, func, select, tuple_, update

from a2a_canvas.server.accounts.sql.account_tables import contexts, owned_contexts
from a2a_canvas.server.agent.events import ArtifactChanged, StatusChanged
from a2a_canvas.server.tasks.codec import (
    FoundFiles,
    artifacts_to_json,
    entries_to_json,
    names_to_json,
    record_to_json,
    transcript_to_json,
)
from a2a_canvas.server.tasks.incoming import DEDUP_WINDOW
from a2a_canvas.server.tasks.journal.owned_contexts import request_of
from a2a_canvas.server.tasks.kept_files import KeptFile
from a2a_canvas.server.tasks.push import PushConfig
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.server.tasks.sql.journal.journal_tables import (
    RECORD,
    RECORD_SIZE,
    inbox_messages,
    latest_changes,
    message_keys,
    pages,
    stored_entries,
    task_contexts,
    tasks,
)
from a2a_canvas.server.tasks.sql.journal.logs import TaskBatch
from a2a_canvas.server.tasks.sql.journal.message_files import FileKey, name_stored
from a2a_canvas.server.tasks.sql.journal.named_versions import Contents, Names, named_by_entries, named_by_records
from a2a_canvas.server.tasks.sql.journal.task_counts import OwnerState, add_counts, moved
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import new_incarnation
from a2a_canvas.store.sql.commit import LeaseLost
from a2a_canvas.store.sql.database import Dialect, insert, insert_on
from a2a_canvas.store.sql.kept import add_kept
from a2a_canvas.store.sql.row_statement import RowStatement
from a2a_canvas.store.sql.times import to_microseconds

MAX_SAVED_CHARACTERS = 1_000_000
"""Approximate limit of the saved records of working tasks in one transaction; the others follow in the next one."""

_LOCK = (
    select(tasks.c.task_id, tasks.c.epoch, tasks.c.push, tasks.c.state)
    .where(tuple_(tasks.c.context_id, tasks.c.task_id).in_(bindparam("keys", expanding=True)))
    .where(tasks.c.replica == bindparam("replica"))
    .order_by(tasks.c.context_id, tasks.c.task_id)
    .with_for_update()
)
_THIS_TASK = tasks.c.context_id == bindparam("of_context"), tasks.c.task_id == bindparam("of_task")

TaskKey = tuple[ContextKey, str]
"""Context and task."""


class OutboxWriter(Protocol):
    """Writes what is to be delivered, in the transaction of the entries that notifications tell of."""

    def add_configs(self, connection: Connection, configs: Sequence[PushConfig]) -> Counter[str]:
        """Add the first configs of new tasks: how many bytes they are, by context."""
        ...

    def put(self, connection: Connection, told: Mapping[TaskKey, Sequence[Entry]], at: datetime) -> None:
        """Write what entries tell of for each config of their tasks."""
        ...


Notify = Callable[[Connection, tuple[str, ...], tuple[ContextKey, ...], tuple[ContextKey, ...]], Any]
"""Notifies the other replicas, within the transaction, of the tasks it writes, the contexts with new changes, and those
in which another task may work."""


@dataclass(slots=True)
class _Placed:
    """A batch, and its place in the context.

    Attributes:
        changes: number of its artifact changes.
        last: the last change of each artifact, with its number among them.
        number: of the task, if it is new.
        position: before the first change.
    """

    batch: TaskBatch
    changes: int
    last: dict[str, tuple[int, ArtifactChanged]]
    number: int = 0
    position: int = 0

    @staticmethod
    def of(batch: TaskBatch) -> _Placed:
        changed = [entry.event for entry in batch.entries if isinstance(entry.event, ArtifactChanged)]
        return _Placed(batch, len(changed), {each.artifact_id: (place, each) for place, each in enumerate(changed, 1)})


class JournalWork:
    """The work of one transaction.

    Args:
        replica: the id of this replica when the work was collected.
        staged: the contents of versions (`staged_contents`).
        committed: called with the batches when they are durable.
    """

    def __init__(
        self,
        batches: Sequence[TaskBatch],
        replica: str,
        at: datetime,
        staged: Contents,
        notify: Notify,
        outbox: OutboxWriter,
        committed: Callable[[Sequence[TaskBatch]], None],
    ) -> None:
        self._batches = batches
        self._replica = replica
        self._at = at
        self._staged = staged
        self._notify = notify
        self._outbox = outbox
        self._committed = committed
        self._incarnation = new_incarnation()
        self._named = {
            batch.newest.task_id: named_by_entries(batch.newest.context_id, batch.entries, staged) for batch in batches
        }
        self._page_characters: dict[str, int] = {}
        self._saved_characters: dict[str, int] = {}
        self._kept: Counter[str] = Counter()
        self._files: dict[FileKey, KeptFile] = {}
        self._states: dict[str, str] = {}  # in the database, by task

    def write(self, connection: Connection) -> None:
        self._kept, self._files = Counter(), {}
        self._write_keys(connection)
        placed = [_Placed.of(batch) for batch in self._batches if not batch.log.duplicate_of]
        batches = [each.batch for each in placed]
        pushed = self._check_epochs(connection, [batch for batch in batches if not batch.created])
        self._assign_places(connection, placed)
        self._create(connection, [each for each in placed if each.batch.created])
        self._write_pages(connection, [each for each in placed if each.batch.entries])
        self._kept.update(self._outbox.add_configs(connection, [batch.push for batch in batches if batch.push]))
        self._outbox.put(
            connection,
            {
                _key_of(batch.newest): batch.notified
                for batch in batches
                if batch.push or batch.newest.task_id in pushed
            },
            self._at,
        )
        _write_latest_changes(connection, placed)
        _write_owned_contexts(connection, batches)
        self._update(connection, [batch for batch in batches if batch.entries])
        _delete_acknowledged(connection, batches)
        self._kept.update(name_stored(connection, self._files))
        add_kept(connection, self._kept)
        add_counts(connection, self._changed_counts(batches), self._replica)
        written = tuple(batch.newest.task_id for batch in batches)
        changed = {each.batch.newest.context_id for each in placed if each.changes}
        active = {batch.newest.context_id for batch in batches if batch.changes_activity}
        self._notify(connection, written, tuple(changed), tuple(active))

    def done(self) -> None:
        for batch in self._batches:
            task_id = batch.newest.task_id
            batch.log.count_written(self._page_characters.get(task_id, 0), self._saved_characters.get(task_id, 0))
        self._committed(self._batches)

    def by_context(self) -> dict[ContextKey, JournalWork]:
        by_context: defaultdict[ContextKey, list[TaskBatch]] = defaultdict(list)
        for batch in self._batches:
            by_context[batch.newest.context_id].append(batch)
        return {
            context_id: JournalWork(
                batches, self._replica, self._at, self._staged, self._notify, self._outbox, self._committed
            )
            for context_id, batches in by_context.items()
        }

    def release(self, connection: Connection) -> None:
        """Its tasks keep their owner, because this replica lets them fail."""

    def failed(self) -> None:
        for batch in self._batches:
            batch.log.unwritable = True

    def _write_keys(self, connection: Connection) -> None:
        """Store which task each message went to; the task of a message that was accepted before is not created."""
        for batch in self._batches:
            for key in batch.keys:
                before = remember_key(connection, key, batch.newest, self._at)
                batch.log.duplicate_of = before if batch.created else ""

    def _create(self, connection: Connection, new: Sequence[_Placed]) -> None:
        if not new:
            return
        rows = [
            {
                "number": each.number,
                "owner": record.owner,
                "replica": self._replica,
                "resumptions": 0,
                "cancel_requested": False,
                "push": each.batch.push is not None,
                **_key(record),
                **_status_columns(record),
                **self._record_columns(record, {}),
            }
            for each in new
            if (record := each.batch.created)
        ]
        self._kept.update(_ADD_TASK.execute(connection, rows))
        connection.execute(task_contexts.insert(), [_key(each.batch.newest) for each in new])

    def _check_epochs(self, connection: Connection, batches: Sequence[TaskBatch]) -> set[str]:
        """The tasks among them that have push configs."""
        if not batches:
            return set()
        expected = {batch.newest.task_id: batch.newest.epoch for batch in batches}
        keys = [(batch.newest.context_id, batch.newest.task_id) for batch in batches]
        rows = connection.execute(_LOCK, {"keys": keys, "replica": self._replica}).all()
        found: dict[str, int] = {row.task_id: row.epoch for row in rows}
        self._states = {row.task_id: row.state for row in rows}
        if found != expected:
            lost = sorted(task_id for task_id in expected if found.get(task_id) != expected[task_id])
            raise LeaseLost(f"Tasks of another replica now: {', '.join(lost)}")
        return {row.task_id for row in rows if row.push}

    def _changed_counts(self, batches: Iterable[TaskBatch]) -> Counter[OwnerState]:
        changed: Counter[OwnerState] = Counter()
        for batch in batches:
            owner, state = batch.newest.owner, batch.newest.state.value
            if batch.created:
                changed[owner, state] += 1
            elif batch.entries:
                changed.update(moved(owner, self._states[batch.newest.task_id], state))
        return changed

    def _assign_places(self, connection: Connection, placed: Iterable[_Placed]) -> None:
        by_context: defaultdict[str, list[_Placed]] = defaultdict(list)
        for each in placed:
            by_context[each.batch.newest.context_id].append(each)
        added = {
            context_id: (sum(each.batch.created is not None for each in some), sum(each.changes for each in some))
            for context_id, some in sorted(by_context.items())  # in order, so that two replicas cannot deadlock
        }
        common = {"changed_at": to_microseconds(self._at), "incarnation": self._incarnation}
        rows = [
            {"context_id": context_id, "tasks": new, "position": changes, **common}
            for context_id, (new, changes) in added.items()
            if new or changes
        ]
        if not rows:
            return
        placed_after = connection.execute(_count_changes(connection.dialect.name), rows)
        for context_id, tasks_after, position_after in placed_after:
            new, changes = added[context_id]
            number, position = tasks_after - new, position_after - changes
            for each in by_context[context_id]:
                number += each.batch.created is not None
                each.number, each.position = number, position
                position += each.changes

    def _write_pages(self, connection: Connection, placed: Iterable[_Placed]) -> None:
        rows = []
        for each in placed:
            batch, task_id = each.batch, each.batch.newest.task_id
            files: FoundFiles = {}
            entries = entries_to_json(batch.entries, self._named[task_id], files)
            self._name(batch.newest, files)
            self._page_characters[task_id] = len(entries)
            row = {
                "first": batch.first,
                "last": batch.entries[-1].generation,
                "epoch": batch.newest.epoch,
                "position": each.position + each.changes if each.changes else None,
                "named": names_to_json(self._named[task_id].values(), files.values()),
            }
            rows.append({**_key(batch.newest), **row, "entries": stored_entries(entries)})
        self._kept.update(_ADD_PAGE.execute(connection, rows))

    def _update(self, connection: Connection, batches: Sequence[TaskBatch]) -> None:
        records = [batch.newest for batch in batches]
        settled = [record for record in records if record.state.settled]
        names = named_by_records(connection, settled, self._staged)
        saved = {record.task_id: self._record_columns(record, names[record.task_id]) for record in settled}
        saved |= self._due_records(connection, [batch for batch in batches if not batch.newest.state.settled])
        self._saved_characters = {task_id: _characters(columns) for task_id, columns in saved.items()}
        self._kept.subtract(_sizes_before(connection, [_key_of(each) for each in records if each.task_id in saved]))
        alike: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for record in records:
            ended = {"resumptions": 0, "cancel_requested": False} if record.state.settled else {}
            values = {**_status_columns(record), **saved.get(record.task_id, {}), **ended}
            named = {f"new_{name}": value for name, value in values.items()}
            alike[tuple(values)].append({"of_context": record.context_id, "of_task": record.task_id, **named})
        for columns, rows in alike.items():
            self._kept.update(_update_columns(columns).execute(connection, rows))

    def _due_records(self, connection: Connection, batches: Iterable[TaskBatch]) -> dict[str, dict[str, Any]]:
        """The saved records of working tasks that are most overdue."""
        overdue = [(batch.log.overdue(self._page_characters[batch.newest.task_id]), batch.newest) for batch in batches]
        found: dict[str, dict[str, Any]] = {}
        room = MAX_SAVED_CHARACTERS
        for characters, record in sorted(overdue, key=itemgetter(0), reverse=True):
            if characters <= 0 or room <= 0:
                break
            names = named_by_records(connection, [record], self._staged)
            found[record.task_id] = self._record_columns(record, names[record.task_id])
            room -= _characters(found[record.task_id])
        return found

    def _record_columns(self, record: TaskRecord, names: Names) -> dict[str, Any]:
        files: FoundFiles = {}
        columns = {
            "snapshot": record.generation,
            "head": record_to_json(replace(record, transcript=(), artifacts={}), files),
            "transcript": transcript_to_json(record.transcript, files),
            "artifacts": artifacts_to_json(record.artifacts, names, files),
        }
        self._name(record, files)
        return {**columns, "named": names_to_json(names.values(), files.values())}

    def _name(self, record: TaskRecord, files: FoundFiles) -> None:
        self._files |= {(record.context_id, digest): file for digest, file in files.items()}


@cache
def _count_changes(dialect: Dialect) -> Any:
    """Adds tasks and changes to contexts; returns the sums."""
    upsert = insert_on(dialect, contexts)
    return upsert.on_conflict_do_update(
        index_elements=[contexts.c.context_id],
        set_={
            "tasks": contexts.c.tasks + upsert.excluded.tasks,
            "position": contexts.c.position + upsert.excluded.position,
            "changed_at": upsert.excluded.changed_at,
        },
    ).returning(contexts.c.context_id, contexts.c.tasks, contexts.c.position)


def _replace_latest(dialect: Dialect) -> Any:
    upsert = insert_on(dialect, latest_changes)
    return upsert.on_conflict_do_update(
        index_elements=[latest_changes.c.context_id, latest_changes.c.artifact_id],
        set_={name: upsert.excluded[name] for name in ("position", "task_id", "closed", "name")},
    )


def _touch_owned(dialect: Dialect) -> Any:
    upsert = insert_on(dialect, owned_contexts)
    return upsert.on_conflict_do_update(
        index_elements=[owned_contexts.c.context_id, owned_contexts.c.owner],
        set_={"changed_at": upsert.excluded.changed_at},
    )


_TOUCH_OWNED = RowStatement(_touch_owned, owned_contexts.c.keys())
_REPLACE_LATEST = RowStatement(_replace_latest, latest_changes.c.keys())
_ADD_PAGE = RowStatement(lambda _: pages.insert(), pages.c.keys(), ["entries"])
_ADD_TASK = RowStatement(lambda _: tasks.insert(), tasks.c.keys(), RECORD)


@cache
def _update_columns(columns: tuple[str, ...]) -> RowStatement:
    new: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    return RowStatement(
        lambda _: update(tasks).where(*_THIS_TASK).values(new), None, [f"new_{name}" for name in RECORD]
    )


_SIZES = (
    select(tasks.c.context_id, func.sum(RECORD_SIZE))
    .where(tuple_(tasks.c.context_id, tasks.c.task_id).in_(bindparam("keys", expanding=True)))
    .group_by(tasks.c.context_id)
)


def _sizes_before(connection: Connection, keys: Sequence[TaskKey]) -> dict[str, int]:
    """The bytes of the saved records of tasks, by context."""
    if not keys:
        return {}
    found = connection.execute(_SIZES, {"keys": keys})
    return {context_id: int(size) for context_id, size in found}


def remember_key(connection: Connection, key: str, record: TaskRecord, at: datetime) -> str:
    """Store which task a message went to; the id of the task if it was accepted before."""
    row = {"key": key, **_key(record), "accepted_at": to_microseconds(at)}
    upsert = insert(connection, message_keys).values(row)
    taken = connection.scalar(
        upsert.on_conflict_do_update(
            index_elements=[message_keys.c.key],
            set_=row,
            where=message_keys.c.accepted_at < to_microseconds(at - DEDUP_WINDOW),
        ).returning(message_keys.c.task_id)
    )
    if taken is not None:
        return ""
    task_id = str(connection.scalar(select(message_keys.c.task_id).where(message_keys.c.key == key)))
    return "" if task_id == record.task_id else task_id


def _write_latest_changes(connection: Connection, placed: Iterable[_Placed]) -> None:
    rows = {
        (each.batch.newest.context_id, artifact_id): {
            **_key(each.batch.newest),
            "artifact_id": artifact_id,
            "position": each.position + place,
            "closed": last.last_chunk,
            "name": last.name,
        }
        for each in placed
        for artifact_id, (place, last) in each.last.items()
    }
    _REPLACE_LATEST.execute(connection, [rows[key] for key in sorted(rows)])


def _write_owned_contexts(connection: Connection, batches: Iterable[TaskBatch]) -> None:
    """Store when the status of an owner's tasks last changed, and with the first of them what it asked for."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for batch in batches:
        if batch.created or any(isinstance(entry.event, StatusChanged) for entry in batch.entries):
            row = _owned_row(batch.created, batch.newest)
            before = rows.setdefault((row["context_id"], row["owner"]), row)
            before["changed_at"] = max(before["changed_at"], row["changed_at"])
    _TOUCH_OWNED.execute(connection, [rows[key] for key in sorted(rows)])


def _owned_row(created: TaskRecord | None, newest: TaskRecord) -> dict[str, Any]:
    return {
        "context_id": newest.context_id,
        "owner": newest.owner,
        "name": None,
        # These two are those of the first task; a row that is there keeps its own.
        "request": request_of(created.history) if created else "",
        "created_at": to_microseconds((created or newest).changed_at),
        "changed_at": to_microseconds(newest.changed_at),
    }


def _delete_acknowledged(connection: Connection, batches: Iterable[TaskBatch]) -> None:
    for batch in batches:
        if batch.acknowledged:
            ours = [inbox_messages.c[name] == value for name, value in _key(batch.newest).items()]
            connection.execute(delete(inbox_messages).where(*ours, inbox_messages.c.inbox_id.in_(batch.acknowledged)))


def _key_of(record: TaskRecord) -> TaskKey:
    return record.context_id, record.task_id


def _key(record: TaskRecord) -> dict[str, Any]:
    return {"context_id": record.context_id, "task_id": record.task_id}


def _status_columns(record: TaskRecord) -> dict[str, Any]:
    return {
        "state": record.state.value,
        "changed_at": to_microseconds(record.changed_at),
        "epoch": record.epoch,
        "generation": record.generation,
    }


def _characters(columns: dict[str, Any]) -> int:
    return sum(len(columns[part]) for part in ("head", "transcript", "artifacts"))
