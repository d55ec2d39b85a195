"""A backend whose contexts are filled step by step, as turns would: in memory, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from a2a_canvas.server.agent.events import State, StatusChanged, TurnEvent
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.backend.backend import MemoryBackend
from a2a_canvas.server.backend.sql_backend import SqlBackend
from a2a_canvas.server.tasks.journal.owned_contexts import ContextPage, ContextQuery, ContextSummary, words_of
from a2a_canvas.server.tasks.journal.text_search import TextPage, TextQuery, search_texts
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.changes import Change, ReplaceParts
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.ids import context_key, public_id
from a2a_canvas.store.models import Limits, Ref, text_part
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.fakes import Clock, said
from tests.new_database import create_tables

BACKENDS = ("memory", "sqlite", "postgresql")
SECOND = timedelta(seconds=1)


class ContextHarness:
    """Each step happens a second after the one before."""

    def __init__(self, backend: MemoryBackend | SqlBackend, clock: Clock) -> None:
        self.backend = backend
        self.clock = clock
        self.contexts = backend.contexts
        self._of_task: dict[str, str] = {}

    async def begin(self, task: str, context: str = "c", owner: str = "", request: str = "Go") -> None:
        self.clock.move(SECOND)
        context = self._of_task[task] = context_key(owner, context)
        record = TaskRecord(task, context, owner, self.clock(), history=(said(f"m-{task}", request),))
        await self.backend.journal.create(record, f"key-{task}")
        await self.backend.journal.flushed(task)
        await self.reach(task, State.WORKING)

    async def reach(self, task: str, state: State = State.COMPLETED) -> None:
        await self._emit(task, StatusChanged(state))

    async def _emit(self, task: str, event: TurnEvent) -> None:
        self.clock.move(SECOND)
        await self.backend.journal.append(task, event)
        await self.backend.journal.flushed(task)

    async def write(self, task: str, artifact: str, text: str = "Text", name: str = "") -> None:
        await self.change(task, artifact, ReplaceParts((text_part(text),), name=name or None, last_chunk=True))

    async def change(self, task: str, artifact: str, change: Change) -> None:
        async def emit(event: TurnEvent) -> None:
            await self._emit(task, event)

        store = EventedArtifactStore(self.backend.store, listener(emit))
        ref = Ref(self._of_task[task], artifact, task)
        await store.prepare(ref)
        await store.apply(ref, change)

    async def run(self, task: str, context: str = "c", owner: str = "", request: str = "Go") -> None:
        await self.begin(task, context, owner, request)
        await self.reach(task)

    async def page(self, owner: str = "", query: str = "", **more: Any) -> ContextPage:
        return await self.contexts.list(ContextQuery((owner,), words_of(query), **more))

    async def list(self, owner: str = "", query: str = "") -> tuple[ContextSummary, ...]:
        return (await self.page(owner, query)).contexts

    async def search(self, text: str, owner: str = "", **more: Any) -> TextPage:
        query = TextQuery((owner,), words_of(text), **more)
        return await search_texts(query, self.contexts.texts(query), asyncio.Lock())

    async def found(self, text: str, owner: str = "", **more: Any) -> list[tuple[str, str, int, list[int]]]:
        """Context, artifact, version and the numbers of the lines."""
        texts = (await self.search(text, owner, **more)).texts
        return [
            (public_id(each.context_id), each.artifact_id, each.version, [line.number for line in each.lines])
            for each in texts
        ]

    async def ids(self, owner: str = "", query: str = "") -> list[str]:
        return [public_id(each.context_id) for each in await self.list(owner, query)]


@asynccontextmanager
async def open_contexts(backend: str, folder: Path) -> AsyncIterator[ContextHarness]:
    clock = Clock()
    if backend == "memory":
        yield ContextHarness(MemoryBackend(clock, Limits()), clock)
        return
    url = sqlite_url(folder) if backend == "sqlite" else postgresql_url()
    database = Database(url)
    await create_tables(database)
    durable = SqlBackend(database, clock, Limits(), spacing=0)
    await durable._lease.register()
    durable.commits.start()
    try:
        yield ContextHarness(durable, clock)
    finally:
        await durable.stop()
