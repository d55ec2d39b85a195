"""The changes of a context, read from the database after notifications.

Rule 1: snapshot and changes are both read from committed rows, so they agree, whichever replica wrote them. The price
        is that a draft is seen here one commit later than by the subscribers of its task.
Rule 2: when a context is removed, its subscriptions end with `StreamLost`: the context does not exist any more, or is a
        new one (`incarnation`) whose positions start at 1 again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakValueDictionary

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import changes_context
from a2a_canvas.server.tasks.codec import NO_CONTENTS
from a2a_canvas.server.tasks.errors import StreamLost, Unreadable
from a2a_canvas.server.tasks.journal.context_log import (
    ContextArtifact,
    ContextEntry,
    ContextSnapshot,
    ContextSubscription,
)
from a2a_canvas.server.tasks.journal.cursors import Cursor, Log
from a2a_canvas.server.tasks.kept_files import NO_FILES
from a2a_canvas.server.tasks.sql.journal.journal_reading import (
    ALL_COLUMNS,
    decode_entries,
    fold_readable,
    read_contents,
    read_named_files,
    read_tasks,
    tasks_in,
)
from a2a_canvas.server.tasks.sql.projections.context_rows import contexts
from a2a_canvas.server.tasks.sql.projections.latest_changes import read_latest
from a2a_canvas.server.tasks.sql.projections.pages import read_changes
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.version_contents import VersionContents
from a2a_canvas.store.text.unicode import replace_unstorable


class _Position(NamedTuple):
    """The last position of a context; the incarnation is None if it has no row."""

    incarnation: int | None
    position: int


NO_POSITION = _Position(None, 0)
STOP_SECONDS = 0.5
"""Seconds that a read has left when the server stops."""


class _Tail(Log[ContextEntry]):
    def __init__(self, context_id: ContextKey, at: _Position) -> None:
        super().__init__()
        self.context_id = context_id
        self.at = at
        self.reading = asyncio.Lock()


class ContextTails:
    """The contexts that are followed here, each as long as it is referenced. Reads raise `Unavailable` if they fail."""

    def __init__(self, database: Database, versions: VersionContents) -> None:
        self._database = database
        self._versions = versions
        self._tails: WeakValueDictionary[ContextKey, _Tail] = WeakValueDictionary()
        self._reading: set[asyncio.Task[None]] = set()

    async def follow(self, context_id: ContextKey) -> ContextSubscription:
        """A snapshot of a context, and every change after it."""
        context_id = replace_unstorable(context_id)  # as `refresh_all` finds it in the rows
        tail = self._tails.get(context_id)
        if tail is None or tail.failure:
            async with self._database.read() as connection:
                fresh = _Tail(context_id, await _read_position(connection, context_id))
            tail = self._tails.get(context_id)
            if tail is None or tail.failure:  # another request may have made one meanwhile
                tail = self._tails[context_id] = fresh
        cursor = Cursor(tail)
        return ContextSubscription(await self._snapshot(context_id), cursor)

    def follows(self, context_id: ContextKey) -> bool:
        """Whether the context has a subscriber here."""
        return replace_unstorable(context_id) in self._tails

    async def refresh(self, context_ids: Iterable[ContextKey]) -> None:
        """Read the new changes of these contexts."""
        for context_id in context_ids:
            tail = self._tails.get(context_id)
            if tail is not None and not tail.failure:
                await self._read_on(tail)

    async def refresh_all(self) -> None:
        """Read the new changes of all contexts that have any."""
        tails = dict(self._tails)
        if tails:
            query = select(contexts.c.context_id, contexts.c.incarnation, contexts.c.position)
            async with self._database.read() as connection:
                rows = await connection.execute(query.where(contexts.c.context_id.in_(tails)))
                found = {row.context_id: _Position(row.incarnation, row.position) for row in rows}
            await self.refresh(each for each, tail in tails.items() if found.get(each, NO_POSITION) != tail.at)

    def schedule_refresh(self, context_ids: Iterable[ContextKey]) -> None:
        """This replica has written to these contexts: read the changes."""
        followed = [context_id for context_id in context_ids if context_id in self._tails]
        if followed:
            reading = asyncio.create_task(self._read_all(followed), name="context followers")
            self._reading.add(reading)
            reading.add_done_callback(self._reading.discard)

    async def stop(self) -> None:
        """Stop reading. A read that is cancelled while it connects leaves its connection open: it may end first."""
        if self._reading:
            _, late = await asyncio.wait(self._reading, timeout=STOP_SECONDS)
            for reading in late:
                reading.cancel()
            if late:
                await asyncio.wait(late)

    def fail(self, error: Exception) -> None:
        for tail in tuple(self._tails.values()):
            tail.fail(error)

    async def _read_all(self, context_ids: Iterable[ContextKey]) -> None:
        with suppress(Unavailable):  # the next poll finds it
            await self.refresh(context_ids)

    async def _read_on(self, tail: _Tail) -> None:
        async with tail.reading:
            async with self._database.read() as connection:
                incarnation, newest = await _read_position(connection, tail.context_id)
                found = await read_changes(connection, tail.context_id, tail.at.position)
                contents = await read_contents(connection, found, self._versions)
                files = await read_named_files(connection, found)
            if tail.at.incarnation not in (None, incarnation):
                tail.fail(StreamLost())
            if incarnation is None or tail.failure:
                return
            position, named = tail.at.position, contents.get(tail.context_id, NO_CONTENTS)
            its_files = files.get(tail.context_id, NO_FILES)
            for page in found:
                try:
                    entries = decode_entries(page, named, its_files)
                except Unreadable:
                    tail.fail(StreamLost())  # a new subscription begins with what can be read
                    return
                changes = [entry for entry in entries if changes_context(entry.event)]
                if page.position - len(changes) != position:
                    break
                for place, entry in enumerate(changes, position + 1):
                    tail.append(ContextEntry(place, page.task_id, entry, incarnation))
                position = page.position
            tail.at = _Position(incarnation, position)
            if position < newest:
                tail.fail(StreamLost())  # the next changes have been removed
            else:
                tail.wake()

    async def _snapshot(self, context_id: ContextKey) -> ContextSnapshot:
        async with self._database.read() as connection:
            incarnation, position = await _read_position(connection, context_id)
            last = await read_latest(connection, context_id)
            writers = tasks_in((context_id, task_id) for task_id in {row.task_id for row in last})
            rows = await read_tasks(connection, select(*ALL_COLUMNS).where(writers), self._versions) if last else []
        found = {record.task_id: record for record in await fold_readable(rows)}
        artifacts = {
            row.artifact_id: ContextArtifact(
                found[row.task_id].artifacts[row.artifact_id], row.task_id, row.position, row.closed
            )
            for row in last
            if row.task_id in found and row.artifact_id in found[row.task_id].artifacts
        }
        return ContextSnapshot(position, artifacts, incarnation)


async def _read_position(connection: AsyncConnection, context_id: ContextKey) -> _Position:
    query = select(contexts.c.incarnation, contexts.c.position).where(contexts.c.context_id == context_id)
    row = (await connection.execute(query)).one_or_none()
    return _Position(row.incarnation, row.position) if row else NO_POSITION
