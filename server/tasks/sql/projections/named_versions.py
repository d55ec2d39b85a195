"""The versions that the rows of tasks and pages name in place of repeating their contents.

Rule: a version is named where the store has it with exactly the content that would be written, committed or staged for
      the same transaction. What is pruned was named before, and stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection

from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.tasks.codec import NamedVersion
from a2a_canvas.server.tasks.journal.task_log import TaskBatch
from a2a_canvas.server.tasks.record import Entry, TaskArtifact, TaskRecord
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Content
from a2a_canvas.store.sql.reading import VersionKey, version_contents
from a2a_canvas.store.sql.version_contents import VersionContents

Names = dict[str, NamedVersion]
"""Versions by the ids of their artifacts."""
Contents = Mapping[VersionKey, Content]


def staged_contents(batches: Iterable[TaskBatch], versions: VersionContents) -> Contents:
    """The contents of all versions that the batches may name, as far as memory has them when the batches are taken.

    Not later: then memory may have a version that belongs to the next transaction.
    """
    keys = {key for batch in batches for key in _keys(batch)}
    return {key: content for key in keys if (content := versions.get_staged(key))}


def _keys(batch: TaskBatch) -> Iterator[VersionKey]:
    context_id = batch.newest.context_id
    for each in batch.newest.artifacts.values():
        yield VersionKey.from_ids(context_id, each.artifact_id, each.version)
    for entry in batch.entries:
        if isinstance(entry.event, ArtifactChanged) and entry.event.last_chunk:
            yield VersionKey.from_ids(context_id, entry.event.artifact_id, entry.event.version)


def named_by_entries(context_id: ContextKey, entries: Sequence[Entry], staged: Contents) -> dict[int, NamedVersion]:
    """The versions that staged entries name, by the generations of the entries."""
    found = {}
    for entry in entries:
        match entry.event:
            case ArtifactChanged(append=False, last_chunk=True) as event:
                content = Content(event.name, event.description, event.parts)
                if staged.get(VersionKey.from_ids(context_id, event.artifact_id, event.version)) == content:
                    found[entry.generation] = NamedVersion(event.artifact_id, event.version, content.size)
            case _:
                pass
    return found


def named_by_records(connection: Connection, records: Sequence[TaskRecord], staged: Contents) -> dict[str, Names]:
    """The versions that the artifacts of tasks name, by the ids of the tasks."""
    changed = [(record, each, _key(record, each)) for record in records for each in record.artifacts.values()]
    missing = {key for _, each, key in changed if key not in staged and not each.pruned}
    contents = {**staged, **version_contents(connection, missing)}
    names: dict[str, Names] = {record.task_id: {} for record in records}
    for record, each, key in changed:
        if each.pruned or contents.get(key) == each.content:
            size = 0 if each.pruned else each.content.size
            names[record.task_id][each.artifact_id] = NamedVersion(each.artifact_id, each.version, size)
    return names


def _key(record: TaskRecord, artifact: TaskArtifact) -> VersionKey:
    return VersionKey.from_ids(record.context_id, artifact.artifact_id, artifact.version)
