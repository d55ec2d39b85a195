"""The bindings over a runtime whose journal can be away, on loopback, and what they answer as it goes over the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import Any

import grpc
import grpc.aio
import httpx
import uvicorn
from a2a.compat.v0_3.a2a_v0_3_pb2_grpc import A2AServiceStub as Stub03
from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub as Stub10
from starlette.applications import Starlette
from starlette.middleware import Middleware

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.accounts.sharing import InMemoryShares, Sharing
from a2a_canvas.server.protocols.a2a_v1.bindings.grpc_server import grpc_server
from a2a_canvas.server.protocols.a2a_v1.bindings.http_json import rest_route
from a2a_canvas.server.protocols.a2a_v1.bindings.jsonrpc import jsonrpc_route
from a2a_canvas.server.protocols.a2a_v1.operations.handler import A2AHandler
from a2a_canvas.server.protocols.agui.routes import AgUiConfig, agui_routes
from a2a_canvas.server.protocols.artifacts.routes import artifact_routes
from a2a_canvas.server.protocols.edge.shutdown import GracefulServer, Shutdown, ShutdownMiddleware
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.server.protocols.pipeline.http_pipeline import HttpPipeline
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.context_log import ContextSubscription
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, TaskSubscription
from a2a_canvas.server.tasks.journal.listing import TaskPage, TaskQuery
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.admission import Admission
from tests.fakes import Hold, answer, ids, said, text, write
from tests.free_port import free_port
from tests.loopback import listening
from tests.server.protocols.agui.agui_runs import ScriptedRuntime
from tests.server.protocols.push_fixtures import push_operations

Json = dict[str, Any]
V10 = {"A2A-Version": "1.0"}
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "contextId": "c", "parts": [{"text": "Go"}]}
MESSAGE_03 = {
    "messageId": "m",
    "role": "user",
    "contextId": "c",
    "kind": "message",
    "parts": [{"kind": "text", "text": "Go"}],
}
REST_03 = {"messageId": "m", "role": "ROLE_USER", "contextId": "c", "content": [{"text": "Go"}]}
RUN = {"threadId": "c", "runId": "r", "messages": [{"id": "r", "role": "user", "content": "Go"}]}


class FailingJournal(InMemoryJournal):
    """A journal that can be made to fail.

    Attributes:
        error: raised by every call; None if the journal is available.
        answers: every call waits until it is set.
    """

    def __init__(self) -> None:
        super().__init__(lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self.error: BaseException | None = None
        self.answers = asyncio.Event()
        self.answers.set()

    def fail(self, error: Exception) -> None:
        """Whoever follows anything gets `error` when they have read everything."""
        for log in (*self._logs.values(), *self._context_logs.values()):
            log.fail(error)

    def mend(self) -> None:
        """Whoever follows anew reads on."""
        for log in (*self._logs.values(), *self._context_logs.values()):
            log.failure = None

    async def find_duplicate(self, key: str) -> str:
        await self._answer()
        return await super().find_duplicate(key)

    async def get(self, task_id: str) -> TaskRecord:
        await self._answer()
        return await super().get(task_id)

    async def find_context_and_owner(self, task_id: str) -> tuple[str, str]:
        await self._answer()
        return await super().find_context_and_owner(task_id)

    async def follow(self, task_id: str) -> TaskSubscription:
        await self._answer()
        return await super().follow(task_id)

    async def follow_context(self, context_id: str) -> ContextSubscription:
        await self._answer()
        return await super().follow_context(context_id)

    async def context(self, context_id: str) -> tuple[TaskRecord, ...]:
        await self._answer()
        return await super().context(context_id)

    async def list(self, query: TaskQuery) -> TaskPage:
        await self._answer()
        return await super().list(query)

    async def _answer(self) -> None:
        await self.answers.wait()
        if self.error:
            raise self.error


@dataclass
class Edge:
    """The server, and raw ways to it."""

    world: ScriptedRuntime
    journal: FailingJournal
    hold: Hold
    app: Starlette
    server: GracefulServer
    http: httpx.AsyncClient
    grpc10: Any
    grpc03: Any

    async def begin(self) -> str:
        """Begin a task that has written to the artifact `doc` and holds; its id."""
        following = await self.world.runtime.send(Incoming(said("m-1", "Write"), context_id="c"), ANONYMOUS)
        await self.hold.reached.wait()
        return following.snapshot.task_id


def edge_app(world: ScriptedRuntime, shutdown: Shutdown, handler: A2AHandler) -> Starlette:
    now, contexts = world.runtime._now, world.runtime.contexts
    agui = AgUiConfig(world.runtime, BodyLimits(), ids("run"))
    return Starlette(
        routes=[
            jsonrpc_route(handler),
            *artifact_routes(
                contexts,
                Sharing(contexts.access, InMemoryShares(now), now, ids("share")),
                BodyLimits(),
                meter=world.runtime.meter,
            ),
            *agui_routes(agui),
            rest_route(handler, "/rest"),
        ],
        middleware=[
            Middleware(HttpPipeline, limits=BodyLimits()),
            Middleware(ShutdownMiddleware, shutdown=shutdown),
        ],
    )


@asynccontextmanager
async def edge(
    close: Callable[[], Awaitable[None]] | None = None, grace: float = 5, admission: Admission | None = None
) -> AsyncIterator[Edge]:
    """The server on loopback.

    Args:
        close: in place of the runtime's.
        admission: how many turns run at once, and how many wait.
    """
    journal, hold = FailingJournal(), Hold()
    calls = [answer(*write("T1", "Half")), answer(*text("Done."), hold), answer(*text("Hello."))]
    world = ScriptedRuntime(calls, journal=journal, admission=admission)
    handler = A2AHandler(world.runtime, pb.AgentCard(default_input_modes=["text/plain"]), push_operations())
    shutdown = Shutdown(close or world.runtime.close, grace)
    port = free_port()
    shutdown.grpc_server = grpc_server(handler, "127.0.0.1", port, BodyLimits(max_body_bytes=2**20))
    await shutdown.grpc_server.start()
    with listening() as (listener, http_port):
        app, last = edge_app(world, shutdown, handler), max(1, ceil(grace))
        config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=last, lifespan="off")
        server = GracefulServer(config, shutdown)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        url = f"http://127.0.0.1:{http_port}"
        async with (
            httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as http,
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
        ):
            assert (await http.get("/artifacts")).status_code == 200
            try:
                yield Edge(world, journal, hold, app, server, http, Stub10(channel), Stub03(channel))  # type: ignore[no-untyped-call]
            finally:
                server.should_exit = True
                await running
                await world.runtime.close()


def rpc(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


async def sse(response: httpx.Response) -> AsyncGenerator[tuple[str, Json], None]:
    """(event, data) of an SSE answer. A chunked answer that is cut raises."""
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            yield name, json.loads(line.removeprefix("data:"))
            name = ""


@asynccontextmanager
async def streaming(http: httpx.AsyncClient, *request: Any, **options: Any) -> AsyncIterator[AsyncGenerator[Any, None]]:
    """The events of an SSE answer to a request."""
    async with http.stream(*request, **options) as response, aclosing(sse(response)) as events:
        assert response.status_code == 200
        yield events
