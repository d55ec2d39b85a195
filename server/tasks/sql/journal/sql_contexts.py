"""The contexts of an owner, in a database. `journal/owned_contexts.py` has the rules.

Rule 1: a page costs what its contexts have: one row each, the states of their tasks, the names of their artifacts.
        Neither tasks nor artifacts are read. A search also reads the rows of the contexts that it passes, in steps,
        and at most `MAX_SEARCHED` of them.
Rule 2: the texts of a search are read as they are stored, some at a time, and a large one alone: their reader decodes
        them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, case, func, literal, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.errors import ContextNotFound
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.journal.listing import ListPosition
from a2a_canvas.server.tasks.journal.owned_contexts import (
    MAX_SEARCHED,
    ContextPage,
    ContextQuery,
    ContextSummary,
    check_removable,
    matches,
    title_of,
)
from a2a_canvas.server.tasks.journal.text_search import ReadText, StoredText, TextPosition, TextQuery
from a2a_canvas.server.tasks.sql.journal.removal import FreezeContext, remove_context
from a2a_canvas.server.tasks.sql.projections import owned_rows
from a2a_canvas.server.tasks.sql.projections.latest_changes import read_names
from a2a_canvas.server.tasks.sql.projections.owned_rows import owned_contexts
from a2a_canvas.server.tasks.sql.projections.records import PAUSED, UNSETTLED, tasks
from a2a_canvas.server.tasks.sql.projections.replicas import has_lease
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Content
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.reading import VersionKey, stored_contents, stored_sizes
from a2a_canvas.store.sql.tables import ContextKeyText, artifacts
from a2a_canvas.store.sql.times import from_microseconds, to_microseconds

RELEASE_SECONDS = 5.0
"""Seconds to wait until nobody holds the lease of an artifact; an unused one is retained for a second."""
POLL_SECONDS = 0.05
"""Seconds between two attempts."""
ROWS_PER_STEP = 200
"""Contexts that a search reads and compares in one step of the event loop: about 1 ms."""

TEXTS_PER_STEP = 8
"""Texts that a search reads at once."""
CHARACTERS_PER_STEP = 1_000_000
"""Characters of them, as they are stored, unless it is one text."""

Rows = Sequence[RowMapping]

_POSITION = (owned_contexts.c.changed_at, owned_contexts.c.context_id)


class SqlContexts:
    """`Contexts` in a database.

    Args:
        freeze: `SqlArtifactStore.frozen`.
        notify: lets the other replicas look at everything that they follow, when a transaction commits.
        refresh: looks at everything that is followed here.
    """

    def __init__(
        self,
        database: Database,
        freeze: FreezeContext,
        notify: Callable[[Connection], None],
        refresh: Callable[[], Awaitable[None]],
    ) -> None:
        self._database = database
        self._freeze = freeze
        self._notify = notify
        self._refresh = refresh

    async def list(self, query: ContextQuery) -> ContextPage:
        found, passed = await self._find(query)
        page = found[: query.limit]
        return ContextPage(await self._summaries(page), _position(page[-1]) if len(found) > query.limit else passed)

    async def texts(self, query: TextQuery) -> AsyncGenerator[StoredText, None]:
        after, more = query.after, True
        while more:
            rows = await self._rows(_current_texts(query, after))
            after, more = _text_position(rows[-1]) if rows else None, len(rows) == ROWS_PER_STEP
            while rows:
                async with self._database.read() as connection:
                    some = await connection.run_sync(_read_at_once, rows[:TEXTS_PER_STEP])
                    contents = await connection.run_sync(stored_contents, [_version_key(row) for row in some])
                rows = rows[len(some) :]
                for row in some:
                    read = partial(_read_text, contents.get(_version_key(row)))
                    title = title_of(row["context_id"], row["name"], row["request"])
                    yield StoredText(_text_position(row), row["context_id"], title, row["current"], read)

    async def get(self, context_id: ContextKey, owner: str) -> ContextSummary:
        rows = await self._rows(select(owned_contexts).where(*owned_rows.is_owned(context_id, owner)))
        if not rows:
            raise ContextNotFound(context_id)
        return (await self._summaries(rows))[0]

    async def rename(self, context_id: ContextKey, owner: str, name: str | None) -> ContextSummary:
        async with self._database.write() as connection:
            await owned_rows.rename(connection, context_id, owner, name)
        return await self.get(context_id, owner)

    async def let_agents_suggest(self, context_id: ContextKey, owner: str, on: bool) -> ContextSummary:
        async with self._database.write() as connection:
            await owned_rows.let_agents_suggest(connection, context_id, owner, on)
        return await self.get(context_id, owner)

    async def agents_suggest(self, context_id: ContextKey, owner: str) -> bool:
        async with self._database.read() as connection:
            return await owned_rows.agents_suggest(connection, context_id, owner)

    async def remove(self, context_id: ContextKey, owner: str) -> None:
        async def check(connection: AsyncConnection) -> bool:
            await _check_removable(connection, context_id, owner)
            held = select(artifacts.c.holder).where(artifacts.c.context_id == context_id, has_lease()).limit(1)
            if await connection.scalar(held) is not None:
                return False
            await connection.run_sync(self._notify)
            return True

        async with self._database.read() as connection:
            await _check_removable(connection, context_id, owner)
        end = asyncio.get_running_loop().time() + RELEASE_SECONDS
        while not await remove_context(self._database, context_id, self._freeze, check):
            if asyncio.get_running_loop().time() > end:
                raise Unavailable("an artifact of the context is still in use")
            await asyncio.sleep(POLL_SECONDS)
        await self._refresh()

    async def _summaries(self, rows: Rows) -> tuple[ContextSummary, ...]:
        ids = [row["context_id"] for row in rows]
        async with self._database.read() as connection:
            counts = await _count_tasks(connection, ids)
            names = await read_names(connection, ids)
        return tuple(_summary(row, counts.get(row["context_id"], (0, 0, 0)), names[row["context_id"]]) for row in rows)

    async def _find(self, query: ContextQuery) -> tuple[Rows, ListPosition | None]:
        """The rows of one context more than the page has, if there is one; and where to continue the search."""
        if not query.words:
            return await self._rows(_newest(query, query.after, query.limit + 1)), None
        found: list[RowMapping] = []
        after, left = query.after, MAX_SEARCHED
        while left and len(found) <= query.limit:
            step = min(left, ROWS_PER_STEP)
            rows = await self._rows(_newest(query, after, step))
            found += await self._matching(query.words, rows)
            if len(rows) < step:
                return found, None
            after, left = _position(rows[-1]), left - step
        return found, after

    async def _matching(self, words: tuple[str, ...], rows: Rows) -> Rows:
        async with self._database.read() as connection:
            names = await read_names(connection, [row["context_id"] for row in rows])
        return [row for row in rows if matches(words, row["name"], row["request"], names[row["context_id"]].values())]

    async def _rows(self, query: Select[Any]) -> Rows:
        async with self._database.read() as connection:
            found: Rows = (await connection.execute(query)).mappings().all()
        return found


def _is_listed(query: ContextQuery | TextQuery) -> ColumnElement[bool]:
    listed: ColumnElement[bool] = owned_contexts.c.owner.in_(query.owners)
    # A key names its owner, but for the contexts of anonymous callers, which have no other one.
    return or_(listed, owned_contexts.c.context_id.in_(query.shared)) if query.shared else listed


def _current_texts(query: TextQuery, after: TextPosition | None) -> Select[Any]:
    """The current versions of the next artifacts."""
    rows = select(
        *_POSITION, owned_contexts.c.name, owned_contexts.c.request, artifacts.c.artifact_id, artifacts.c.current
    )
    rows = rows.join_from(owned_contexts, artifacts, owned_contexts.c.context_id == artifacts.c.context_id)
    rows = rows.where(_is_listed(query), artifacts.c.current > 0)
    if after:
        of_context, artifact_id = _bind_position(after[:2]), after[2]
        later = and_(tuple_(*_POSITION) == of_context, artifacts.c.artifact_id > artifact_id)
        # The first condition is redundant, but it bounds the range of the index; an OR does not.
        rows = rows.where(tuple_(*_POSITION) <= of_context, or_(tuple_(*_POSITION) < of_context, later))
    return rows.order_by(*(column.desc() for column in _POSITION), artifacts.c.artifact_id).limit(ROWS_PER_STEP)


def _bind_position(position: ListPosition) -> ColumnElement[Any]:
    """A position, to be compared with `_POSITION`."""
    return tuple_(to_microseconds(position[0]), literal(position[1], ContextKeyText))


def _read_at_once(connection: Connection, rows: Rows) -> Rows:
    """The first of these artifacts: as many as are not too large together, and one at least."""
    keys = [_version_key(row) for row in rows]
    sizes = stored_sizes(connection, keys)
    sums = accumulate(sizes.get(key.artifact, 0) for key in keys)
    return rows[: max(1, sum(size <= CHARACTERS_PER_STEP for size in sums))]


def _version_key(row: RowMapping) -> VersionKey:
    return VersionKey(row["context_id"], row["artifact_id"], row["current"])


def _text_position(row: RowMapping) -> TextPosition:
    return from_microseconds(row["changed_at"]), row["context_id"], row["artifact_id"]


def _read_text(decode: Callable[[], Content | None] | None) -> ReadText | None:
    content = decode() if decode else None
    return ReadText(content.name, content.text, content.size) if content else None


def _newest(query: ContextQuery, after: ListPosition | None, limit: int) -> Select[Any]:
    rows = select(owned_contexts).where(_is_listed(query))
    if after:
        rows = rows.where(tuple_(*_POSITION) < _bind_position(after))
    return rows.order_by(*(column.desc() for column in _POSITION)).limit(limit)


async def _check_removable(connection: AsyncConnection, context_id: ContextKey, owner: str) -> None:
    found = select(tasks.c.task_id, tasks.c.owner, tasks.c.state).where(tasks.c.context_id == context_id)
    rows = [(row.task_id, row.owner, State(row.state)) for row in await connection.execute(found)]
    check_removable(context_id, owner, rows)


def _position(row: RowMapping) -> ListPosition:
    return from_microseconds(row["changed_at"]), row["context_id"]


def _summary(row: RowMapping, counts: tuple[int, int, int], names: dict[str, str]) -> ContextSummary:
    return ContextSummary(
        row["context_id"],
        row["name"],
        row["request"],
        from_microseconds(row["created_at"]),
        from_microseconds(row["changed_at"]),
        tasks=counts[0],
        working=counts[1],
        waiting=counts[2],
        artifacts=names,
        agents_suggest=bool(row["agents_suggest"]),
    )


async def _count_tasks(connection: AsyncConnection, ids: Collection[str]) -> dict[str, tuple[int, int, int]]:
    """Of each context, how many tasks it has, how many of them are not settled, and how many wait."""
    working, waiting = (func.sum(case((tasks.c.state.in_(states), 1), else_=0)) for states in (UNSETTLED, PAUSED))
    query = select(tasks.c.context_id, func.count(), working, waiting).where(tasks.c.context_id.in_(ids))
    rows = await connection.execute(query.group_by(tasks.c.context_id))
    return {context_id: (count, int(some), int(others)) for context_id, count, some, others in rows}
