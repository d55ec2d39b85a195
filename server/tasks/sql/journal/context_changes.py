"""The changes of a context after a position, from the rows of its pages.

Rule 1: positions have no gaps, so a gap between pages means that pages have been removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import changes_context
from a2a_canvas.server.tasks.codec import NO_CONTENTS, Contents, names_of_json
from a2a_canvas.server.tasks.errors import ChangesGone, Unreadable
from a2a_canvas.server.tasks.journal.artifact_readings import Place, TaskEnd, changes_artifact
from a2a_canvas.server.tasks.journal.context_log import ContextEntry
from a2a_canvas.server.tasks.kept_files import NO_FILES, Files
from a2a_canvas.server.tasks.sql.journal.journal_reading import decode_entries, read_contents, read_named_files
from a2a_canvas.server.tasks.sql.projections.context_rows import read_position
from a2a_canvas.server.tasks.sql.projections.latest_changes import read_latest
from a2a_canvas.server.tasks.sql.projections.pages import read_changes, read_last_position
from a2a_canvas.server.tasks.sql.projections.records import read_state
from a2a_canvas.store.errors import ArtifactNotFound
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.compression import text_size
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.version_contents import VersionContents

PAGES_PER_READING = 200
PAGES_PER_QUERY = 20
"""A page may have 10 MB, so those that are read beyond the bound are few."""
BYTES_PER_READING = 4 * 1024 * 1024
"""Of pages, and of the versions that they name; the first page is read however much that is."""

BYTES_PER_STEP = 32 * 1024
"""Of pages that are decoded before others run: 2 ms, unless a single page takes longer."""


class ReadChanges(NamedTuple):
    """Changes of an artifact. `newest`: the position of the context."""

    changes: tuple[ContextEntry, ...]
    place: Place
    newest: int


async def read_changes_of(
    database: Database,
    versions: VersionContents,
    context_id: ContextKey,
    artifact_id: str,
    after: Place | Literal["now"],
) -> ReadChanges:
    """The changes of an artifact after a place; none after now. Raises as `Journal.read_artifact`."""
    async with database.read() as connection:
        incarnation, newest = await read_position(connection, context_id)
        latest = await read_latest(connection, context_id, artifact_id)
        if incarnation is None or not latest:
            raise ArtifactNotFound(artifact_id)
        if after == "now":
            return ReadChanges((), Place(incarnation, newest), newest)
        if after.incarnation != incarnation or after.position > newest:
            raise ChangesGone
        if latest[0].position <= after.position:
            return ReadChanges((), Place(incarnation, newest), newest)
        found = await _read_bounded(connection, context_id, after.position)
        contents = (await read_contents(connection, found, versions)).get(context_id, NO_CONTENTS)
        files = (await read_named_files(connection, found)).get(context_id, NO_FILES)
    changes = await _changes_after(after, found, contents, files)
    last = changes[-1].position if changes else after.position
    if last == after.position:
        raise ChangesGone
    return ReadChanges(
        tuple(each for each in changes if changes_artifact(each, artifact_id)), Place(incarnation, last), newest
    )


async def read_task_end(database: Database, context_id: ContextKey, task_id: str) -> TaskEnd | None:
    """As `Journal.task_end`."""
    async with database.read() as connection:
        state = await read_state(connection, context_id, task_id)
        return TaskEnd(await read_last_position(connection, context_id, task_id)) if state.terminal else None


async def _read_bounded(connection: AsyncConnection, context_id: ContextKey, position: int) -> Sequence[Row[Any]]:
    """The pages with changes after a position, as many as are read at once."""
    found: list[Row[Any]] = []
    size = 0
    while limit := min(PAGES_PER_QUERY, PAGES_PER_READING - len(found)):
        some = await read_changes(connection, context_id, position, limit)
        for page in some:
            size += text_size(page.entries) + sum(each.size for each in names_of_json(page.named))
            if found and size > BYTES_PER_READING:
                return found
            found.append(page)
        if len(some) < limit:
            break
        position = some[-1].position
    return found


async def _changes_after(
    after: Place, found: Sequence[Row[Any]], contents: Contents, files: Files
) -> list[ContextEntry]:
    """The changes in pages, as far as none is missing.

    Raises:
        ChangesGone: the first is missing, cannot be decoded, or has lost the content of a version.
    """
    changes: list[ContextEntry] = []
    position, decoded = after.position, 0
    for page in found:
        if decoded >= BYTES_PER_STEP:
            decoded = 0
            await asyncio.sleep(0)
        decoded += text_size(page.entries)
        if any((each.artifact_id, each.number) not in contents for each in names_of_json(page.named)):
            break
        try:
            entries = [each for each in decode_entries(page, contents, files) if changes_context(each.event)]
        except Unreadable:
            break
        first = page.position - len(entries) + 1
        if first > position + 1:
            break
        numbered = enumerate(entries, first)
        changes += [
            ContextEntry(place, page.task_id, each, after.incarnation) for place, each in numbered if place > position
        ]
        position = page.position
    return changes
