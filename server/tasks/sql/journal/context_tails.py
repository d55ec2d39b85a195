"""The changes of a context, read from the database after notifications, or shown as another replica's messages bring
them (`followed_pages.py`; `tails.py`, rule 2).

Rule 1: snapshot and changes are both of committed rows, so they agree, whichever replica wrote them. The price is that
        a draft is seen here one commit later than by the subscribers of its task.
Rule 2: when a context is removed, its subscriptions end with `StreamLost`: the context does not exist any more, or is a
        new one (`incarnation`) whose positions start at 1 again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from weakref import WeakValueDictionary

from sqlalchemy import select

from a2a_canvas.server.agent.events import changes_context
from a2a_canvas.server.tasks.codec import NO_CONTENTS
from a2a_canvas.server.tasks.errors import StreamLost, Unreadable
from a2a_canvas.server.tasks.journal.artifact_readings import After, ArtifactReading, Place
from a2a_canvas.server.tasks.journal.context_log import (
    ContextArtifact,
    ContextEntry,
    ContextSnapshot,
    ContextSubscription,
)
from a2a_canvas.server.tasks.journal.cursors import Cursor, Log
from a2a_canvas.server.tasks.journal.task_log import NOT_RECEIVED
from a2a_canvas.server.tasks.kept_files import NO_FILES
from a2a_canvas.server.tasks.record import Entry
from a2a_canvas.server.tasks.sql.journal.background_reads import BackgroundReads
from a2a_canvas.server.tasks.sql.journal.context_changes import read_changes_of
from a2a_canvas.server.tasks.sql.journal.followed_pages import FollowedPages, is_current
from a2a_canvas.server.tasks.sql.journal.journal_reading import (
    ALL_COLUMNS,
    decode_entries,
    fold_readable,
    read_contents,
    read_named_files,
    read_tasks,
    tasks_in,
)
from a2a_canvas.server.tasks.sql.journal.page_messages import PageMessage
from a2a_canvas.server.tasks.sql.journal.shared_reads import SharedReads
from a2a_canvas.server.tasks.sql.projections.context_rows import (
    NO_POSITION,
    ContextPosition,
    contexts,
    read_position,
)
from a2a_canvas.server.tasks.sql.projections.latest_changes import read_latest
from a2a_canvas.server.tasks.sql.projections.pages import read_changes
from a2a_canvas.store.errors import ArtifactNotFound
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.version_contents import VersionContents
from a2a_canvas.store.text.unicode import replace_unstorable


class _Tail(Log[ContextEntry]):
    def __init__(self, context_id: ContextKey, at: ContextPosition) -> None:
        super().__init__()
        self.context_id = context_id
        self.at = at
        self.reading = asyncio.Lock()
        self.received_at = NOT_RECEIVED


class ContextTails:
    """The contexts that are followed here, each as long as it is referenced. Reads raise `Unavailable` if they fail.

    Attributes:
        pages: those of other replicas that come by a broker.
        pages_read, pages_received: from the database, and as messages in order.
    """

    def __init__(self, database: Database, versions: VersionContents) -> None:
        self.pages_read = self.pages_received = 0
        self._database = database
        self._versions = versions
        self._tails: WeakValueDictionary[ContextKey, _Tail] = WeakValueDictionary()
        self._refreshing = BackgroundReads(self.refresh)
        self._snapshots = SharedReads(self._snapshot)
        self.pages: FollowedPages[ContextKey] = FollowedPages(self._receive, self._refresh_one)

    async def follow(self, context_id: ContextKey) -> ContextSubscription:
        """A snapshot of a context, and every change after it."""
        cursor = await self._cursor(context_id)
        return ContextSubscription(await self._snapshots.get((context_id, None)), cursor)

    async def read_artifact(self, context_id: ContextKey, artifact_id: str, after: After) -> ArtifactReading:
        """As `Journal.read_artifact`."""
        cursor = await self._cursor(context_id)
        if after != "beginning":
            read = await read_changes_of(self._database, self._versions, context_id, artifact_id, after)
            snapshot = ContextSnapshot(read.place.position, {}, read.place.incarnation)
            following = ContextSubscription(snapshot, cursor)
            return ArtifactReading(None, read.changes, read.place, read.place.position == read.newest, following)
        following = ContextSubscription(await self._snapshots.get((context_id, artifact_id)), cursor)
        incarnation, position = following.snapshot.incarnation, following.snapshot.position
        if incarnation is None or artifact_id not in following.snapshot.artifacts:
            raise ArtifactNotFound(artifact_id)
        whole = following.snapshot.artifacts[artifact_id]
        return ArtifactReading(whole, (), Place(incarnation, position), complete=True, following=following)

    async def _cursor(self, context_id: ContextKey) -> Cursor[ContextEntry]:
        """The end of what has been read here of a context, which may be behind its rows."""
        context_id = replace_unstorable(context_id)  # as `refresh_all` finds it in the rows
        tail = self._tails.get(context_id)
        if tail is None or tail.failure:
            async with self._database.read() as connection:
                fresh = _Tail(context_id, await read_position(connection, context_id))
            tail = self._tails.get(context_id)
            if tail is None or tail.failure:  # another request may have made one meanwhile
                tail = self._tails[context_id] = fresh
                self.pages.follow(context_id, (context_id, None))
        return Cursor(tail)

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
        self.pages.follow_only({context_id: (context_id, None) for context_id in dict(self._tails)})
        tails = {each: tail for each, tail in dict(self._tails).items() if not is_current(tail.received_at)}
        if tails:
            query = select(contexts.c.context_id, contexts.c.incarnation, contexts.c.position)
            async with self._database.read() as connection:
                rows = await connection.execute(query.where(contexts.c.context_id.in_(tails)))
                found = {row.context_id: ContextPosition(row.incarnation, row.position) for row in rows}
            await self.refresh(each for each, tail in tails.items() if found.get(each, NO_POSITION) != tail.at)

    def schedule_refresh(self, context_ids: Iterable[ContextKey]) -> None:
        """This replica has written to these contexts: read the changes."""
        self._refreshing.start(context_id for context_id in context_ids if context_id in self._tails)

    async def stop(self) -> None:
        """Stop reading."""
        await self._refreshing.stop()
        await self._snapshots.stop()

    def check_again(self) -> None:
        """Have the guards of all subscriptions ask again."""
        for log in tuple(self._tails.values()):
            log.check_again()

    def fail(self, error: Exception) -> None:
        for tail in tuple(self._tails.values()):
            tail.fail(error)

    # ------------------------------------------------------------------------- messages

    def _refresh_one(self, context_id: ContextKey) -> None:
        self._refreshing.start([context_id])

    def _receive(self, context_id: ContextKey, page: PageMessage | None) -> None:
        tail = self._tails.get(context_id)
        if tail is None or tail.failure:
            return
        if page is None:
            tail.received_at = NOT_RECEIVED
        elif page.position is not None and not self._show(tail, page):
            tail.received_at = NOT_RECEIVED
            self._refresh_one(context_id)

    def _show(self, tail: _Tail, page: PageMessage) -> bool:
        """Show a page if it is in order; whether nothing has to be read for it."""
        if page.position is None or page.incarnation is None or tail.at.incarnation not in (None, page.incarnation):
            return False
        if page.position <= tail.at.position:
            return True
        if page.entries is None:
            return False
        try:
            entries = decode_entries(page, NO_CONTENTS)
        except Unreadable:
            return False
        changes = [entry for entry in entries if changes_context(entry.event)]
        if page.position - len(changes) != tail.at.position:
            return False
        _append(tail, page.task_id, changes, page.incarnation)
        tail.wake()
        tail.received_at = time.monotonic()
        self.pages_received += 1
        return True

    async def _read_on(self, tail: _Tail) -> None:
        async with tail.reading:
            async with self._database.read() as connection:
                incarnation, newest = await read_position(connection, tail.context_id)
                found = await read_changes(connection, tail.context_id, tail.at.position)
                self.pages_read += len(found)
                contents = await read_contents(connection, found, self._versions)
                files = await read_named_files(connection, found)
            if tail.at.incarnation not in (None, incarnation):
                tail.fail(StreamLost())
            if incarnation is None or tail.failure:
                return
            named, its_files = contents.get(tail.context_id, NO_CONTENTS), files.get(tail.context_id, NO_FILES)
            for page in found:
                if page.position <= tail.at.position:
                    continue  # it has come as a message meanwhile
                try:
                    entries = decode_entries(page, named, its_files)
                except Unreadable:
                    tail.fail(StreamLost())  # a new subscription begins with what can be read
                    return
                changes = [entry for entry in entries if changes_context(entry.event)]
                if page.position - len(changes) != tail.at.position:
                    break
                _append(tail, page.task_id, changes, incarnation)
            tail.at = ContextPosition(incarnation, tail.at.position)
            if tail.at.position < newest:
                tail.fail(StreamLost())  # the next changes have been removed
            else:
                tail.wake()

    async def _snapshot(self, of: tuple[ContextKey, str | None]) -> ContextSnapshot:
        """The artifacts of a context, or the one that is named."""
        context_id, artifact_id = of
        async with self._database.read() as connection:
            incarnation, position = await read_position(connection, context_id)
            last = await read_latest(connection, context_id, artifact_id)
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


def _append(tail: _Tail, task_id: str, changes: Iterable[Entry], incarnation: int) -> None:
    """Append the next changes of a context, all of one task."""
    for place, entry in enumerate(changes, tail.at.position + 1):
        tail.append(ContextEntry(place, task_id, entry, incarnation))
        tail.at = ContextPosition(incarnation, place)
