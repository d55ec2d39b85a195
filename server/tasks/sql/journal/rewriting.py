"""Lets the artifacts of settled tasks name their versions, where an older version of the server has repeated them.

Rule 1: it runs in the background, in small steps: each reads a few tasks, then changes them and the position in one
        short transaction. A process that was killed continues at the position. After the last task the row of the
        rewrite is deleted; a database without it needs nothing.
Rule 2: one replica does it. The others look from time to time whether it lives.
Rule 3: a version is named if it has exactly the content of the task. So a task whose version was pruned stays as it is,
        and reads as before. A task that was saved again meanwhile is left alone.
Rule 4: the entries of before stay as they are: only subscribers that are still behind read them, and they are deleted
        after the end of their task (`prune.py`, rule 1).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.log_output import about
from a2a_canvas.server.tasks.codec import NamedVersion, artifacts_of_json, artifacts_to_json, names_to_json
from a2a_canvas.server.tasks.record import TaskArtifact
from a2a_canvas.server.tasks.sql.journal.journal_reading import UNSETTLED
from a2a_canvas.server.tasks.sql.journal.journal_tables import RECORD_SIZE, rewrites, tasks
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.models import Content
from a2a_canvas.store.sql.artifact_lease import LeaseHolder
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.kept import add_kept
from a2a_canvas.store.sql.reading import Key, VersionKey, version_contents
from a2a_canvas.store.sql.rows import content_json

logger = logging.getLogger(__name__)

NAMED_VERSIONS = "named versions"
"""The rewrite, as revision 0004 calls it."""

STEP_TASKS = 20
STEP_CHARACTERS = 4_000_000
"""Tasks, and characters of their artifacts, that one step reads; a task at least."""
PAUSE_SECONDS = 0.1
"""Between two steps."""
RETRY_SECONDS = 10.0
"""Until the next attempt, if another replica does it or the database cannot be used."""
TASKS_PER_REPORT = 1000

_KEY = (tasks.c.context_id, tasks.c.task_id)
_IT = rewrites.c.name == NAMED_VERSIONS


class _LastDone(NamedTuple):
    """The last task that is done: the position of the rewrite."""

    context_id: str
    task_id: str


class _Busy(Exception):
    """Another replica does it."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What names versions in a task that was saved at the generation `snapshot`."""

    key: Key
    snapshot: int
    artifacts: str
    named: str | None
    freed: int


async def name_versions(
    database: Database, replica: LeaseHolder, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Do all that is left to do.

    Args:
        replica: this one.
        pause: sleeps for some seconds.
    """
    report = _Report()
    while True:
        try:
            if not await _step(database, replica, report):
                return
        except (_Busy, Unavailable):
            await pause(RETRY_SECONDS)
        else:
            await pause(PAUSE_SECONDS)


class _Report:
    """Says in the log how far it is."""

    def __init__(self) -> None:
        self._done = self._named = self._freed = 0
        self._left: int | None = None

    async def begin(self, connection: AsyncConnection, done: _LastDone) -> None:
        if self._left is None:
            query = select(func.count()).select_from(tasks).where(tuple_(*_KEY) > tuple_(*done))
            self._left = await connection.scalar(query) or 0
            logger.info("The artifacts of %d earlier tasks are compared with their versions", self._left)

    def add(self, done: int, changes: Sequence[_Change]) -> None:
        before, self._done = self._done, self._done + done
        self._named += len(changes)
        self._freed += sum(change.freed for change in changes)
        if before // TASKS_PER_REPORT < self._done // TASKS_PER_REPORT:
            logger.info(
                "%d of %s earlier tasks are compared, %d name their versions", self._done, self._left, self._named
            )

    def end(self) -> None:
        if self._left is not None:
            said = "%d earlier tasks name their versions now, which frees about %d characters in the database"
            logger.info(said, self._named, self._freed)


async def _step(database: Database, replica: LeaseHolder, report: _Report) -> bool:
    """Whether there may be more to do.

    Raises:
        _Busy: another replica does it.
    """
    async with database.read() as connection:
        found = (await connection.execute(select(rewrites).where(_IT))).one_or_none()
        if found is None:
            return False
        if found.holder not in (None, replica.id) and await replica.alive(connection, found.holder):
            raise _Busy
        done = _LastDone(found.context_id, found.task_id)
        await report.begin(connection, done)
        rows = await _next(connection, done)
        changes = [change for row in rows if (change := await _change(connection, row))]
    async with database.write() as connection:
        same = (rewrites.c[name].is_not_distinct_from(value) for name, value in found._mapping.items())
        last = {"context_id": rows[-1].context_id, "task_id": rows[-1].task_id} if rows else {}
        moved = update(rewrites).values(holder=replica.id, **last) if rows else delete(rewrites)
        if (await connection.execute(moved.where(*same))).rowcount == 0:
            raise _Busy
        for change in changes:
            await connection.run_sync(_rewrite, change)
    report.add(len(rows), changes)
    if not rows:
        report.end()
    return bool(rows)


async def _next(connection: AsyncConnection, done: _LastDone) -> list[Any]:
    """The next tasks, a few (rule 1)."""
    query = select(*_KEY, tasks.c.state, tasks.c.snapshot, tasks.c.artifacts, tasks.c.named)
    query = query.where(tuple_(*_KEY) > tuple_(*done)).order_by(*_KEY).limit(STEP_TASKS)
    rows: list[Any] = []
    found = await connection.stream(query)
    async for row in found:
        rows.append(row)
        if sum(len(each.artifacts) for each in rows) > STEP_CHARACTERS:
            break
    await found.close()
    return rows


async def _change(connection: AsyncConnection, row: Any) -> _Change | None:
    """None if the task has no artifact that could name its version."""
    if row.named is not None or row.state in UNSETTLED:  # what works now is saved when it settles
        return None
    await asyncio.sleep(0)
    try:
        artifacts = artifacts_of_json(row.artifacts)
    except Exception:
        logger.warning(
            "The artifacts of the task cannot be read; they stay as they are", extra=about(row.task_id, row.context_id)
        )
        return None
    keys = {VersionKey.of(row.context_id, each.artifact_id, each.version): each for each in artifacts.values()}
    contents = await connection.run_sync(version_contents, keys)
    names = {each.artifact_id: _name(each) for key, each in keys.items() if _same(each, contents.get(key))}
    if not names:
        return None
    written = artifacts_to_json(artifacts, names)
    freed = len(row.artifacts) - len(written)
    return _Change((row.context_id, row.task_id), row.snapshot, written, names_to_json(names.values()), freed)


def _name(artifact: TaskArtifact) -> NamedVersion:
    return NamedVersion(artifact.artifact_id, artifact.version, artifact.content.size)


def _same(artifact: TaskArtifact, content: Content | None) -> bool:
    # As JSON, because 1 and true are equal in Python.
    return content is not None and content_json(artifact.content) == content_json(content)


def _rewrite(connection: Connection, change: _Change) -> None:
    as_read = tasks.c.snapshot == change.snapshot, tasks.c.named.is_(None), tasks.c.state.not_in(UNSETTLED)
    this = tasks.c.context_id == change.key[0], tasks.c.task_id == change.key[1]
    before = connection.scalar(select(RECORD_SIZE).where(*this).with_for_update())
    written = update(tasks).where(*this, *as_read).values(artifacts=change.artifacts, named=change.named)
    after = connection.scalar(written.returning(RECORD_SIZE))
    if after is not None:
        add_kept(connection, {change.key[0]: after - (before or 0)})
