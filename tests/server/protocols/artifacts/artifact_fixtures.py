"""A store and a journal with tasks that write, and the artifact routes over them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.types import ASGIApp

from a2a_canvas.server.accounts.sharing import InMemoryShares, Sharing
from a2a_canvas.server.agent.events import TurnEvent
from a2a_canvas.server.agent.listener import listener
from a2a_canvas.server.protocols.artifacts.routes import artifact_routes
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.changes import Change
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.ids import context_key
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Author, Ref
from tests.fakes import Clock, contexts_of, ids, said
from tests.loopback import serving_app
from tests.sse_events import sse_events


class ArtifactHarness:
    """Tasks are begun when they first write."""

    def __init__(self, context: str = "ctx", journal: type[InMemoryJournal] = InMemoryJournal) -> None:
        self.context = context
        self.store = InMemoryArtifactStore(now=Clock())
        self.clock = Clock()
        self.journal = journal(self.clock)
        self.shares = InMemoryShares(self.clock)
        self.contexts = contexts_of(self.journal, self.store, self.shares)
        self.sharing = Sharing(self.contexts.access, self.shares, self.clock, ids("share"), "http://here")
        self._writers: dict[str, EventedArtifactStore] = {}

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[*artifact_routes(self.contexts, self.sharing, BodyLimits())])

    async def begin(self, task_id: str, owner: str = "") -> EventedArtifactStore:
        async def emit(event: TurnEvent) -> None:
            await self.journal.append(task_id, event)

        if task_id not in self._writers:
            asks = said("m", f"Do the work of {task_id}")
            await self.journal.create(
                TaskRecord(task_id, context_key(owner, self.context), owner, self.clock(), history=(asks,))
            )
            self._writers[task_id] = EventedArtifactStore(self.store, listener(emit))
        return self._writers[task_id]

    async def do(self, change: Change, artifact: str = "doc", task: str = "task", author: Author = "agent") -> None:
        writer = await self.begin(task)
        await writer.apply(Ref(self.context, artifact, task, author), change)

    async def resend(self, artifact: str, task: str) -> None:
        """As after an edit that was aborted."""
        await (await self.begin(task)).resend(Ref(self.context, artifact, task))

    async def close(self, task: str) -> None:
        await (await self.begin(task)).close_all()

    async def position(self) -> int:
        return (await self.journal.follow_context(self.context)).snapshot.position

    async def event_id(self, position: int) -> str:
        return f"{(await self.journal.follow_context(self.context)).snapshot.incarnation}-{position}"

    async def get(
        self, path: str, method: str = "GET", root: str = "", content: str = "", **headers: str
    ) -> httpx.Response:
        """`path` is what follows `/artifacts/`; a path that begins with a slash is the whole."""
        transport = httpx.ASGITransport(self.app, root_path=root)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.request(
                method,
                root + (path if path[:1] == "/" else f"/artifacts/{path}"),
                headers={"Accept": "*/*", **named},
                content=content,
            )


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    """The application on loopback."""
    async with (
        serving_app(lambda _: app) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client,
    ):
        yield client


@dataclass(frozen=True)
class Event:
    id: str
    data: dict[str, Any]

    @property
    def update(self) -> dict[str, Any]:
        update: dict[str, Any] = self.data["artifactUpdate"]
        return update


async def events(client: httpx.AsyncClient, context: str, last: str | None = None) -> AsyncGenerator[Event, None]:
    """The changes of a context, from a connection that is closed with the iterator."""
    headers = {} if last is None else {"Last-Event-ID": last}
    async with aclosing(_events(client, context, headers)) as stream:
        async for fields in stream:
            if "event" not in fields:
                yield Event(fields["id"], json.loads(fields["data"]))


async def activities(client: httpx.AsyncClient, context: str) -> AsyncGenerator[Any, None]:
    """The activity of a context, from a connection that is closed with the iterator."""
    async with aclosing(_events(client, context, {})) as stream:
        async for fields in stream:
            if fields.get("event") == "activity":
                assert {*fields} == {"event", "data"}
                yield json.loads(fields["data"])


async def _events(
    client: httpx.AsyncClient, context: str, headers: dict[str, str]
) -> AsyncGenerator[dict[str, str], None]:
    """The fields of each event."""
    async with client.stream("GET", f"/artifacts/{context}/events", headers=headers) as response:
        assert response.status_code == 200
        async for fields in sse_events(response):
            yield fields
